"""Vantages: standing where the clients of a scope stand, to validate its listeners from there."""
