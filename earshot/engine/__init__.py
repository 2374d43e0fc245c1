"""Docker engines: the connection, and a client with limits."""
