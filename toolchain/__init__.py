"""Sets up a bare machine for earshot: Python packages, the Pulumi CLI, Java, jars."""
