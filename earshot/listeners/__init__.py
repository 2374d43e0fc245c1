"""Listeners: their grammar and model, and the way to Kafka's settings and back."""
