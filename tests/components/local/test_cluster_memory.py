"""What a plan may do over the data that is there."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from earshot_pulumi.local import cluster_memory
from earshot_pulumi.local.process_record import Record
from earshot_pulumi.local.reconstruction import ClusterMemory

from earshot import sockets
from earshot.config.document import read_spec
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, SecurityPlan
from earshot.listeners.terms import Mechanism, Protocol, Scope
from earshot.placement.plan import NodeNames, plan
from earshot.sockets import outgoing_ports
from tests.components.local import nodes
from tests.e2e.ports import reserved_ports
from tests.raised import raised

_ports = reserved_ports(10, 4)
MOVED_CONTROLLERS = _ports.pop()
PORTS = dict(zip(("INTERNAL", "EXTERNAL", "CONTROLLER"), _ports, strict=True))
"""The first port of each listener; a node's is this one and its place."""


def planned(**settings: Any) -> ClusterPlan:
    document = {
        "placement": "local",
        "listeners": [
            {"name": "INTERNAL", "port": PORTS["INTERNAL"], "scopes": "internal"},
            {"name": "EXTERNAL", "port": PORTS["EXTERNAL"], "scopes": "host"},
        ],
        "controllers": {"port": PORTS["CONTROLLER"]} | settings.pop("controllers", {}),
        **settings,
    }
    spec = read_spec(document, "test")
    hosts = dict.fromkeys((Scope.INTERNAL, Scope.HOST, Scope.CONTROLLER), "localhost")
    return plan(
        spec,
        {
            id: NodeNames(hosts=hosts, machine="m", port_offset=index)
            for index, id in enumerate(spec.node_ids)
        },
    )


def problems(root: Path, plan: ClusterPlan) -> list[str]:
    return list(cluster_memory.problems(root, plan))


def have_data(root: Path, *ids: int) -> None:
    """Formats the data of the nodes ``ids``."""
    for id in ids:
        log = cluster_memory.node_directory(root, id) / "log"
        log.mkdir(parents=True, exist_ok=True)
        (log / "meta.properties").write_text("")


@pytest.mark.parametrize(
    ("with_data", "served", "gone"),
    [
        ((1, 2, 3), True, ""),
        ((1, 3), True, ""),
        ((3,), True, "nodes 1, 2"),
        ((), True, "nodes 1 to 3"),
        ((3,), False, ""),
        ((), False, ""),
    ],
)
def test_voters_without_data_must_not_outvote_those_with_data(
    with_data: tuple[int, ...], served: bool, gone: str, tmp_path: Path
) -> None:
    """Not after a first start that was interrupted: nodes may never have had data."""
    cluster_memory.settle(tmp_path, planned())
    if served:
        cluster_memory.mark_serving(tmp_path, [], whole=True)
        cluster_memory.mark_stopped(tmp_path)
    have_data(tmp_path, *with_data)
    lost = list(
        cluster_memory._lost_data(tmp_path, cluster_memory.recall(tmp_path) or pytest.fail())
    )
    if not gone:
        assert lost == []
        return
    (problem,) = lost
    assert problem.startswith(f"the data of {gone} is gone, of 3 voters in all: with empty data")
    assert f"Put {tmp_path / 'node-1' / 'log'}, {tmp_path / 'node-2' / 'log'}" in problem
    assert lost[0] in problems(tmp_path, planned())


def test_a_memory_of_an_earlier_release_has_served_if_it_serves(tmp_path: Path) -> None:
    for serving in (True, False):
        cluster_memory.settle(tmp_path, planned())
        path = tmp_path / "cluster.json"
        document = json.loads(path.read_text()) | {"serving": serving}
        del document["served"]
        path.write_text(json.dumps(document))
        memory = cluster_memory.recall(tmp_path)
        assert memory is not None and memory.has_served is serving


def test_a_first_start_has_no_problems_and_gets_an_id(tmp_path: Path) -> None:
    assert problems(tmp_path, planned()) == []
    memory = cluster_memory.settle(tmp_path, planned())
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", memory.cluster_id)
    assert cluster_memory.recall(tmp_path) == memory


def test_the_cluster_id_and_the_word_that_it_serves_survive_a_change(tmp_path: Path) -> None:
    first = cluster_memory.settle(tmp_path, planned())
    cluster_memory.mark_serving(tmp_path, ["4.1.1"], whole=True)
    have_data(tmp_path, 1, 2, 3)
    assert problems(tmp_path, planned(brokers=4)) == [], "the voters stay"
    second = cluster_memory.settle(tmp_path, planned(brokers=4))
    assert second.cluster_id == first.cluster_id
    assert second.brokers == (1, 2, 3, 4)
    assert second.serving is True


def test_the_quorum_of_a_secured_cluster_is_in_plain_text_only_while_nodes_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = [
        (
            "controllers.protocol: found PLAINTEXT with `security` and no running node: any client "
            "that reaches the quorum's port could do everything. The key is for a plaintext "
            "cluster that gets TLS while it runs. Remove `protocol`, so that the quorum has TLS, "
            "too"
        )
    ]
    plain = planned()
    security = SecurityPlan(folder="/keys", mechanism=Mechanism.SCRAM_SHA_512)
    secured = plain.model_copy(update={"security": security})
    assert problems(tmp_path, secured) == refused
    cluster_memory.settle(tmp_path, secured)  # stopped
    assert problems(tmp_path, secured) == refused
    monkeypatch.setattr(cluster_memory, "any_runs", lambda root: root == tmp_path)
    assert problems(tmp_path, secured) == []
    monkeypatch.undo()
    assert problems(tmp_path, plain) == []
    whole = secured.model_copy(update={"controller_protocol": Protocol.SSL})
    assert problems(tmp_path, whole) == []


def test_other_voters_are_refused(tmp_path: Path) -> None:
    cluster_memory.settle(tmp_path, planned(brokers=1))
    (problem,) = problems(tmp_path, planned(brokers=3))
    assert "has the voters 1 and would get 1, 2, 3" in problem
    assert "controllers.count: 1" in problem
    assert problems(tmp_path, planned(brokers=3, controllers={"count": 1})) == []


def test_a_version_is_remembered_once_a_broker_has_served_with_it(tmp_path: Path) -> None:
    """The newest counts until the whole cluster serves with another one."""
    memory = cluster_memory.settle(tmp_path, planned(kafka_version="4.9.1"))
    assert cluster_memory.settle(tmp_path, planned(kafka_version="4.11.0")) == memory
    for versions, whole, newest, serves in (
        ([], False, "4.9.1", False),
        (["4.10.0"], False, "4.10.0", False),
        (["4.9.1"], False, "4.10.0", False),
        (["4.9.1", "4.9.1"], True, "4.9.1", True),
        ([], True, "4.9.1", True),
        (["4.10.0"], False, "4.10.0", True),
    ):
        cluster_memory.mark_serving(tmp_path, versions, whole)
        memory = replace(memory, kafka_version=newest, serving=serves, served=serves)
        assert cluster_memory.recall(tmp_path) == memory


def test_a_broker_is_removed_once_it_holds_no_replicas(tmp_path: Path) -> None:
    assert cluster_memory.removed(tmp_path, planned()) == []
    cluster_memory.settle(tmp_path, planned(brokers=5))
    assert cluster_memory.removed(tmp_path, planned(brokers=3)) == [4, 5]
    assert cluster_memory.removed(tmp_path, planned(brokers=5)) == []
    logs = [cluster_memory.node_directory(tmp_path, id) / "log" for id in (4, 5)]
    for name in ("__cluster_metadata-0", "gone-0.1f-delete"):
        (logs[0] / name).mkdir(parents=True)
    (logs[0] / "file-0").write_text("no folder")
    assert problems(tmp_path, planned(brokers=3)) == []
    for log in logs:
        for name in ("orders-0", "orders-12"):
            (log / name).mkdir(parents=True)
    assert [text.partition(".")[0] for text in problems(tmp_path, planned(brokers=3))] == [
        f"broker {id} would be removed and still holds 2 replica(s): orders-0, orders-12"
        for id in (4, 5)
    ]


def bound(host: str, port: int, ipv6_only: bool = False) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    holder = socket.socket(family)
    try:
        if family == socket.AF_INET6:
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(ipv6_only))
        holder.bind((host, port))
        holder.listen()
    except OSError:
        holder.close()  # or a later test is blamed for it
        raise
    return holder


def localhost(plan: ClusterPlan) -> ClusterPlan:
    """``plan`` with EXTERNAL bound as the `local` placement does."""
    document = plan.model_dump(mode="json")
    for node in document["nodes"]:
        for item in node["listeners"]:
            item["bind_host"] = "127.0.0.1"
    return ClusterPlan.model_validate(document)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1", "::"])
def test_a_port_in_use_is_named_with_listener_and_holder(tmp_path: Path, host: str) -> None:
    port = PORTS["EXTERNAL"] + 1
    who = f"pid {os.getpid()} ({psutil.Process().name()})"
    with bound(host, port):
        for plan in (planned(), localhost(planned())):
            (problem,) = problems(tmp_path, plan)
            assert problem == (
                f"listener EXTERNAL of node 2: port {port} is in use by {who}. "
                "Free the port, or choose another `port` for EXTERNAL"
            )


def test_a_port_that_a_connection_has_for_itself_is_found(tmp_path: Path) -> None:
    port = PORTS["EXTERNAL"] + 1
    with bound("127.0.0.1", 0) as other, socket.socket() as client:
        client.bind(("127.0.0.1", port))
        client.connect(other.getsockname())
        (problem,) = problems(tmp_path, localhost(planned()))
        assert problem == (
            f"listener EXTERNAL of node 2: port {port} is in use by a connection of pid "
            f"{os.getpid()} ({psutil.Process().name()}). Free the port, or choose another `port` "
            f"for EXTERNAL, outside {outgoing_ports()}, the ports of this machine's own connections"
        )


def test_a_port_that_frees_itself_need_not_be_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = sockets.Holder("port 1 is held", passing=True)
    monkeypatch.setattr(
        sockets, "kept", lambda bound: holder if bound.port == PORTS["INTERNAL"] else None
    )
    monkeypatch.setattr(sockets, "outgoing_ports", lambda: None)
    (problem,) = problems(tmp_path, localhost(planned()))
    assert problem == (
        "listener INTERNAL of node 1: port 1 is held. It is free within a minute: run the same "
        "command again then, or choose another `port` for INTERNAL"
    )


@pytest.mark.parametrize(
    ("host", "ipv6_only"), [("127.0.0.2", False), ("::1", False), ("::", True)]
)
def test_a_socket_on_other_addresses_leaves_the_port_free(
    tmp_path: Path, host: str, ipv6_only: bool
) -> None:
    with bound(host, PORTS["EXTERNAL"] + 1, ipv6_only=ipv6_only):
        assert problems(tmp_path, localhost(planned())) == []


@contextlib.contextmanager
def listening_node(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A node without a record that listens on the first port of EXTERNAL."""
    code = f"import socket, time; s = socket.create_server(('127.0.0.1', {PORTS['EXTERNAL']}))"
    code += "; print(1, flush=True); time.sleep(60)"
    with nodes.node(directory, code, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        yield child
        child.stdout.close()


@pytest.mark.parametrize(("id", "is_recorded"), [(1, False), (2, False), (7, True)])
def test_a_node_that_holds_a_port_blocks_only_others(
    tmp_path: Path, id: int, is_recorded: bool
) -> None:
    """A node without a record, whose starter was killed, is ended by its own next start."""
    directory = tmp_path / f"node-{id}"
    with listening_node(directory) as child:
        if is_recorded:
            nodes.recorded(directory, Record.of(child.pid, "d"))
        name = psutil.Process(child.pid).name()
        messages = problems(tmp_path, planned())
    blocking = (
        f"listener EXTERNAL of node 1: port {PORTS['EXTERNAL']} is in use by pid {child.pid} "
        f"({name}), which is node {id} of this cluster. Choose a `port` for "
        "EXTERNAL with which no node gets a port that another one has now"
    )
    assert messages == ([] if id == 1 else [blocking])


def test_a_broker_of_another_cluster_is_named_by_its_settings(tmp_path: Path) -> None:
    port, other = PORTS["EXTERNAL"], "/elsewhere/node-1/server.properties"
    code = f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); print(1)"
    command = [sys.executable, "-uc", f"{code}; time.sleep(60)", "kafka.Kafka", other]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        (problem,) = problems(tmp_path, planned())
        child.kill()
    assert f"(Kafka with {other})" in problem


@pytest.mark.parametrize(
    ("brokers", "alive", "runs"),
    [
        (3, (1, 2, 3), True),
        (3, (1, 3), True),
        (3, (2,), False),
        (3, (), False),
        (4, (1, 2), False),
    ],
)
def test_a_cluster_serves_if_it_has_served_and_a_majority_of_its_voters_runs(
    tmp_path: Path, brokers: int, alive: tuple[int, ...], runs: bool
) -> None:
    assert not cluster_memory.majority_runs(tmp_path) and not cluster_memory.serves(tmp_path)
    voters = {str(id): f"h:{id}" for id in range(1, brokers + 1)}
    memory = ClusterMemory("id", voters, "4.1.1", tuple(range(1, brokers + 1)), serving=True)
    with nodes.running_nodes(tmp_path, alive):
        cluster_memory.remember(tmp_path, memory)
        assert cluster_memory.majority_runs(tmp_path) is cluster_memory.serves(tmp_path) is runs
        cluster_memory.remember(tmp_path, replace(memory, serving=False))
        assert cluster_memory.majority_runs(tmp_path) is runs and not cluster_memory.serves(
            tmp_path
        )


def test_nodes_whose_records_are_lost_are_not_taken_for_ended(tmp_path: Path) -> None:
    """Otherwise a change would stop one node after the other, and wait for none."""
    cluster_memory.settle(tmp_path, planned())
    cluster_memory.mark_serving(tmp_path, ["4.1.1"], whole=True)
    have_data(tmp_path, 1, 2, 3)
    with nodes.running_nodes(tmp_path, (1, 2, 3)):
        for path in tmp_path.glob("node-*/process.json"):
            path.unlink()
        assert cluster_memory.serves(tmp_path) and cluster_memory.running_nodes(tmp_path) == [
            1,
            2,
            3,
        ]
        assert cluster_memory.ended(tmp_path, except_id=1) == []


def test_nodes_that_have_ended_come_first_and_new_ones_in_their_order(tmp_path: Path) -> None:
    plan = planned(brokers=5)
    cluster_memory.settle(tmp_path, plan)
    assert cluster_memory.ended(tmp_path, except_id=1) == []
    have_data(tmp_path, 1, 2, 3, 4)  # broker 5 is new
    with nodes.running_nodes(tmp_path, (1, 3)):
        assert cluster_memory.ended(tmp_path, except_id=1) == [2, 4]
        assert cluster_memory.ended(tmp_path, except_id=2) == [4]
        order = [node.id for node in cluster_memory.ended_first(tmp_path, plan.nodes)]
        assert order == [2, 4, 1, 3, 5]


@nodes.as_root
def test_data_of_another_user_is_not_in_order(open_folder: Path) -> None:
    (open_folder / "node-1" / "log").mkdir(parents=True, mode=0o700)
    (open_folder / "node-1" / "log" / "meta.properties").touch()
    asked = f"""
import pathlib, types
from earshot_pulumi.local import cluster_memory
from tests.components.local.nodes import become_nobody
become_nobody()
nodes = [types.SimpleNamespace(id=1)]
print(len(cluster_memory.ended_first(pathlib.Path({str(open_folder)!r}), nodes)))
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_process_that_a_signal_holds_runs_and_is_suspended(tmp_path: Path) -> None:
    cluster_memory.settle(tmp_path, planned())
    directory = cluster_memory.node_directory(tmp_path, 2)
    with nodes.recorded_node(directory) as child:
        assert cluster_memory.suspended(tmp_path, except_id=1) == []
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        assert cluster_memory.suspended(tmp_path, except_id=1) == [child.pid]
        assert cluster_memory.suspended(tmp_path, except_id=2) == []
        assert cluster_memory.ended(tmp_path, except_id=1) == []


WHOLE = {"cluster_id": "x", "voters": {"1": "h:1"}, "kafka_version": "4.1.1", "brokers": [1]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"cluster_id": "x"}',
        "[" * 100_000,
        json.dumps({**WHOLE, "cluster_id": 5}),
        json.dumps({**WHOLE, "voters": {"1": 7}}),
        json.dumps({**WHOLE, "voters": {"one": "h:1"}}),
        json.dumps({**WHOLE, "kafka_version": "newest"}),
        json.dumps({**WHOLE, "brokers": ["one"]}),
    ],
)
def test_an_unreadable_memory_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    assert cluster_memory.recall(tmp_path) is None


def test_a_memory_survives_the_disk(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(WHOLE))
    memory = ClusterMemory("x", {"1": "h:1"}, "4.1.1", (1,), serving=False)
    assert cluster_memory.recall(tmp_path) == memory
    cluster_memory.remember(tmp_path, replace(memory, serving=True))
    assert cluster_memory.recall(tmp_path) == replace(memory, serving=True)
    assert json.loads((tmp_path / "cluster.json").read_text())["brokers"] == [1]


def test_an_orderly_stop_is_remembered_and_no_known_state_written_again(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"

    def serve() -> None:
        cluster_memory.mark_serving(tmp_path, [], whole=True)

    def stop() -> None:
        cluster_memory.mark_stopped(tmp_path)

    def is_written(mark: Callable[[], None]) -> bool:
        os.utime(file, (1, 1))
        mark()
        return file.stat().st_mtime != 1

    serve()
    stop()
    assert not file.exists(), "there is nothing to remember it of"
    memory = cluster_memory.settle(tmp_path, planned())
    written = [is_written(mark) for mark in (stop, serve, serve, stop, stop)]
    assert written == [False, True, False, True, False]
    assert cluster_memory.recall(tmp_path) == replace(memory, served=True)


def test_obstacles_to_the_data_are_reported_before_anything_else(tmp_path: Path) -> None:
    (tmp_path / "node-2").write_text("")
    (tmp_path / "cluster.json").write_text('{"voters": 1}')
    with bound("127.0.0.1", PORTS["EXTERNAL"]):
        assert problems(tmp_path, planned()) == [
            f"{tmp_path / 'node-2'} is a file, and its path is needed for a directory. Move it away"
        ]


def test_a_memory_that_this_user_may_not_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_bytes", refused)
    monkeypatch.setattr(cluster_memory, "user", lambda: "ann")
    monkeypatch.setattr(cluster_memory, "owner", lambda _: "bob")
    assert str(raised(EarshotError, cluster_memory.recall, tmp_path)) == (
        f"{tmp_path / 'cluster.json'}: this user (ann) may not read it\n"
        "  fix: run the command as its owner (bob)"
    )


def formatted(root: Path, id: int, cluster: str, held: int) -> None:
    """The data folder of node ``id`` has data of node ``held`` of ``cluster``."""
    log = cluster_memory.node_directory(root, id) / "log"
    log.mkdir(parents=True)
    (log / "meta.properties").write_text(f"cluster.id={cluster}\nnode.id={held}\n")


def test_data_of_another_cluster_is_told_with_what_mends_it(tmp_path: Path) -> None:
    memory = cluster_memory.settle(tmp_path, planned())
    for id, cluster in ((1, "other"), (2, memory.cluster_id)):
        formatted(tmp_path, id, cluster, id)
    assert problems(tmp_path, planned()) == [
        (
            f"the data in {tmp_path / 'node-1'} is of the cluster other, and cluster.json has "
            f"{memory.cluster_id}: the broker would refuse to start. Move that directory away; if "
            "all nodes are of one other cluster, remove cluster.json, and it is made again from "
            "their data"
        )
    ]


def test_data_of_another_node_is_told_with_what_mends_it(tmp_path: Path) -> None:
    memory = cluster_memory.settle(tmp_path, planned())
    for id, held in ((1, 2), (2, 1), (3, 3)):
        formatted(tmp_path, id, memory.cluster_id, held)
    assert problems(tmp_path, planned()) == [
        f"the data in {tmp_path / f'node-{id}'} is of node {held}: the broker would refuse to "
        f"start. Move {tmp_path / f'node-{id}' / 'log'} back to its former place"
        for id, held in ((1, 2), (2, 1))
    ]


def test_controllers_move_only_while_none_of_them_runs(tmp_path: Path) -> None:
    cluster_memory.settle(tmp_path, planned())
    moved = planned(controllers={"port": MOVED_CONTROLLERS})
    assert problems(tmp_path, moved) == []
    directory = cluster_memory.node_directory(tmp_path, 2)
    with nodes.recorded_node(directory):
        old, new = (
            ", ".join(f"localhost:{port + turn}" for turn in range(3))
            for port in (PORTS["CONTROLLER"], MOVED_CONTROLLERS)
        )
        assert problems(tmp_path, moved) == [
            (
                f"the controllers would move from {old} to {new} while they run: during a "
                "rolling change no majority could connect to each other. Stop the cluster first "
                "(`pulumi destroy`; with `data: keep` it keeps the data)"
            )
        ]
        assert problems(tmp_path, planned()) == []


def test_a_listener_whose_host_leads_nowhere_is_left_to_the_broker(tmp_path: Path) -> None:
    document = planned().model_dump(mode="json")
    for item in document["nodes"][0]["listeners"]:
        item["bind_host"] = "nowhere.invalid"
    with bound("127.0.0.1", PORTS["EXTERNAL"]):
        assert problems(tmp_path, ClusterPlan.model_validate(document)) == []
