"""Subnets, images and policies of roles for placement `aws`, without input or output."""
