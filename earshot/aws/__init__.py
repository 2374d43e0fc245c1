"""Arithmetic of the placement `aws`: subnets, security groups, what a stack costs. No I/O."""
