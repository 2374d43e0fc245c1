"""What all dynamic providers do alike, and types that had another name in release 0.1.0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pulumi
import pytest
from earshot_pulumi.dynamic import CheckedProvider, formerly, on_lines_of_its_own

from earshot.errors import EarshotError


class Found(CheckedProvider):
    """A double that finds what it was given, and at last cannot look any further."""

    def __init__(self, *found: str, error: EarshotError | None = None) -> None:
        self._found, self._error = found, error

    def problems(self, _olds: dict[str, Any], news: dict[str, Any]) -> Iterator[str]:
        news["completed"] = True
        yield from self._found
        if self._error is not None:
            raise self._error


def test_without_a_problem_inputs_are_taken_as_they_were_completed() -> None:
    result = Found().check({}, {"a": 1})
    assert (result.inputs, result.failures) == ({"a": 1, "completed": True}, [])


def test_problems_are_one_failure_of_no_property() -> None:
    error = EarshotError("engine", observed="does not answer", remedy="start it")
    [failure] = list(Found("one", "two", error=error).check({}, {}).failures or [])
    assert failure.property == "", "Pulumi would print its value"
    assert failure.reason == "\n- one\n- two\n- engine: does not answer\n  fix: start it"


def test_a_preflight_is_remembered() -> None:
    provider = CheckedProvider()
    assert provider.create({"a": 1}).outs == {"a": 1}
    assert provider.update("good", {"a": 1}, {"a": 2}).outs == {"a": 2}


def test_an_error_begins_on_a_line_of_its_own() -> None:
    with pytest.raises(EarshotError) as caught, on_lines_of_its_own():
        raise EarshotError("node 1", observed="died")
    assert str(caught.value) == "\nnode 1: died"


def test_what_a_type_was_called_is_added_to_what_else_is_said() -> None:
    opts = pulumi.ResourceOptions(protect=True, aliases=[pulumi.Alias(name="one")])
    found = formerly("Old", opts)
    assert found.protect
    one, old = found.aliases or ()
    assert isinstance(one, pulumi.Alias) and isinstance(old, pulumi.Alias)
    assert (one.name, old.type_) == ("one", "pulumi-python:dynamic/earshot:Old")
