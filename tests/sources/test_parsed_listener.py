"""Listeners read from properties: what earshot writes reads back, whoever has written it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings

from earshot.facts.settings import has_lone_quorum
from earshot.listeners import render
from earshot.listeners.address import Address
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.properties import NodeSettings, read_environment, read_properties
from earshot.listeners.terms import Role, Scope, UnknownHost
from earshot.sources.parsed_listener import Audience, lone_plan, parsed_listeners
from tests.listeners.clusters import plans

BROKER = {
    "process.roles": "broker",
    "node.id": "1",
    "listeners": "INTERNAL://0.0.0.0:9092,EXTERNAL://0.0.0.0:9094",
    "advertised.listeners": "INTERNAL://b1:9092,EXTERNAL://b1.example.org:9094",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:SSL,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "9@c9:9093",
    "inter.broker.listener.name": "INTERNAL",
}
SAID = Audience((Scope.INTERNAL,), "said so")
NO_AUDIENCE = Audience((), "")


def own_scopes(node: Node) -> Callable[[str, int, Address], Audience]:
    audiences = {listener.name: Audience(listener.scopes, "its own") for listener in node.listeners}
    return lambda name, _port, _advertised: audiences[name]


def of_others(node: Node, values: Mapping[str, str]) -> list[Listener]:
    """Without the controller's listener where no other node can ever reach it."""
    alone = has_lone_quorum(values)
    return [
        listener
        for listener in node.listeners
        if not (alone and Scope.CONTROLLER in listener.scopes)
    ]


def whole(listeners: Iterable[Listener]) -> list[tuple[Any, ...]]:
    """The fields of listeners that properties have."""
    names = ("name", "protocol", "bind_port", "host", "port", "scopes")
    return [tuple(getattr(listener, name) for name in names) for listener in listeners]


def read_back(node: Node, settings: NodeSettings) -> ClusterPlan:
    """The plan of the properties that earshot wrote for ``node``, which has its listeners."""
    listeners = parsed_listeners(settings.values, own_scopes(node))
    plan = lone_plan(node.id, settings.values, settings.notes, listeners)
    assert plan is not None
    assert whole(plan.nodes[0].listeners) == whole(of_others(node, settings.values))
    return plan


@settings(max_examples=40)
@given(plans())
def test_a_node_reads_back_from_its_properties(cluster: ClusterPlan) -> None:
    for node in cluster.nodes:
        plan = read_back(node, read_properties(render.server_properties(cluster, node)))
        assert (plan.controller, plan.kafka_version) == (cluster.controller, cluster.kafka_version)
        if node.is_broker:  # properties of a controller do not have it
            assert plan.inter_broker == cluster.inter_broker
        assert (plan.nodes[0].id, plan.nodes[0].roles) == (node.id, node.roles)


@settings(max_examples=40)
@given(plans())
def test_a_broker_reads_back_from_its_environment(cluster: ClusterPlan) -> None:
    for node in filter(lambda node: node.is_broker, cluster.nodes):
        read_back(node, read_environment(render.environment(cluster, node)))


def read(audience: Audience = SAID, **change: str | None) -> ClusterPlan | None:
    changed = BROKER | {key.replace("_", "."): text for key, text in change.items()}
    values = {key: text for key, text in changed.items() if text is not None}
    return lone_plan(1, values, {}, parsed_listeners(values, lambda *_: audience))


@pytest.mark.parametrize(("audience", "change", "expected"), [
    (SAID, {}, [("INTERNAL://b1:9092", "PLAINTEXT", "0.0.0.0", "internal"),
                ("EXTERNAL://b1.example.org:9094", "SSL", "0.0.0.0", "internal")]),
    # without advertised addresses, those of the listeners count
    (SAID, {"listeners": "INTERNAL://b1:9092", "advertised_listeners": None},
     [("INTERNAL://b1:9092", "PLAINTEXT", "b1", "internal")]),
    # the name of a protocol is the default of the map
    (SAID,
     {"listeners": "SSL://:9092,LAN://:9093", "advertised_listeners": "SSL://b1:9092,LAN://b1:9093",
      "listener_security_protocol_map": None, "inter_broker_listener_name": "SSL"},
     [("SSL://b1:9092", "SSL", "0.0.0.0", "internal"),
      ("LAN://b1:9093", "PLAINTEXT", "0.0.0.0", "internal")]),
    # an unreadable address
    (SAID, {"advertised_listeners": "INTERNAL://b1:9092,EXTERNAL://my_host:9094"},
     [("INTERNAL://b1:9092", "PLAINTEXT", "0.0.0.0", "internal")]),
    # without evidence, the widest scope
    (NO_AUDIENCE, {"listeners": "INTERNAL://:9092,EXTERNAL://:9094",
                   "advertised_listeners": "INTERNAL://localhost:9092,EXTERNAL://b1:9094"},
     [("INTERNAL://localhost:9092", "PLAINTEXT", "0.0.0.0", "host"),
      ("EXTERNAL://b1:9094", "SSL", "0.0.0.0", "external")]),
    # names that Kafka refuses
    (SAID, {"listeners": "internal://b1"}, None),
    (SAID, {"inter_broker_listener_name": "internal"}, None),
    (SAID, {"controller_listener_names": "controller"}, None),
])  # fmt: skip
def test_listeners_of_a_broker_that_earshot_did_not_write(
    audience: Audience, change: dict[str, str | None], expected: list[tuple[str, ...]] | None
) -> None:
    plan = read(audience, **change)
    if plan is None:
        assert expected is None
        return
    (node,) = plan.nodes
    assert (node.id, node.roles) == (1, (Role.BROKER,))
    assert [
        (str(listener), str(listener.protocol), listener.bind_host, "+".join(listener.scopes))
        for listener in node.listeners
    ] == expected


def test_the_default_name_of_the_controller_s_listener() -> None:
    plan = read(controller_listener_names=None)
    assert plan is not None and plan.controller == "CONTROLLER"


def test_a_host_may_be_unknown() -> None:
    listeners = parsed_listeners(BROKER, lambda *_: SAID)
    unknown = UnknownHost(what="the name that AWS gives")
    plan = lone_plan(1, BROKER, {"kafka_version": "4.1.1"}, listeners, {"b1": unknown})
    assert plan is not None and plan.kafka_version == "4.1.1"
    assert [listener.host for listener in plan.nodes[0].listeners] == [unknown, "b1.example.org"]


def test_scopes_of_the_user_and_roles_outweigh_the_audience() -> None:
    scopes = {"INTERNAL": (Scope.HOST, Scope.EXTERNAL), "EXTERNAL": ()}
    values = BROKER | {
        "listeners": f"{BROKER['listeners']},CONTROLLER://:9093",
        "process.roles": "broker,controller",
    }
    listeners = parsed_listeners(values, lambda *_: NO_AUDIENCE, "b1", scopes_by_name=scopes)
    assert {
        listener.name: (listener.audience.scopes, listener.audience.why) for listener in listeners
    } == {
        "INTERNAL": ((Scope.HOST, Scope.EXTERNAL), "said so"),
        "EXTERNAL": ((), ""),
        "CONTROLLER": ((Scope.CONTROLLER,), "named in controller.listener.names"),
    }
