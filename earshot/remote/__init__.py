"""Vantages: validates the listeners of a scope from where its clients are."""
