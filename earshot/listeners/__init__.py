"""Listeners: their grammar, their model, the plan, and the way to Kafka's settings and back."""
