"""Running containers: clients of listeners that are removed, and changes of inter-broker links."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import DockerException, NotFound
from earshot_pulumi.docker import running as module
from earshot_pulumi.docker import throwaway
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.engine_objects import EngineObjects, TargetStack
from earshot_pulumi.docker.running import RunningNode, client_problems, link_problems

from earshot.listeners.properties import NodeSettings, read_environment
from earshot.transition.refusal import STOP_FIRST
from tests.components.docker.conftest import Connect
from tests.components.docker.container_engine import node_container
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


def nodes_of(target: TargetStack) -> list[RunningNode]:
    (host,) = target.hosts
    return [
        RunningNode(
            container(target, id),
            host,
            read_environment(planned.environment),
            (GATEWAY,),
        )
        for id, planned in target.containers.items()
    ]


def client_messages(
    connect: Connect,
    tables: dict[int, str | Exception],
    after: TargetStack = AFTER,
    before: TargetStack = BEFORE,
) -> list[str]:
    """The problems with ``tables`` of sockets in the containers, by node id; others are empty."""

    def get(id: str) -> Any:
        table = tables.get(int(id.removeprefix("id-")), "")
        if isinstance(table, Exception):
            raise table
        output = (HEAD + table + throwaway._END).encode()
        return SimpleNamespace(exec_run=lambda command, **_: (1, (output, None)))

    client = SimpleNamespace(containers=SimpleNamespace(get=get))
    connect(client)
    return list(client_problems(Engines(), after, nodes_of(before)))


def test_clients_are_counted_by_where_they_come_from(connect: Connect) -> None:
    tables: dict[int, str | Exception] = {
        1: row((address(1), 19092), ("172.18.0.77", 40000))
        + row((address(1), 19092), ("172.18.0.77", 40001))
        + row((address(1), 19092), ("172.18.0.77", 40002), "06")
        + row((address(1), 19192), ("172.18.0.78", 40000)),
        2: row((address(2), 19092), (GATEWAY, 40000)),
    }
    (text,) = client_messages(connect, tables)
    assert text == (
        "listener INTERNAL would be removed, and has 3 connections of clients: 2 from 172.18.0.77, "
        "1 from Docker host local. Let them use another listener, then run the same command again; "
        "or set `remove: anyway`, or a date from which it may be removed"
    )
    assert client_messages(connect, tables, after=BEFORE) == []


def test_nodes_and_what_runs_in_their_containers_are_no_clients(connect: Connect) -> None:
    tables: dict[int, str | Exception] = {
        1: row((address(1), 19092), (address(2), 40000))
        + row(("127.0.0.1", 19092), ("127.0.0.1", 50000))
        + row(("127.0.0.1", 50000), ("127.0.0.1", 19092)),
        2: row((address(2), 40000), (address(1), 19092)),
    }
    assert client_messages(connect, tables) == []


def test_a_node_of_another_host_is_known_by_the_port_that_it_comes_from(connect: Connect) -> None:
    """Its host's address stands in place of its own, and it calls a published port."""
    tables: dict[int, str | Exception] = {
        2: row((address(2), 9092), ("192.0.2.9", 40000)),
        3: row((address(3), 40000), ("192.0.2.8", 9093)),
    }
    without = target_stack(listeners=[INTERNAL, REPL], inter_broker="REPL")
    assert client_messages(connect, tables, after=without) == []
    tables[3] = ""
    (text,) = client_messages(connect, tables, after=without)
    assert text.startswith(
        "listener HOST would be removed, and has 1 connection of clients: 1 from 192."
    )


@pytest.mark.parametrize("failure", [DockerException("paused"), OSError("gone")])
def test_connections_that_cannot_be_listed_are_unknown(
    connect: Connect, failure: Exception
) -> None:
    (text,) = client_messages(connect, {1: failure})
    assert text == (
        "INTERNAL would be removed, and whether clients are connected is not known: the sockets in "
        "container kafka-1 on Docker host local cannot be listed. Check that it runs and is not "
        "paused, or set `remove: anyway`"
    )
    assert client_messages(connect, {1: failure}, after=BEFORE) == [], "no listener is removed"


def test_half_of_the_list_of_connections_is_unknown(connect: Connect) -> None:
    output = (0, (HEAD.encode(), None))
    container = SimpleNamespace(exec_run=lambda *_, **__: output)
    connect(SimpleNamespace(containers=SimpleNamespace(get=lambda _: container)))
    (text,) = client_problems(Engines(), AFTER, nodes_of(BEFORE)[:1])
    assert "whether clients are connected is not known" in text


def test_a_broker_that_goes_itself_and_foreign_settings_are_left_alone(connect: Connect) -> None:
    fewer = target_stack(listeners=[REPL, HOST], brokers=1)
    tables: dict[int, str | Exception] = {2: row((address(2), 19092), ("172.18.0.77", 40000))}
    assert client_messages(connect, tables, after=fewer) == []
    odd = [
        replace(node, settings=NodeSettings({"advertised.listeners": "://"}))
        for node in nodes_of(BEFORE)
    ]
    assert list(client_problems(Engines(), AFTER, odd)) == []


RENAMED = [{"name": "BROKERS", "port": 19092, "scopes": "internal"}]
BOTH = [INTERNAL, {"name": "BROKERS", "port": 29093, "scopes": "internal"}]
ONE = [INTERNAL]
TLS = [{**INTERNAL, "protocol": "SSL"}]


def connect_with_environments(connect: Connect, target: TargetStack) -> None:
    """Sets an engine whose containers have the environments of ``target``."""
    environments: dict[str, Mapping[str, str]] = {
        f"id-{id}": planned.environment for id, planned in target.containers.items()
    }

    def inspect(id: str) -> dict[str, Any]:
        if id != "bare" and id not in environments:
            raise NotFound(id)
        variables = [f"{key}={text}" for key, text in environments.get(id, {}).items()]
        config = {"Env": variables or None, "Labels": None}
        return {**node_container(id, 1), "Config": config}

    connect(SimpleNamespace(api=SimpleNamespace(inspect_container=inspect)))


def link_messages(after: TargetStack, *containers: Any) -> list[str]:
    objects = EngineObjects(containers)
    nodes = module.running(Engines(), after.hosts, objects, after.owns)
    return link_problems(nodes, after)


def change_message(
    connect: Connect, before: TargetStack, after: TargetStack, **changes: Any
) -> str:
    """The problems with all containers of ``before``, with ``changes``."""
    connect_with_environments(connect, before)
    containers = [replace(container(before, id), **changes) for id in before.containers]
    return "\n".join(link_messages(after, *containers))


@pytest.mark.parametrize(
    ("listeners", "link"), [(RENAMED, "BROKERS (PLAINTEXT)"), (TLS, "INTERNAL (SSL)")]
)
def test_another_link_between_brokers_is_refused_with_the_way(
    connect: Connect, listeners: list[dict[str, Any]], link: str
) -> None:
    before, after = target_stack(listeners=ONE), target_stack(listeners=listeners)
    message = change_message(connect, before, after)
    assert f"would change from INTERNAL (PLAINTEXT) to {link}" in message
    assert message.endswith(
        "Run the same command once with the current listeners, so that they are recorded, and then "
        f"with these; or {STOP_FIRST}"
    )


def test_a_listener_is_renamed_in_steps(connect: Connect) -> None:
    steps = [
        target_stack(listeners=ONE),
        target_stack(listeners=BOTH, inter_broker="INTERNAL"),
        target_stack(listeners=BOTH, inter_broker="BROKERS"),
        target_stack(listeners=BOTH[1:]),
    ]
    assert [change_message(connect, *pair) for pair in pairwise(steps)] == [""] * 3


@pytest.mark.parametrize(
    "changes", [{"running": False}, {"labels": {}}, {"id": "gone"}, {"host": "another"}]
)
def test_only_running_containers_of_the_stack_prevent_a_change(
    connect: Connect, changes: dict[str, Any]
) -> None:
    assert (
        change_message(
            connect, target_stack(listeners=ONE), target_stack(listeners=RENAMED), **changes
        )
        == ""
    )


def test_containers_that_do_not_count_leave_the_others_to_be_checked(connect: Connect) -> None:
    before, after = target_stack(listeners=ONE), target_stack(listeners=RENAMED)
    connect_with_environments(connect, before)
    first = container(before, 1)
    others = [
        replace(first, host="another"),
        replace(first, running=False),
        replace(first, labels={}),
        replace(first, id="gone"),
    ]
    own = [container(before, id) for id in (1, 2, 3)]
    assert len(link_messages(after, *others, *own)) == 1
    assert link_messages(before, *own) == []
    assert link_messages(after, replace(first, id="bare")) == []


SSL_CONTROLLERS = {"mode": "separate", "count": 3, "protocol": "SSL"}


@pytest.mark.parametrize(("secured", "what"), [(True, "added"), (False, "removed")])
def test_security_does_not_come_or_go_while_nodes_run(
    connect: Connect, secured: bool, what: str
) -> None:
    own_keys = target_stack(listeners=TLS, controllers=SSL_CONTROLLERS)
    stacks_keys = target_stack(listeners=TLS, controllers=SSL_CONTROLLERS, security={})
    before, after = (own_keys, stacks_keys) if secured else (stacks_keys, own_keys)
    assert change_message(connect, before, after) == (
        f"`security` would be {what} while brokers run: restarted brokers and the others could not "
        "connect to each other, because only some of them would have certificates. Stop the "
        "cluster first (`pulumi destroy`; with `data: keep` it keeps the data)"
    )
    assert change_message(connect, after, after) == ""
