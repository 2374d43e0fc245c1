"""Waiting for what nodes report: what is told, when it ends, and when it would never end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from earshot_pulumi.aws.reports import Awaited, Target, Unhealthy, wait_for

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


def wait(
    read: Parameters,
    *nodes: Awaited,
    deadline: float = 5,
    started: float = 0,
    unhealthy: Unhealthy = lambda _: "",
) -> None:
    def starts(ids: Sequence[str]) -> dict[str, float]:
        return dict.fromkeys(ids, started)

    wait_for(nodes or (ONE,), read, deadline, starts, unhealthy, poll=0)


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
    with pytest.raises(EarshotError, match=r"node 1: not ready after 0 s\n") as caught:
        wait(Parameters(values), deadline=0)
    assert said in str(caught.value)
    assert "aws ssm start-session" in str(caught.value)


def test_a_report_of_before_the_restart_does_not_count() -> None:
    """EC2 has stopped the instance and started it again, say for another type."""
    old, new = report(ONE, booted=1000), report(ONE, booted=2010)
    starting = report(ONE, NodeState.STARTING, booted=2010)
    looks = Parameters({"/p/1": old}, {"/p/1": starting}, {"/p/1": new})
    wait(looks, started=2000)
    assert looks.asked == 3
    with pytest.raises(EarshotError, match="of an earlier boot of i-1, which was started since"):
        wait(Parameters({"/p/1": old}), deadline=0, started=2000)


def test_what_failed_before_the_restart_is_no_reason_to_stop() -> None:
    old = report(ONE, NodeState.FAILED, booted=1000)
    looks = Parameters({"/p/1": old}, {"/p/1": report(ONE, booted=2010)})
    wait(looks, started=2000)
    assert looks.asked == 2


def test_clocks_may_differ_a_little_and_older_scripts_report_no_boot() -> None:
    for text in (report(ONE, booted=1996), report(ONE)):
        wait(Parameters({"/p/1": text}), started=2000)


def test_a_larger_volume_is_waited_for_until_the_file_system_has_grown() -> None:
    wanted = replace(ONE, size_gib=200)
    small, grown = report(ONE, size_gib=100), report(ONE, size_gib=200, free_gib=150)
    looks = Parameters({"/p/1": small}, {"/p/1": grown})
    wait(looks, wanted)
    assert looks.asked == 2
    with pytest.raises(EarshotError, match="its file system has 100 GiB, not 200 yet"):
        wait(Parameters({"/p/1": small}), wanted, deadline=0)


TARGET = Target("arn:…:targetgroup/kafka-1/0", "10.0.0.11", 9094)
BALANCED = replace(ONE, targets=(TARGET, replace(TARGET, group="arn:…:targetgroup/kafka-0/0")))


def test_a_node_in_sync_is_waited_for_until_every_target_of_it_is_healthy() -> None:
    said, asked = ["is initial", "", "is unhealthy", "", ""], list[Target]()

    def unhealthy(target: Target) -> str:
        asked.append(target)
        return said.pop(0)

    read = Parameters({"/p/1": report(ONE)})
    wait(read, BALANCED, unhealthy=unhealthy)
    assert asked == [TARGET, *BALANCED.targets, *BALANCED.targets] and read.asked == 3


def test_the_balancer_is_asked_of_a_node_in_sync_alone() -> None:
    def unhealthy(target: Target) -> str:
        raise AssertionError(target)

    read = Parameters({"/p/1": report(ONE, NodeState.STARTING)})
    with pytest.raises(EarshotError, match="node 1: not ready after -1 s"):
        wait(read, BALANCED, deadline=-1, unhealthy=unhealthy)


def test_a_target_that_stays_unhealthy_is_named_at_the_deadline() -> None:
    read = Parameters({"/p/1": report(ONE)})
    with pytest.raises(EarshotError) as raised:
        wait(read, BALANCED, deadline=-1, unhealthy=lambda _: "target 10.0.0.11:9094 is unhealthy")
    assert "in sync, and the balancer sends it no connections: target 10.0.0.11" in str(
        raised.value
    )
