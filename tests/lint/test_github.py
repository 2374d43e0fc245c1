"""Workflow commands, as the runner of GitHub Actions reads them."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.lint.github import github
from earshot.lint.model import FileReport, Mistake, Place
from earshot.visible import visible
from tests.lint import samples
from tests.lint.samples import ERROR, IGNORED, NOTE, WARNING, outcome

COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)")


def unescaped(text: str) -> str:
    """What the runner makes of a property; a message has fewer escapes, and no others."""
    for code, char in {"0D": "\r", "0A": "\n", "3A": ":", "2C": ",", "25": "%"}.items():
        text = text.replace(f"%{code}", char)
    return text


def read(mistake: Mistake) -> tuple[str, dict[str, str], str]:
    text = github(outcome(FileReport("compose.yml", "Compose file", (mistake,))))
    line, summary = re.split(r"\r\n?|\n", text.strip("\n"))  # what ends a line for the runner
    assert summary.startswith("earshot lint: 1 file checked: ")
    match = COMMAND.fullmatch(line)
    assert match is not None, line
    pairs = (part.split("=", 1) for part in match[2].split(","))
    return match[1], {key: unescaped(value) for key, value in pairs}, unescaped(match[3])


@pytest.mark.parametrize(
    ("mistake", "command"), [(ERROR, "error"), (WARNING, "warning"), (NOTE, "notice")]
)
def test_a_command_for_each_level(mistake: Mistake, command: str) -> None:
    assert read(mistake)[0] == command


def test_properties_and_message() -> None:
    _, properties, message = read(ERROR)
    assert properties == {
        "file": "compose.yml",
        "line": "6",
        "col": "46",
        "title": "KL003 container kafka, broker 1, listener EXTERNAL (scope host)",
    }
    assert message == (
        "container kafka, broker 1, listener EXTERNAL (scope host): "
        "advertises 0.0.0.0, which is no address of anybody\n"
        "expected: a name that the clients can resolve\n"
        "fix: advertise localhost\n"
        "source: https://www.rfc-editor.org/rfc/rfc6890"
    )


def test_numbers_as_far_as_they_are_known() -> None:
    assert {"line", "col"} & set(read(NOTE)[1]) == set()
    place = Place("compose.yml", 6)
    assert {"line", "col"} & set(read(replace(ERROR, place=place))[1]) == {"line"}


def test_what_is_ignored_is_no_command() -> None:
    text = github(outcome(FileReport("compose.yml", "Compose file", (IGNORED,))))
    assert text == "earshot lint: 1 file checked: 0 errors, 0 warnings, 1 ignored\n"


def test_a_file_that_could_not_be_checked_is_an_error() -> None:
    first = github(samples.full()).splitlines()[0]
    assert first == "::error file=broken.yml,title=could not be checked::broken.yml: is no YAML"


@given(st.text(max_size=30), st.text(min_size=1, max_size=30))
def test_no_text_ends_a_command_or_begins_another(observed: str, name: str) -> None:
    place = Place(f"/etc/x{name}".replace("\0", ""), 1, 1)
    base_finding = samples.finding(observed=observed.replace("%", ""))
    _, properties, message = read(
        Mistake(replace(base_finding, container=name.replace("%", "")), place)
    )
    assert set(properties) == {"file", "line", "col", "title"}
    assert visible(observed.replace("%", "")) in message


@pytest.mark.parametrize("text", ["100%", "%0A", "%25", "a\nb", "::error::x"])
def test_percent_signs_stay_what_they_are(text: str) -> None:
    finding = samples.finding(observed=text)
    line = github(outcome(FileReport("c", "d", (Mistake(finding, ERROR.place),)))).splitlines()[0]
    escaped = visible(text).replace("%", "%25").replace("\n", "%0A")
    assert f": {escaped}%0Aexpected:" in line
