"""The Pulumi CLI: official if installed or downloadable, else built from its Go module."""
