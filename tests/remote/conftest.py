"""Credentials of AWS, as tests of certificates have them."""

from tests.certificates.conftest import ambient

__all__ = ["ambient"]
