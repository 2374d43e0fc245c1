"""The wait for the reports of nodes: its end, and its errors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from earshot_pulumi.aws.machines import Machine
from earshot_pulumi.aws.readiness import AwaitedNode, Unhealthy, wait_for
from earshot_pulumi.aws.targets import Target

from earshot.errors import EarshotError
from earshot.user_data.boot import NodeReport, NodeState

ONE = AwaitedNode(1, "/p/1", "i-1", "a" * 64)
TWO = AwaitedNode(2, "/p/2", "i-2", "b" * 64)
THREE = AwaitedNode(3, "/p/3", "i-3", "c" * 64)


def report(node: AwaitedNode, state: NodeState = NodeState.IN_SYNC, **changes: Any) -> str:
    values = {name: getattr(node, name) for name in ("node", "instance", "user_data")}
    values |= {"state": state, "detail": "", "at": "2026-01-01T00:00:00Z", **changes}
    return NodeReport(**values).model_dump_json()


class Parameters:
    """The parameters at each look; the last stays."""

    def __init__(self, *looks: dict[str, str]) -> None:
        self._looks = list(looks)
        self.count = 0

    def __call__(self, names: Sequence[str]) -> dict[str, str]:
        self.count += 1
        texts = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        return {name: text for name, text in texts.items() if name in names}


def wait(
    read: Parameters,
    *nodes: AwaitedNode,
    deadline: float = 5,
    started: float = 0,
    unhealthy: Unhealthy = lambda _: "",
) -> None:
    def look(ids: Sequence[str]) -> dict[str, Machine]:
        return {id: Machine(id, "", "running", started) for id in ids}

    wait_for(nodes or (ONE,), read, deadline, look, pytest.fail, unhealthy, poll=0)


STARTING = report(ONE, NodeState.STARTING)
OLD_FAILURE = report(ONE, NodeState.FAILED, booted=1000)


@pytest.mark.parametrize(
    ("texts", "started"),
    [
        (
            ["nothing yet", report(ONE, instance="i-0", user_data="c" * 64), STARTING, report(ONE)],
            0,
        ),
        ([report(ONE, NodeState.FAILED, instance="i-0"), report(ONE)], 0),
        ([OLD_FAILURE, report(ONE, booted=2010)], 2000),
        (
            [
                report(ONE, booted=1000),
                report(ONE, NodeState.STARTING, booted=2010),
                report(ONE, booted=2010),
            ],
            2000,
        ),
        ([report(ONE, booted=1996)], 2000),
        ([report(ONE)], 2000),
    ],
    ids=[
        "the instance itself", "a failure of an earlier instance", "a failure before the restart",
        "a report before the restart", "clocks differ a little", "older scripts report no boot",
    ],
)  # fmt: skip
def test_a_node_is_awaited_until_its_instance_reports_itself_in_sync(
    texts: list[str], started: float
) -> None:
    """An instance is restarted by EC2 for another type, for example."""
    read = Parameters(*({"/p/1": text} for text in texts))
    wait(read, started=started)
    assert read.count == len(texts)


def test_a_stopped_instance_is_started_once_and_its_earlier_report_does_not_count() -> None:
    """It was stopped by hand, or by an update that was interrupted while it replaced the node."""
    states = ["stopped", "stopped", "pending", "running"]
    looks: list[str] = []
    calls: list[str] = []
    shown: list[str] = []

    def look(ids: Sequence[str]) -> dict[str, Machine]:
        looks.append(states[len(looks)])
        return {"i-1": Machine("i-1", "", looks[-1], 2000.0 if looks[-1] == "running" else 1000.0)}

    def read(names: Sequence[str]) -> dict[str, str]:
        return {"/p/1": report(ONE, booted=2001 if looks[-1] == "running" else 1001)}

    wait_for([ONE], read, 5, look, calls.append, lambda _: "", poll=0, progress=shown.append)
    assert looks == states and calls == ["i-1"]
    assert shown == ["node 1: its instance i-1 is stopped: earshot starts it"]


def test_the_wait_is_for_all_nodes() -> None:
    wait(Parameters({"/p/1": report(ONE), "/p/2": report(TWO)}), ONE, TWO)
    with pytest.raises(EarshotError, match="node 2: "):
        wait(Parameters({"/p/1": report(ONE)}), ONE, TWO, deadline=0)


def test_a_failed_node_ends_the_wait() -> None:
    read = Parameters({"/p/1": report(ONE, NodeState.FAILED, detail="wrong checksum")})
    with pytest.raises(EarshotError, match="node 1: failed: wrong checksum"):
        wait(read, deadline=3600)
    assert read.count == 1


@pytest.mark.parametrize(("values", "reason"), [
    ({"/p/1": "nothing yet"}, "node 1: it has not reported yet"),
    ({}, "node 1: its parameter /p/1 does not exist any more"),
    ({"/p/1": report(ONE, instance="i-0")}, "of another instance, i-0"),
    ({"/p/1": report(ONE, user_data="c" * 64)}, "i-1 booted with other user data"),
    ({"/p/1": STARTING}, "node 1: starting"),
    ({"/p/1": report(ONE, booted=1000)}, "of an earlier boot of i-1, which was started since"),
])  # fmt: skip
def test_an_error_at_the_deadline_has_the_last_report(values: dict[str, str], reason: str) -> None:
    with pytest.raises(EarshotError, match=r"node 1: not ready after 0 s\n") as caught:
        wait(Parameters(values), deadline=0, started=2000)
    assert reason in str(caught.value)
    assert "aws ssm start-session" in str(caught.value)


def test_a_larger_volume_is_waited_for_until_the_file_system_has_grown() -> None:
    wanted = replace(ONE, size_gib=200)
    small, grown = report(ONE, size_gib=100), report(ONE, size_gib=200, free_gib=150)
    looks = Parameters({"/p/1": small}, {"/p/1": grown})
    wait(looks, wanted)
    assert looks.count == 2
    with pytest.raises(EarshotError, match="its file system has 100 GiB, not 200 yet"):
        wait(Parameters({"/p/1": small}), wanted, deadline=0)


TARGET = Target("arn:…:targetgroup/kafka-1/0", "10.0.0.11", 9094)
BALANCED = replace(ONE, targets=(TARGET, replace(TARGET, group="arn:…:targetgroup/kafka-0/0")))


def test_a_node_in_sync_is_waited_for_until_every_target_of_it_is_healthy() -> None:
    problems, targets = ["is initial", "", "is unhealthy", "", ""], list[Target]()

    def unhealthy(target: Target) -> str:
        targets.append(target)
        return problems.pop(0)

    read = Parameters({"/p/1": report(ONE)})
    wait(read, BALANCED, unhealthy=unhealthy)
    assert targets == [TARGET, *BALANCED.targets, *BALANCED.targets] and read.count == 3


def test_the_balancer_is_asked_of_a_node_in_sync_alone() -> None:
    def unhealthy(target: Target) -> str:
        raise AssertionError(target)

    read = Parameters({"/p/1": STARTING})
    with pytest.raises(EarshotError, match="node 1: not ready after -1 s"):
        wait(read, BALANCED, deadline=-1, unhealthy=unhealthy)


def test_a_target_that_stays_unhealthy_is_named_at_the_deadline() -> None:
    read = Parameters({"/p/1": report(ONE)})
    with pytest.raises(EarshotError) as raised:
        wait(read, BALANCED, deadline=-1, unhealthy=lambda _: "target 10.0.0.11:9094 is unhealthy")
    text = "in sync, and the balancer sends it no connections: target 10.0.0.11"
    assert text in str(raised.value)
