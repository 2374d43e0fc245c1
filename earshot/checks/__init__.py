"""Checks: sources, names and rules put together; what policy pack, plan and adopt call."""
