"""Metadata: what a listener answers about the cluster, and how that compares with the contract.

Brokers answer with the addresses of the listener that the question came in on, and leave out
brokers without that listener (Kafka's KRaftMetadataCache). So every listener is checked by its own
answers, and a broker that lacks one *vanishes* from them instead of failing.
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

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.listed import shortened
from earshot.listeners.terms import Protocol
from earshot.validation.client import Errors, Failure, configuration, failure_of
from earshot.validation.contract import Contract

NO_TOPIC: Final = "__earshot-nothing"
"""Asked for so that an answer lists the brokers and not every topic of the cluster."""
NOT_SAID: Final = ""
FIRST_PATIENCE: Final = 0.25
"""Seconds of the first try for metadata; each further one waits twice as long."""
MOST_LISTED: Final = 10
"""Brokers of an answer that are all written out."""
DECISIVE: Final = frozenset({"authentication", "no-login", "tls", "protocol"})
"""Errors that no further attempt will change."""


@dataclass(frozen=True)
class MetadataAnswer:
    """The metadata that one address gave."""

    asked: Address
    cluster_id: str
    """Of the cluster that answered; `NOT_SAID` where it does not say."""
    brokers: Mapping[int, Address]
    """Advertised address by broker id."""
    seconds: float

    @property
    def listed(self) -> str:
        """`1 at host:9092, 2 at host:9093`; of many, the first ones."""
        texts = [f"{id} at {address}" for id, address in sorted(self.brokers.items())]
        return shortened(texts) if len(texts) > MOST_LISTED else ", ".join(texts)

    def sharing(self, broker: int) -> tuple[int, ...]:
        """Other brokers at the same host:port as ``broker``: clients reach one of them only."""
        own = self.brokers.get(broker)
        return tuple(sorted(id for id, it in self.brokers.items() if it == own and id != broker))


def admin_client(
    bootstrap: str, protocol: Protocol, client: Mapping[str, str], **more: Any
) -> AdminClient:
    """An admin client for ``bootstrap``; raises EarshotError for what librdkafka refuses."""
    try:
        return AdminClient(configuration(bootstrap, protocol, client) | more)
    except KafkaException as error:
        raise EarshotError(
            "the client properties",
            observed=failure_of(error).text[:200],  # it repeats what it was given
            allowed="properties that librdkafka has too, with which the doctor connects",
        ) from None


def steer(admin: AdminClient, reachable: Callable[[int], bool], limit: float) -> None:
    """Sees that the next requests of ``admin`` go to a broker that is ``reachable``.

    librdkafka sends them to the broker that metadata calls the controller, which in KRaft is any
    broker that counts as alive, drawn again for every answer: one that died just now, or whose
    address cannot be reached, would swallow the request. Takes at most ``limit`` seconds, after
    which the draw is kept.
    """
    end = time.monotonic() + limit
    while (left := end - time.monotonic()) > 0:
        try:
            if reachable(admin.list_topics(NO_TOPIC, timeout=left).controller_id):
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
    """The metadata that ``address`` itself gives, within ``limit`` seconds.

    By a client that is given no other address, so whatever it knows it has learned there; what it
    meets at brokers that it learned of does not count. Ends early, as a time-out, when ``stop`` is
    set.
    """
    late = Failure("timeout", f"no metadata within {limit:.1f} s")
    if not limit:  # a client costs time: it has a thread for each broker that it learns of
        return late
    errors = Errors(address)
    begun = time.monotonic()
    admin = admin_client(str(address), protocol, client, error_cb=errors)
    patience = FIRST_PATIENCE
    while (left := begun + limit - time.monotonic()) > 0 and not stop.is_set():
        try:
            metadata = admin.list_topics(NO_TOPIC, timeout=min(patience, left))
        except KafkaException as error:
            # errors reach the callback only when the client is polled
            admin.poll(0)
            first = errors.explain(error)
            if first.error in DECISIVE:
                return first
            patience *= 2
            continue
        listed = metadata.brokers.values()
        brokers = {broker.id: Address(str(broker.host), int(broker.port or 0)) for broker in listed}
        took = time.monotonic() - begun
        return MetadataAnswer(address, metadata.cluster_id or NOT_SAID, brokers, took)
    return errors.first() or late


def identify(
    address: Address, broker: int, protocol: Protocol, client: Mapping[str, str], limit: float
) -> int | None:
    """The id of the broker that really answers at the address advertised for ``broker``.

    Metadata cannot tell, as every broker gives the same. But a broker describes only its own
    configuration and refuses another's, naming both ids (Kafka's ConfigHelper). None where it does
    not say: it needs the right DescribeConfigs on the cluster.
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
    named = re.search(r"expected (\d+)", failure_of(error).text)
    return int(named[1]) if named else None


def match_listener(contract: Contract, asked: Address, answer: MetadataAnswer | None) -> str | None:
    """The listener of ``contract`` that ``asked`` leads to, or None where nothing says so.

    The answer decides, as an address may be mapped or forwarded: the listener with the most
    brokers advertised as answered. Without an answer, or with none in common, the address itself
    decides: one that the listener advertises, else one with a port that only it advertises.
    """
    known = contract.places
    if answer is not None:
        agreeing = Counter(place.name for place, id, at in known if answer.brokers.get(id) == at)
        if agreeing:  # of several with as many the contract's first
            return agreeing.most_common(1)[0][0]
    exact = {place.name for place, _, address in known if address == asked}
    by_port = {place.name for place, _, address in known if address.port == asked.port}
    return next((names.pop() for names in (exact, by_port) if len(names) == 1), None)


def majority_cluster(answers: Iterable[MetadataAnswer]) -> str:
    """The cluster id that most answers carry; the first of them on a tie, NOT_SAID without one."""
    counted = Counter(answer.cluster_id for answer in answers if answer.cluster_id != NOT_SAID)
    return counted.most_common(1)[0][0] if counted else NOT_SAID


def unexpected(answers: Sequence[MetadataAnswer], expected: Iterable[int]) -> dict[int, Address]:
    """Brokers that a listener's ``answers`` list although the contract does not."""
    known = set(expected)
    listed = (broker for answer in answers for broker in sorted(answer.brokers.items()))
    return {id: address for id, address in listed if id not in known}
