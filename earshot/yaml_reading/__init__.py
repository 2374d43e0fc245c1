"""YAML with the position of each value, and with the tags of Compose and CI files."""
