"""Random Compose topologies on a real Docker engine, compared with the model's walks."""
