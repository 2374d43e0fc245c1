"""KL014: variables that an image's start script, or its Kafka, refuses.

An error is reported only if the container certainly does not start. The scripts' demands are in
`earshot.listeners.image_demands`, the mapping of variables to properties in
`earshot.listeners.images`.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import BrokerSettings
from earshot.listeners import image_demands, images
from earshot.listeners.image_demands import Demand, Image
from earshot.listeners.images import Family
from earshot.listeners.placeholders import is_known
from earshot.listeners.problems import shown
from earshot.rules.rule import AppliedAt, Finding, Rule, Severity
from earshot.topology.container import Container
from earshot.topology.names import SHARED

KRAFT_ONLY = (4, 0)
_WURSTMEISTER = re.compile(r"(?:latest)?|\d+\.\d+-2\..*")
_YES = re.compile(r"1|yes|true", re.IGNORECASE | re.ASCII)
_CHANGED = {
    "a line break, after which a second property begins": re.compile(r"(?<![\\\r\n])[\r\n]+\s*\S"),
    "a backslash, which the properties reader takes away": re.compile(r"(?<!\\)\\[A-Za-z0-9]"),
}
"""Shapes of values that images write into a properties file and Kafka reads differently."""


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Checks the containers of a plan, which run the start scripts of their images."""
    for id, container in facts.containers.items():
        settings = BrokerSettings(
            container.settings.values, not container.unknown, images.release_of(container.image)
        )
        for refusal in (*refusals(container, settings, plain=True), *changed(container)):
            yield replace(refusal, node=id)


def changed(container: Container) -> Iterator[Finding]:
    """Warnings for variables whose values reach Kafka changed."""
    for name, value in container.env.items():
        if container.family is Family.UNKNOWN or not container.property_of(name):
            continue
        reasons = [why for why, shape in _CHANGED.items() if shape.search(value)]
        if container.family is Family.WURSTMEISTER and "@" in value:
            reasons.append("an @, which the start script cannot handle")
        for reason in reasons[:1]:
            yield RULE.finding(
                f"{name} holds {reason}",
                "one line of plain text",
                f"fix {name}",
                severity=Severity.WARNING,
                inputs=(name,),
            )


def refusals(container: Container, settings: BrokerSettings, *, plain: bool) -> Iterator[Finding]:
    """Refusals of the image's start script, and ZooKeeper settings for a Kafka without it.

    ``plain`` is True if the container runs the start script of an unmodified image.
    """
    release, image, family = settings.release, container.image, container.family
    if family is Family.WURSTMEISTER and plain and not container.unknown:
        yield from _wurstmeister(container)
    if release is None or family in (Family.UNKNOWN, Family.WURSTMEISTER):
        return
    if release >= KRAFT_ONLY and settings.is_zookeeper:
        yield RULE.finding(
            f"{image} is Kafka {release[0]}, which has no ZooKeeper, and zookeeper.connect is set",
            "process.roles, node.id and a KRaft quorum, or an image of Kafka 3",
            remedy="`earshot adopt` writes the settings for KRaft",
            inputs=("zookeeper.connect", "image"),
        )
        return
    known_image = Image(family, release, images.is_old_of_bitnami(image))
    kinds = image_demands.kinds_of(settings.values)
    demands = [
        demand
        for demand in image_demands.DEMANDS
        if demand.holds(known_image, kinds)
        and not images.reads_a_mounted_file(image, container.env, container.mounts)
    ]
    for demand in demands:
        yield from _refused(container, demand)
    if container.has_own_script:
        return
    if plain and settings.values.get("process.roles"):
        yield from _cluster_id(container, known_image)
    as_given = plain and not container.unknown
    if settings.complete or (family is Family.BITNAMI and as_given):
        yield from _missing(container, settings, demands)


def _refused(container: Container, demand: Demand) -> Iterator[Finding]:
    """Findings for variables that the script refuses."""
    for name in demand.refuses:
        value = container.env.get(name)
        if not value or not (is_known(value) or "://" in value):
            continue
        observed = f"is a controller only and sets {name}: the image exits"
        if demand.instead:
            observed = f"sets {name}, and {container.image} refuses to start"
        yield RULE.finding(
            observed,
            demand.instead or "no such variable on a controller",
            remedy=f"take {name} away",
            inputs=(name if demand.instead else container.property_of(name),),
            source=demand.source,
        )


def _cluster_id(container: Container, image: Image) -> Iterator[Finding]:
    """A finding for a cluster id with which Kafka does not format a KRaft node's storage."""
    env, name = container.env, images.cluster_id_variables(image.family)[0]
    id = env.get(name, "")
    alternatives = ("KAFKA_SKIP_KRAFT_STORAGE_INIT", f"{name}_FILE")
    if image.family is Family.BITNAMI and any(env.get(alternative) for alternative in alternatives):
        return
    if id and is_known(id) and image.refuses_cluster_id(id):
        yield RULE.finding(
            f"sets {name} to {shown(id)}, and {container.image} refuses to start",
            "a UUID as 22 characters of URL-safe base64; from Kafka 3.7 on, any text",
            remedy=f"set {name} to what `kafka-storage random-uuid` prints, on all nodes the same",
            inputs=(name, "image"),
            source=image_demands.STORAGE_TOOL,
        )


def _missing(
    container: Container, settings: BrokerSettings, demands: list[Demand]
) -> Iterator[Finding]:
    """One finding for all missing variables that the script needs."""
    lacking = {
        name: demand
        for demand in demands
        for name in demand.needs
        if not _is_given(name, container, settings, demand)
    }
    if not lacking:
        return
    names = ", ".join(lacking)
    otherwise = next(
        (f", or {demand.otherwise}" for demand in lacking.values() if demand.otherwise), ""
    )
    yield RULE.finding(
        f"does not set {names}, and {container.image} refuses to start",
        f"{names}{otherwise}",
        remedy=f"set {names}{otherwise.replace(', or ', ', or take ', 1)}",
        inputs=("image",),
        source=next(iter(lacking.values())).source,
    )


def _is_given(name: str, container: Container, settings: BrokerSettings, demand: Demand) -> bool:
    """Whether a variable, a file, a command's output or a property sets ``name``."""
    env = container.env
    if demand.as_yes:
        return not is_known(env.get(name, "")) or bool(_YES.fullmatch(env.get(name, "")))
    alias = name.replace(images.BITNAMI_PREFIX, images.PREFIX)
    variables = (name, alias, f"{name}_FILE", f"{alias}_COMMAND")
    if any(env.get(variable) for variable in variables) or (demand.may_be_empty and name in env):
        return True
    key = container.property_of(name)
    return bool(key) and bool(settings.values.get(key))


def _wurstmeister(container: Container) -> Iterator[Finding]:
    """Checks images of wurstmeister with Kafka 2 and later."""
    deciding = ("KAFKA_LISTENERS", "KAFKA_ADVERTISED_HOST_NAME")
    if not _WURSTMEISTER.fullmatch(images.tag_of(container.image)):
        return
    if any(container.env.get(name) for name in deciding):
        return
    advertised = container.env.get("KAFKA_ADVERTISED_LISTENERS")
    if advertised or not container.env.get("HOSTNAME_COMMAND"):
        set_listeners = "KAFKA_ADVERTISED_LISTENERS alone" if advertised else "no listeners"
        yield RULE.finding(
            f"sets {set_listeners}, and {container.image} refuses to start",
            "KAFKA_LISTENERS too",
            remedy="set KAFKA_LISTENERS",
            inputs=("listeners", "advertised.listeners", "image"),
            source=image_demands.WURSTMEISTER_SCRIPT,
        )


def network_refusals(service: str, container: Container) -> Iterator[Finding]:
    """A finding if ``container`` publishes ports in another container's network."""
    mode = container.network_mode
    if not (container.published and mode.startswith(SHARED)):
        return
    owner = mode.partition(":")[2]
    yield RULE.finding(
        f"publishes ports, and is in the network of {owner}: the container is not created",
        f"ports at {owner}, whose network it is",
        remedy=f"publish the ports at {owner}, or write no network_mode",
        container=service,
        inputs=("ports", "network_mode"),
        source="https://docs.docker.com/engine/network/#container-networks",
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
    applied_at=(
        AppliedAt.PLAN,
        AppliedAt.FILE,
        AppliedAt.PODS,
        AppliedAt.CONTAINER,
        AppliedAt.CONTAINERS,
    ),
)
