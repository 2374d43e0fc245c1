"""Earshot's Pulumi provider: one plugin for its custom resources, its gate and its components."""
