"""Certificates: which names one is good for, an authority of a stack and what it issues."""
