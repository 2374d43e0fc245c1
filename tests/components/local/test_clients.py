"""Clients of listeners that a change takes away: processes that stand for brokers, real sockets."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from earshot_pulumi.local import changes, quorum
from earshot_pulumi.local.record import Record

from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import server_properties
from earshot.transition.steps import transition
from tests.components.local.nodes import node, recorded
from tests.e2e.ports import consecutive_ports
from tests.transition.pairs import planned

LISTENS = """
import socket, time
held = [socket.create_server(("127.0.0.1", port)) for port in ({ports})]
accepted = [held[0].accept() for _ in range(9)]
"""
NAME = psutil.Process().name()


def plan(ports: list[int], *names: str) -> ClusterPlan:
    listeners = [
        {"name": name, "port": port, "scopes": ["internal"]}
        for name, port in zip(names, ports, strict=True)
    ]
    return planned({"brokers": 1, "listeners": listeners})


@pytest.fixture
def ports() -> list[int]:
    return consecutive_ports(1, 2)


@pytest.fixture
def runs(tmp_path: Path, ports: list[int]) -> Iterator[ClusterPlan]:
    """A node that listens for INTERNAL and REPL, and accepts clients of INTERNAL."""
    made = plan(ports, "INTERNAL", "REPL")
    directory = quorum.node_directory(tmp_path, 1)
    with node(directory, LISTENS.format(ports=", ".join(map(str, ports)))) as child:
        recorded(directory, Record.of(child.pid, "d"))
        (directory / "server.properties").write_text(server_properties(made, made.node(1)))
        until(lambda: len(psutil.Process(child.pid).net_connections("tcp")) == len(ports))
        yield made


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_clients_of_a_listener_that_goes_are_counted_and_named(
    tmp_path: Path, runs: ClusterPlan, ports: list[int]
) -> None:
    without = plan(ports[1:], "REPL")
    assert list(changes.client_problems(tmp_path, without)) == []
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", ports[0])))
        until(lambda: "2 connections" in "".join(changes.client_problems(tmp_path, without)))
        (text,) = changes.client_problems(tmp_path, without)
        assert text == (
            "listener INTERNAL would go, and has 2 connections of clients: 2 from 127.0.0.1 "
            f"(pid {os.getpid()}, {NAME}). Let them use another listener (the contract marks "
            "INTERNAL as leaving), then run the same command again; or set `remove: anyway` in "
            "the stack's file, or a date from which on it goes"
        )
        assert list(changes.client_problems(tmp_path, runs)) == []
        first = transition(runs, plan([ports[0] + 1, ports[1]], "OTHER", "REPL"))[0].plan
        assert list(changes.client_problems(tmp_path, first)) == [], "nothing goes with this step"


def test_another_protocol_takes_the_listener_from_its_clients(
    tmp_path: Path, runs: ClusterPlan, ports: list[int]
) -> None:
    listeners = [
        {"name": "INTERNAL", "port": ports[0], "scopes": ["internal"], "protocol": "SSL"},
        {"name": "REPL", "port": ports[1], "scopes": ["internal"]},
    ]
    secured = planned({"brokers": 1, "listeners": listeners})
    with socket.create_connection(("127.0.0.1", ports[0])):
        until(lambda: bool(list(changes.client_problems(tmp_path, secured))))


def test_nodes_of_the_cluster_and_nodes_of_lost_settings_are_left_out(
    tmp_path: Path, runs: ClusterPlan, ports: list[int]
) -> None:
    two = planned(
        {"brokers": 2, "listeners": [{"name": "REPL", "port": ports[1], "scopes": ["internal"]}]}
    )
    directory = quorum.node_directory(tmp_path, 2)
    code = (
        f"import socket, time; c = socket.create_connection(('127.0.0.1', {ports[0]})); "
        "time.sleep(60)"
    )
    with node(directory, code) as child:
        recorded(directory, Record.of(child.pid, "d"))
        until(lambda: bool(psutil.Process(child.pid).net_connections("tcp")))
        assert list(changes.client_problems(tmp_path, two)) == []
    with socket.create_connection(("127.0.0.1", ports[0])):
        until(lambda: bool(list(changes.client_problems(tmp_path, two))))
        (quorum.node_directory(tmp_path, 1) / "server.properties").unlink()
        assert list(changes.client_problems(tmp_path, two)) == []
