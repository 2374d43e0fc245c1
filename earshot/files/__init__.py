"""Reads and writes files safely: with limits, atomically, and for the user only."""
