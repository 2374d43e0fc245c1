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


def fingerprint(item: Mistake) -> str:
    return BaselineEntry.of(item, ROOT).fingerprint


def test_a_mistake_is_recorded_by_four_texts() -> None:
    assert BaselineEntry.of(ERROR, ROOT).texts == {
        "file": "compose.yml",
        "rule": "KL003",
        "subject": "container kafka, broker 1, listener EXTERNAL (scope host)",
        "observed": "advertises 0.0.0.0, which is no address of anybody",
    }


@pytest.mark.parametrize(
    "place",
    [
        Place("compose.yml", 99, 1),
        Place("compose.yml"),
        Place("./compose.yml"),
        Place("/project/compose.yml"),
    ],
)
def test_a_fingerprint_outlives_moved_lines_and_other_ways_to_name_the_file(place: Place) -> None:
    assert fingerprint(replace(ERROR, place=place)) == fingerprint(ERROR)


@pytest.mark.parametrize(
    "other",
    [
        replace(ERROR, place=Place("other.yml", 6, 46)),
        replace(ERROR, finding=finding("KL004")),
        replace(ERROR, finding=finding(observed="advertises ::")),
        replace(ERROR, finding=replace(finding(), node=2)),
    ],
)
def test_another_mistake_has_another(other: Mistake) -> None:
    assert fingerprint(other) != fingerprint(ERROR)


def test_a_fingerprint_is_the_same_tomorrow() -> None:
    assert fingerprint(ERROR) == "754195b88e618e9974a2a6e8653411016da3762cc068cfa98737a0b38d189d54"


@given(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS), st.tuples(TEXTS, TEXTS, TEXTS, TEXTS))
def test_no_two_mistakes_share_one(
    one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    fields = ("file", "rule", "subject", "observed")
    prints = [
        BaselineEntry(**dict(zip(fields, texts, strict=True))).fingerprint for texts in (one, other)
    ]
    assert (prints[0] == prints[1]) == (one == other)


def test_what_is_ignored_otherwise_is_not_recorded() -> None:
    found = baseline_entries([linted(ERROR, IGNORED), linted(WARNING, NOTE)], ROOT)
    assert {item.rule for item in found} == {"KL003", "KL014", "KL011"}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    found = baseline_entries([linted(ERROR, WARNING, NOTE)], ROOT)
    (tmp_path / "baseline.json").write_text(as_text(found))
    assert read_baseline(tmp_path / "baseline.json") == found


@given(st.sets(st.builds(BaselineEntry, file=TEXTS, rule=TEXTS, subject=TEXTS, observed=TEXTS)))
def test_every_baseline_survives_its_file(
    tmp_path_factory: pytest.TempPathFactory, found: set[BaselineEntry]
) -> None:
    file = tmp_path_factory.getbasetemp() / "baseline.json"
    file.write_text(as_text(found))
    assert read_baseline(file) == found


def test_the_order_does_not_depend_on_the_run() -> None:
    a, b = (BaselineEntry.of(mistake(rule), ROOT) for rule in ("KL003", "KL004"))
    assert as_text([a, b]) == as_text([b, a])
    assert as_text([]) == '{\n  "version": 1,\n  "mistakes": []\n}\n'


def test_what_is_in_it_is_ignored_and_the_rest_counts() -> None:
    known = baseline_entries([linted(ERROR)], ROOT)
    moved = replace(ERROR, place=Place("compose.yml", 70, 2))
    found = with_baseline(linted(moved, mistake("KL004"), IGNORED), known, ROOT, TODAY).mistakes
    assert [item.ignored for item in found] == [IN_BASELINE, "", "a proxy publishes it"]
    assert [item.is_error for item in found] == [False, True, False]


def test_an_empty_baseline_changes_nothing() -> None:
    before = linted(ERROR, WARNING, NOTE, IGNORED, KNOWN)
    assert with_baseline(before, frozenset(), ROOT, TODAY) == before


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    assert str(raised(EarshotError, read_baseline, file)) == (
        f"--baseline {file}: cannot be read (No such file or directory)\n"
        f"  fix: earshot lint PATH --write-baseline {file}"
    )


@pytest.mark.parametrize(
    ("content", "observed"),
    [
        ("", "is not JSON (Expecting value: line 1 column 1 (char 0))"),
        ("[" * 500, "is not JSON (Expecting value: line 1 column 501 (char 500))"),
        ("\x00", "is not JSON (Expecting value: line 1 column 1 (char 0))"),
        ("3", "is not a JSON object"),
    ],
)
def test_what_is_no_json(tmp_path: Path, content: str, observed: str) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(content)
    assert str(raised(EarshotError, read_baseline, file)) == (
        f"--baseline {file}: {observed}\n  allowed: a file that --write-baseline wrote"
    )


ROW = {"file": "a", "rule": "KL003", "subject": "b", "observed": "c"}


@pytest.mark.parametrize(
    ("document", "observed"),
    [
        ({"version": 2, "mistakes": []}, "version: must be 1"),
        ({"version": True, "mistakes": []}, "version: must be 1"),
        ({"version": 1}, "mistakes: not a list"),
        ({"version": 1, "mistakes": [], "more": 1}, "more: unknown key"),
        ({"version": 1, "mistakes": [3]}, "mistakes[0]: not a JSON object"),
        ({"version": 1, "mistakes": [ROW | {"line": "3"}]}, "mistakes[0].line: unknown key"),
        ({"version": 1, "mistakes": [ROW | {"rule": 3}]}, "mistakes[0].rule: not text"),
        (
            {"version": 1, "mistakes": [{"file": "a", "rule": "b", "subject": "c"}]},
            "mistakes[0].observed: is missing",
        ),
        (
            {"version": 1, "mistakes": [ROW | {"until": "2027-02-30"}]},
            "KL003, b: until=2027-02-30 is not a day",
        ),
    ],
)
def test_what_is_no_baseline(tmp_path: Path, document: object, observed: str) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps(document))
    error = raised(EarshotError, read_baseline, file)
    assert str(error).partition("\n")[0] == f"--baseline {file}: {observed}"


def test_a_mistake_with_a_day_is_back_when_that_has_passed(tmp_path: Path) -> None:
    row = BaselineEntry.of(ERROR, ROOT).texts | {"until": "2026-12-01"}
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps({"version": 1, "mistakes": [row]}))
    known = read_baseline(file)
    on_the_day, after = (
        with_baseline(linted(ERROR), known, ROOT, day).mistakes[0]
        for day in (TODAY, date(2026, 12, 2))
    )
    assert (on_the_day.ignored, on_the_day.expired) == (IN_BASELINE, "")
    assert (after.ignored, after.is_error) == ("", True)
    assert after.expired == "was ignored until 2026-12-01: in the baseline"
    # brought up to date, it keeps its day
    assert as_text(baseline_entries([linted(ERROR, WARNING)], ROOT, known)).count("2026-12-01") == 1
