"""The JSON document, beyond its goldens."""

from dataclasses import replace
from json import loads

from hypothesis import given
from hypothesis import strategies as st

from earshot.lint.json import json
from earshot.lint.model import FileReport, Mistake
from tests.lint.samples import ERROR, IGNORED, NOTE, WARNING, outcome


def test_what_is_not_known_is_null() -> None:
    bare = replace(NOTE.finding, container="", node=None, listener=None, scope=None)
    report = FileReport("a", "b", (replace(NOTE, finding=bare),))
    (mistake,) = loads(json(outcome(report)))["files"][0]["mistakes"]
    null = " ".join(key for key, value in mistake.items() if value is None)
    assert null == "ignored expired line column container node listener scope"
    assert (mistake["level"], mistake["state"]) == ("note", "unknown")


@given(st.lists(st.sampled_from([ERROR, WARNING, NOTE, IGNORED])))
def test_the_summary_adds_up(mistakes: list[Mistake]) -> None:
    report = FileReport("a", "b", tuple(mistakes))
    document = loads(json(outcome(report)))
    numbers = document["summary"]
    assert sum(numbers[key] for key in ("errors", "warnings", "notes", "ignored")) == len(mistakes)
    assert numbers["exit_code"] == int(ERROR in mistakes)
    assert len(document["files"][0]["mistakes"]) == len(mistakes)
