"""Pulumi's plugin for Docker, built for tests from the modules that the official one is made of."""
