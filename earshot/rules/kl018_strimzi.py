"""KL018: Strimzi accepts the listeners of a `Kafka` resource, and their clients can connect.

A resource that Strimzi's `ListenersValidator` or the schema (`GenericKafkaListener`,
`KafkaListenerType`) refuses keeps the state NotReady and is never deployed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import HOST_ALLOWED, Address, why_unusable
from earshot.listeners.placeholders import is_known
from earshot.names.kinds import NameKind, kind_of
from earshot.rules.kl002_kafka_addresses import REFUSED_BY_JAVA, UNDERSCORE_REMEDY
from earshot.rules.rule import AppliedAt, Finding, Rule, Severity
from earshot.topology.container import is_loopback

if TYPE_CHECKING:  # slow to import
    from earshot.facts.strimzi import StrimziKafka, StrimziListener

LOWEST_PORT = 9092
RESERVED_PORTS = (9404, 9999)
"""The ports of Strimzi's metrics and JMX."""
_NAME = re.compile(r"[a-z0-9]{1,11}", re.ASCII)
_SCHEMA = (
    "https://github.com/strimzi/strimzi-kafka-operator/blob/main/packaging/install"
    "/cluster-operator/040-Crd-kafka.yaml"
)
_TLS_ONLY = ("route", "ingress", "tlsroute")


def check(facts: ClusterFacts) -> Iterator[Finding]:
    for kafka in facts.strimzi:
        for finding in _findings(kafka):
            yield replace(finding, resource=f"Kafka {kafka.name}")


def _findings(kafka: StrimziKafka) -> Iterator[Finding]:
    if kafka.refusal is not None:
        place, problem = kafka.refusal
        yield RULE.finding(
            f"{place} {problem}; Kubernetes refuses the resource",
            "a list of listeners, each a map",
            remedy="write a listener with name, port, type and tls",
            inputs=(place, "spec.kafka"),
            source=_SCHEMA,
        )
    yield from _distinct(kafka, "name", lambda item: item.name or None)
    yield from _distinct(kafka, "port", lambda item: item.port)
    for listener in kafka.listeners:
        if listener.missing:
            yield RULE.finding(
                f"{listener.place} has no {' and no '.join(listener.missing)}; Kubernetes refuses "
                "the resource",
                "a listener with name, port, type and tls",
                listener=listener.name or None,
                remedy=f"set {' and '.join(listener.missing)}",
                inputs=(listener.place,),
                source=_SCHEMA,
            )
        yield from _terms(listener)
        yield from _tls(listener)
        if listener.type == "ingress":
            yield from _hosts(kafka, listener)
        yield from _advertised(listener)


def _distinct(
    kafka: StrimziKafka, field: str, value: Callable[[StrimziListener], object]
) -> Iterator[Finding]:
    holders: dict[object, StrimziListener] = {}
    for listener in kafka.listeners:
        field_value = value(listener)
        if field_value is None:
            continue
        holder = holders.setdefault(field_value, listener)
        if holder is not listener:
            same_as = f", as {holder.name} has" if field != "name" and holder.name else ""
            yield RULE.finding(
                f"has the {field} {field_value}{same_as or ' a second time'}; "
                "Strimzi refuses the resource",
                f"a {field} of its own for every listener",
                listener=listener.name or None,
                remedy=f"give one of them another {field}",
                inputs=(f"{listener.place}.{field}",),
            )


def _refused(
    listener: StrimziListener, keys: tuple[str, ...], observed: str, expected: str, remedy: str
) -> Finding:
    """The finding about the value at ``keys`` of ``listener``."""
    return RULE.finding(
        observed,
        expected,
        listener=listener.name,
        remedy=remedy,
        inputs=tuple(f"{listener.place}.{key}" for key in keys),
    )


def _terms(listener: StrimziListener) -> Iterator[Finding]:
    """Checks name, port and type."""
    from earshot.facts.strimzi import TYPES

    name, port, type = listener.name, listener.port, listener.type
    if name and not _NAME.fullmatch(name):
        observed = f"is called {name}; Strimzi refuses the resource"
        expected = "1 to 11 lower-case letters and digits"
        yield _refused(listener, ("name",), observed, expected, "give it another name")
    if port is not None and (port < LOWEST_PORT or port in RESERVED_PORTS):
        observed = f"has the port {port}, which Strimzi keeps for itself; it refuses the resource"
        expected = f"a port from {LOWEST_PORT} on, but not {' or '.join(map(str, RESERVED_PORTS))}"
        yield _refused(listener, ("port",), observed, expected, "give it another port")
    if type and type not in TYPES:
        observed = f"has the type {type}, which Strimzi does not know; it refuses the resource"
        expected = f"one of {', '.join(TYPES)}"
        yield _refused(listener, ("type",), observed, expected, "correct the type")


def _tls(listener: StrimziListener) -> Iterator[Finding]:
    if listener.tls is not False or "tls" in listener.missing:
        return
    if listener.type in _TLS_ONLY:
        needs = f"is of the type {listener.type}, which goes by the name in the TLS handshake"
    elif listener.authentication == "tls":
        needs = "has authentication of the type tls"
    else:
        return
    observed = f"{needs}, and has no TLS; Strimzi refuses the resource"
    yield _refused(listener, ("tls", "type"), observed, "tls: true", "set tls: true")


def _hosts(kafka: StrimziKafka, listener: StrimziListener) -> Iterator[Finding]:
    """Every host of an Ingress must be set, as it has no default."""
    if listener.brokers is None:
        return
    missing = [] if listener.has_bootstrap_host else ["bootstrap.host"]
    if not listener.has_host_template:
        if not listener.brokers:
            missing.append("brokers[].host")
        elif kafka.brokers is not None and all(
            broker.id is not None for broker in listener.brokers
        ):
            broker_ids = {broker.id for broker in listener.brokers if broker.has_host}
            lacking = [str(id) for id in range(min(kafka.brokers, 1_000)) if id not in broker_ids]
            if lacking:
                missing.append(f"the host of broker {', '.join(lacking)}")
    if missing:
        lacks = " and ".join(missing)
        yield _refused(
            listener,
            ("configuration", "type"),
            f"is of the type ingress and lacks {lacks}; Strimzi refuses the resource",
            "configuration.bootstrap.host, and a host for every broker in configuration.brokers",
            "name the hosts",
        )


def _advertised(listener: StrimziListener) -> Iterator[Finding]:
    from earshot.facts.strimzi import BEYOND

    holders: dict[Address, int] = {}
    for broker in listener.brokers or ():
        host = broker.advertised_host
        if not host:
            continue
        place = f"{broker.place}.advertisedHost"
        finding = partial(RULE.finding, node=broker.id, listener=listener.name, inputs=(place,))
        if kind_of(host) is NameKind.ANY_ADDRESS:
            observed = f"advertises {host}, which is no address of anybody"
            remedy = "advertise a name at which the clients reach this broker"
            yield finding(observed, "a name that the clients can resolve", remedy)
        elif listener.type in BEYOND and is_loopback(host):
            yield finding(
                f"advertises {host} to clients outside the cluster: each of them takes itself for "
                "the broker",
                "a name that leads to the broker from where the clients are",
                "advertise a name of the node or of the load balancer, unless the cluster runs on "
                "the clients' own machine",
                severity=Severity.WARNING,
            )
        # an unset port is the one that Kubernetes or the cloud chooses
        if why := why_unusable(Address(host, broker.advertised_port or 1)):
            observed = f"advertises an address that {why}; no client can connect to it"
            expected = "one name or IP address, and one port from 1 to 65535"
            yield finding(observed, expected, "write one host and one port")
            continue
        if listener.tls and "_" in host and is_known(host):
            observed = f"advertises {host}, with an underscore, and {REFUSED_BY_JAVA}"
            yield finding(observed, HOST_ALLOWED, UNDERSCORE_REMEDY)
        if broker.advertised_port is None or broker.id is None:
            continue
        address = Address(host.lower(), broker.advertised_port)
        holder = holders.setdefault(address, broker.id)
        if holder != broker.id:
            observed = f"advertises {address}, as broker {holder} does"
            remedy = "give it another advertisedHost or advertisedPort"
            inputs = (f"{broker.place}.advertisedPort",)
            yield finding(observed, "an address of its own for every broker", remedy, inputs=inputs)


RULE = Rule(
    id="KL018",
    title="Strimzi takes the listeners of a Kafka resource, and their clients can connect",
    reason="A resource that the operator refuses is never rolled out, and its status alone says "
    "why.",
    remedy="correct the listener",
    source="https://github.com/strimzi/strimzi-kafka-operator/blob/main/cluster-operator/src/main"
    "/java/io/strimzi/operator/cluster/model/ListenersValidator.java",
    check=check,
    oldest=(2, 5),
    needs="strimzi",
    applied_at=(AppliedAt.FILE,),
)
