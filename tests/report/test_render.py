"""Every format shows each failing cell, and makes no text active."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.listeners.address import Address
from earshot.listeners.terms import Scope
from earshot.report import Format, render
from earshot.report.html import MARKS
from earshot.report.json import read_report
from earshot.report.markdown import escape
from earshot.validation.result import Cause, Cell, Report
from earshot.validation.terms import Stage, Verdict
from earshot.visible import visible
from tests.report import samples


class Page(HTMLParser):
    """Reads a page back: its tags, and the verdict of each cell of its matrix."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.verdicts: dict[str, str] = {}
        self.tags: set[str] = set()
        self.feed(render(report, Format.HTML))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        values = dict(attrs)
        if values.get("data-cell"):
            self.verdicts[str(values["data-cell"])] = str(values["data-verdict"])


words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(
    lambda text: text.strip() == text
)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    listeners = draw(st.lists(st.sampled_from(["INTERNAL", "EXTERNAL", "L3"]), unique=True))
    cells = []
    for vantage in draw(st.lists(st.sampled_from(["host", "executor-1"]), unique=True)):
        for listener in listeners:
            for broker in draw(st.lists(st.integers(1, 40), unique=True, max_size=12)):
                cells.append(draw(_cells(vantage, listener, broker)))
    return samples.report(cells, vantages=[], notes=draw(st.lists(words, max_size=2)))


@st.composite
def _cells(draw: st.DrawFn, vantage: str, listener: str, broker: int) -> Cell:
    verdict = draw(st.sampled_from(Verdict))
    failed = verdict == Verdict.FAIL
    cause = Cause(kind="timeout", observed=draw(words), expected=draw(words), remedy=draw(words))
    return Cell(
        vantage=vantage,
        listener=listener,
        broker=broker,
        scopes=(Scope.EXTERNAL,),
        address=Address(f"kafka-{broker}.example.com", 9000 + broker),
        verdict=verdict,
        stages=samples.stages(draw(st.sampled_from(Stage)) if failed else None),
        cause=cause if failed else None,
        reason="" if verdict in (Verdict.PASS, Verdict.FAIL) else draw(words),
    )


def failing(report: Report) -> list[Cell]:
    return [cell for cell in report.cells if cell.verdict == Verdict.FAIL]


@settings(max_examples=25, deadline=None)
@given(reports())
def test_every_failing_cell_is_named_in_text_and_markdown(report: Report) -> None:
    text = render(report, Format.TEXT)
    blocks = [" ".join(block.split()) for block in text.split("\n\n")]
    sections = render(report, Format.MARKDOWN).split("\n\n### ")
    for cell in failing(report):
        name = f"broker {cell.broker} ({cell.address})"
        start, end = f"FAIL {cell.listener}, ", f"from {cell.vantage} stage"
        assert any(block.startswith(start) and end in block and name in block for block in blocks)
        words = (f"{cell.listener}, ", f"from {cell.vantage}", escape(name))
        assert any(all(word in section for word in words) for section in sections), name


@settings(max_examples=25, deadline=None)
@given(reports())
def test_every_cell_is_one_case_of_junit(report: Report) -> None:
    root = ET.fromstring(render(report, Format.JUNIT).encode())
    cases = {(case.get("classname"), case.get("name")): case for case in root.iter("testcase")}
    assert len(cases) == len(report.cells)
    tags = {Verdict.FAIL: "failure", Verdict.INCONCLUSIVE: "error", Verdict.SKIP: "skipped"}
    for cell in report.cells:
        name = f"broker {cell.broker} ({cell.address})"
        outcome = [child.tag for child in cases[f"{cell.vantage}.{cell.listener}", name]]
        assert outcome == ([tags[cell.verdict]] if cell.verdict in tags else [])
    assert root.get("failures") == str(len(failing(report)))


@settings(max_examples=25, deadline=None)
@given(reports())
def test_every_cell_is_a_tile_of_the_page_and_json_is_the_report(report: Report) -> None:
    assert Page(report).verdicts == {
        f"{cell.vantage}/{cell.listener}/{cell.broker}": str(cell.verdict) for cell in report.cells
    }
    text = render(report, Format.JSON)
    assert read_report(text, "a file") == report
    assert json.loads(text)["run"] == report.run


@pytest.mark.parametrize("format", [Format.TEXT, Format.MARKDOWN, Format.JUNIT, Format.HTML])
def test_no_control_character_gets_through(format: Format) -> None:
    text = render(samples.hostile(), format)
    assert visible(text) == text


@pytest.mark.parametrize("format", Format)
def test_a_brokers_answer_begins_no_line(format: Format) -> None:
    """A line in the log of a CI run may be a command to its runner."""
    address = Address("b ##vso[task.x]\n::stop-commands::x\n", 9092)
    cause = Cause(kind="refused", observed="a", expected="b", remedy="c")
    cell = samples.failed(samples.cell("EXTERNAL", 1), Stage.TCP, cause)
    changes = {"listener": "A\n::error::x\nB", "address": address}
    report = samples.report([cell.model_copy(update=changes)])
    text = render(report, format)
    assert "##vso[" not in text and not re.search(r"^\s*::", text, re.MULTILINE)


def test_no_markup_gets_through_and_a_page_fetches_nothing() -> None:
    assert "script" not in Page(samples.hostile()).tags
    assert "<script" not in render(samples.hostile(), Format.MARKDOWN).replace("\\<", "")
    assert "default-src 'none'" in render(samples.all_pass(), Format.HTML)
    assert not {"link", "img", "iframe", "script"} & Page(samples.all_pass()).tags


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        ("all_pass", ["Matrix", "Delivery", "Replication through INTERNAL", "Vantages"]),
        ("drift", ["Matrix", "What did not pass", "Notes"]),
    ],
)
def test_a_page_has_no_section_without_content(name: str, sections: list[str]) -> None:
    headings = re.findall("<h2>([^<]*)</h2>", render(samples.ALL[name](), Format.HTML))
    assert headings == ["Connections", *sections]


@pytest.mark.parametrize("brokers", [8, 9])
def test_markdown_has_a_row_for_each_broker_where_there_are_many(brokers: int) -> None:
    cells = [
        samples.cell(listener, broker)
        for listener in samples.LISTENERS
        for broker in range(1, brokers + 1)
    ]
    lines = render(samples.report(cells), Format.MARKDOWN).splitlines()
    if brokers == 8:
        names = " | ".join(f"broker {broker}" for broker in range(1, 9))
        assert f"| listener | scopes | {names} |" in lines
        assert sum(line.startswith("| EXTERNAL | host | ") for line in lines) == 1
    else:
        assert "| broker | INTERNAL | EXTERNAL |" in lines
        assert sum(line.startswith("| broker 9 | ") for line in lines) == 1


def test_each_verdict_has_its_own_mark_and_an_unknown_format_is_refused() -> None:
    assert len(set(MARKS.values())) == len(Verdict)
    with pytest.raises(ValueError, match="yaml"):
        render(samples.drift(), "yaml")
