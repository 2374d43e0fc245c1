"""Arithmetic of the placement `aws`: subnets, and what roles may do. No I/O."""
