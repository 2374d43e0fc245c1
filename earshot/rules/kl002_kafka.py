"""KL002: settings that Kafka of the target version refuses, or reads differently than intended.

The checks follow `KafkaConfig.validateValues` and the methods that it calls. Checks of a list that
the grammar refuses are skipped.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from earshot.errors import without_users
from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import BrokerSettings, KafkaSettings, Unreadable
from earshot.listeners.address import why_unusable
from earshot.listeners.grammar import Bad
from earshot.listeners.placeholders import is_known
from earshot.listeners.terms import DEFAULT_KAFKA, Role
from earshot.names.kinds import NameKind, kind_of
from earshot.rules import (
    kl002_kafka_addresses,
    kl002_kafka_controllers,
    kl002_kafka_inter_broker,
    kl002_kafka_keys,
    kl002_kafka_listeners,
    kl002_kafka_mechanisms,
    kl002_kafka_roles,
    kl002_kafka_values,
    kl002_kafka_zookeeper,
)
from earshot.rules.objections import Check, Objection, known_objections, strict_settings
from earshot.rules.rule import AppliedAt, Finding, Rule, Severity
from earshot.topology.broker import Endpoint

REDPANDA = "https://docs.redpanda.com/current/manage/security/listener-configuration/"


CHECKS: tuple[Check, ...] = (
    *kl002_kafka_roles.CHECKS,
    *kl002_kafka_listeners.CHECKS,
    *kl002_kafka_controllers.CHECKS,
    *kl002_kafka_inter_broker.CHECKS,
    kl002_kafka_mechanisms.mechanisms,
    kl002_kafka_zookeeper.flags,
    kl002_kafka_values.values,
)


def objections(values: Mapping[str, str], version: str) -> Iterator[Objection]:
    """The objections of Kafka ``version`` ("4.1.1", "4.2.0-rc1") to one node's properties."""
    view = strict_settings(values, version)
    is_zookeeper = not view.is_kraft and view.version < (4, 0)
    for check in (kl002_kafka_roles.roles,) if is_zookeeper else CHECKS:
        yield from known_objections(check, view)


ZOOKEEPER: tuple[Check, ...] = (
    *kl002_kafka_zookeeper.CHECKS,
    *kl002_kafka_listeners.CHECKS,
    *kl002_kafka_inter_broker.CHECKS,
    kl002_kafka_controllers.early,
    kl002_kafka_values.values,
)
"""Checks that also apply to a broker with ZooKeeper."""
OF_BOTH_MODES: tuple[Check, ...] = tuple(check for check in ZOOKEEPER if check in CHECKS)
"""Checks that apply to a node with or without ZooKeeper."""
OLDEST = (3, 3)
"""The oldest release that the rules know. An unknown image must fail in it too."""
LAST_OF_ZOOKEEPER = (3, 9)
"""The newest release that an unknown image may have if it uses ZooKeeper."""
FIRST_KRAFT = (3, 2)
"""The first release checked as KRaft; earlier previews each have other rules."""


def refusals(view: KafkaSettings) -> Iterator[Objection]:
    """Objections that prevent Kafka from starting with ``view``; unknown settings are skipped."""
    try:
        if view.is_kraft and view.version < FIRST_KRAFT:
            return
        checks = CHECKS if view.is_kraft or view.version >= (4, 0) else ZOOKEEPER
    except Unreadable:
        checks = OF_BOTH_MODES
    for check in checks:
        for objection in known_objections(check, view):
            # Kafka accepts a voter at 0.0.0.0, and then stops during its start
            if objection.refused or (objection.check == "R4a" and view.version >= (3, 8)):
                yield objection


def as_finding(
    objection: Objection, node: int | None = None, role: Role = Role.BROKER, kafka: str = "Kafka"
) -> Finding:
    """The finding for ``objection``, with Kafka's reaction to the setting."""
    effect = objection.instead or "does not start"
    return replace(
        RULE.finding_for(objection, node, role),
        observed=f"{objection.key}: {objection.observed}; {kafka} {effect}",
        severity=Severity.ERROR if objection.is_error else Severity.WARNING,
    )


def startup_refusals(settings: BrokerSettings) -> tuple[Finding, ...]:
    """Findings that prevent Kafka from starting with the known part of ``settings``."""
    newest = LAST_OF_ZOOKEEPER if settings.is_zookeeper else None
    refused = tuple(_startup_refusals(settings.read(newest)))
    if settings.release is None:  # an older Kafka may accept them
        older = {refusal.observed for refusal in _startup_refusals(settings.read(OLDEST))}
        refused = tuple(refusal for refusal in refused if refusal.observed in older)
    return refused


def _startup_refusals(view: KafkaSettings) -> Iterator[Finding]:
    readers = {
        "listeners": view.grammar.read_listeners,
        "advertised.listeners": view.grammar.read_listeners,
        "listener.security.protocol.map": view.grammar.read_protocols,
        "controller.quorum.voters": view.grammar.read_voters,
        "controller.quorum.bootstrap.servers": view.grammar.read_servers,
        "controller.listener.names": view.grammar.read_names,
    }
    for key, read in readers.items():
        if key not in view.values or not is_known(view.values[key]):
            continue
        for entry in read(view.text(key)):
            if isinstance(entry, Bad):
                yield RULE.finding(
                    f"{key}: {without_users(entry.error.object)} {entry.error.observed}",
                    entry.error.allowed,
                    entry.error.remedy,
                    listener=entry.name or None,
                    inputs=(key,),
                )
    for objection in refusals(view):
        yield as_finding(replace(objection, instead="", is_error=True))


def unusable(view: KafkaSettings, *, has_keys: bool = False) -> Iterator[Finding]:
    """Addresses that Kafka accepts and nothing can bind or connect to, SASL mechanisms that do not
    exist, and TLS listeners whose key is set for another listener; with ``has_keys`` also those
    without a key."""
    keys = (
        objection
        for objection in known_objections(kl002_kafka_keys.without_key, view)
        if has_keys or kl002_kafka_keys.OF_NO_LISTENER in objection.observed
    )
    mechanisms = known_objections(kl002_kafka_mechanisms.mechanisms, view)
    addresses = (check(view) for check in kl002_kafka_addresses.CHECKS)
    for objected in (*addresses, mechanisms, keys):
        for objection in objected:
            yield as_finding(objection)


def redpanda_refusals(endpoints: Iterable[Endpoint], setting: str) -> Iterator[Finding]:
    """A finding for the first listener that Redpanda refuses, or that nothing can connect to.

    ``setting`` is the name of the setting for advertised addresses. Source:
    `validate_multi_node_property_config` in `src/v/config/node_config.cc` of redpanda.
    """
    ports: dict[int, str] = {}
    for endpoint in endpoints:
        address, other = endpoint.advertised, endpoint.name
        if endpoint.bind is not address:  # otherwise what it binds is unknown
            other = ports.setdefault(endpoint.bind.port, endpoint.name)
        if other != endpoint.name:
            observed = f"listens on port {endpoint.bind.port}, as {other} does"
            expected, remedy = "a port of its own for each listener", "move it to another port"
        elif address and (why := why_unusable(address)):
            observed = f"{why}; no client can connect to it"
            expected = "one name or IP address, and one port from 1 to 65535"
            remedy = "write one host and one port"
        elif address and kind_of(address.host) is NameKind.ANY_ADDRESS:
            observed = f"advertises {address}; Redpanda does not start"
            expected = "a name or an address at which clients reach this broker"
            remedy = "advertise the broker's own name, and keep 0.0.0.0 for what it binds"
        else:
            continue
        yield RULE.finding(
            f"{setting}: {endpoint.name} {observed}",
            expected,
            remedy,
            listener=endpoint.name,
            inputs=(setting,),
            source=REDPANDA,
        )
        return


def check(facts: ClusterFacts) -> Iterator[Finding]:
    version = facts.kafka_version or DEFAULT_KAFKA
    kafka = f"Kafka {version}" if facts.kafka_version else f"Kafka (taken for {version})"
    for id, settings in facts.settings.items():
        for objection in objections(settings.values, version):
            yield as_finding(objection, id, settings.role, kafka)


RULE = Rule(
    id="KL002",
    title="Kafka of the target version starts with these settings, and takes them as meant",
    reason="A broker that refuses its settings says so only when it starts, one by one.",
    remedy="change the setting as expected",
    source="https://kafka.apache.org/documentation/#brokerconfigs",
    check=check,
    needs="settings",
    applied_at=(
        AppliedAt.PLAN,
        AppliedAt.FILE,
        AppliedAt.PODS,
        AppliedAt.CONTAINER,
        AppliedAt.CONTAINERS,
        AppliedAt.INSTANCE,
    ),
    reads_hosts=True,
)
