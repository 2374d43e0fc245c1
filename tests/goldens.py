"""Texts on disk with which output is compared.

After an intended change: EARSHOT_WRITE_GOLDENS=1 pytest FILE, and read the difference.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from tests.skips import in_ci

VARIABLE = "EARSHOT_WRITE_GOLDENS"


def is_golden(text: str, path: Path) -> None:
    """Fails if ``text`` differs from the file at ``path``. With the variable it writes the file
    first, but not in CI, where every text would pass."""
    if os.environ.get(VARIABLE):
        if in_ci():
            pytest.fail(f"{VARIABLE} is set in CI: goldens are written on a desk", pytrace=False)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"meant? {VARIABLE}=1 pytest writes {path}"


def refusals_are_golden(
    cases: Iterable[Any], refuse: Callable[[Any], str | Sequence[str]], path: Path
) -> None:
    """Compares the refusal of each case, a text or lines, with the file at ``path``."""
    texts = []
    for case in cases:
        refusal = refuse(case)
        text = refusal if isinstance(refusal, str) else "\n".join(refusal)
        assert text and "Input should" not in text and "Value error" not in text, case
        texts.append(f"{case!r}\n{indent(text.strip(), '  ')}\n")
    is_golden("\n".join(texts), path)
