"""Pulumi components: what turns a plan into running, gated and proven brokers."""
