"""Every crafted report in every format, as it stands on disk beside this file.

After a change that is meant: EARSHOT_WRITE_GOLDENS=1 pytest tests/report/test_goldens.py, and read
the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from earshot.report import Format, render
from tests.report import samples

GOLDENS = Path(__file__).parent / "goldens"
SUFFIX = {
    Format.TEXT: "txt",
    Format.JSON: "json",
    Format.JUNIT: "xml",
    Format.MARKDOWN: "md",
    Format.HTML: "html",
}


@pytest.mark.parametrize("format", Format)
@pytest.mark.parametrize("name", samples.ALL)
def test_report_is_written_as_it_was(name: str, format: Format) -> None:
    golden = GOLDENS / f"{name}.{SUFFIX[format]}"
    text = render(samples.ALL[name](), format)
    if os.environ.get("EARSHOT_WRITE_GOLDENS"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
