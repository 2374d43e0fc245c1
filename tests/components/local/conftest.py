"""Fixtures of this folder."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may look into, which pytest's own do not let them."""
    with tempfile.TemporaryDirectory(prefix="earshot-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
