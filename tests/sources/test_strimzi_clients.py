"""Clients that Strimzi makes: their bootstrap addresses and security protocols."""

from typing import Any

import pytest

from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.sources.strimzi_clients import read_clients


def resource(kind: str = "KafkaConnect", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": kind,
        "metadata": {"name": "it", "namespace": "n"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("spec", "protocol"),
    [
        ({}, Protocol.PLAINTEXT),
        ({"tls": {}}, Protocol.SSL),
        ({"tls": {}, "authentication": {"type": "tls"}}, Protocol.SSL),
        ({"authentication": {"type": "plain"}}, Protocol.SASL_PLAINTEXT),
        ({"tls": {}, "authentication": {"type": "oauth"}}, Protocol.SASL_SSL),
        ({"authentication": {"type": "custom"}}, None),
        ({"tls": "${TLS}"}, None),
        ({"authentication": "${LOGIN}"}, None),
        ({"tls": None}, Protocol.PLAINTEXT),
    ],
)
def test_a_protocol_by_tls_and_authentication(
    spec: dict[str, Any], protocol: Protocol | None
) -> None:
    (client,) = read_clients([resource(bootstrapServers="a:9092,b:9093", **spec)])
    (bootstrap,) = client.bootstraps
    assert (client.name, client.namespace, client.path) == ("KafkaConnect it", "n", (0,))
    assert bootstrap.addresses == (Address("a", 9092), Address("b", 9093))
    assert bootstrap.protocol is protocol


def test_every_cluster_of_a_mirror_maker() -> None:
    clusters = [{"bootstrapServers": "a:9092"}, {"bootstrapServers": "b:9092", "tls": {}}]
    mirrors = [{"source": {"bootstrapServers": "c:9092"}}]
    target = {"bootstrapServers": "d:9092"}
    mirror_maker = resource("KafkaMirrorMaker2", clusters=clusters, target=target, mirrors=mirrors)
    (client,) = read_clients([mirror_maker])
    assert [(bootstrap.setting, bootstrap.protocol) for bootstrap in client.bootstraps] == [
        ("spec.clusters[0].bootstrapServers", Protocol.PLAINTEXT),
        ("spec.clusters[1].bootstrapServers", Protocol.SSL),
        ("spec.target.bootstrapServers", Protocol.PLAINTEXT),
        ("spec.mirrors[0].source.bootstrapServers", Protocol.PLAINTEXT),
    ]


@pytest.mark.parametrize(
    "document",
    [
        resource(),
        resource(bootstrapServers="${HOST}:9092"),
        resource(bootstrapServers=["a:9092"]),
        resource("KafkaTopic", bootstrapServers="a:9092"),
        resource(bootstrapServers="a:9092") | {"apiVersion": "example.com/v1"},
        {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaBridge", "spec": "?"},
    ],
)
def test_other_resources_are_no_clients(document: dict[str, Any]) -> None:
    assert not [*read_clients([document])]
