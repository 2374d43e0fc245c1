"""How long tests take: what a run prints at its end, and a table of an earlier run's figures.

``python -m tests.durations LOG...`` writes the table anew from what pytest printed with
``--durations=0``; tests that are in no log keep their figures.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from toolchain.paths import ROOT

TABLE = ROOT / "tests" / "durations.json"
SET_UP = "set-up"
"""A file's entry for all fixtures of its tests: the first test that uses one pays for it."""
SHOWN = 10
REAL = "tests/e2e/"
UNKNOWN_REAL, UNKNOWN = 10.0, 0.05
"""Seconds of a test that the table lacks: with real parts, and of another kind."""
LISTED_FROM = 0.5
"""Seconds from which the table has a test of another kind."""
_LINE = re.compile(r"^(\d+\.\d+)s (setup|call|teardown) +(\S+?\.py)::(.+)$", re.MULTILINE)

Table = Mapping[str, Mapping[str, float]]
"""Seconds by file and test."""


def read_table(path: Path = TABLE) -> Table:
    table: dict[str, dict[str, float]] = json.loads(path.read_text())
    return table


def seconds(file: str, tests: Iterable[str], table: Table) -> float:
    """How long ``tests`` of ``file`` take on one worker, their fixtures included."""
    known = table.get(file, {})
    default = UNKNOWN_REAL if file.startswith(REAL) else UNKNOWN
    return known.get(SET_UP, 0.0) + sum(known.get(test, default) for test in tests)


def makespan(units: Iterable[float], workers: int = 2) -> float:
    """How long ``workers`` take that take the longest of ``units`` next whenever one is free."""
    loads = [0.0] * workers
    for unit in sorted(units, reverse=True):
        loads[loads.index(min(loads))] += unit
    return max(loads)


def slowest(spent: Iterable[tuple[str, float]]) -> Iterator[str]:
    """Lines with the slowest tests and files, from the seconds of each phase of each test."""
    tests: dict[str, float] = defaultdict(float)
    files: dict[str, float] = defaultdict(float)
    for nodeid, took in spent:
        tests[nodeid] += took
        files[nodeid.partition("::")[0]] += took
    for kind, found in (("tests, with their fixtures", tests), ("files", files)):
        yield f"slowest {kind}:"
        ordered = sorted(found.items(), key=lambda item: -item[1])
        yield from (f"  {took:6.1f} s  {name}" for name, took in ordered[:SHOWN])


def from_logs(texts: Iterable[str]) -> dict[str, dict[str, float]]:
    """The table of the runs that printed ``texts``."""
    table: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for text in texts:
        for took, phase, file, test in _LINE.findall(text):
            table[file][test] += float(took) if phase == "call" else 0.0
            table[file][SET_UP] += float(took) if phase != "call" else 0.0
    return {
        file: {test: round(took, 1) for test, took in entries.items() if _is_listed(file, took)}
        for file, entries in table.items()
        if any(_is_listed(file, took) for took in entries.values())
    }


def updated(known: Table, measured: Table) -> dict[str, dict[str, float]]:
    """``known`` with what was ``measured``; a test that did not run keeps its figure."""
    return {
        file: {**known.get(file, {}), **measured.get(file, {})}
        for file in (*known, *(it for it in measured if it not in known))
    }


def _is_listed(file: str, took: float) -> bool:
    return file.startswith(REAL) or took >= LISTED_FROM


def main(logs: list[str]) -> int:
    known = read_table() if TABLE.exists() else {}
    table = updated(known, from_logs(Path(log).read_text() for log in logs))
    there = {file: table[file] for file in table if (ROOT / file).exists()}
    TABLE.write_text(json.dumps(there, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
