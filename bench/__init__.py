"""Measurements: each figure as a ratio against a peer or a bare baseline of the same run."""
