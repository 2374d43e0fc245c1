"""Listeners read from properties: what earshot writes reads back, whoever has written it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings

from earshot.facts.settings import has_lone_quorum
from earshot.listeners import render
from earshot.listeners.address import Address
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.properties import read_environment, read_properties
from earshot.listeners.terms import Protocol, Role, Scope, UnknownHost
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


def whole(listeners: Any) -> list[tuple[Any, ...]]:
    return [
        (
            listener.name,
            listener.protocol,
            listener.bind_port,
            listener.host,
            listener.port,
            listener.scopes,
        )
        for listener in listeners
    ]


@settings(max_examples=40)
@given(plans())
def test_a_node_reads_back_from_its_properties(cluster: ClusterPlan) -> None:
    for node in cluster.nodes:
        settings_of_node = read_properties(render.server_properties(cluster, node))
        listeners = parsed_listeners(settings_of_node.values, own_scopes(node))
        plan = lone_plan(node.id, settings_of_node.values, settings_of_node.notes, listeners)
        assert plan is not None
        assert (plan.controller, plan.kafka_version) == (
            cluster.controller,
            cluster.kafka_version,
        )
        if node.is_broker:  # a controller alone is not told
            assert plan.inter_broker == cluster.inter_broker
        (read,) = plan.nodes
        assert (read.id, read.roles) == (node.id, node.roles)
        assert whole(read.listeners) == whole(of_others(node, settings_of_node.values))


@settings(max_examples=40)
@given(plans())
def test_a_broker_reads_back_from_its_environment(cluster: ClusterPlan) -> None:
    for node in (node_of_broker for node_of_broker in cluster.nodes if node_of_broker.is_broker):
        settings_of_node = read_environment(render.environment(cluster, node))
        listeners = parsed_listeners(settings_of_node.values, own_scopes(node))
        plan = lone_plan(node.id, settings_of_node.values, settings_of_node.notes, listeners)
        assert plan is not None
        assert whole(plan.nodes[0].listeners) == whole(of_others(node, settings_of_node.values))


def read(audience: Audience = SAID, **change: str | None) -> ClusterPlan | None:
    changed = BROKER | {key.replace("_", "."): text for key, text in change.items()}
    values = {key: text for key, text in changed.items() if text is not None}
    return lone_plan(1, values, {}, parsed_listeners(values, lambda *_: audience))


def test_reads_a_broker_that_earshot_did_not_write() -> None:
    plan = read()
    assert plan is not None
    (node,) = plan.nodes
    assert (node.id, node.roles) == (1, (Role.BROKER,))
    assert [str(listener) for listener in node.listeners] == [
        "INTERNAL://b1:9092",
        "EXTERNAL://b1.example.org:9094",
    ]
    assert [listener.protocol for listener in node.listeners] == [Protocol.PLAINTEXT, Protocol.SSL]


def test_takes_listeners_for_advertised_where_that_is_missing() -> None:
    plan = read(listeners="INTERNAL://b1:9092", advertised_listeners=None)
    assert plan is not None
    assert [str(listener.advertised) for listener in plan.nodes[0].listeners] == ["b1:9092"]


def test_a_name_that_is_a_protocol_speaks_it_where_no_map_says_else() -> None:
    plan = read(
        listeners="SSL://:9092,LAN://:9093",
        advertised_listeners="SSL://b1:9092,LAN://b1:9093",
        listener_security_protocol_map=None,
        inter_broker_listener_name="SSL",
    )
    assert plan is not None
    listeners = [
        (listener.name, listener.protocol, listener.bind_host)
        for listener in plan.nodes[0].listeners
    ]
    assert listeners == [("SSL", Protocol.SSL, "0.0.0.0"), ("LAN", Protocol.PLAINTEXT, "0.0.0.0")]


def test_an_entry_that_cannot_be_read_is_left_out() -> None:
    plan = read(advertised_listeners="INTERNAL://b1:9092,EXTERNAL://my_host:9094")
    assert plan is not None
    assert [listener.name for listener in plan.nodes[0].listeners] == ["INTERNAL"]


@pytest.mark.parametrize(
    "change",
    [
        {"listeners": "internal://b1"},
        {"inter_broker_listener_name": "internal"},
        {"controller_listener_names": "controller"},
    ],
)
def test_where_nothing_can_be_named_there_is_no_plan(change: dict[str, str]) -> None:
    assert read(SAID, **change) is None


def test_without_a_controllers_name_it_is_called_as_usual() -> None:
    plan = read(controller_listener_names=None)
    assert plan is not None and plan.controller == "CONTROLLER"


def test_a_listener_without_a_named_scope_is_checked_for_the_widest() -> None:
    plan = read(
        NO_AUDIENCE,
        listeners="INTERNAL://:9092,EXTERNAL://:9094",
        advertised_listeners="INTERNAL://localhost:9092,EXTERNAL://b1:9094",
    )
    assert plan is not None
    scopes = [listener.scopes for listener in plan.nodes[0].listeners]
    assert scopes == [(Scope.HOST,), (Scope.EXTERNAL,)]


def test_a_host_can_stand_for_what_is_not_known_yet() -> None:
    listeners = parsed_listeners(BROKER, lambda *_: SAID)
    unknown = UnknownHost(what="the name that AWS gives")
    plan = lone_plan(1, BROKER, {"kafka_version": "4.1.1"}, listeners, {"b1": unknown})
    assert plan is not None and plan.kafka_version == "4.1.1"
    assert [listener.host for listener in plan.nodes[0].listeners] == [unknown, "b1.example.org"]


def test_a_word_or_a_role_tells_before_anything_else() -> None:
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
