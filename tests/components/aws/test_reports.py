"""Waiting for what nodes report: what is told, when it ends, and when it would never end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from components.aws.reports import Awaited, quorum_with, wait_for
from earshot.errors import EarshotError
from earshot.user_data.boot import NodeReport, NodeState

ONE = Awaited(1, "/p/1", "i-1", "a" * 64)
TWO = Awaited(2, "/p/2", "i-2", "b" * 64)
THREE = Awaited(3, "/p/3", "i-3", "c" * 64)


def report(of: Awaited, state: NodeState = NodeState.IN_SYNC, **changed: Any) -> str:
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
        {"/p/1": report(ONE, NodeState.STARTING)},
        {"/p/1": report(ONE)},
    ]
    read = Parameters(*looks)
    wait(read)
    assert read.asked == 4


def test_a_node_that_gave_up_is_not_waited_for() -> None:
    read = Parameters({"/p/1": report(ONE, NodeState.FAILED, detail="wrong checksum")})
    with pytest.raises(EarshotError, match="node 1: failed: wrong checksum"):
        wait(read, deadline=3600)
    assert read.asked == 1


def test_what_an_earlier_instance_gave_up_on_is_no_reason_to_stop() -> None:
    old = report(ONE, NodeState.FAILED, instance="i-0")
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
        ({"/p/1": report(ONE, NodeState.STARTING)}, "node 1: starting"),
    ],
)
def test_too_late_says_what_was_last_heard(values: dict[str, str], said: str) -> None:
    with pytest.raises(EarshotError, match=r"not in sync after 0 s; last report") as caught:
        wait(Parameters(values), deadline=0)
    assert said in str(caught.value)
    assert "aws ssm start-session" in str(caught.value)


@pytest.mark.parametrize("own", ["nothing yet", report(ONE, NodeState.STARTING), report(ONE)])
@pytest.mark.parametrize(
    ("two", "three", "possible"),
    [
        ("nothing yet", report(THREE, NodeState.STARTING), False),
        (report(TWO, NodeState.FAILED), report(THREE, NodeState.FAILED), False),
        (report(TWO), report(THREE, NodeState.FAILED), True),
        (report(TWO), report(THREE), True),
    ],
)
def test_waiting_for_a_voter_takes_others_that_were_in_sync(
    own: str, two: str, three: str, possible: bool
) -> None:
    """Whatever its own parameter still says, or says by now."""
    read = Parameters({"/p/1": own, "/p/2": two, "/p/3": three})
    assert quorum_with([ONE], ["/p/1", "/p/2", "/p/3"], read) is possible
    assert quorum_with([ONE], ["/p/1"], read), "it is the quorum"


def test_waiting_for_a_broker_takes_a_quorum_of_others() -> None:
    voters, values = ["/p/2", "/p/3"], {"/p/2": report(TWO), "/p/3": "nothing yet"}
    assert not quorum_with([ONE], voters, Parameters(values))
    assert quorum_with([ONE], voters, Parameters({**values, "/p/3": report(THREE)}))
