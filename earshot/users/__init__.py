"""Users and ACLs of a secured cluster, which Kafka stores in its metadata."""
