"""The choice of tests for a mistake, and the map from tests to functions."""

import builtins
from collections.abc import Iterator
from typing import Any

import pytest

from tests.mutants import reach
from tests.mutants.choice import OTHERS_SECONDS, REACHING_SECONDS, Choice
from tests.mutants.operators import Mutant, mutants

PATH = "earshot/rules/kl004_unique_address.py"
SOURCE = '''\
LIMIT = 1


@cached
def first(a):
    """Text."""
    return [inner(b) for b in a]


def second():
    def inner():
        return 2

    return inner
'''


def mutant_at(line: int) -> Mutant:
    return next(mutant for mutant in mutants(PATH, SOURCE) if mutant.line == line)


@pytest.fixture
def recorded_functions() -> Iterator[set[str]]:
    run_functions: set[str] = builtins.__dict__.setdefault(reach.RAN, set())
    yield run_functions
    run_functions.clear()


def test_functions_note_that_they_ran(recorded_functions: set[str]) -> None:
    names: dict[str, Any] = {"cached": lambda function: function, "inner": str}
    exec(compile(reach.noting("m.py", SOURCE), "m.py", "exec"), names)
    assert names["first"].__doc__ == "Text."
    assert recorded_functions == set()
    names["first"]("ab")
    assert recorded_functions == {"m.py:4"}
    names["second"]()()
    assert recorded_functions == {"m.py:4", "m.py:10", "m.py:11"}


def test_what_runs_the_function_comes_first_and_what_is_near_before_what_is_quick() -> None:
    far_test, near_test = "tests/a/test_far.py::t", "tests/rules/test_kl004_unique_address.py::t"
    runs = {
        far_test: ([4], 0.1),
        near_test: ([4], 1.0),
        f"{near_test}_other": ([10], 0.1),
        "tests/b/test_b.py::t": ([], 0.1),
        (folder_test := "tests/rules/test_a.py::t"): ([], 0.1),
    }
    choice = Choice(
        {
            test: {"seconds": seconds, "runs": [f"{PATH}:{line}" for line in lines]}
            for test, (lines, seconds) in runs.items()
        }
    )
    (first_batch, second_batch) = choice.batches(mutant_at(7))
    assert first_batch.tests == (near_test, far_test) and first_batch.seconds == 1.1
    assert second_batch.tests == (f"{near_test}_other",)
    (inner_batch,) = choice.batches(mutant_at(12))
    assert inner_batch.tests == (f"{near_test}_other", near_test, far_test), (
        "nobody runs it, as far as is known"
    )
    all_tests = {test for batch in choice.batches(mutant_at(1)) for test in batch.tests}
    assert all_tests == {far_test, near_test, f"{near_test}_other", folder_test}


def test_where_no_test_gets_there_is_none() -> None:
    assert Choice({}).batches(mutant_at(7)) == []


def test_time_is_limited() -> None:
    seconds = REACHING_SECONDS / 2 - 1
    tests = {
        f"tests/test_{number}.py::t": {"seconds": seconds, "runs": [f"{PATH}:4"]}
        for number in range(4)
    }
    chosen = [test for batch in Choice(tests).batches(mutant_at(7)) for test in batch.tests]
    assert len(chosen) == 2
    assert OTHERS_SECONDS < REACHING_SECONDS
