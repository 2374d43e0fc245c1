"""Run a share of the tests that `make test` leaves out: ``python -m tests.rest --commit HASH``.

These tests, marked ``combination``, are divided by file into groups of about the same length. Each
group fits into a run of CI. The commit's hash selects the group, so a few commits run all of them.
"""

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping

import pytest
from _pytest.mark import ParameterSet

from tests.durations import makespan, read_table, seconds
from toolchain.paths import ROOT

COMBINATION = "combination"
SHARE_SECONDS = 900.0
"""Maximum length of a share on two quiet cores."""
TEST_SECONDS = 1080.0
"""Maximum length of `make test` on two quiet cores."""
ALL_SECONDS = 3300.0
"""Maximum length of both, on a busy machine too."""
LEAST_SECONDS = 120.0


def with_combinations(proof: str, values: Iterable[str]) -> list[ParameterSet]:
    """Parameters of a test. `make test` runs it with ``proof`` only.

    A file that calls this function contains the word by which `collected` finds it.
    """
    assert proof in values
    mark = pytest.mark.combination
    return [pytest.param(value, marks=() if value == proof else mark) for value in values]


def seconds_left(took: float) -> float:
    """Maximum length of a share after `make test` took ``took`` seconds; shorter if it was slow."""
    slowness = max(took / TEST_SECONDS, 1.0)
    return max(min(SHARE_SECONDS, (ALL_SECONDS - took) / slowness), LEAST_SECONDS)


def groups(lengths: Mapping[str, float], limit: float) -> list[list[str]]:
    """The files by group: the fewest groups of at most ``limit`` seconds on two workers.

    A longer file is a group by itself.
    """
    single = [[file] for file in sorted(lengths) if lengths[file] > limit]
    short = {file: length for file, length in lengths.items() if length <= limit}
    for count in range(min(1, len(short)), len(short) + 1):
        balanced = _balanced(short, count)
        if all(makespan(short[file] for file in group) <= limit for group in balanced):
            return [*balanced, *single]
    raise AssertionError("one file in each group is short enough")


def _balanced(lengths: Mapping[str, float], count: int) -> list[list[str]]:
    balanced: list[list[str]] = [[] for _ in range(count)]
    loads = [0.0] * count
    for file in sorted(lengths, key=lambda file: (-lengths[file], file)):
        shortest = loads.index(min(loads))
        balanced[shortest].append(file)
        loads[shortest] += lengths[file]
    return balanced


def commit_hash(text: str) -> str:
    int(text, 16)
    return text


def chosen(commit: str, count: int) -> int:
    """The index of the group for the commit with this hash."""
    return int(commit, 16) % count


def collected() -> dict[str, list[str]]:
    """The combinations by file, which `make test` skips."""
    marked = [
        path for path in (ROOT / "tests").rglob("test_*.py") if COMBINATION in path.read_text()
    ]
    options = ("--collect-only", "-q", "-m", COMBINATION)
    command = [sys.executable, "-m", "pytest", *options, *map(str, marked)]
    completed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if completed.returncode not in (0, 5):  # 5: no tests
        sys.exit(completed.stdout)
    return by_file(completed.stdout.splitlines())


def by_file(lines: Iterable[str]) -> dict[str, list[str]]:
    tests: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        file, separator, test = line.partition("::")
        if separator and file.endswith(".py"):
            tests[file].append(test)
    return dict(tests)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rest", description=__doc__)
    parser.add_argument(
        "--commit", type=commit_hash, required=True, help="its hash chooses the group"
    )
    parser.add_argument("--took", type=float, default=0.0, help="seconds that `make test` took")
    options = parser.parse_args(arguments)
    table = read_table()
    combinations = collected()
    lengths = {file: seconds(file, tests, table) for file, tests in combinations.items()}
    shares = groups(lengths, seconds_left(options.took))
    if not shares:
        print(f"No test is marked `{COMBINATION}`.")
        return 0
    number = chosen(options.commit, len(shares))
    files = sorted(shares[number])
    minutes = makespan(lengths[file] for file in files) / 60
    print(
        f"Share {number + 1} of {len(shares)} of what `make test` leaves out"
        f" (estimated: {minutes:.0f} minutes on two quiet cores; to repeat it:"
        f" make test-share COMMIT={options.commit} TOOK={options.took:g}):"
    )
    for file in files:
        print(f"  {lengths[file]:5.0f} s  {file} ({len(combinations[file])} tests)", flush=True)
    command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "loadscope"]
    os.execv(sys.executable, [*command, "-m", COMBINATION, *files])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
