"""Waiting for nodes: what counts as up, and what is said where that never comes."""

import os
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException
from earshot_pulumi.driver import BEHIND, CatchingUp
from earshot_pulumi.local import quorum, readiness
from earshot_pulumi.local.readiness import NO_ANSWER, wait_for
from earshot_pulumi.local.record import Record, read_record, start_ticks

from earshot.errors import EarshotError
from tests.components.local.nodes import node, recorded
from tests.raised import raised

CLUSTER = "ZWFyc2hvdC10ZXN0cy1ydQ"
BROKER = "inter.broker.listener.name=INTERNAL\nadvertised.listeners=INTERNAL://localhost:1\n"


def started_with(directory: Path, properties: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "server.properties").write_text(properties)


class AdminDouble:
    """Answers as a broker's metadata would: its ids, and who is in sync for one partition."""

    def __init__(self, brokers: list[int], replicas: list[int], isrs: list[int]) -> None:
        partition = SimpleNamespace(replicas=replicas, isrs=isrs)
        topic = SimpleNamespace(partitions={0: partition})
        self.metadata = SimpleNamespace(
            brokers=dict.fromkeys(brokers), topics={"t": topic}, cluster_id=CLUSTER
        )

    def list_topics(self, timeout: float) -> Any:
        if not self.metadata.brokers:
            raise KafkaException("refused")
        return self.metadata


@pytest.mark.parametrize(
    ("admin", "state"),
    [
        (AdminDouble([], [], []), NO_ANSWER),
        (AdminDouble([2, 3], [1, 2], [2]), NO_ANSWER),
        (AdminDouble([1, 2], [1, 2], [2]), BEHIND),
        (AdminDouble([1, 2], [2], [2]), ""),
        (AdminDouble([1, 2], [1, 2], [1, 2]), ""),
    ],
)
def test_a_broker_is_ready_when_it_is_listed_and_in_sync(
    tmp_path: Path, admin: Any, state: str
) -> None:
    assert readiness._state(tmp_path, 1, admin, "localhost:1", CLUSTER) == state


@pytest.mark.parametrize(
    ("isrs", "ended", "state"),
    [
        ([3], [3], ""),
        ([3], [2, 3], ""),
        ([2, 3], [3], BEHIND),
        ([2], [3], BEHIND),
        ([], [], BEHIND),
        ([1], [3], ""),
    ],
)
def test_what_only_nodes_have_that_ended_keeps_no_other_one_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isrs: list[int], ended: list[int], state: Any
) -> None:
    monkeypatch.setattr(
        quorum, "ended", lambda root, but: ended if (root, but) == (tmp_path, 1) else []
    )
    admin: Any = AdminDouble([1, 2], [1, 2, 3], isrs)
    assert readiness._state(tmp_path, 1, admin, "localhost:1", CLUSTER) == state


def test_a_node_that_ended_is_told_with_its_reason(tmp_path: Path) -> None:
    directory = quorum.node_directory(tmp_path, 1)
    directory.mkdir()
    (directory / "console.log").write_text("Invalid maximum heap size: -Xmx1\n")
    assert str(raised(EarshotError, wait_for, tmp_path, [1], CLUSTER)) == (
        "node 1 did not come up: Invalid maximum heap size: -Xmx1\n"
        f"  logs: {directory / 'server.log'}, console.log\n"
        "  fix: correct what the cause names, then run the same command again"
    )


def test_a_controller_alone_is_up_when_it_accepts_connections(tmp_path: Path) -> None:
    directory = quorum.node_directory(tmp_path, 10_001)
    with node(directory) as child, socket.socket() as listening:
        recorded(directory, Record.of(child.pid, "d"))
        listening.bind(("127.0.0.1", 0))
        address = f"CONTROLLER://127.0.0.1:{listening.getsockname()[1]}"
        started_with(
            directory, f"controller.listener.names=CONTROLLER\nadvertised.listeners={address}"
        )
        with pytest.raises(
            EarshotError, match="node 10001: not ready after 0 s\nnode 10001: no answer"
        ):
            wait_for(tmp_path, [10_001], CLUSTER, deadline=0)
        listening.listen()
        wait_for(tmp_path, [10_001], CLUSTER, deadline=0)


@pytest.mark.parametrize(
    ("bound", "advertised", "family"),
    [
        ("127.0.0.1", "localhost", "v4"),
        ("[::1]", "localhost", "v6"),
        ("", "localhost", None),
        ("0.0.0.0", "localhost", None),
        ("localhost", "localhost", None),
        ("127.0.0.1", "kafka.example.com", None),
    ],
)
def test_localhost_is_asked_at_the_address_that_the_node_binds(
    bound: str, advertised: str, family: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the other one another user's process may listen."""
    asked: list[Any] = []
    monkeypatch.setattr(readiness, "_admin", lambda _, settings: asked.append(settings))
    started_with(
        quorum.node_directory(tmp_path, 1),
        f"inter.broker.listener.name=A\nlisteners=A://{bound}:1\n"
        f"advertised.listeners=A://{advertised}:1\nlistener.security.protocol.map=A:PLAINTEXT\n",
    )
    _ = readiness.LocalDriver(tmp_path, 1, CLUSTER, {}, print)._admin
    assert asked == [{"broker.address.family": family} if family else {}]


@pytest.mark.parametrize("roles", ["broker", "controller"])
def test_another_process_at_the_port_of_a_node_is_not_asked(
    roles: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's may have taken the port while the node started: it would get the password."""
    asked: list[object] = []

    def admin(*settings: object) -> Any:
        asked.append(settings)
        return AdminDouble([1], [1], [1])

    def accepts(address: object) -> bool:
        asked.append(address)
        return True

    monkeypatch.setattr(readiness, "_admin", admin)
    monkeypatch.setattr(readiness, "login_failure", asked.append)
    monkeypatch.setattr(readiness, "accepts_connections", accepts)
    directory = quorum.node_directory(tmp_path, 1)
    with node(directory) as child, socket.create_server(("127.0.0.1", 0)) as other:
        made = recorded(directory, Record.of(child.pid, "d"))
        inner, outer = (f"{name}://127.0.0.1:{other.getsockname()[1]}" for name in ("A", "B"))
        key = "inter.broker.listener.name" if roles == "broker" else "controller.listener.names"
        started_with(
            directory,
            f"{key}=A\nlisteners={inner},{outer}\nadvertised.listeners={inner}\n"
            "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\n",
        )
        with pytest.raises(EarshotError, match="node 1: no answer"):
            wait_for(tmp_path, [1], CLUSTER, deadline=0)
        if roles == "broker":
            found = readiness.LocalDriver(tmp_path, 1, CLUSTER, {}, print)
            assert found.unserved() == "B at " + outer.removeprefix("B://") + ": not listening yet"
        assert not asked
        recorded(directory, replace(made, pid=os.getpid(), ticks=start_ticks(os.getpid())))
        monkeypatch.setattr(readiness, "running", read_record)
        wait_for(tmp_path, [1], CLUSTER, deadline=0)
        assert asked


def test_a_broker_that_only_lacks_time_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "running", lambda _: "its record")
    started_with(quorum.node_directory(tmp_path, 1), BROKER)
    monkeypatch.setattr(readiness, "_admin", lambda *_: AdminDouble([1, 2], [1, 2], [2]))
    monkeypatch.setattr(readiness.LocalDriver, "unserved", lambda _: "")
    assert str(raised(CatchingUp, wait_for, tmp_path, [1], CLUSTER, deadline=0)) == (
        "node 1: not ready after 0 s\n"
        "node 1: not in sync with all of its replicas; the last lines of its log:\n"
        "  (it wrote no log)\n"
        "  fix: wait until it has caught up, then run the same command again"
    )


def test_a_broker_that_serves_no_clients_is_told_by_its_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "running", lambda _: "its record")
    started_with(quorum.node_directory(tmp_path, 1), BROKER)
    monkeypatch.setattr(readiness, "_admin", lambda *_: AdminDouble([1, 2], [1, 2], [1, 2]))
    problems = ["EXTERNAL at 127.0.0.1:1: Connection refused"] * 2
    monkeypatch.setattr(
        readiness.LocalDriver, "unserved", lambda _: problems.pop() if problems else ""
    )
    assert "node 1: EXTERNAL at 127.0.0.1:1: Connection refused; the last lines" in str(
        raised(EarshotError, wait_for, tmp_path, [1], CLUSTER, deadline=0)
    )
    wait_for(tmp_path, [1], CLUSTER)
