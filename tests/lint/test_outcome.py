"""What a run comes to: exit code, counts, summary."""

from dataclasses import replace

import pytest

from earshot.errors import EarshotError
from earshot.lint.model import FailedFile, FileReport, Mistake, Place, summary_line, where
from tests.lint import samples
from tests.lint.samples import ERROR, IGNORED, NOTE, WARNING, outcome

FAILED = FailedFile("broken.yml", EarshotError("broken.yml", observed="is no YAML"))


def of(*mistakes: Mistake) -> FileReport:
    return FileReport("compose.yml", "Compose file", mistakes)


@pytest.mark.parametrize(
    ("mistakes", "code"),
    [
        ((), 0),
        ((WARNING,), 0),
        ((NOTE,), 0),
        ((IGNORED,), 0),
        ((ERROR,), 1),
        ((WARNING, NOTE, IGNORED, ERROR), 1),
    ],
)
def test_an_error_that_counts_is_1(mistakes: tuple[Mistake, ...], code: int) -> None:
    assert outcome(of(*mistakes)).exit_code == code
    assert outcome(of(), of(*mistakes)).exit_code == code


def test_a_file_that_could_not_be_checked_is_2() -> None:
    assert outcome(failed=(FAILED,)).exit_code == 2
    assert outcome(of(ERROR), failed=(FAILED,)).exit_code == 2


def named(file: str, why: str = "is not a Compose file") -> FileReport:
    return FileReport(file, "", unchecked=(why,), is_named=True)


def test_a_named_file_that_was_not_judged_is_3() -> None:
    assert outcome(named("x.yml")).exit_code == 3
    assert outcome(of(WARNING), named("x.yml")).exit_code == 3
    assert outcome(of(ERROR), named("x.yml")).exit_code == 1
    assert outcome(named("x.yml"), failed=(FAILED,)).exit_code == 2


def test_the_summary_says_what_was_not_judged_and_why() -> None:
    files = [named(f"{letter}.yml") for letter in "abcde"]
    assert outcome(of(), *files, named("x.properties", "is a client's")).headline == (
        "1 file checked: 0 errors, 0 warnings; 6 not judged: "
        "a.yml, b.yml, c.yml and 2 more (is not a Compose file), x.properties (is a client's)"
    )


def in_part(file: str, *mistakes: Mistake, is_named: bool = True) -> FileReport:
    why = "service k: KAFKA_LISTENERS is not known: A://${IP}:9092"
    return FileReport(file, "Compose file", mistakes, is_named=is_named, open_listeners=(why,))


def test_a_named_file_that_was_judged_in_part_is_3() -> None:
    assert outcome(in_part("x.yml")).exit_code == 3
    assert outcome(in_part("x.yml", WARNING)).exit_code == 3
    assert outcome(in_part("x.yml", ERROR)).exit_code == 1
    assert outcome(in_part("x.yml"), failed=(FAILED,)).exit_code == 2
    assert outcome(in_part("x.yml", is_named=False)).exit_code == 0


def test_the_summary_says_what_was_judged_in_part_and_why() -> None:
    assert outcome(in_part("x.yml"), in_part("y.yml", is_named=False), named("z.yml")).headline == (
        "2 files checked: 0 errors, 0 warnings; 1 not judged: z.yml (is not a Compose file); "
        "2 judged in part: x.yml (service k: KAFKA_LISTENERS is not known: A://${IP}:9092)"
    )
    assert outcome(in_part("y.yml", is_named=False)).headline == (
        "1 file checked: 0 errors, 0 warnings; 1 judged in part"
    )


@pytest.mark.parametrize(
    ("mistakes", "expected"),
    [
        ((), "1 file checked: 0 errors, 0 warnings"),
        ((ERROR,), "1 file checked: 1 error, 0 warnings"),
        ((ERROR, ERROR, WARNING), "1 file checked: 2 errors, 1 warning"),
        ((NOTE, NOTE), "1 file checked: 0 errors, 0 warnings, 2 notes"),
        ((IGNORED, ERROR), "1 file checked: 1 error, 0 warnings, 1 ignored"),
    ],
)
def test_the_summary_counts(mistakes: tuple[Mistake, ...], expected: str) -> None:
    assert outcome(of(*mistakes)).headline == expected


def test_the_summary_counts_files() -> None:
    over = FileReport("x.yml", "", unchecked=("is a hidden folder",))
    assert outcome(of(), of(), over, failed=(FAILED, FAILED)).headline == (
        "2 files checked: 0 errors, 0 warnings; 1 passed over; 2 could not be checked"
    )
    assert outcome(over).headline == "nothing to check; 1 passed over"
    assert outcome().headline == "nothing to check"


def test_what_has_no_kind_was_passed_over() -> None:
    full = samples.full()
    assert [item.file for item in full.checked] == [
        "compose.yml",
        "server.properties",
        "kafka.env",
        "other.env",
    ]
    assert [item.file for item in full.passed_over] == [".git"]


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
