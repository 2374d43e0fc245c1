"""Finds Java, fetches jars by Maven coordinates, and keeps class-data archives."""
