"""The configuration of a gateway that forwards clients' connections to the brokers."""
