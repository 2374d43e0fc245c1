"""Certificates: which hosts they cover, and the authority and certificates of a stack."""
