"""The two reasons for which a test may not run, and that a CI machine knows only one of them."""

import os
from typing import NoReturn

import pytest


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true")


def lacking(reason: str) -> NoReturn:
    """Skip the test; in CI fail it, for a CI machine has been given everything."""
    if in_ci():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def not_meant(reason: str) -> NoReturn:
    """Skip the test, in CI too: nothing is lacking, this machine is just not the case it is of."""
    pytest.skip(reason)
