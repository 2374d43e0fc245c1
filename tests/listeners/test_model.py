from typing import Any

import pytest
from pydantic import ValidationError

from earshot.listeners.address import HOST_ALLOWED, NAME_ALLOWED, PORT_ALLOWED, Address
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import Protocol, Role, Scope, UnknownHost
from tests.raised import raised

LISTENER: dict[str, Any] = {
    "name": "EXTERNAL",
    "scopes": ["external"],
    "bind_port": 9092,
    "host": "b1.example.org",
    "port": 31000,
}


def listener(**change: Any) -> Listener:
    return Listener.model_validate(LISTENER | change)


def node(id: int = 1) -> Node:
    return Node(id=id, roles=(Role.BROKER,), listeners=(listener(),))


def cluster(*nodes: Node) -> ClusterPlan:
    return ClusterPlan(
        kafka_version="4.1.1",
        inter_broker="EXTERNAL",
        controller="CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=nodes,
    )


def test_a_listener_binds_one_address_and_advertises_another() -> None:
    found = listener()
    assert (found.bind, found.advertised) == (
        Address("0.0.0.0", 9092),
        Address("b1.example.org", 31000),
    )
    assert str(found) == "EXTERNAL://b1.example.org:31000"


def test_an_ipv6_host_is_printed_in_brackets() -> None:
    assert str(listener(host="[2001:db8::1]")) == "EXTERNAL://[2001:db8::1]:31000"


def test_an_unknown_host_survives_json_as_a_marker() -> None:
    found = listener(host=UnknownHost(what="Elastic IP"))
    assert Listener.model_validate_json(found.model_dump_json()) == found
    assert not found.known


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "external"}, "write EXTERNAL"),
        ({"name": None}, "found nothing"),
        ({"scopes": []}, "at least 1"),
        ({"scopes": ["everybody"]}, "'controller', 'internal', 'host' or 'external'"),
        ({"host": "b_1"}, "underscore"),
        ({"host": {"who": "x"}}, "what"),
        ({"bind_host": ""}, "host ''"),
        ({"bind_host": None}, "found nothing"),
        ({"bind_port": 65536}, "found 65536"),
        ({"protocol": "TLS"}, "PLAINTEXT"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_refuses_a_listener(change: dict[str, Any], words: str) -> None:
    assert words in str(raised(ValidationError, listener, **change))


@pytest.mark.parametrize(
    ("protocol", "tls", "sasl"),
    [
        (Protocol.PLAINTEXT, False, False),
        (Protocol.SSL, True, False),
        (Protocol.SASL_PLAINTEXT, False, True),
        (Protocol.SASL_SSL, True, True),
    ],
)
def test_protocols_are_tls_or_sasl_or_both(protocol: Protocol, tls: bool, sasl: bool) -> None:
    assert (protocol.tls, protocol.sasl) == (tls, sasl)


def test_node_ids_are_distinct() -> None:
    with pytest.raises(ValidationError, match=r"node ids repeat: \[1, 1\]"):
        cluster(node(1), node(1))


def test_finds_a_node_by_id_and_a_listener_by_name() -> None:
    plan = cluster(node(1), node(7))
    assert plan.node(7).id == 7
    assert plan.node(1).listener("EXTERNAL") == listener()
    assert plan.node(1).listener("INTERNAL") is None
    with pytest.raises(KeyError):
        plan.node(2)


def test_what_was_derived_makes_no_difference_to_equality() -> None:
    one, other = cluster(node()), cluster(node())
    assert one.brokers == (node(),)
    assert one == other


def test_data_between_rooms_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        listener().port = 1
    assert listener().scopes == (Scope.EXTERNAL,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"port": "9092"}, "found '9092'; allowed: {port}; take the quotes away"),
        ({"port": "x"}, "found 'x'; allowed: {port}"),
        ({"port": True}, "found true; allowed: {port}"),
        ({"port": 1.5}, "found 1.5; allowed: {port}"),
        ({"port": 0}, "found 0; allowed: {port}"),
        ({"port": 65536}, "found 65536; allowed: {port}"),
        ({"port": None}, "found nothing; allowed: {port}"),
        ({"host": 1}, "found 1; allowed: {host}"),
        ({"bind_host": 1}, "found 1; allowed: {host}"),
        ({"bind_host": {"what": "x"}}, "found {{'what': 'x'}}; allowed: {host}"),
        ({"name": 1}, "found 1; allowed: {name}"),
    ],
)
def test_a_refusal_says_what_was_found_and_what_is_allowed(
    change: dict[str, Any], message: str
) -> None:
    caught = raised(ValidationError, listener, **change)
    (error,) = caught.errors()
    allowed = message.format(port=PORT_ALLOWED, host=HOST_ALLOWED, name=NAME_ALLOWED)
    assert str(error["ctx"]["error"]) == allowed


@pytest.mark.parametrize("port", [1, 65535, 9092.0])
def test_the_first_and_the_last_port_and_the_whole_floats_of_pulumi_are_ports(port: float) -> None:
    assert listener(port=port).port == int(port)


def test_a_copy_with_other_nodes_knows_them_alone() -> None:
    first = cluster(node(1), node(2))
    assert (len(first.brokers), first.controllers, first.node(2).id) == (2, (), 2)
    second = first.model_copy(update={"nodes": (node(3),)})
    assert [item.id for item in second.brokers] == [3]
    assert second.node(3).id == 3
    with pytest.raises(KeyError):
        second.node(2)
    alone = node(4).model_copy(update={"roles": (Role.CONTROLLER,)})
    third = first.model_copy(update={"nodes": (alone,)})
    assert (third.brokers, third.controllers) == ((), (alone,))
