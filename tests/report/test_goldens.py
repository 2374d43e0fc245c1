"""Crafted reports in every format, compared with the files in `goldens`.

The JSON of three reports has every key between them; the others are read back. All pages have one
style sheet, which one golden contains.
"""

import re
from pathlib import Path

import pytest

from earshot.report import Format, render
from earshot.report.json import read_report
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


IN_JSON = ("all_pass", "hostile", "not_replicated")
WITH_STYLE = "all_pass"
STYLE = re.compile(r"(?<=<style>\n).*(?=</style>)", re.DOTALL)


@pytest.mark.parametrize(
    "format", [report_format for report_format in Format if report_format is not Format.JSON]
)
@pytest.mark.parametrize("name", samples.ALL)
def test_report_is_written_as_it_was(name: str, format: Format) -> None:
    text = render(samples.ALL[name](), format)
    if format is Format.HTML and name != WITH_STYLE:
        style = STYLE.search(render(samples.ALL[WITH_STYLE](), format))
        assert style is not None
        assert style[0] in text
        text = STYLE.sub("", text)
    is_golden(text, GOLDENS / f"{name}.{SUFFIX[format]}")


@pytest.mark.parametrize("name", IN_JSON)
def test_document_is_written_as_it_was(name: str) -> None:
    is_golden(render(samples.ALL[name](), Format.JSON), GOLDENS / f"{name}.json")


@pytest.mark.parametrize("name", samples.ALL)
def test_document_is_read_back(name: str) -> None:
    report = samples.ALL[name]()
    assert read_report(render(report, Format.JSON), "r.json") == report
