"""Text on stdout, whatever stands behind it."""

from __future__ import annotations

import io
import sys

import pytest

from earshot.cli.output import emit


@pytest.mark.parametrize(
    ("encoding", "written"),
    [("utf-8", "é → x\n"), ("latin-1", "é \\u2192 x\n"), ("ascii", "\\xe9 \\u2192 x\n")],
)
def test_what_an_encoding_lacks_is_escaped(
    encoding: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    emit("é → x\n")
    sys.stdout.flush()
    assert raw.getvalue().decode(encoding) == written
