"""A tunnel to a private cluster, through one machine: a local address for each broker."""
