"""Every format against its golden, whole, and what must hold for all of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from earshot.lint.formats import SUFFIXES, LintFormat, render
from earshot.lint.model import FileReport, Place
from tests.goldens import is_golden
from tests.lint import samples
from tests.lint.samples import mistake, outcome

GOLDENS = Path(__file__).parent / "goldens"
ENDINGS = {format: suffix for suffix, format in SUFFIXES.items()} | {LintFormat.GITHUB: ".github"}


@pytest.mark.parametrize("name", samples.ALL)
@pytest.mark.parametrize("format", [item for item in LintFormat if item is not LintFormat.SARIF])
def test_golden(name: str, format: LintFormat) -> None:
    # SARIF holds every rule there is: tests/lint/test_sarif.py
    is_golden(render(samples.ALL[name](), format), GOLDENS / f"{name}{ENDINGS[format]}")


@pytest.mark.parametrize("format", LintFormat)
def test_every_format_says_what_was_not_judged_and_what_was_passed_over(format: LintFormat) -> None:
    unjudged = render(samples.unjudged(), format)
    assert "a.yml" in unjudged and "is not a Compose file" in unjudged and "not judged" in unjudged
    result = samples.outcome(FileReport("b.yml", "", unchecked=("is larger than 2 MB",)))
    assert "passed over" in render(result, format).replace("_", " ")


@pytest.mark.parametrize("format", LintFormat)
def test_every_format_ends_its_last_line(format: LintFormat) -> None:
    for make in samples.ALL.values():
        text = render(make(), format)
        assert text.endswith("\n") and not text.endswith("\n\n")


@pytest.mark.parametrize("format", LintFormat)
def test_no_format_shows_a_password(format: LintFormat) -> None:
    places = [Place("compose.yml", 5, column) for column in (0, 1, 10, 36, 99)]
    mistakes = [replace(mistake(), place=place) for place in places]
    text = render(outcome(FileReport("compose.yml", "Compose file", tuple(mistakes))), format)
    assert "hunter2" not in text


@pytest.mark.parametrize("format", LintFormat)
def test_no_text_of_a_file_steers_a_terminal(format: LintFormat) -> None:
    finding = replace(samples.finding(), observed="a\x1b[2J\x9b\u202eb", host="x")
    bad = replace(mistake(), finding=finding, place=Place("\x1b[2J.yml", 1, 1))
    ignored = replace(bad, ignored="\x1b[2J")
    report = FileReport("\x1b[2J.yml", "Compose \x1b[2J", (bad, ignored), ("\x1b[2J",))
    text = render(outcome(report, FileReport("\x1b[2J", "", unchecked=("\x1b",))), format)
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)


@pytest.mark.parametrize("format", LintFormat)
def test_no_text_of_a_file_begins_a_line(format: LintFormat) -> None:
    """In the log of a CI run, such a line may be a command to its runner."""
    evil = "a\n::error::x"
    bad = replace(mistake(), finding=replace(samples.finding(), container=evil))
    report = FileReport(evil, "Compose file", (bad, replace(bad, ignored=evil)), (evil,))
    assert "\n::error::x" not in render(outcome(report), format)


@pytest.mark.parametrize("format", LintFormat)
def test_a_name_that_is_no_utf_8_can_be_written(format: LintFormat) -> None:
    name = b"a\xff.yml".decode("utf-8", "surrogateescape")
    report = FileReport(name, "Compose file", (replace(mistake(), place=Place(name, 1)),))
    assert render(outcome(report), format).encode()
