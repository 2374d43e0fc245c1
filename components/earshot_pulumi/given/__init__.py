"""Listeners and proof for brokers that a program has already, or makes by other means."""
