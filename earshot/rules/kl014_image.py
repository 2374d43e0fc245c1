"""KL014: a container is given all that its image needs, and nothing that it drops or refuses.

What each image does with its variables is in `earshot.listeners.images`. An image whose name does
not tell whose it is, or of which only the id is given, is taken for one like apache/kafka; what is
found then is no more than a warning.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import readable
from earshot.listeners import images
from earshot.listeners.grammar import read_listeners, read_protocols
from earshot.listeners.image_demands import REFUSED_BY_CONFLUENT
from earshot.listeners.images import Family, variable_of
from earshot.listeners.terms import Protocol
from earshot.rules.registry import Finding, FindingState, Rule, Severity
from earshot.topology.container import Container

_SCRIPTED = (Family.APACHE, Family.CONFLUENT)
"""Their start scripts look at advertised listeners, and derive what is not given."""
_REFUSED = (*REFUSED_BY_CONFLUENT, "KAFKA_ADVERTISED_HOST_NAME")
_SSL_FILES = (
    "KAFKA_SSL_KEYSTORE_FILENAME",
    "KAFKA_SSL_KEY_CREDENTIALS",
    "KAFKA_SSL_KEYSTORE_CREDENTIALS",
)
_KRAFT = ("process.roles", "node.id", "controller.listener.names")
_QUORUM = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
_MAPPED_BY_OTHERS = frozenset(
    variable_of(Family.APACHE, key) for key in (*images.APACHE_DEFAULTS, *_QUORUM)
)
"""Variables that set a listener of other images; bitnami's drops some of them."""


@dataclass(frozen=True)
class Case:
    """One container with what its image makes of its variables."""

    container: Container
    family: Family
    values: Mapping[str, str]

    @property
    def env(self) -> Mapping[str, str]:
        return self.container.env

    @property
    def is_zookeeper(self) -> bool:
        return "zookeeper.connect" in self.values and "process.roles" not in self.values

    @property
    def is_controller_only(self) -> bool:
        return self.values.get("process.roles", "").strip() == "controller"


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Each container by itself; at the end the cluster's id, which all must share."""
    for id, container in facts.containers.items():
        case = Case(container, container.family, container.settings.values)
        for found in (replace(item, node=id) for item in _checked(case)):
            yield _guessed(found, container) if case.family is Family.UNKNOWN else found
    yield from _one_cluster(facts)


def _guessed(found: Finding, container: Container) -> Finding:
    """``found``, where it is not known that the image is like apache/kafka."""
    observed, remedy = found.observed, found.remedy
    if found.state is FindingState.VIOLATED:
        observed += " - if its image is like apache/kafka"
    if images.is_unnamed(container.image):
        remedy += f"; {images.IMAGE_NOTE}=NAME among its variables says which image it is"
    return replace(found, observed=observed, remedy=remedy, severity=Severity.WARNING)


def _checked(case: Case) -> Iterator[Finding]:
    if case.family is Family.WURSTMEISTER:
        yield RULE.finding(
            f"{case.container.image} has been archived since 2022, and knows ZooKeeper only",
            "an image that runs KRaft",
            "move to apache/kafka; `earshot adopt` writes the settings for it",
        )
    yield from _variables(case)
    yield from _values(case)
    yield from _names(case)
    # where no property is set, apache/kafka has a whole configuration for that
    on_defaults = case.family is Family.APACHE and not case.values
    if on_defaults or case.family is Family.WURSTMEISTER:
        return
    if case.container.unknown or case.container.has_file:
        reason, remedy = "not all inputs are known yet", "nothing yet"
        if case.container.has_file:
            reason = "a properties file is mounted"
            remedy = "set them as variables, or check the file"
        yield RULE.finding(
            f"{reason}: what the image still needs is not known",
            "every setting in the container's variables",
            remedy,
            state=FindingState.UNKNOWN,
        )
        return
    yield from _needs(case)
    yield from _listeners(case)
    yield from _cluster_id(case)


def _variables(case: Case) -> Iterator[Finding]:
    """Variables that the image refuses, or drops without a word."""
    for name in case.env:
        key = case.container.property_of(name)
        if name in _REFUSED and case.family is not Family.WURSTMEISTER:
            if case.family is Family.CONFLUENT and name in REFUSED_BY_CONFLUENT:
                effect = "the image refuses to start"
            else:
                effect = f"it becomes the property {key!r}" if key else "the image drops it"
            yield RULE.finding(
                f"sets {name}: {effect}",
                "listeners and advertised.listeners, which replace it",
                f"take {name} away; in Kubernetes set enableServiceLinks to false",
            )
        elif name.startswith(images.BITNAMI_PREFIX) and case.family is not Family.BITNAMI:
            wanted = images.PREFIX + name.removeprefix(images.BITNAMI_PREFIX)
            yield RULE.finding(
                f"sets {name}, which only bitnami's image reads; here it becomes the property "
                f"{key!r}",
                wanted,
                f"rename it to {wanted}",
            )
        elif case.family is Family.BITNAMI and not key and name in _MAPPED_BY_OTHERS:
            wanted = images.BITNAMI_PREFIX + name.removeprefix(images.PREFIX)
            yield RULE.finding(
                f"sets {name}, which bitnami's image drops", wanted, f"rename it to {wanted}"
            )


def _values(case: Case) -> Iterator[Finding]:
    """Values that do not arrive as they are: images write them raw into a properties file."""
    for name, value in case.env.items():
        if not case.container.property_of(name):
            continue
        reason = ""
        if re.search(r"[\r\n]", value):
            reason = "a line break, after which a second property begins"
        elif "\\" in value:
            reason = "a backslash, which the properties reader eats"
        elif value != value.strip():
            reason = "a blank at its beginning or end"
        elif case.family is Family.WURSTMEISTER and "@" in value:
            reason = "an @, which the start script cannot handle"
        if reason:
            yield RULE.finding(f"{name} holds {reason}", "one line of plain text", f"fix {name}")


def _names(case: Case) -> Iterator[Finding]:
    """Listener names: scripts tell TLS and SASL by them, whatever the protocol map says."""
    advertised = list(_names_in(case.values.get("advertised.listeners", "")))
    if case.family is Family.BITNAMI:
        for name in dict.fromkeys((*_names_in(case.values.get("listeners", "")), *advertised)):
            if "_" in name and not name.startswith("SASL_"):
                yield RULE.finding(
                    f"the name {name} has an underscore, so that no variable of this image can "
                    "stand for a setting of this listener alone",
                    "a name without underscores",
                    f"write {name.replace('_', '')}",
                    severity=Severity.WARNING,
                    listener=name,
                )
    if case.family not in _SCRIPTED:
        return
    text = case.values.get("listener.security.protocol.map", "")
    protocols = dict(readable(read_protocols(text)))
    for name in advertised:
        fallback = Protocol(name) if name in list(Protocol) else Protocol.PLAINTEXT
        protocol = protocols.get(name, fallback)
        looks_tls, looks_sasl = name.endswith("SSL"), "SASL_" in name
        no_tls = looks_tls and not protocol.tls
        if no_tls or (looks_sasl and not protocol.sasl):
            yield RULE.finding(
                f"its name says {'TLS' if no_tls else 'SASL'}, and the protocol map {protocol}: "
                "the image's script goes by the name",
                f"a name without {'SSL' if no_tls else 'SASL_'}",
                "rename the listener",
                listener=name,
            )
            continue
        wanted = (*(_SSL_FILES if looks_tls else ()), *(("KAFKA_OPTS",) if looks_sasl else ()))
        missing = [item for item in wanted if item not in case.env]
        if missing:
            yield RULE.finding(
                f"by its name the image's script demands {', '.join(missing)}, and exits",
                f"{', '.join(missing)}, or a name that ends otherwise",
                "set them, or rename the listener and give the settings in full",
                listener=name,
            )


def _names_in(text: str) -> Iterator[str]:
    return (name for name, _ in readable(read_listeners(text)))


def _needs(case: Case) -> Iterator[Finding]:
    """The complete set: one lone variable makes the image drop all of its defaults."""
    if case.is_zookeeper:
        if case.family is not Family.CONFLUENT:
            yield RULE.finding(
                "is set up for ZooKeeper (zookeeper.connect), which Kafka 4 no longer has",
                "process.roles, node.id and a KRaft quorum",
                "`earshot adopt` writes the settings for KRaft",
            )
        return
    missing = [key for key in _KRAFT if not case.values.get(key)]
    if not any(case.values.get(key) for key in _QUORUM):
        missing.append(_QUORUM[0])
    if not case.is_controller_only and not case.values.get("advertised.listeners"):
        missing.append("advertised.listeners")
    if missing:
        named = ", ".join(variable_of(case.family, key) for key in missing)
        yield RULE.finding(
            f"does not set {named}; with one property set the image drops all of its defaults",
            "the complete set of settings, never a delta",
            f"set {named}",
        )
    static_only = case.family in _SCRIPTED and "controller" in case.values.get("process.roles", "")
    if static_only and _QUORUM[1] in case.values and _QUORUM[0] not in case.values:
        yield RULE.finding(
            f"sets {_QUORUM[1]} alone: the image formats its storage for static voters only",
            _QUORUM[0],
            f"set {variable_of(case.family, _QUORUM[0])} to id@host:port of every controller",
        )


def _listeners(case: Case) -> Iterator[Finding]:
    advertised = case.values.get("advertised.listeners")
    if case.is_controller_only and advertised and case.family in _SCRIPTED:
        yield RULE.finding(
            "is a controller only and sets KAFKA_ADVERTISED_LISTENERS: the image exits",
            "no such variable on a controller",
            "bind CONTROLLER to the container's own name instead, as the voters call it",
        )
    explicit = "listeners" in case.values
    numeric6 = advertised is not None and "[" in advertised
    if case.family is Family.BITNAMI and ("[" in case.values.get("listeners", "") or numeric6):
        yield RULE.finding(
            "has an IPv6 address among its listeners, which bitnami's script takes apart at the "
            "colons",
            "names, or IPv4 addresses",
            "advertise a name",
        )
    if not explicit and not case.is_controller_only:
        is_combined = "," in case.values.get("process.roles", "")
        severe = is_combined or numeric6 or case.family is Family.WURSTMEISTER
        lacks = "; the controller's listener is missing from what it derives"
        yield RULE.finding(
            f"does not set {variable_of(case.family, 'listeners')}: the image derives it from what "
            "is advertised, ports included"
            + (lacks if is_combined else "")
            + ("; with an IPv6 address it fails" if numeric6 else ""),
            "listeners, with the ports inside the container",
            f"set {variable_of(case.family, 'listeners')}",
            severity=None if severe else Severity.WARNING,
        )


def _cluster_id(case: Case) -> Iterator[Finding]:
    names = images.cluster_id_variables(case.family)
    several = "," in case.values.get("controller.quorum.voters", "")
    effects = {
        Family.APACHE: ("takes one that every such container has", Severity.WARNING),
        Family.BITNAMI: ("makes one up", Severity.ERROR if several else Severity.WARNING),
        Family.CONFLUENT: ("refuses to start", Severity.ERROR),
    }
    if case.is_zookeeper or any(map(case.env.get, names)) or case.family not in effects:
        return
    effect, severity = effects[case.family]
    yield RULE.finding(
        f"does not set {names[0]}: the image {effect}",
        "the cluster's own id, the same on all of its nodes",
        f"set {names[0]} (kafka-storage.sh random-uuid makes one)",
        severity=severity,
    )


def _one_cluster(facts: ClusterFacts) -> Iterator[Finding]:
    first: tuple[str, str] | None = None
    for id, container in facts.containers.items():
        names = images.cluster_id_variables(container.family)
        own = next((container.env[name] for name in names if container.env.get(name)), "")
        if not own:
            continue
        first = first or (container.name, own)
        if own != first[1]:
            yield RULE.finding(
                f"has the cluster id {own}",
                f"{first[1]}, as container {first[0]} has",
                node=id,
                remedy=f"give all nodes of a cluster the same {names[0]}",
            )


RULE = Rule(
    id="KL014",
    title="A container is given what its image needs, and nothing that it drops or refuses",
    reason="Each image maps, derives, drops and refuses variables in its own way, and says so only "
    "when the container starts, if at all.",
    remedy="give the image the complete set of settings",
    source="https://hub.docker.com/r/apache/kafka",
    check=check,
    inputs=("env", "image"),
    needs="containers",
    in_files=True,
)
