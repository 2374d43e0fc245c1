"""Crafted reports in every format, compared with the files in `goldens`.

One report has one of each kind of item, and is compared in every format. The others are compared as
text, which shows the digest that all formats share, and where a part is only theirs: several
matrices of a page, and sections without content. All pages have one style sheet.
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
STYLE = re.compile(r"(?<=<style>\n).*(?=</style>)", re.DOTALL)


@pytest.mark.parametrize("name", samples.ALL)
def test_text_is_written_as_it_was(name: str) -> None:
    is_golden(render(samples.ALL[name](), Format.TEXT), GOLDENS / f"{name}.txt")


@pytest.mark.parametrize("format", Format)
def test_each_kind_of_item_is_written_as_it_was(format: Format) -> None:
    text = render(samples.one_of_each(), format)
    is_golden(text, GOLDENS / f"one_of_each.{SUFFIX[format]}")


def test_a_summary_without_deliveries_and_replication_is_written_as_it_was() -> None:
    is_golden(render(samples.drift(), Format.MARKDOWN), GOLDENS / "drift.md")


def test_a_page_of_several_vantages_is_written_as_it_was() -> None:
    page, other = (
        render(report, Format.HTML) for report in (samples.executor_fails(), samples.one_of_each())
    )
    assert STYLE.findall(page) == STYLE.findall(other)
    is_golden(STYLE.sub("", page), GOLDENS / "executor_fails.html")


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
