"""From what a team already has (compose file, `server.properties`) to a stack file."""
