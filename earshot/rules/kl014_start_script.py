"""KL014: what the start script of an image, or the Kafka in it, refuses in variables of others.

Unlike `kl014_image`, which demands that nothing is left to an image, only what keeps the container
from starting is said, and only where it is certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from earshot.facts.container import Container
from earshot.facts.settings import BrokerSettings, is_known
from earshot.listeners.images import Family, tag_of
from earshot.rules.finding import Finding
from earshot.rules.kl014_image import RULE as KL014

KRAFT_ONLY = (4, 0)
_CONFLUENT_REFUSES = ("KAFKA_ADVERTISED_PORT", "KAFKA_ADVERTISED_HOST", "KAFKA_HOST", "KAFKA_PORT")
_WURSTMEISTER = re.compile(r"(?:latest)?|\d+\.\d+-2\..*")
_ADVERTISED = {"KAFKA_ADVERTISED_LISTENERS": False}
_BITNAMI_BEFORE = re.compile(
    r"(?:2(?:\.\d+){0,2}|3\.[01](?:\.\d+)?|3\.2\.[0-2]|3\.3\.[01]|3\.4\.0|3\.5\.0)(?:-.*)?",
    re.ASCII,
)
"""Tags from before bitnami rewrote its script (3.2.3, 3.3.2, 3.4.1 and 3.5.1 hold the new one)."""
_YES = re.compile(r"1|yes|true", re.IGNORECASE | re.ASCII)


def refusals(container: Container, settings: BrokerSettings, *, plain: bool) -> Iterator[Finding]:
    """What the start script of the image refuses, or what its Kafka does not have any more.

    ``plain``: the container runs the image's own script, from an image that nobody has changed.
    """
    release, image, family = settings.release, container.image, container.family
    if family is Family.WURSTMEISTER and plain and not container.unknown:
        yield from _wurstmeister(container)
    if release is None or family in (Family.UNKNOWN, Family.WURSTMEISTER):
        return
    if release >= KRAFT_ONLY and settings.is_zookeeper:
        yield KL014.finding(
            f"{image} is Kafka {release[0]}, which has no ZooKeeper, and zookeeper.connect is set",
            "process.roles, node.id and a KRaft quorum, or an image of Kafka 3",
            remedy="`earshot adopt` writes the settings for KRaft",
            inputs=("zookeeper.connect", "image"),
        )
        return
    if family is Family.BITNAMI and plain and not (container.unknown or container.mounts):
        yield from _bitnami(container, settings, release)
    if family is Family.CONFLUENT:
        yield from _confluent(container, settings, release)
    roles = settings.values.get("process.roles", "").replace(" ", "")
    if (
        family in (Family.APACHE, Family.CONFLUENT)
        and roles == "controller"
        and "KAFKA_ADVERTISED_LISTENERS" in container.env
    ):
        yield KL014.finding(
            "is a controller only and sets KAFKA_ADVERTISED_LISTENERS: the image exits",
            "no such variable on a controller",
            remedy="take KAFKA_ADVERTISED_LISTENERS away",
            inputs=("advertised.listeners",),
        )


def _wurstmeister(container: Container) -> Iterator[Finding]:
    """Source: `start-kafka.sh` of wurstmeister/kafka-docker, with Kafka 2 and later."""
    told = ("KAFKA_LISTENERS", "KAFKA_ADVERTISED_HOST_NAME")
    if not _WURSTMEISTER.fullmatch(tag_of(container.image)):
        return
    if any(container.env.get(name) for name in told):
        return
    advertised = container.env.get("KAFKA_ADVERTISED_LISTENERS")
    if advertised or not container.env.get("HOSTNAME_COMMAND"):
        what = "KAFKA_ADVERTISED_LISTENERS alone" if advertised else "no listeners"
        yield KL014.finding(
            f"sets {what}, and {container.image} refuses to start",
            "KAFKA_LISTENERS too",
            remedy="set KAFKA_LISTENERS",
            inputs=("listeners", "advertised.listeners", "image"),
        )


def _bitnami(
    container: Container, settings: BrokerSettings, release: tuple[int, int]
) -> Iterator[Finding]:
    """Source: `kafka_validate` in `libkafka.sh` of bitnami/containers, before and since 3.5.1."""
    values, image = settings.values, container.image
    if _BITNAMI_BEFORE.fullmatch(tag_of(image)):
        texts = [values.get(key, "") for key in ("listeners", "listener.security.protocol.map")]
        allowed = container.env.get("ALLOW_PLAINTEXT_LISTENER", "")
        if not (_YES.fullmatch(allowed) or any(re.search("SSL|SASL|[${]", it) for it in texts)):
            yield KL014.finding(
                f"does not set ALLOW_PLAINTEXT_LISTENER, and {image} refuses listeners without TLS",
                "ALLOW_PLAINTEXT_LISTENER=yes, or listeners with SSL or SASL",
                remedy="set ALLOW_PLAINTEXT_LISTENER=yes",
                inputs=("image",),
            )
    elif (3, 5) <= release < KRAFT_ONLY and not {"process.roles", "zookeeper.connect"} & set(
        values
    ):
        yield KL014.finding(
            f"sets neither process.roles nor zookeeper.connect, and {image} refuses to start",
            "KAFKA_CFG_PROCESS_ROLES, or KAFKA_CFG_ZOOKEEPER_CONNECT",
            remedy="set KAFKA_CFG_PROCESS_ROLES=broker,controller",
            inputs=("image",),
        )


def _confluent(
    container: Container, settings: BrokerSettings, release: tuple[int, int]
) -> Iterator[Finding]:
    """Source: `configure` in `kafka/include/etc/confluent/docker` of confluentinc/kafka-images."""
    env, image = container.env, container.image
    for name in _CONFLUENT_REFUSES:
        if env.get(name) and is_known(env[name]):
            yield KL014.finding(
                f"sets {name}, and {image} refuses to start",
                "KAFKA_LISTENERS and KAFKA_ADVERTISED_LISTENERS, which replace it",
                remedy=f"take {name} away",
                inputs=(name,),
            )
    if not settings.complete:
        return
    values = settings.values
    needed = {} if values.get("process.roles") == "controller" else _ADVERTISED
    if values.get("process.roles"):
        needed = {**needed, "CLUSTER_ID": "CLUSTER_ID" in env}
    elif release >= KRAFT_ONLY:
        needed = {"KAFKA_PROCESS_ROLES": False}
    else:
        needed = {**needed, "KAFKA_ZOOKEEPER_CONNECT": "zookeeper.connect" in values}
    missing = [name for name, there in needed.items() if not (there or env.get(name))]
    if missing:
        yield KL014.finding(
            f"does not set {', '.join(missing)}, and {image} refuses to start",
            ", ".join(missing),
            remedy=f"set {', '.join(missing)}",
            inputs=("image",),
        )
