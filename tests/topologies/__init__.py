"""Random Compose topologies on a real Docker engine, and the model's walks beside what happens."""
