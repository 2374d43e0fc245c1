"""A private cluster on this machine: a local address for each broker, through one machine."""
