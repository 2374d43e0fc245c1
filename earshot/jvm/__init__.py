"""Java and what runs on it: the runtime itself, jars by Maven coordinates, class-data archives."""
