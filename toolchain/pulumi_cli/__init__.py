"""The Pulumi CLI: an official one where there is or can be one, else built from its Go module."""
