"""The clients that a listener of a properties file is for."""

from __future__ import annotations

import pytest

from earshot.listeners.address import Address
from earshot.listeners.terms import Scope
from earshot.sources.kafka_broker import audience_of, read_broker

PUBLIC = "ec2-198-51-100-1.eu-central-1.compute.amazonaws.com"
PRIVATE = "ip-10-0-0-1.eu-central-1.compute.internal"


@pytest.mark.parametrize(("host", "between", "scopes", "why"), [
    ("b1", True, "internal", "the brokers talk through it"),
    (PRIVATE, True, "internal", "the brokers talk through it"),
    ("localhost", True, "internal", "the brokers talk through it"),
    (PUBLIC, True, "internal+external",
     f"the brokers talk through it; {PUBLIC} is an EC2 public name"),
    (PUBLIC, False, "external", f"{PUBLIC} is an EC2 public name"),
    ("localhost", False, "host", "localhost is every machine's name for itself"),
    (PRIVATE, False, "internal", f"{PRIVATE} is an EC2 private name"),
    ("b1", False, "", "b1 is a name of one label, which says nothing about who resolves it"),
])  # fmt: skip
def test_the_brokers_or_a_host_tell(host: str, between: bool, scopes: str, why: str) -> None:
    clients = audience_of(Address(host, 9092), between=between)
    assert ("+".join(clients.scopes), clients.why) == (scopes, why)


@pytest.mark.parametrize(("text", "id", "bind", "advertised"), [
    ("listeners=A://:1", 0, "A://:1", None),
    ("advertised.listeners=PLAINTEXT://b1:1", 0, "PLAINTEXT://:9092", "PLAINTEXT://b1:1"),
    ("broker.id=3", 3, "PLAINTEXT://:9092", None),
    ("node.id=4", 4, "PLAINTEXT://:9092", None),
    ("node.id=4\nport=9099", 4, "PLAINTEXT://:9099", None),
    # the oldest way of advertising
    ("broker.id=1\nadvertised.host.name=h", 1, "PLAINTEXT://:9092", "PLAINTEXT://h:9092"),
    ("broker.id=1\nadvertised.host.name=h\nport=1", 1, "PLAINTEXT://:1", "PLAINTEXT://h:1"),
    ("broker.id=1\nadvertised.host.name=h\nport=1\nadvertised.port=2", 1, "PLAINTEXT://:1",
     "PLAINTEXT://h:2"),
    ("broker.id=1\nadvertised.host.name=h\nadvertised.listeners=PLAINTEXT://b:3", 1,
     "PLAINTEXT://:9092", "PLAINTEXT://b:3"),
    ("broker.id=1\nadvertised.host.name=", 1, "PLAINTEXT://:9092", None),
])  # fmt: skip
def test_a_listener_or_an_id_makes_a_broker_s_file(
    text: str, id: int, bind: str, advertised: str | None
) -> None:
    broker = read_broker(f"{text}\n", "s.properties", {})
    assert (broker.id, broker.name, broker.values["listeners"]) == (id, "s.properties", bind)
    assert broker.values.get("advertised.listeners") == advertised
    assert (broker.container, broker.image) == (None, "")


def test_each_listener_has_its_scopes() -> None:
    text = (
        "node.id=1\nlisteners=A://:1,B://:2,C://:3,D://:4\n"
        "advertised.listeners=A://b1:1,B://198.51.100.1:2,D://b1:4\n"
        "inter.broker.listener.name=A\ncontroller.listener.names=C\n"
    )
    listeners = read_broker(text, "s", {"D": (Scope.HOST,)}).listeners
    assert [
        (listener.name, "+".join(listener.audience.scopes), str(listener.advertised))
        for listener in listeners
    ] == [
        ("A", "internal", "b1:1"),
        ("B", "external", "198.51.100.1:2"),
        ("C", "controller", "localhost:3"),
        ("D", "host", "b1:4"),
    ]


@pytest.mark.parametrize(
    ("host", "scope"),
    [
        ("127.0.0.2", "host"),
        ("i-0abc.ec2.internal", "internal"),
        ("b1.kafka.internal", "internal"),
        ("[2001:db8::1]", "external"),
        ("b1.example.com", "external"),
        ("100.64.0.1", ""),
        ("b1.local", ""),
    ],
)
def test_a_kind_of_host_tells_or_does_not(host: str, scope: str) -> None:
    (listener,) = read_broker(
        f"listeners=A://{host}:1\ninter.broker.listener.name=B\n", "s", {}
    ).listeners
    assert "+".join(listener.audience.scopes) == scope
    assert listener.audience.why.startswith(f"{host} is ")
