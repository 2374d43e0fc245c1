"""Clients of listeners that go, by the sockets of containers; engines are doubles."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import DockerException
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import TargetStack
from earshot_pulumi.docker.running import RunningNode, client_problems

from earshot.listeners.properties import read_environment
from tests.components.docker.stacks import container, target_stack

INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": "internal"}
REPL = {"name": "REPL", "port": 19192, "scopes": "internal"}
HOST = {"name": "HOST", "port": 9092, "scopes": "host"}
BEFORE = target_stack(listeners=[INTERNAL, REPL, HOST], inter_broker="REPL")
AFTER = target_stack(listeners=[REPL, HOST])
HEAD = "  sl  local_address rem_address   st\n"
GATEWAY = "172.18.0.1"


def row(own: tuple[str, int], peer: tuple[str, int], state: str = "01") -> str:
    ends = (f"{_hex(host)}:{port:04X}" for host, port in (own, peer))
    return f"   0: {' '.join(ends)} {state}\n"


def _hex(host: str) -> str:
    return bytes(map(int, reversed(host.split(".")))).hex().upper()


def address(id: int) -> str:
    return f"172.18.0.{10 + id}"


def running(of: TargetStack) -> list[RunningNode]:
    (host,) = of.hosts
    return [
        RunningNode(
            container(of, id), host, dict(read_environment(it.environment).values), (GATEWAY,)
        )
        for id, it in of.containers.items()
    ]


def problems(
    monkeypatch: pytest.MonkeyPatch,
    tables: dict[int, str | Exception],
    after: TargetStack = AFTER,
    before: TargetStack = BEFORE,
) -> list[str]:
    """With what `cat` says in the containers, by node id; the others have no connections."""

    def get(id: str) -> Any:
        reported = tables.get(int(id.removeprefix("id-")), "")
        if isinstance(reported, Exception):
            raise reported
        return SimpleNamespace(exec_run=lambda command: (1, (HEAD + reported).encode()))

    client = SimpleNamespace(containers=SimpleNamespace(get=get))
    monkeypatch.setattr(Engines, "of", lambda self, host: client)
    return list(client_problems(Engines(), after, running(before)))


def test_clients_are_counted_by_where_they_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: dict[int, str | Exception] = {
        1: row((address(1), 19092), ("172.18.0.77", 40000))
        + row((address(1), 19092), ("172.18.0.77", 40001))
        + row((address(1), 19092), ("172.18.0.77", 40002), "06")
        + row((address(1), 19192), ("172.18.0.78", 40000)),
        2: row((address(2), 19092), (GATEWAY, 40000)),
    }
    (text,) = problems(monkeypatch, tables)
    assert text == (
        "listener INTERNAL would go, and has 3 connections of clients: 2 from 172.18.0.77, 1 from "
        "Docker host local. Let them use another listener (the contract marks INTERNAL as "
        "leaving), then run the same command again; or set `remove: anyway` in the stack's file, "
        "or a date from which on it goes"
    )
    assert problems(monkeypatch, tables, after=BEFORE) == []


def test_nodes_and_what_runs_in_their_containers_are_no_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables: dict[int, str | Exception] = {
        1: row((address(1), 19092), (address(2), 40000))
        + row(("127.0.0.1", 19092), ("127.0.0.1", 50000))
        + row(("127.0.0.1", 50000), ("127.0.0.1", 19092)),
        2: row((address(2), 40000), (address(1), 19092)),
    }
    assert problems(monkeypatch, tables) == []


def test_a_node_of_another_host_is_known_by_the_port_that_it_comes_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its host's address stands in place of its own, and it calls a published port."""
    tables: dict[int, str | Exception] = {
        2: row((address(2), 9092), ("192.0.2.9", 40000)),
        3: row((address(3), 40000), ("192.0.2.8", 9093)),
    }
    without = target_stack(listeners=[INTERNAL, REPL], inter_broker="REPL")
    assert problems(monkeypatch, tables, after=without) == []
    tables[3] = ""
    (text,) = problems(monkeypatch, tables, after=without)
    assert text.startswith("listener HOST would go, and has 1 connection of clients: 1 from 192.")


@pytest.mark.parametrize("reported", [DockerException("paused"), OSError("gone")])
def test_what_cannot_be_listed_is_not_known(
    monkeypatch: pytest.MonkeyPatch, reported: Exception
) -> None:
    (text,) = problems(monkeypatch, {1: reported})
    assert text == (
        "INTERNAL would go, and whether clients are connected is not known: the sockets in "
        "container kafka-1 on Docker host local cannot be listed. See that it runs and is not "
        "paused, or set `remove: anyway` in the stack's file"
    )
    assert problems(monkeypatch, {1: reported}, after=BEFORE) == [], "nothing goes: nobody is asked"


def test_a_broker_that_goes_itself_and_foreign_settings_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fewer = target_stack(listeners=[REPL, HOST], brokers=1)
    tables: dict[int, str | Exception] = {2: row((address(2), 19092), ("172.18.0.77", 40000))}
    assert problems(monkeypatch, tables, after=fewer) == []
    odd = [replace(it, values={"advertised.listeners": "://"}) for it in running(BEFORE)]
    assert list(client_problems(Engines(), AFTER, odd)) == []
