"""What a run comes to: exit code, counts, summary."""

from dataclasses import replace
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.lint.model import (
    FailedFile,
    FileReport,
    Mistake,
    Place,
    summary_line,
    where,
    without_repeats,
)
from tests.lint import samples
from tests.lint.samples import ERROR, IGNORED, NOTE, WARNING, outcome

FAILED = FailedFile("broken.yml", EarshotError("broken.yml", observed="is no YAML"))


def report(*mistakes: Mistake) -> FileReport:
    return FileReport("compose.yml", "Compose file", mistakes)


def unjudged(file: str, why: str = "is not a Compose file") -> FileReport:
    return FileReport(file, "", unchecked=(why,), is_named=True)


def in_part(file: str, *mistakes: Mistake, is_named: bool = True) -> FileReport:
    why = "service k: KAFKA_LISTENERS is not known: A://${IP}:9092"
    return FileReport(file, "Compose file", mistakes, is_named=is_named, open_listeners=(why,))


@pytest.mark.parametrize(
    ("reports", "code"),
    [
        ([report()], 0),
        ([report(WARNING)], 0),
        ([report(NOTE)], 0),
        ([report(IGNORED)], 0),
        ([report(ERROR)], 1),
        ([report(), report(ERROR)], 1),
        ([report(WARNING, NOTE, IGNORED, ERROR)], 1),
        ([unjudged("x.yml")], 3),
        ([report(WARNING), unjudged("x.yml")], 3),
        ([report(ERROR), unjudged("x.yml")], 1),
        ([in_part("x.yml")], 3),
        ([in_part("x.yml", WARNING)], 3),
        ([in_part("x.yml", ERROR)], 1),
        ([in_part("x.yml", is_named=False)], 0),
    ],
)
def test_the_exit_code(reports: list[FileReport], code: int) -> None:
    assert outcome(*reports).exit_code == code
    assert outcome(*reports, failed=(FAILED,)).exit_code == 2


NOT_JUDGED = "1 file checked: 0 errors, 0 warnings; 6 not judged: a.yml, b.yml, c.yml and 2 more"
IN_PART = "2 judged in part: x.yml (service k: KAFKA_LISTENERS is not known: A://${IP}:9092)"


@pytest.mark.parametrize(("reports", "summary"), [
    ([], "nothing to check"),
    ([report()], "1 file checked: 0 errors, 0 warnings"),
    ([report(ERROR)], "1 file checked: 1 error, 0 warnings"),
    ([report(ERROR, ERROR, WARNING)], "1 file checked: 2 errors, 1 warning"),
    ([report(NOTE, NOTE)], "1 file checked: 0 errors, 0 warnings, 2 notes"),
    ([report(IGNORED, ERROR)], "1 file checked: 1 error, 0 warnings, 1 ignored"),
    ([report(), *(unjudged(f"{letter}.yml") for letter in "abcde"),
      unjudged("x.properties", "is a client's")],
     f"{NOT_JUDGED} (is not a Compose file), x.properties (is a client's)"),
    ([in_part("x.yml"), in_part("y.yml", is_named=False), unjudged("z.yml")],
     ("2 files checked: 0 errors, 0 warnings; "
      f"1 not judged: z.yml (is not a Compose file); {IN_PART}")),
    ([in_part("y.yml", is_named=False)], "1 file checked: 0 errors, 0 warnings; 1 judged in part"),
])  # fmt: skip
def test_the_summary(reports: list[FileReport], summary: str) -> None:
    assert outcome(*reports).headline == summary


def test_the_summary_counts_files() -> None:
    over = FileReport("x.yml", "", unchecked=("is a hidden folder",))
    assert outcome(report(), report(), over, failed=(FAILED, FAILED)).headline == (
        "2 files checked: 0 errors, 0 warnings; 1 passed over; 2 could not be checked"
    )
    assert outcome(over).headline == "nothing to check; 1 passed over"


def test_a_file_without_a_kind_was_passed_over() -> None:
    full = samples.full()
    names = ["compose.yml", "server.properties", "kafka.env", "other.env"]
    assert [report.file for report in full.checked] == names
    assert [report.file for report in full.passed_over] == [".git"]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place("a.yml", 6, 46), "a.yml:6:46"),
        (Place("a.yml", 6), "a.yml:6"),
        (Place("a.yml"), "a.yml"),
        (Place("a.yml", 0, 46), "a.yml"),
    ],
)
def test_a_place_as_far_as_it_is_known(place: Place, expected: str) -> None:
    assert where(replace(ERROR, place=place)) == expected


def test_a_mistake_says_of_what() -> None:
    assert summary_line(NOTE) == (
        "container kafka, broker 1, listener EXTERNAL (scope host): the host is not known"
    )


def test_a_mistake_of_two_reports_counts_once() -> None:
    """A file that is checked alone, and with a file that names it."""
    elsewhere = replace(ERROR, place=Place("other.yml", 3, 7))
    same = replace(ERROR, place=replace(ERROR.place, file=f"x/../{ERROR.place.file}"))
    reports = [report(ERROR, WARNING), report(elsewhere, same), report(WARNING, NOTE)]
    assert [new.mistakes for new in without_repeats(reports, Path("/f"))] == [
        (ERROR, WARNING), (elsewhere,), (NOTE,)
    ]  # fmt: skip
