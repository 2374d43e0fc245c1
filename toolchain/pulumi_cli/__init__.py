"""The Pulumi CLI: official if installed or downloadable, otherwise built from its Go module."""
