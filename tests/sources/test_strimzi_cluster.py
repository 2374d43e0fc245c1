"""What Strimzi makes of a `Kafka` resource: pods, brokers and Services."""

from typing import Any

import pytest

from earshot.facts.strimzi import StrimziKafka, StrimziListener
from earshot.listeners.terms import Protocol
from earshot.sources.strimzi_cluster import brokers_of, pods_of, services_of


def listener(name: str, port: int, type: str = "internal", **fields: Any) -> StrimziListener:
    values: dict[str, Any] = {"tls": False, **fields}
    return StrimziListener("", name, port, type, **values)


LISTENERS = (
    listener("plain", 9092),
    listener("tls", 9093, tls=True, authentication="scram-sha-512"),
    listener("ext", 9094, "cluster-ip", tls=True, authentication="tls"),
)


def test_each_service_has_the_ports_of_its_listeners() -> None:
    kafka = StrimziKafka("C", LISTENERS, namespace="n")
    assert [
        (service.name, service.namespace, [port.port for port in service.ports or ()])
        for service in services_of([kafka])
    ] == [("c-kafka-ext-bootstrap", "n", [9094]), ("c-kafka-bootstrap", "n", [9091, 9092, 9093])]
    assert all(service.selector == pods_of([kafka])["Kafka C"].labels
               for service in services_of([kafka]))  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "protocol"),
    [
        ({}, Protocol.PLAINTEXT),
        ({"authentication": "scram-sha-512"}, Protocol.SASL_PLAINTEXT),
        ({"tls": True, "authentication": "tls"}, Protocol.SSL),
        ({"tls": True, "authentication": "oauth"}, Protocol.SASL_SSL),
        ({"tls": True, "authentication": "custom"}, None),
        ({"tls": None}, None),
        ({"authentication": None}, None),
    ],
)
def test_the_protocol_of_a_listener(fields: dict[str, Any], protocol: Protocol | None) -> None:
    kafka = StrimziKafka("c", (listener("plain", 9092, **fields),))
    (broker,) = brokers_of([kafka])
    assert [endpoint.protocol for endpoint in broker.for_clients] == [protocol]


@pytest.mark.parametrize(
    "kafka",
    [
        StrimziKafka("", LISTENERS),
        StrimziKafka("${NAME}", LISTENERS),
        StrimziKafka("c", LISTENERS, open="a listener is not known"),
        StrimziKafka("c", (), refusal=("spec.kafka.listeners", "is empty")),
    ],
)
def test_nothing_is_made_of_a_resource_that_is_not_known(kafka: StrimziKafka) -> None:
    assert not pods_of([kafka])
    assert not [*brokers_of([kafka]), *services_of([kafka])]
