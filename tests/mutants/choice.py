"""The tests to run for a mistake: those that run its function, the likeliest first."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tests.mutants.operators import Mutant

FIRST_FILES = 3
FIRST_SECONDS = 3.0
"""The first run has the tests of few files, so that little is loaded; most mistakes end in it."""
REACHING_SECONDS = 60.0
OTHERS_SECONDS = 15.0
"""Tests that run only other functions of the module may still notice: what is cached is not run
again, and what runs at import belongs to no test."""


@dataclass(frozen=True)
class Batch:
    """Tests for one run of pytest, in order, and how long they took without a mistake."""

    tests: tuple[str, ...]
    seconds: float


class Choice:
    def __init__(self, tests: Mapping[str, Mapping[str, Any]]) -> None:
        self._seconds = {test: float(facts["seconds"]) for test, facts in tests.items()}
        self._functions: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for test, facts in tests.items():
            for place in facts["runs"]:
                path, _, line = place.rpartition(":")
                self._functions[path][int(line)].add(test)

    def batches(self, mutant: Mutant) -> list[Batch]:
        """Runs to be made one after the other until one fails; none where no test gets there."""
        lines = self._functions.get(mutant.path, {})
        all_tests = set().union(*lines.values()) if lines else set()
        reaching: set[str] = set()
        if mutant.function is not None:
            first_line, last_line = mutant.function
            tests_of_lines = (
                tests for line, tests in lines.items() if first_line <= line <= last_line
            )
            reaching = set().union(*tests_of_lines)
        else:  # what is only read, such as a constant, shows nowhere: its folder's tests may know
            folder = f"tests/{PurePosixPath(mutant.path.removeprefix('earshot/')).parent}/"
            all_tests = all_tests | {test for test in self._seconds if test.startswith(folder)}
        near = _mirrors(mutant.path)
        reaching_in_order = self._within(self._in_order(reaching, near), REACHING_SECONDS)
        other_tests = self._within(self._in_order(all_tests - reaching, near), OTHERS_SECONDS)
        first_tests = self._first(reaching_in_order or other_tests)
        chosen = [*reaching_in_order, *other_tests]
        later_tests = [test for test in chosen if test not in set(first_tests)]
        return [self._batch(tests) for tests in (first_tests, later_tests) if tests]

    def _in_order(self, tests: set[str], near: Sequence[str]) -> list[str]:
        """Sorts tests by nearness of their file to the module, by file, then the quickest first."""

        def key(test: str) -> tuple[int, float, str]:
            file = test.partition("::")[0]
            rank = next(
                (index for index, name_part in enumerate(near) if name_part in file), len(near)
            )
            return rank, self._seconds[test], test

        return sorted(tests, key=key)

    def _within(self, tests: Sequence[str], seconds: float) -> list[str]:
        chosen_tests, spent = [], 0.0
        for test in tests:
            if spent + self._seconds[test] <= seconds:
                chosen_tests.append(test)
                spent += self._seconds[test]
        return chosen_tests

    def _first(self, tests: Sequence[str]) -> list[str]:
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))[:FIRST_FILES]
        return self._within(
            [test for test in tests if test.partition("::")[0] in files], FIRST_SECONDS
        )

    def _batch(self, tests: Sequence[str]) -> Batch:
        return Batch(tuple(tests), sum(self._seconds[test] for test in tests))


def _mirrors(path: str) -> list[str]:
    """Parts of the names of the tests' files that mirror the module, the closest first."""
    module = PurePosixPath(path)
    folders = [folder for folder in module.parts[:-1] if folder not in ("earshot",)]
    folder = "/".join(folders)
    stem = module.stem
    near = [f"{folder}/test_{stem}.py".lstrip("/"), f"test_{stem}", stem, stem.split("_")[0]]
    return [*near, f"tests/{folder}/" if folder else "tests/test_"]
