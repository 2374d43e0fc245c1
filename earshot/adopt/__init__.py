"""Creates a stack file from a compose file or a `server.properties`."""
