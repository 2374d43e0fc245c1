"""Every crafted report in every format, as it stands on disk beside this file."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot.report import Format, render
from tests.goldens import is_golden
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
    is_golden(text, golden)
