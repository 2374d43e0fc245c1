"""Waiting for nodes: when a node is up and serves clients, and the error if it never does."""

import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException
from earshot_pulumi.driver import BEHIND, CatchingUp
from earshot_pulumi.local import cluster_memory, readiness, users
from earshot_pulumi.local.process_record import Record, read_record, start_ticks
from earshot_pulumi.local.readiness import (
    NO_ANSWER,
    LocalDriver,
    RunningCluster,
)

from earshot.certificates.store import Store
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, SecurityPlan
from earshot.listeners.render import server_properties
from earshot.listeners.terms import Mechanism
from earshot.validation.client import Failure
from tests.components.local.nodes import node, recorded
from tests.components.local.test_cluster_memory import PORTS, planned
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
    assert readiness._broker_lacks(tmp_path, 1, admin, "localhost:1", CLUSTER) == state


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
        cluster_memory,
        "ended",
        lambda root, except_id: ended if (root, except_id) == (tmp_path, 1) else [],
    )
    admin: Any = AdminDouble([1, 2], [1, 2, 3], isrs)
    assert readiness._broker_lacks(tmp_path, 1, admin, "localhost:1", CLUSTER) == state


def test_a_node_that_ended_is_told_with_its_reason(tmp_path: Path) -> None:
    directory = cluster_memory.node_directory(tmp_path, 1)
    directory.mkdir()
    (directory / "console.log").write_text("Invalid maximum heap size: -Xmx1\n")
    assert str(raised(EarshotError, RunningCluster(tmp_path, CLUSTER).wait_for, [1])) == (
        "node 1 did not come up: Invalid maximum heap size: -Xmx1\n"
        f"  logs: {directory / 'server.log'}, console.log\n"
        "  fix: fix this cause, then run the same command again"
    )


def test_a_controller_alone_is_up_when_it_accepts_connections(tmp_path: Path) -> None:
    directory = cluster_memory.node_directory(tmp_path, 10_001)
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
            RunningCluster(tmp_path, CLUSTER, deadline=0).wait_for([10_001])
        listening.listen()
        RunningCluster(tmp_path, CLUSTER, deadline=0).wait_for([10_001])


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
    resolves = True

    def getaddrinfo(*_: object, flags: int) -> None:
        assert flags == socket.AI_ADDRCONFIG
        if not resolves:
            raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(readiness, "_admin", lambda _, settings: asked.append(settings))
    started_with(
        cluster_memory.node_directory(tmp_path, 1),
        f"inter.broker.listener.name=A\nlisteners=A://{bound}:1\n"
        f"advertised.listeners=A://{advertised}:1\nlistener.security.protocol.map=A:PLAINTEXT\n",
    )
    _ = LocalDriver(RunningCluster(tmp_path, CLUSTER), 1)._admin
    resolves = False  # offline: glibc resolves for both families only
    _ = LocalDriver(RunningCluster(tmp_path, CLUSTER), 1)._admin
    assert asked == [{"broker.address.family": family} if family else {}, {}]


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
    directory = cluster_memory.node_directory(tmp_path, 1)
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
            RunningCluster(tmp_path, CLUSTER, deadline=0).wait_for([1])
        if roles == "broker":
            found = LocalDriver(RunningCluster(tmp_path, CLUSTER), 1)
            assert found.unserved() == "B at " + outer.removeprefix("B://") + ": not listening yet"
        assert not asked
        recorded(directory, replace(made, pid=os.getpid(), ticks=start_ticks(os.getpid())))
        monkeypatch.setattr(readiness, "running", read_record)
        RunningCluster(tmp_path, CLUSTER, deadline=0).wait_for([1])
        assert asked


def test_a_broker_that_only_lacks_time_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "running", lambda _: "its record")
    started_with(cluster_memory.node_directory(tmp_path, 1), BROKER)
    monkeypatch.setattr(readiness, "_admin", lambda *_: AdminDouble([1, 2], [1, 2], [2]))
    monkeypatch.setattr(LocalDriver, "unserved", lambda _: "")
    assert str(raised(CatchingUp, RunningCluster(tmp_path, CLUSTER, deadline=0).wait_for, [1])) == (
        "node 1: not ready after 0 s\n"
        "node 1: not in sync with all of its replicas; the last lines of its log:\n"
        "  (it wrote no log)\n"
        "  fix: wait until it has caught up, then run the same command again"
    )


def test_a_broker_that_serves_no_clients_is_told_by_its_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "running", lambda _: "its record")
    started_with(cluster_memory.node_directory(tmp_path, 1), BROKER)
    monkeypatch.setattr(readiness, "_admin", lambda *_: AdminDouble([1, 2], [1, 2], [1, 2]))
    problems = ["EXTERNAL at 127.0.0.1:1: Connection refused"] * 2
    monkeypatch.setattr(LocalDriver, "unserved", lambda _: problems.pop() if problems else "")
    assert "node 1: EXTERNAL at 127.0.0.1:1: Connection refused; the last lines" in str(
        raised(EarshotError, RunningCluster(tmp_path, CLUSTER, deadline=0).wait_for, [1])
    )
    RunningCluster(tmp_path, CLUSTER).wait_for([1])


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """The answers of three running brokers, by id; tests change them."""
    cluster_memory.settle(tmp_path, planned())
    answers: dict[int, Any] = {}
    for id in (1, 2, 3):
        directory = cluster_memory.node_directory(tmp_path, id)
        text = BROKER.replace(":1", f":{id}") + "listener.security.protocol.map=INTERNAL:PLAINTEXT"
        started_with(directory, text)
        answers[id] = AdminDouble([1, 2, 3], [1, 2, 3], [1, 2, 3])
    for module in (readiness, cluster_memory):
        monkeypatch.setattr(module, "running", lambda _: "its record")
    monkeypatch.setattr(readiness, "_listens", lambda *_: True)
    monkeypatch.setattr(readiness, "login_failure", pytest.fail)
    monkeypatch.setattr(
        readiness, "_admin", lambda address, _: answers[int(address.rpartition(":")[2])]
    )
    return answers


SILENT, LAGGING = AdminDouble([], [], []), AdminDouble([1, 2, 3], [1, 2, 3], [1, 3])


@pytest.mark.parametrize(
    ("answers", "late"),
    [
        ({}, ""),
        ({2: LAGGING}, "node 2: not in sync with all of its replicas"),
        ({2: SILENT, 3: SILENT}, "node 2: no answer"),
        ({1: SILENT, 2: SILENT}, ""),
    ],
    ids=["all are in sync", "one is behind", "two are starting", "the node itself is down, too"],
)
def test_a_node_waits_until_the_others_are_in_sync(
    tmp_path: Path, three: dict[int, Any], answers: dict[int, Any], late: str
) -> None:
    three |= answers
    if not late:
        RunningCluster(tmp_path, CLUSTER, deadline=0).wait_for_others(1)
        return
    error = raised(EarshotError, RunningCluster(tmp_path, CLUSTER, deadline=0).wait_for_others, 1)
    assert late in error.observed


def test_brokers_that_need_the_credentials_of_other_settings_are_not_waited_for(
    tmp_path: Path, three: dict[int, Any]
) -> None:
    """The file of client properties may already have those of this update."""
    three[2] = SILENT
    path = cluster_memory.node_directory(tmp_path, 2) / "server.properties"
    path.write_text(path.read_text().replace("PLAINTEXT", "SASL_PLAINTEXT"))
    client = {"sasl.mechanism": "PLAIN"}
    RunningCluster(tmp_path, CLUSTER, client, deadline=0).wait_for_others(1)


@pytest.mark.parametrize(
    ("answers", "serve"),
    [
        ({}, True),
        ({1: SILENT, 2: SILENT, 3: LAGGING}, True),
        ({1: SILENT, 2: SILENT, 3: SILENT}, False),
    ],
)
def test_a_cluster_serves_clients_if_a_member_answers(
    tmp_path: Path, three: dict[int, Any], answers: dict[int, Any], serve: bool
) -> None:
    three |= answers
    assert RunningCluster(tmp_path, CLUSTER).serves_clients() is serve
    assert not RunningCluster(tmp_path, "another cluster").serves_clients()


REFUSED = Failure("authentication", "invalid credentials")


def plan_of(protocol: str, root: Path | None = None) -> ClusterPlan:
    """INTERNAL in TLS, EXTERNAL with ``protocol``; secured where there is a ``root``."""
    listeners = [
        {"name": "INTERNAL", "port": PORTS["INTERNAL"], "scopes": "internal", "protocol": "SSL"},
        {"name": "EXTERNAL", "port": PORTS["EXTERNAL"], "scopes": "host", "protocol": protocol},
    ]
    plan = planned(listeners=listeners)
    if root is None:
        return plan
    security = SecurityPlan(folder=str(root / "security"), mechanism=Mechanism.SCRAM_SHA_512)
    return plan.model_copy(update={"security": security})


class Brokers:
    """Answers of brokers by port, each in turn, the last one for good."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, list[Failure | None]] = {}
        self.asked: list[Mapping[str, Any]] = []
        monkeypatch.setattr(readiness, "login_failure", self._answer)
        monkeypatch.setattr(readiness, "running", lambda _: object())
        monkeypatch.setattr(readiness, "_listens", lambda *_: True)

    def _answer(self, settings: Mapping[str, Any]) -> Failure | None:
        self.asked.append(settings)
        left = self.answers[settings["bootstrap.servers"]]
        return left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    return Brokers(monkeypatch)


@pytest.fixture
def resets(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str]]:
    """The stores whose users got their passwords again, and through which broker."""
    resets: list[tuple[Path, str]] = []

    def reset(store: Store, bootstrap: str, _settings: object) -> None:
        resets.append((store.folder, bootstrap))

    monkeypatch.setattr(users, "reset_passwords", reset)
    return resets


def started(root: Path, plan: ClusterPlan) -> dict[int, str]:
    """Where each node's EXTERNAL is reached here, once all were started as ``plan`` says."""
    addresses = {}
    for planned_node in plan.nodes:
        directory = cluster_memory.node_directory(root, planned_node.id)
        directory.mkdir(parents=True)
        (directory / "server.properties").write_text(server_properties(plan, planned_node))
        listener = planned_node.listener("EXTERNAL")
        assert listener is not None
        addresses[planned_node.id] = f"127.0.0.1:{listener.bind_port}"
    return addresses


def secured(root: Path) -> dict[int, str]:
    Store(root / "security").folder.mkdir(parents=True)
    (root / "security" / "validator.properties").write_text("sasl.mechanism=SCRAM-SHA-512\n")
    return started(root, plan_of("SASL_SSL", root))


def driver_of(root: Path) -> LocalDriver:
    return LocalDriver(RunningCluster(root, "id", say=print), 1)


def test_users_that_one_broker_has_lost_get_their_passwords_again_once(
    tmp_path: Path, brokers: Brokers, resets: list[Any]
) -> None:
    """`test_driver.py` has the other cases, which are the same for all kinds of nodes."""
    places = secured(tmp_path)
    brokers.answers |= {key: [None] for key in places.values()}
    brokers.answers[places[1]] = [Failure("refused", "Connection refused"), REFUSED, None]
    driver = driver_of(tmp_path)
    assert driver.unserved() == f"EXTERNAL at {places[1]}: not listening yet"
    assert "refuses a user that other brokers accept" in driver.unserved()
    assert driver.unserved() == ""
    for settings in brokers.asked:
        assert settings["security.protocol"] == "SASL_SSL"
        assert settings["sasl.mechanism"] == "SCRAM-SHA-512", "it logs in as the validator"
    assert resets == [(tmp_path / "security", f"localhost:{PORTS['INTERNAL']}")]


@pytest.mark.parametrize(
    ("error", "problem"),
    [("refused", True), ("timeout", True), ("authentication", False), ("tls", False)],
)
def test_without_credentials_of_ours_any_answer_counts(
    tmp_path: Path, brokers: Brokers, error: str, problem: bool
) -> None:
    """Whether the user's own are right is what the validation tells."""
    places = started(tmp_path, plan_of("SASL_PLAINTEXT"))
    brokers.answers[places[1]] = [Failure(error, "no")]
    assert bool(driver_of(tmp_path).unserved()) is problem


def test_a_node_whose_settings_are_not_known_has_no_listener_to_ask(tmp_path: Path) -> None:
    assert driver_of(tmp_path).unserved() == ""
