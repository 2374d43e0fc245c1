from typing import Any

import pytest

from earshot.user_data.boot import NodeReport, NodeState

WANTED = {"node": 1, "instance": "i-1", "user_data": "ab" * 32}


def report(**changes: Any) -> NodeReport:
    values = {**WANTED, "state": "in-sync", "detail": "", "at": "2026-01-02T03:04:05Z"}
    return NodeReport.model_validate(values | changes)


def test_a_report_of_the_node_meant_lacks_nothing() -> None:
    assert report().lacks(1, "i-1", "ab" * 32) == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"node": 2}, "the last report is node 2's"),
        ({"instance": "i-0"}, "the last report is of another instance, i-0"),
        (
            {"user_data": "cd" * 32},
            "i-1 booted with other user data: cdcdcdcdcdcd…, not abababababab…",
        ),
        ({"state": "starting"}, "starting"),
        ({"state": "failed", "detail": "no volume"}, "failed: no volume"),
    ],
)
def test_any_other_says_what_it_is(changes: dict[str, Any], says: str) -> None:
    assert says == report(**changes).lacks(1, "i-1", "ab" * 32)


def test_only_a_failure_is_final() -> None:
    assert [state for state in NodeState if report(state=state).is_final] == [NodeState.FAILED]


@pytest.mark.parametrize("text", ["", "none", "{}", '{"node": 1}', "[]"])
def test_what_is_no_report_is_none(text: str) -> None:
    assert NodeReport.read(text) is None


def test_reads_what_is_written() -> None:
    assert NodeReport.read(report().model_dump_json()) == report()
