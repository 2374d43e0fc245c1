"""Waiting for what nodes report: what is told, when it ends, and when it would be in vain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from components.aws.reports import Awaited, majority_served, wait_for
from earshot.errors import EarshotError
from earshot.user_data.node_report import NodeReport, State

ONE = Awaited(1, "/p/1", "i-1", "a" * 64)
TWO = Awaited(2, "/p/2", "i-2", "b" * 64)


def report(of: Awaited, state: State = State.IN_SYNC, **changed: Any) -> str:
    made = NodeReport(
        node=of.node,
        instance=of.instance,
        user_data=of.user_data,
        state=state,
        detail="",
        at="2026-01-01T00:00:00Z",
    )
    return made.model_copy(update=changed).model_dump_json()


class Parameters:
    """What can be read, look after look; the last stays."""

    def __init__(self, *looks: dict[str, str]) -> None:
        self._looks = list(looks)
        self.asked = 0

    def __call__(self, names: Sequence[str]) -> dict[str, str]:
        self.asked += 1
        found = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        return {name: text for name, text in found.items() if name in names}


def wait(read: Parameters, *nodes: Awaited, deadline: float = 5) -> None:
    wait_for(nodes or (ONE,), read, deadline, poll=0)


def test_it_ends_when_all_are_in_sync() -> None:
    wait(Parameters({"/p/1": report(ONE), "/p/2": report(TWO)}), ONE, TWO)


def test_it_looks_until_the_instance_itself_says_so() -> None:
    stale = report(ONE, instance="i-0", user_data="c" * 64)
    looks = [
        {"/p/1": "nothing yet"},
        {"/p/1": stale},
        {"/p/1": report(ONE, State.STARTING)},
        {"/p/1": report(ONE)},
    ]
    read = Parameters(*looks)
    wait(read)
    assert read.asked == 4


def test_a_node_that_gave_up_is_not_waited_for() -> None:
    read = Parameters({"/p/1": report(ONE, State.FAILED, detail="wrong checksum")})
    with pytest.raises(EarshotError, match="node 1: failed: wrong checksum"):
        wait(read, deadline=3600)
    assert read.asked == 1


def test_what_an_earlier_instance_gave_up_on_is_no_reason_to_stop() -> None:
    old = report(ONE, State.FAILED, instance="i-0")
    read = Parameters({"/p/1": old}, {"/p/1": report(ONE)})
    wait(read)
    assert read.asked == 2


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"/p/1": "nothing yet"}, "node 1: it has not reported yet"),
        ({}, "node 1: its parameter /p/1 is gone"),
        ({"/p/1": report(ONE, instance="i-0")}, "of another instance, i-0"),
        ({"/p/1": report(ONE, user_data="c" * 64)}, "i-1 booted with other user data"),
        ({"/p/1": report(ONE, State.STARTING)}, "node 1: starting"),
    ],
)
def test_too_late_says_what_was_last_heard(values: dict[str, str], said: str) -> None:
    with pytest.raises(EarshotError, match=r"not in sync after 0 s; last heard") as caught:
        wait(Parameters(values), deadline=0)
    assert said in str(caught.value)
    assert "aws ssm start-session" in str(caught.value)


def test_a_quorum_is_a_majority_that_reported_in_sync() -> None:
    voters = ["/p/1", "/p/2", "/p/3"]
    values = {"/p/1": report(ONE), "/p/2": "nothing yet", "/p/3": report(TWO, State.STARTING)}
    assert not majority_served(voters, Parameters(values))
    assert majority_served(voters, Parameters({**values, "/p/3": report(TWO)}))
    assert majority_served(["/p/1"], Parameters(values))
