"""The shares of what `make test` leaves out."""

import hashlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import rest
from tests.durations import makespan
from tests.rest import (
    ALL_SECONDS,
    LEAST_SECONDS,
    SHARE_SECONDS,
    by_file,
    chosen,
    groups,
    seconds_left,
    with_combinations,
)

LENGTHS = st.dictionaries(st.text("abcdef", min_size=1), st.floats(0, 400), max_size=30)


@given(LENGTHS)
def test_every_file_is_in_one_group_and_every_group_fits(lengths: dict[str, float]) -> None:
    shares = groups(lengths, 900)
    assert sorted(file for group in shares for file in group) == sorted(lengths)
    assert all(makespan(lengths[file] for file in group) <= 900 for group in shares)
    assert len(shares) <= sum(lengths.values()) // 900 + 1, "half of what two workers could take"
    assert groups(dict(reversed(lengths.items())), 900) == shares


def test_a_file_that_is_too_long_is_run_all_the_same() -> None:
    lengths = {"long": 1000, "short": 10, "shorter": 5}
    assert groups(lengths, 900) == [["short", "shorter"], ["long"]]
    assert groups({}, 900) == []


def test_commits_choose_every_group_within_a_few() -> None:
    hashes = [hashlib.sha1(bytes([number])).hexdigest() for number in range(12)]
    assert {chosen(commit, 3) for commit in hashes} == {0, 1, 2}
    assert chosen("ff", 3) == 0


@pytest.mark.parametrize(
    ("took", "expected"),
    [(0, SHARE_SECONDS), (1000, SHARE_SECONDS), (2160, 570), (3600, LEAST_SECONDS)],
)
def test_a_busy_machine_gets_a_smaller_share(took: float, expected: float) -> None:
    assert seconds_left(took) == expected


@given(st.floats(0, 2900))
def test_both_parts_end_in_time_where_the_machine_stays_as_busy(took: float) -> None:
    slowness = max(took / 1080, 1)
    assert took + seconds_left(took) * slowness <= ALL_SECONDS


def test_the_chosen_share_is_printed_and_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {"tests/a.py": {"one": 1000.0}, "tests/b.py": {"two": 600.0, "three": 300.0}}
    executed: list[list[str]] = []
    monkeypatch.setattr(rest, "read_table", lambda: table)
    monkeypatch.setattr(rest, "collected", lambda: {file: list(table[file]) for file in table})
    monkeypatch.setattr(os, "execv", lambda _, words: executed.append(words))
    for commit in ("a1", "a0"):
        rest.main(["--commit", commit, "--took", "100"])
    assert [words[-3:] for words in executed] == [
        ["-m", "combination", "tests/a.py"],
        ["-m", "combination", "tests/b.py"],
    ]
    printed = capsys.readouterr().out
    assert "Share 2 of 2" in printed and "make test-share COMMIT=a1 TOOK=100)" in printed
    assert "    900 s  tests/b.py (2 tests)" in printed


def test_what_pytest_collects_is_read_by_file() -> None:
    lines = ["a.py::one[x::y]", "a.py::Two::three", "b.py::one", "", "3 tests collected in 1 s"]
    assert by_file(lines) == {"a.py": ["one[x::y]", "Two::three"], "b.py": ["one"]}


def test_of_several_parameters_one_is_in_make_test() -> None:
    first, second = with_combinations("b", ["a", "b"])
    assert (first.values, [mark.name for mark in first.marks]) == (("a",), ["combination"])
    assert (second.values, second.marks) == (("b",), ())
