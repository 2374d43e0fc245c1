"""Kafka's container images: which one it is, and what it makes of its variables.

Sources: the start scripts of each image (`docker/resources/common-scripts` of apache/kafka,
`kafka/include/etc/confluent/docker` of confluentinc/kafka-images, bitnami's `libkafka.sh`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

from earshot.listeners import properties
from earshot.listeners.properties import NodeSettings


class Family(StrEnum):
    """Images that map variables alike."""

    APACHE = "apache/kafka"
    CONFLUENT = "confluentinc/cp-kafka"
    BITNAMI = "bitnami/kafka"
    WURSTMEISTER = "wurstmeister/kafka"
    UNKNOWN = "unknown"


_FAMILIES = {
    Family.APACHE: re.compile(r"(?:.*/)?apache/kafka(?:-native)?"),
    Family.CONFLUENT: re.compile(r"(?:.*/)?(?:cp-(?:enterprise-)?kafka|cp-server|confluent-local)"),
    Family.BITNAMI: re.compile(r"(?:.*/)?bitnami(?:legacy|secure)?/kafka"),
    Family.WURSTMEISTER: re.compile(r"(?:.*/)?wurstmeister/kafka"),
}

_REDPANDA = re.compile(r"(?:.*/)?(?:redpandadata|vectorized|redpanda-data)/redpanda(?:-[a-z]+)*")
_ID = re.compile(r"(?:sha256:)?(?:[0-9a-f]{64}|[0-9a-f]{12})")

PREFIX = "KAFKA_"
BITNAMI_PREFIX = "KAFKA_CFG_"
_ALIASES = frozenset(
    f"KAFKA_{name}"
    for name in (
        "ADVERTISED_LISTENERS",
        "BROKER_ID",
        "INTER_BROKER_LISTENER_NAME",
        "LISTENERS",
        "LISTENER_SECURITY_PROTOCOL_MAP",
        "LOG_DIRS",
        "ZOOKEEPER_CONNECT",
    )
)
"""Variables that bitnami takes without `CFG_`, those that matter to listeners."""
_NEWER_ALIASES = frozenset(
    {"KAFKA_CONTROLLER_QUORUM_VOTERS", "KAFKA_NODE_ID", "KAFKA_PROCESS_ROLES"}
)
"""… and those that its scripts take since they were rewritten in 2023."""
_OLD_OF_BITNAMI = re.compile(
    r"(?:2(?:\.\d+){0,2}|3\.[01](?:\.\d+)?|3\.2\.[0-2]|3\.3\.[01]|3\.4\.0|3\.5\.0)(?:-.*)?",
    re.ASCII,
)
"""Tags from before bitnami rewrote its script (3.2.3, 3.3.2, 3.4.1 and 3.5.1 hold the new one)."""
_MOUNTED_BY_USER = re.compile(
    r"(?:.*/server\.properties|/opt/bitnami/kafka(?:/conf(?:ig)?)?|/bitnami/kafka/conf(?:ig)?)/?"
)
"""Mount targets that are, or may contain, the `server.properties` of bitnami's image."""
_APACHE_3 = re.compile(r"3(?!\d)", re.ASCII)
"""Tags of apache/kafka whose script takes every `KAFKA_` out of a name, and not the first alone."""
OWN_VARIABLES = properties.UNMAPPED | {
    # of cp-kafka and its relatives, besides those of apache/kafka
    "KAFKA_LOG4J_APPENDER_STDOUT_LAYOUT_CONVERSIONPATTERN",
    "KAFKA_JMX_PORT",
    "KAFKA_CREATE_TOPICS",
}
"""Variables for an image's scripts, not for the broker."""
_MARKS = frozenset(
    {
        "listeners",
        "advertised.listeners",
        "process.roles",
        "broker.id",
        "node.id",
        "zookeeper.connect",
        "listener.security.protocol.map",
        "advertised.host.name",
        "controller.quorum.voters",
    }
)
"""Properties that only a broker or a controller is given."""

IMAGE_NOTE = "EARSHOT_IMAGE"
"""The variable that names an image where a container is given its id alone (`sha256:…`), as from
`RemoteImage.image_id`: an id shows neither whose image it is nor which Kafka is in it."""

APACHE_DEFAULTS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
}
"""What apache/kafka runs with where not one property is set."""


@lru_cache(maxsize=16384)
def family_of(image: str) -> Family:
    """The family of an image reference, also in a mirror of its registry."""
    name = repository_of(image)
    shapes = _FAMILIES.items()
    return next((kind for kind, shape in shapes if shape.fullmatch(name)), Family.UNKNOWN)


def family_by_settings(image: str, env: Mapping[str, str]) -> Family:
    """The family of an image by its name, else by variables that one family alone reads."""
    family = family_of(image)
    if family is Family.UNKNOWN and any(name.startswith(BITNAMI_PREFIX) for name in env):
        return Family.BITNAMI
    return family


def is_unnamed(image: str) -> bool:
    """Whether ``image`` is an id, or not given: it may be anything."""
    return not image or _ID.fullmatch(image) is not None


@lru_cache(maxsize=16384)
def repository_of(image: str) -> str:
    """``image`` without its tag and digest."""
    name = image.partition("@")[0]
    head, colon, tag = name.rpartition(":")
    return head if colon and "/" not in tag else name


def is_redpanda(image: str) -> bool:
    """Whether an image is Redpanda's, in any registry."""
    return _REDPANDA.fullmatch(repository_of(image)) is not None


def tag_of(image: str) -> str:
    """The tag of ``image``, or an empty text."""
    name = image.partition("@")[0]
    return name.removeprefix(repository_of(image)).removeprefix(":")


def is_old_of_bitnami(image: str) -> bool:
    """Whether bitnami's image of this name has the script that it had until 2023."""
    return _OLD_OF_BITNAMI.fullmatch(tag_of(image)) is not None


def is_new_bitnami(image: str) -> bool:
    """Whether ``image`` is bitnami's with the script of 2023, which leaves out what is not set.

    Its `kafka_server_unify_conf` puts every default of listeners, quorum, roles and ids into a
    comment; what a variable does not set, Kafka does not read.
    """
    is_whose = "$" not in image and family_of(image) is Family.BITNAMI
    return is_whose and not is_old_of_bitnami(image)


def reads_a_mounted_file(image: str, env: Mapping[str, str], mounts: Iterable[str]) -> bool:
    """Whether bitnami's script may find a `server.properties` of the user.

    If so, it checks no variable, and passes none on.
    """
    return is_new_bitnami(image) and (
        bool(env.get("KAFKA_MOUNTED_CONF_DIR"))
        or any(_MOUNTED_BY_USER.fullmatch(path) for path in mounts)
    )


def release_of(image: str) -> tuple[int, int] | None:
    """Which Kafka (major, minor) is in ``image``, as far as its tag shows it."""
    numbers = re.match(r"(\d{1,4})\.(\d{1,4})", tag_of(image), re.ASCII)
    family = family_of(image)
    if family is Family.WURSTMEISTER:
        return 2, 8  # its last; its tags begin with Scala's version
    if numbers is None or family is Family.UNKNOWN:
        return None
    major, minor = int(numbers[1]), int(numbers[2])
    if family is Family.CONFLUENT:  # its releases: 8.0 is Kafka 4.0, 7.0 was 3.0, 5.0 was 2.0
        return (major - 4, minor) if major >= 7 else (2, minor)
    return major, minor


def patch_of(image: str) -> int | None:
    """The third number of Kafka's release in ``image``, if its tag shows it.

    Of Confluent's patches only the first is known to contain the first of Kafka.
    """
    numbers = re.match(r"\d{1,4}\.\d{1,4}\.(\d{1,4})", tag_of(image), re.ASCII)
    family = family_of(image)
    if numbers is None or family in (Family.WURSTMEISTER, Family.UNKNOWN):
        return None
    patch = int(numbers[1])
    return None if family is Family.CONFLUENT and patch else patch


def broker_settings(family: Family, env: Mapping[str, str], image: str = "") -> NodeSettings:
    """The broker properties that ``image``, which is of ``family``, makes of its variables.

    Without its name it is taken for the newest. An unknown image is taken to map them as
    apache/kafka does. Scopes and other notes are in `EARSHOT_*` variables, which no image maps.
    """
    keys = {name: broker_property(family, name, image) for name in env}
    values = {key: env[name] for name, key in keys.items() if key}
    notes = {
        name.removeprefix(properties.VARIABLE).lower(): value
        for name, value in env.items()
        if name.startswith(properties.VARIABLE)
    }
    return NodeSettings(values, notes)


@lru_cache(maxsize=16384)
def broker_property(family: Family, name: str, image: str = "") -> str:
    """The property that a variable sets, or an empty text where it sets none.

    ``image``, of that ``family``, decides the release; without it the newest is meant.
    """
    if family is Family.BITNAMI:
        if name.startswith(BITNAMI_PREFIX):
            return _bitnami(name.removeprefix(BITNAMI_PREFIX))
        aliases = _ALIASES if is_old_of_bitnami(image) else _ALIASES | _NEWER_ALIASES
        return _bitnami(name.removeprefix(PREFIX)) if name in aliases else ""
    if not name.startswith(PREFIX) or name in OWN_VARIABLES:
        return ""
    if family is Family.WURSTMEISTER:
        return name.removeprefix(PREFIX).lower().replace("_", ".")
    if family is Family.APACHE and _APACHE_3.match(tag_of(image)):
        return properties.property_of_3(name)
    return properties.property_of(name)


def variable_of(family: Family, key: str) -> str:
    """The variable that sets a (dotted) property."""
    prefix = BITNAMI_PREFIX if family is Family.BITNAMI else PREFIX
    return prefix + key.upper().replace(".", "_")


def spellings(key: str) -> frozenset[str]:
    """A variable of this name, and those that set a property of it."""
    dotted = key.upper().replace(".", "_")
    return frozenset({key, PREFIX + dotted, BITNAMI_PREFIX + dotted})


def cluster_id_variables(family: Family) -> tuple[str, ...]:
    """The variables that an image takes the cluster's id from; the first is the usual one."""
    is_bitnami = family is Family.BITNAMI
    return ("KAFKA_KRAFT_CLUSTER_ID", "KAFKA_CLUSTER_ID") if is_bitnami else ("CLUSTER_ID",)


def derived_listeners(advertised: str) -> str:
    """What apache/kafka and cp-kafka bind where only advertised listeners are given."""
    return re.sub(r"://[^:,]*:", "://0.0.0.0:", advertised)


def is_broker(image: str, env: Mapping[str, str], command: Sequence[str] = ()) -> bool:
    """Whether a container runs a broker or a controller.

    Such images also serve as clients (`command: kafka-topics …`), and other software takes
    `KAFKA_*` variables too, so what counts is a property that only brokers are given.
    """
    family = family_of(image)
    if _MARKS & set(broker_settings(family, env, image).values):
        return True
    # bitnami's variables on an image that is none of bitnami's
    if any(name.startswith(BITNAMI_PREFIX) for name in env):
        return True
    return family is not Family.UNKNOWN and not command


def _bitnami(rest: str) -> str:
    text = rest.lower().replace("_", ".")
    return text.replace("sasl.ssl", "sasl_ssl").replace("sasl.plaintext", "sasl_plaintext")
