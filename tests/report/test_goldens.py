"""Crafted reports in every format, compared with the files in `goldens`.

The JSON of one report has every key; the others are read back. All pages have one style sheet,
which one golden contains.
"""

import json
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
WITH_STYLE = "all_pass"
STYLE = re.compile(r"(?<=<style>\n).*(?=</style>)", re.DOTALL)
FORMATS = [
    (name, format)
    for name in samples.ALL
    for format in Format
    # the page of drift has no part that other pages lack
    if format is not Format.JSON and (name, format) != ("drift", Format.HTML)
]


@pytest.mark.parametrize(("name", "format"), FORMATS)
def test_report_is_written_as_it_was(name: str, format: Format) -> None:
    text = render(samples.ALL[name](), format)
    if format is Format.HTML and name != WITH_STYLE:
        style = STYLE.search(render(samples.ALL[WITH_STYLE](), format))
        assert style is not None
        assert style[0] in text
        text = STYLE.sub("", text)
    is_golden(text, GOLDENS / f"{name}.{SUFFIX[format]}")


def test_document_is_written_as_it_was() -> None:
    is_golden(render(samples.one_of_each(), Format.JSON), GOLDENS / "one_of_each.json")


def test_a_document_has_every_key_even_if_it_has_no_item_of_that_kind() -> None:
    empty, full = (
        json.loads(render(report, Format.JSON))
        for report in (samples.report([]), samples.one_of_each())
    )
    assert empty.keys() == full.keys()


@pytest.mark.parametrize("name", samples.ALL)
def test_document_is_read_back(name: str) -> None:
    report = samples.ALL[name]()
    assert read_report(render(report, Format.JSON), "r.json") == report
