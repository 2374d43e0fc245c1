"""What `make mutants` leaves out."""

from __future__ import annotations

import pytest

from tests.mutants.__main__ import REAL
from toolchain.paths import ROOT


@pytest.mark.parametrize("file", REAL)
def test_what_is_left_out_is_there(file: str) -> None:
    assert (ROOT / file).is_file()
