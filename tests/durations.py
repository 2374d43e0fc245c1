"""Seconds of tests: the summary at the end of a run, and the table of an earlier run.

``python -m tests.durations LOG...`` updates the table from the output of pytest with
``--durations=0``. Tests that are in no log keep their figures.
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
"""A file's entry for all fixtures of its tests, because the first test that uses one waits."""
MAX_SHOWN = 10
REAL = "tests/e2e/"
UNKNOWN_REAL, UNKNOWN = 10.0, 0.05
"""Seconds of a test that the table does not contain: with real parts, and without."""
LISTED_FROM = 0.5
"""Minimum seconds of a test without real parts that the table contains."""
_LINE = re.compile(r"^(\d+\.\d+)s (setup|call|teardown) +(\S+?\.py)::(.+)$", re.MULTILINE)

Table = Mapping[str, Mapping[str, float]]
"""Seconds by file and test."""


def read_table(path: Path = TABLE) -> Table:
    table: dict[str, dict[str, float]] = json.loads(path.read_text())
    return table


def seconds(file: str, tests: Iterable[str], table: Table) -> float:
    """Seconds of ``tests`` of ``file`` on one worker, with their fixtures."""
    figures = table.get(file, {})
    default = UNKNOWN_REAL if file.startswith(REAL) else UNKNOWN
    return figures.get(SET_UP, 0.0) + sum(figures.get(test, default) for test in tests)


def makespan(units: Iterable[float], workers: int = 2) -> float:
    """Seconds until ``workers`` have run all ``units``; an idle one takes the longest unit."""
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
    for kind, totals in (("tests, with their fixtures", tests), ("files", files)):
        yield f"slowest {kind}:"
        ordered = sorted(totals.items(), key=lambda total: -total[1])
        yield from (f"  {took:6.1f} s  {name}" for name, took in ordered[:MAX_SHOWN])


def from_logs(texts: Iterable[str]) -> dict[str, dict[str, float]]:
    """The table from the output of runs."""
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


def updated(table: Table, measured: Table) -> dict[str, dict[str, float]]:
    """``table`` with the figures of ``measured``; a test that did not run keeps its figure."""
    return {
        file: {**table.get(file, {}), **measured.get(file, {})}
        for file in dict.fromkeys((*table, *measured))
    }


def _is_listed(file: str, took: float) -> bool:
    return file.startswith(REAL) or took >= LISTED_FROM


def main(logs: list[str]) -> int:
    earlier = read_table() if TABLE.exists() else {}
    table = updated(earlier, from_logs(Path(log).read_text() for log in logs))
    table = {file: table[file] for file in table if (ROOT / file).exists()}
    TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
