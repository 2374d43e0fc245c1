"""Asks a listener for the cluster's metadata, and compares the answer with the contract.

A broker answers with the addresses of the listener that received the request, and omits brokers
without that listener (Kafka's KRaftMetadataCache). Therefore each listener is checked by its own
answers, and a broker that lacks a listener is missing in them.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.listed import shortened
from earshot.listeners.terms import Protocol
from earshot.validation.client import Errors, Failure, configuration, failure_of
from earshot.validation.contract import Contract

NO_TOPIC: Final = "__earshot-nothing"
"""A topic for metadata requests, so that the answer omits the topics of the cluster."""
NO_CLUSTER_ID: Final = ""
FIRST_PATIENCE: Final = 0.25
"""Time-out (s) of the first metadata request; it doubles after each failure."""
MAX_BROKERS_SHOWN: Final = 10
"""The maximum number of an answer's brokers in a message."""
DECISIVE: Final = frozenset({"authentication", "no-login", "tls", "protocol"})
"""Errors that are not retried."""


@dataclass(frozen=True)
class MetadataAnswer:
    """The metadata in the answer of one address."""

    asked: Address
    cluster_id: str
    """The id of the cluster that answered, or `NO_CLUSTER_ID`."""
    brokers: Mapping[int, Address]
    """Advertised addresses by broker id."""
    seconds: float

    @property
    def brokers_text(self) -> str:
        """`1 at host:9092, 2 at host:9093`, shortened for many brokers."""
        texts = [f"{id} at {address}" for id, address in sorted(self.brokers.items())]
        return shortened(texts) if len(texts) > MAX_BROKERS_SHOWN else ", ".join(texts)

    def brokers_at_same_address(self, broker: int) -> tuple[int, ...]:
        """Other brokers at the same host:port as ``broker``: clients reach only one of them."""
        own_address = self.brokers.get(broker)
        return tuple(
            sorted(
                id
                for id, address in self.brokers.items()
                if address == own_address and id != broker
            )
        )


def admin_client(
    bootstrap: str, protocol: Protocol, client: Mapping[str, str], **extra_settings: Any
) -> AdminClient:
    """An admin client for ``bootstrap``. Raises EarshotError for settings that librdkafka
    refuses."""
    try:
        return AdminClient(configuration(bootstrap, protocol, client) | extra_settings)
    except KafkaException as error:
        raise EarshotError(
            "the client properties",
            observed=failure_of(error).text[:200],  # librdkafka repeats the value
            allowed="properties that librdkafka also has: the doctor connects with it",
        ) from None


def steer(admin: AdminClient, reachable: Callable[[int], bool], limit: float) -> None:
    """Steers the next requests of ``admin`` to a ``reachable`` broker.

    librdkafka sends them to the controller in the metadata. In KRaft that is a live broker at
    random, chosen for every answer, which may just have died or be unreachable. So metadata is
    requested until it names a reachable one, for at most ``limit`` seconds.
    """
    end = time.monotonic() + limit
    while (seconds_left := end - time.monotonic()) > 0:
        try:
            if reachable(admin.list_topics(NO_TOPIC, timeout=seconds_left).controller_id):
                break
        except KafkaException:
            break


def ask(
    address: Address,
    protocol: Protocol,
    client: Mapping[str, str],
    limit: float,
    stop: threading.Event,
) -> MetadataAnswer | Failure:
    """The metadata from ``address``, within ``limit`` seconds, or the failure.

    The client has no other bootstrap address, so its metadata is from there. Errors at other
    brokers do not count. Ends early with a time-out if ``stop`` is set.
    """
    timeout = Failure("timeout", f"no metadata within {limit:.1f} s")
    if not limit:  # creating a client takes time
        return timeout
    errors = Errors(address)
    start = time.monotonic()
    admin = admin_client(str(address), protocol, client, error_cb=errors)
    patience = FIRST_PATIENCE
    while (seconds_left := start + limit - time.monotonic()) > 0 and not stop.is_set():
        try:
            metadata = admin.list_topics(NO_TOPIC, timeout=min(patience, seconds_left))
        except KafkaException as error:
            # errors reach the callback only when the client is polled
            admin.poll(0)
            failure = errors.explain(error)
            if failure.error in DECISIVE:
                return failure
            patience *= 2
            continue
        listed_brokers = metadata.brokers.values()
        brokers = {
            broker.id: Address(str(broker.host), int(broker.port or 0)) for broker in listed_brokers
        }
        seconds = time.monotonic() - start
        return MetadataAnswer(address, metadata.cluster_id or NO_CLUSTER_ID, brokers, seconds)
    return errors.first() or timeout


def leaders_of(client: AdminClient | Producer, topic: str, seconds: float) -> dict[int, Address]:
    """The address of the leader of each partition that has one. Raises KafkaException."""
    metadata = client.list_topics(topic, timeout=seconds)
    return {
        number: Address(str(leader.host), int(leader.port or 0))
        for number, partition in metadata.topics[topic].partitions.items()
        if (leader := metadata.brokers.get(partition.leader)) is not None
    }


def identify(
    address: Address, broker: int, protocol: Protocol, client: Mapping[str, str], limit: float
) -> int | None:
    """The id of the broker that answers at ``address``, which should be ``broker``.

    Metadata does not contain it, as all brokers return the same. But a broker describes only its
    own configuration: a request for another broker's fails with a message that names both ids
    (Kafka's ConfigHelper). None if the id is unknown, for example without DescribeConfigs on the
    cluster.
    """
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    admin = admin_client(str(address), protocol, client)
    (future,) = admin.describe_configs([resource], request_timeout=limit).values()
    wait([future], timeout=limit)
    if not future.done():
        return None
    error = future.exception()
    if error is None:
        return broker
    own_id = re.search(r"expected (\d+)", failure_of(error).text)
    return int(own_id[1]) if own_id else None


def match_listener(contract: Contract, asked: Address, answer: MetadataAnswer | None) -> str | None:
    """The listener of ``contract`` that the address ``asked`` leads to, or None if unknown.

    The answer decides, because an address may be mapped or forwarded: the listener with the most
    brokers at the answered addresses. Without an answer, or without a common address, ``asked``
    itself decides: the listener that advertises it, else the only one that advertises its port.
    """
    places = contract.places
    if answer is not None:
        agreeing_listeners = Counter(
            place.name
            for place, id, broker_address in places
            if answer.brokers.get(id) == broker_address
        )
        if agreeing_listeners:  # on a tie, the first in the contract
            return agreeing_listeners.most_common(1)[0][0]
    same_address = {place.name for place, _, address in places if address == asked}
    same_port = {place.name for place, _, address in places if address.port == asked.port}
    return next((names.pop() for names in (same_address, same_port) if len(names) == 1), None)


def majority_cluster(answers: Iterable[MetadataAnswer]) -> str:
    """The most frequent cluster id in ``answers``; on a tie, the first; else `NO_CLUSTER_ID`."""
    counts = Counter(answer.cluster_id for answer in answers if answer.cluster_id != NO_CLUSTER_ID)
    return counts.most_common(1)[0][0] if counts else NO_CLUSTER_ID


def unexpected_brokers(
    answers: Sequence[MetadataAnswer], expected: Iterable[int]
) -> dict[int, Address]:
    """The brokers in a listener's ``answers`` that are not ``expected``, with their addresses."""
    expected_ids = set(expected)
    listed_brokers = (broker for answer in answers for broker in sorted(answer.brokers.items()))
    return {id: address for id, address in listed_brokers if id not in expected_ids}
