"""Rules: the registry, one module per rule; `judge` applies them to the facts of a cluster."""
