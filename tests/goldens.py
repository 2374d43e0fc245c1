"""Texts on disk that must come out as they are.

After a change that is meant: EARSHOT_WRITE_GOLDENS=1 pytest FILE, and read the difference.
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
    """Fails where ``text`` is not what ``path`` holds; writes it there first where that is asked,
    but never in CI, where it would pass whatever came out."""
    if os.environ.get(VARIABLE):
        if in_ci():
            pytest.fail(f"{VARIABLE} is set in CI: goldens are written on a desk", pytrace=False)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"meant? {VARIABLE}=1 pytest writes {path}"


def refusals_are_golden(
    cases: Iterable[Any], refuse: Callable[[Any], str | Sequence[str]], path: Path
) -> None:
    """Compares what ``refuse`` says of each case, its text or lines, with those at ``path``."""
    texts = []
    for case in cases:
        said = refuse(case)
        text = said if isinstance(said, str) else "\n".join(said)
        assert text and "Input should" not in text and "Value error" not in text, case
        texts.append(f"{case!r}\n{indent(text.strip(), '  ')}\n")
    is_golden("\n".join(texts), path)
