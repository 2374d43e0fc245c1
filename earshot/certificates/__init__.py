"""Certificates: the hosts that one covers, and the authority and certificates of a stack."""
