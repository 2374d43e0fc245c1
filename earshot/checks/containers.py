"""The containers of one run, judged one after the other as they are declared.

What no single container shows is remembered between them: which addresses earlier ones have taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from earshot.facts.cluster import ClusterFacts
from earshot.facts.container import Container, PublishedPort, is_loopback
from earshot.listeners.images import release_of
from earshot.listeners.model import ClusterPlan, Listener, Scope
from earshot.names.kinds import ip_of
from earshot.rules import kl004_unique_address, kl006_container_ports, kl012_same_broker
from earshot.rules.catalogue import RULES
from earshot.rules.evaluate import evaluate
from earshot.rules.finding import Finding, Severity

NEEDS_THE_CLUSTER = frozenset({"KL005", "KL013"})
"""Rules that one container's inputs cannot answer."""
NEEDS_LOOKUPS = frozenset({"KL011", "KL012"})
_WHOLE = frozenset({"KL002", "KL008"})
"""Rules that must know every setting of a node, and Kafka's rules for it."""
_OLDEST = (3, 9)


def skipped_rules(facts: ClusterFacts) -> dict[str, str]:
    """By rule id, why a rule is not asked about the one container in ``facts``."""
    found = dict.fromkeys(NEEDS_THE_CLUSTER, "takes the whole cluster")
    if not facts.evidence:
        found |= dict.fromkeys(NEEDS_LOOKUPS, "no name was looked up")
    elif not any(facts.addresses.values()):
        found["KL012"] = "the addresses of its Docker host are not known"
    for id, container in facts.containers.items():
        if reason := _partly_known(container):
            found |= dict.fromkeys(_WHOLE, reason)
        elif reason := _of_other_times(facts.settings[id].values, container, facts.kafka_version):
            found["KL002"] = reason
    return found


def _partly_known(container: Container) -> str:
    if container.unknown:
        return "not all of its inputs are known yet"
    return "its image may read a mounted properties file" if container.has_file else ""


def _of_other_times(values: Mapping[str, str], container: Container, version: str) -> str:
    release = release_of(container.image)
    if release is not None and release < _OLDEST:
        return f"{container.image} is older than Kafka {'.'.join(map(str, _OLDEST))}"
    zookeeper = "zookeeper.connect" in values and not values.get("process.roles")
    kraft_only = version.startswith("4.") or (release is not None and release >= (4, 0))
    return "it is set up for ZooKeeper" if zookeeper and not kraft_only else ""


class ContainerRun:
    """Judges container after container; `holder` is what a container is known by, such as a URN."""

    def __init__(self) -> None:
        self._advertised: dict[tuple[str, str, int], str] = {}
        self._published: dict[tuple[str, int], list[tuple[PublishedPort, str]]] = {}

    def evaluate(self, holder: str, facts: ClusterFacts, engine: str = "") -> tuple[Finding, ...]:
        """What the rules find in one container, with what earlier ones of the run have taken.

        ``engine`` tells Docker hosts apart: each has its own ports and its own localhost. The same
        holder may come again. Names are judged where ``facts`` hold evidence about them.
        """
        silent = skipped_rules(facts)
        found = evaluate(facts, [rule for rule in RULES if rule.id not in silent])
        return (*map(_downgraded, found), *self.claim(holder, facts, engine))

    def claim(self, holder: str, facts: ClusterFacts, engine: str = "") -> Iterator[Finding]:
        """Only the second part: what earlier containers have taken. Consume it to the end."""
        for id, container in facts.containers.items():
            if facts.plan is not None:
                yield from self._addresses(holder, facts.plan, id, container, engine)
                if container.on_host_network:
                    container = replace(container, published=_bound(facts.plan, id))
            yield from self.claim_ports(holder, id, container, engine)

    def _addresses(
        self, holder: str, plan: ClusterPlan, id: int, container: Container, engine: str
    ) -> Iterator[Finding]:
        for listener in plan.node(id).listeners:
            host = str(listener.host)
            key = (_realm(listener, container, engine), _folded(host), listener.port)
            other = self._advertised.setdefault(key, holder)
            if other != holder:
                yield kl004_unique_address.RULE.finding(
                    f"advertises {listener.advertised}, which container {_short(other)} has taken",
                    "a host:port of its own for every listener of every broker",
                    node=id,
                    listener=listener.name,
                    host=host,
                    container=container.name,
                    inputs=kl004_unique_address.INPUTS,
                )

    def claim_ports(
        self, holder: str, id: int, container: Container, engine: str = ""
    ) -> Iterator[Finding]:
        """The host's ports alone. Consume it to the end."""
        for port in container.published:
            if port.host_port is None or port.protocol != "tcp":
                continue
            taken = self._published.setdefault((engine, port.host_port), [])
            clash = next((o for p, o in taken if o != holder and p.excludes(port)), None)
            if clash is None:
                taken.append((port, holder))
                continue
            does = "listens on the host's port" if container.on_host_network else "publishes"
            yield kl006_container_ports.RULE.finding(
                f"{does} {port}, and container {_short(clash)} has taken port {port.host_port} "
                "of this host",
                "a port of the host for each container",
                node=id,
                remedy="publish another port of the host, and advertise that one",
                container=container.name,
                inputs=kl006_container_ports.INPUTS,
            )


def _downgraded(finding: Finding) -> Finding:
    """KL012 is no more than advice here: a router may stand before what is known of a host."""
    if finding.rule == kl012_same_broker.RULE.id:
        return replace(finding, severity=Severity.WARNING)
    return finding


def _bound(plan: ClusterPlan, id: int) -> tuple[PublishedPort, ...]:
    """On the host's own network what a node binds is the host's."""
    return tuple(
        PublishedPort(
            item.bind_port, item.bind_port, item.bind_host if ip_of(item.bind_host) else ""
        )
        for item in plan.node(id).listeners
    )


def _realm(listener: Listener, container: Container, engine: str) -> str:
    """Where the advertised address means this: a network, a host, or everywhere."""
    host = str(listener.host)
    if is_loopback(host):
        inside = set(listener.scopes) <= {Scope.INTERNAL, Scope.CONTROLLER}
        own = inside and not container.on_host_network
        return f"container {container.name}" if own else f"engine {engine}"
    if container.answers_to(host):
        return f"networks {engine} {','.join(sorted(item.name for item in container.networks))}"
    return ""


def _folded(host: str) -> str:
    if is_loopback(host):
        return "localhost"
    number = ip_of(host)
    return host.lower() if number is None else str(number)


def _short(holder: str) -> str:
    """The last part of a URN, or the holder as it is."""
    return holder.rsplit("::", 1)[-1]
