"""Clients of listeners that go, as nodes report them: newer reports count, and silence is told."""

from typing import Any

import pytest
from earshot_pulumi.aws.clients import problems

from earshot.user_data.boot import NodeState
from tests.components.aws.test_readiness_reports import ONE, TWO, Parameters, report

GOING = ["EXTERNAL"]
LATER = "2026-01-01T00:00:09Z"
UNKNOWN = "EXTERNAL would be removed, and whether clients are connected is not known"
FIX = (
    ". Let them use another listener, then set `remove: anyway`, or a date "
    "from which it may be removed"
)


def reported(read: Parameters, seconds: float = 5, **options: Any) -> list[str]:
    return list(problems(GOING, {1: "/p/1", 2: "/p/2"}, read, poll=0, seconds=seconds, **options))


def look(first: str, second: str) -> dict[str, str]:
    return {"/p/1": first, "/p/2": second}


def counted(node: Any, at: int, **origins: int) -> str:
    clients = {"EXTERNAL": {key.replace("_", "."): number for key, number in origins.items()}}
    return report(node, clients=clients, at=f"2026-01-01T00:00:{at:02}Z")


def test_no_client_is_connected() -> None:
    lines: list[str] = []
    read = Parameters(
        look(counted(ONE, 1, _a=4), counted(TWO, 1)), look(counted(ONE, 2), counted(TWO, 2))
    )
    assert reported(read, progress=lines.append) == []
    assert lines == ["asking brokers for the clients of EXTERNAL; they report every 15 s"]


def test_each_address_is_counted_over_all_brokers() -> None:
    first = look(counted(ONE, 1), counted(TWO, 1))
    one = counted(ONE, 2, a_b=2, c_d=1)
    read = Parameters(first, look(one, counted(TWO, 1)), look(one, counted(TWO, 3, a_b=1)))
    (message,) = reported(read)
    assert message.startswith(
        "listener EXTERNAL would be removed, and has 4 connections of clients: 3 from a.b, 1 from "
        "c.d. "
    )


def test_clients_of_a_listener_that_stays_do_not_matter() -> None:
    other = report(ONE, clients={"HOST": {"10.0.0.9": 3}})
    read = Parameters(look(counted(ONE, 1), counted(TWO, 1)), look(other, counted(TWO, 2)))
    assert reported(read) == []


FAILED = report(TWO, NodeState.FAILED, detail="a full disk")


@pytest.mark.parametrize(
    ("first", "last", "reason", "seconds"),
    [
        (counted(TWO, 1), counted(TWO, 1), "no new report", 0),
        ("", "", "no new report", 0),
        ("nothing yet", "nothing yet", "no new report", 0),
        (counted(TWO, 1), FAILED, "it reports failed a full disk", 5),
        (counted(TWO, 1), report(TWO, at=LATER), "it could not count connections", 5),
    ],
)
def test_clients_of_a_broker_without_a_new_count_are_unknown(
    first: str, last: str, reason: str, seconds: float
) -> None:
    looks = look(counted(ONE, 1), first), look(counted(ONE, 2, a_b=1), last)
    used, unknown = reported(Parameters(*looks), seconds=seconds)
    assert "has 1 connection of clients: 1 from a.b" in used
    assert unknown == f"{UNKNOWN} (node 2: {reason}){FIX}"


def test_a_broker_that_starts_is_waited_for() -> None:
    starting = report(TWO, NodeState.STARTING)
    read = Parameters(
        look(counted(ONE, 1), starting),
        look(counted(ONE, 2), report(TWO, NodeState.STARTING, at=LATER)),
        look(counted(ONE, 3), counted(TWO, 3, a_b=1)),
    )
    (used,) = reported(read)
    assert "1 from a.b" in used


def test_brokers_that_were_not_to_report_clients_are_not_waited_for() -> None:
    read = Parameters(look(report(ONE), report(TWO)))
    why = "clients are counted from the step on that marks a listener as leaving"
    assert reported(read) == [f"{UNKNOWN} (node 1, 2: {why}){FIX}"]
    assert read.count == 1


def test_a_change_that_was_begun_goes_on_where_a_broker_has_lost_the_listener() -> None:
    for state in NodeState:
        lost = report(ONE, state)
        first = look(lost, counted(TWO, 1))
        assert reported(Parameters(first, look(lost, counted(TWO, 2))), may_be_removed=True) == []
        before = look(counted(ONE, 1, a_b=1), counted(TWO, 1))
        assert reported(Parameters(before, look(lost, counted(TWO, 2))), may_be_removed=True) == []
    first = look(report(ONE), counted(TWO, 1))
    assert (
        reported(Parameters(first, look(report(ONE), counted(TWO, 2))), may_be_removed=True) == []
    )
    (used,) = reported(
        Parameters(first, look(report(ONE), counted(TWO, 2, a_b=1))), may_be_removed=True
    )
    assert "1 from a.b" in used
