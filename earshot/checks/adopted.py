"""Which mistakes the source holds: the rules, over what was understood of it."""

from __future__ import annotations

from collections.abc import Sequence

from earshot.checks.containers import ContainerRun
from earshot.errors import AddressError
from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import controller_names, roles_of
from earshot.listeners.address import check_listener_name
from earshot.listeners.grammar import Bad, read_voters
from earshot.listeners.model import ANY_IPV4, ClusterPlan, Listener, Node
from earshot.listeners.properties import NodeSettings
from earshot.rules.catalogue import RULES
from earshot.rules.evaluate import evaluate
from earshot.rules.finding import Finding
from earshot.rules.registry import Rule
from earshot.sources.container import handed_over, version_of
from earshot.sources.kafka_broker import KafkaBroker

_LOOKUPS = "names are looked up by the policy pack, where their clients stand"
_ZOOKEEPER = "the source is set up for ZooKeeper"


def facts_of(brokers: Sequence[KafkaBroker], placement: str) -> ClusterFacts:
    """The facts about all brokers together; a listener that is for nobody yet is left out."""
    return ClusterFacts(
        plan=_plan(brokers),
        settings={item.id: _handed_over(item) for item in brokers},
        placement=placement,
        containers={item.id: item.container for item in brokers if item.container is not None},
    )


def skipped_rules(
    brokers: Sequence[KafkaBroker], facts: ClusterFacts
) -> tuple[tuple[Rule, str], ...]:
    """The rules that cannot be judged here, each with the reason."""
    found = []
    for rule in RULES:
        reason = rule.silent(facts)
        if rule.id in ("KL011", "KL012"):
            reason = _LOOKUPS
        elif rule.id in ("KL002", "KL013") and any(item.is_zookeeper for item in brokers):
            reason = _ZOOKEEPER
        elif rule.id == "KL013" and not _voters(brokers) <= {item.id for item in brokers}:
            reason = "not every voter is among the brokers and controllers that were adopted"
        elif rule.id == "KL013" and len(_voters(brokers)) == 1:
            reason = "the one controller asks nobody but itself"
        if reason:
            found.append((rule, reason))
    return tuple(found)


def mistakes_in(brokers: Sequence[KafkaBroker], facts: ClusterFacts) -> tuple[Finding, ...]:
    """What the rules find in the source as it is written."""
    silent = {rule.id for rule, _ in skipped_rules(brokers, facts)}
    run = ContainerRun()
    return (
        *evaluate(facts, [rule for rule in RULES if rule.id not in silent]),
        *(
            finding
            for id, container in facts.containers.items()
            for finding in run.claim_ports(container.name, id, container)
        ),
    )


def _handed_over(broker: KafkaBroker) -> NodeSettings:
    """What Kafka itself is given: an image adds to what is written, or has defaults of its own."""
    if broker.container is None:
        return broker.raw
    return NodeSettings(handed_over(broker.container), broker.raw.notes)


def _plan(brokers: Sequence[KafkaBroker]) -> ClusterPlan | None:
    nodes = tuple(
        Node(
            id=item.id,
            roles=roles_of(item.values),
            listeners=tuple(
                Listener(
                    name=listener.name,
                    protocol=listener.protocol,
                    scopes=listener.audience.scopes,
                    bind_host=listener.bind.host or ANY_IPV4,
                    bind_port=listener.bind.port,
                    host=listener.advertised.host,
                    port=listener.advertised.port,
                )
                for listener in item.listeners
                if listener.audience.scopes
            ),
        )
        for item in brokers
        if any(listener.audience.scopes for listener in item.listeners)
    )
    first = next((item for item in brokers if item.is_broker), brokers[0])
    controller = next(iter(controller_names(first.values)), "CONTROLLER")
    if not nodes or not (_is_name(first.inter_broker) and _is_name(controller)):
        return None  # KL001 says why
    return ClusterPlan(
        kafka_version=version_of(first.image),
        inter_broker=first.inter_broker,
        controller=controller,
        replication_factor=1,
        min_insync_replicas=1,
        nodes=nodes,
    )


def _is_name(text: str) -> bool:
    try:
        return bool(check_listener_name(text))
    except AddressError:
        return False


def _voters(brokers: Sequence[KafkaBroker]) -> set[int]:
    text = next((item.values.get("controller.quorum.voters", "") for item in brokers), "")
    return {item[0] for item in read_voters(text) if not isinstance(item, Bad)}
