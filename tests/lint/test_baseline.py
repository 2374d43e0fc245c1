"""Mistakes that were there before, and how they are known again."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.lint.baseline import (
    IN_BASELINE,
    BaselineEntry,
    as_text,
    baseline_entries,
    read_baseline,
    with_baseline,
)
from earshot.lint.model import FileReport, Mistake, Place
from tests.lint.samples import ERROR, IGNORED, KNOWN, NOTE, ROOT, WARNING, finding, mistake
from tests.raised import raised

TEXTS = st.text(max_size=8)
TODAY = date(2026, 12, 1)


def linted(*mistakes: Mistake) -> FileReport:
    return FileReport("compose.yml", "Compose file", mistakes)


def fingerprint(recorded: Mistake) -> str:
    return BaselineEntry.of(recorded, ROOT).fingerprint


def test_a_mistake_is_recorded_by_four_texts() -> None:
    assert BaselineEntry.of(ERROR, ROOT).texts == {
        "file": "compose.yml",
        "rule": "KL003",
        "subject": "container kafka, broker 1, listener EXTERNAL (scope host)",
        "observed": "advertises 0.0.0.0, which is no address of anybody",
    }


@pytest.mark.parametrize(
    ("mistake", "is_same"),
    [
        (ERROR, True),
        (replace(ERROR, place=Place("compose.yml", 99, 1)), True),
        (replace(ERROR, place=Place("compose.yml")), True),
        (replace(ERROR, place=Place("./compose.yml")), True),
        (replace(ERROR, place=Place("/project/compose.yml")), True),
        (replace(ERROR, place=Place("other.yml", 6, 46)), False),
        (replace(ERROR, finding=finding("KL004")), False),
        (replace(ERROR, finding=finding(observed="advertises ::")), False),
        (replace(ERROR, finding=replace(finding(), node=2)), False),
    ],
)
def test_a_fingerprint_does_not_depend_on_the_place_in_a_file(
    mistake: Mistake, is_same: bool
) -> None:
    stored = "754195b88e618e9974a2a6e8653411016da3762cc068cfa98737a0b38d189d54"
    assert (fingerprint(mistake) == stored) is is_same


@given(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS), st.tuples(TEXTS, TEXTS, TEXTS, TEXTS))
def test_different_mistakes_have_different_fingerprints(
    first: tuple[str, str, str, str], second: tuple[str, str, str, str]
) -> None:
    prints = [BaselineEntry(*texts).fingerprint for texts in (first, second)]
    assert (prints[0] == prints[1]) == (first == second)


def test_mistakes_that_are_ignored_otherwise_are_not_recorded() -> None:
    entries = baseline_entries([linted(ERROR, IGNORED), linted(WARNING, NOTE)], ROOT)
    assert {entry.rule for entry in entries} == {"KL003", "KL014", "KL011"}


@given(st.sets(st.builds(BaselineEntry, file=TEXTS, rule=TEXTS, subject=TEXTS, observed=TEXTS)))
def test_every_baseline_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, entries: set[BaselineEntry]
) -> None:
    file = tmp_path_factory.getbasetemp() / "baseline.json"
    file.write_text(as_text(entries))
    assert read_baseline(file) == entries


def test_the_order_does_not_depend_on_the_run() -> None:
    a, b = (BaselineEntry.of(mistake(rule), ROOT) for rule in ("KL003", "KL004"))
    assert as_text([a, b]) == as_text([b, a])
    assert as_text([]) == '{\n  "version": 1,\n  "mistakes": []\n}\n'


def test_mistakes_of_the_baseline_are_ignored_and_others_count() -> None:
    entries = baseline_entries([linted(ERROR)], ROOT)
    moved = replace(ERROR, place=Place("compose.yml", 70, 2))
    report = linted(moved, mistake("KL004"), IGNORED)
    mistakes = with_baseline(report, entries, ROOT, TODAY).mistakes
    assert [entry.ignored for entry in mistakes] == [
        IN_BASELINE,
        "",
        "a proxy publishes it",
    ]
    assert [entry.is_error for entry in mistakes] == [False, True, False]
    report = linted(ERROR, WARNING, NOTE, IGNORED, KNOWN)
    assert with_baseline(report, frozenset(), ROOT, TODAY) == report


ROW = {"file": "a", "rule": "KL003", "subject": "b", "observed": "c"}
ALLOWED = "\n  allowed: a file that --write-baseline wrote"


NO_DAY = "KL003, b: until=2027-02-30 is not a day\n  allowed: a day such as until=2027-01-31"


@pytest.mark.parametrize(("document", "error"), [
    ({"version": 2, "mistakes": []}, "version: must be 1"),
    ({"version": True, "mistakes": []}, "version: must be 1"),
    ({"version": 1}, "mistakes: not a list"),
    ({"version": 1, "mistakes": [], "more": 1}, "more: unknown key"),
    *(({"version": 1, "mistakes": [row]}, error)
      for row, error in (
        (3, "mistakes[0]: not a JSON object"),
        (ROW | {"line": "3"}, "mistakes[0].line: unknown key"),
        (ROW | {"rule": 3}, "mistakes[0].rule: not text"),
        ({"file": "a", "rule": "b", "subject": "c"}, "mistakes[0].observed: is missing"),
        (ROW | {"until": "2027-02-30"}, NO_DAY),
    )),
    (3, f"is not a JSON object{ALLOWED}"),
    ("", f"is not JSON (Expecting value: line 1 column 1 (char 0)){ALLOWED}"),
    ("[" * 500, f"is not JSON (Expecting value: line 1 column 501 (char 500)){ALLOWED}"),
    ("\x00", f"is not JSON (Expecting value: line 1 column 1 (char 0)){ALLOWED}"),
])  # fmt: skip
def test_a_file_that_is_no_baseline_is_refused(
    tmp_path: Path, document: object, error: str
) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    assert str(raised(EarshotError, read_baseline, file)) == f"--baseline {file}: {error}"


def test_a_mistake_counts_again_after_its_day(tmp_path: Path) -> None:
    row = BaselineEntry.of(ERROR, ROOT).texts | {"until": "2026-12-01"}
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps({"version": 1, "mistakes": [row]}))
    entries = read_baseline(file)
    on_the_day, later = (
        with_baseline(linted(ERROR), entries, ROOT, day).mistakes[0]
        for day in (TODAY, date(2026, 12, 2))
    )
    assert (on_the_day.ignored, on_the_day.expired) == (f"{IN_BASELINE} (until 2026-12-01)", "")
    assert (later.ignored, later.is_error) == ("", True)
    assert later.expired == "was ignored until 2026-12-01: in the baseline"
    # brought up to date, it keeps its day
    updated = as_text(baseline_entries([linted(ERROR, WARNING)], ROOT, entries))
    assert updated.count("2026-12-01") == 1
