"""Listeners of Kafka brokers: computed, checked and proved."""

__version__ = "0.1.0"
