"""The clients that a listener of a container is for, and the evidence for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from earshot.listeners.address import parse_address
from earshot.listeners.terms import Scope
from earshot.sources.parsed_listener import audience
from earshot.topology.container import Container, JoinedNetwork, PublishedPort

PUBLISHED = PublishedPort(9092, 39092)
INSIDE = Container(
    "k1", networks=(JoinedNetwork("net", ("alias",)), JoinedNetwork("back")), published=(PUBLISHED,)
)
ON_HOST = Container("k1", network_mode="host")
VALUES = {"inter.broker.listener.name": "IB", "controller.listener.names": "CONTROLLER"}
LONE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
}
ELSEWHERE = "b.example.com, which is elsewhere, on the published port 39092->9092"


@pytest.mark.parametrize(
    ("name", "bind_port", "advertised", "container", "scopes", "why"),
    [
        ("A", 9092, "k1:9092", INSIDE, "internal",
         "k1 is the container's name on network net, back"),
        ("IB", 1, "alias:1", INSIDE, "internal",
         "alias is the container's name on network net, back"),
        ("A", 1, "K1:1", replace(INSIDE, networks=()), "internal",
         "K1 is the container's name inside its network"),
        ("A", 1, "b.example.com:1", INSIDE, "",
         "b.example.com is no name of the container, and its port is not published"),
        ("A", 1, "[2001:db8::1]:1", INSIDE, "",
         "[2001:db8::1] is no name of the container, and its port is not published"),
        ("IB", 1, "b.example.com:1", INSIDE, "internal", "the brokers talk through it"),
        ("A", 9092, "b.example.com:1", INSIDE, "external", ELSEWHERE),
        ("A", 1, "b.example.com:39092", INSIDE, "external", ELSEWHERE),
        ("IB", 9092, "b.example.com:39092", INSIDE, "internal+external",
         f"the brokers talk through it; {ELSEWHERE}"),
        ("A", 9092, "localhost:1", INSIDE, "host", "localhost on the published port 39092->9092"),
        ("A", 9092, "[::1]:1", INSIDE, "host", "[::1] on the published port 39092->9092"),
        ("IB", 9092, "localhost:1", INSIDE, "internal+host",
         "the brokers talk through it; localhost on the published port 39092->9092"),
        ("A", 9092, "localhost:7", ON_HOST, "host",
         "localhost on the published port 7 (the container is on the host's network)"),
        ("A", 9092, "b.example.com:7", ON_HOST, "external",
         ("b.example.com, which is elsewhere, on the published port 7 (the container is on the "
         "host's network)")),
    ],
)  # fmt: skip
def test_a_name_or_a_port_tells(
    name: str, bind_port: int, advertised: str, container: Container, scopes: str, why: str
) -> None:
    clients = audience(name, bind_port, parse_address(advertised), container, VALUES)
    assert ("+".join(clients.scopes), clients.why) == (scopes, why)


@pytest.mark.parametrize(
    ("host", "scopes"), [("localhost", (Scope.HOST,)), ("b.example.com", tuple(Scope)[1::2])]
)
def test_the_inter_broker_listener_of_a_single_broker_is_not_internal(
    host: str, scopes: tuple[Scope, ...]
) -> None:
    clients = audience("IB", 9092, parse_address(f"{host}:1"), INSIDE, VALUES | LONE)
    assert clients.scopes == scopes
