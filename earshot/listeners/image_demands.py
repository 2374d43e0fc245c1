"""What the start scripts of images demand of their variables: without it the container exits.

One row per demand, with the script that makes it and the releases of Kafka whose images have it.
apache/kafka and cp-kafka have one script for all of theirs. bitnami rewrote its own in 2023; a tag
such as `3.4` leads to the last image of 3.4, which has the new one.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from earshot.listeners.images import Family
from earshot.listeners.placeholders import is_known

Release = tuple[int, int]

APACHE_SCRIPT = (
    "https://github.com/apache/kafka/blob/trunk/docker/resources/common-scripts/configure"
)
CONFLUENT_SCRIPT = (
    "https://github.com/confluentinc/kafka-images/blob/master/"
    "kafka/include/etc/confluent/docker/configure"
)
CONFLUENT_BEFORE = (
    "https://github.com/confluentinc/kafka-images/blob/"
    "1cc8525d1d16960e6b010c151d5593591eb09d88/kafka/include/etc/confluent/docker/configure"
)
BITNAMI_SCRIPT = (
    "https://github.com/bitnami/containers/blob/2ad5e8313494eec970c75ed33529aec249f6e8bc/"
    "bitnami/kafka/3.4/debian-11/rootfs/opt/bitnami/scripts/libkafka.sh"
)
BITNAMI_OF_4 = (
    "https://github.com/bitnami/containers/blob/b34777087566971b20b70faea1f22b80a7bbc4a2/"
    "bitnami/kafka/4.0/debian-12/rootfs/opt/bitnami/scripts/libkafka.sh"
)
BITNAMI_OF_4_3 = (
    "https://github.com/bitnami/containers/blob/da685fd8fa08edb563541744052cb34d04f28d68/"
    "bitnami/kafka/4.3/debian-12/rootfs/opt/bitnami/scripts/libkafka.sh"
)
BITNAMI_BEFORE = "https://github.com/bitnami/containers/tree/main/bitnami/kafka#notable-changes"
STORAGE_TOOL = (
    "https://github.com/apache/kafka/blob/3.6.2/core/src/main/scala/kafka/tools/StorageTool.scala"
)
FORMAT_WITHOUT_VOTERS = "https://github.com/apache/kafka/pull/18844"
WURSTMEISTER_SCRIPT = "https://github.com/wurstmeister/kafka-docker/blob/901c084/start-kafka.sh"
_NO = re.compile(r"|0|no|false", re.IGNORECASE)
_UUID = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?", re.ASCII)


class Image(NamedTuple):
    """Which image a container has, as far as its demands depend on it."""

    family: Family
    release: Release
    is_old_of_bitnami: bool = False
    """It has the script that bitnami had until 2023."""

    def refuses_cluster_id(self, id: str) -> bool:
        """Whether its script has the storage formatted by a Kafka that does not take ``id``.

        Before 3.7 it had to be a UUID, since then it is any text. cp-kafka formats from 7.4 on.
        """
        formats = self.release >= (3, 4) if self.family is Family.CONFLUENT else True
        if self.family is Family.BITNAMI:
            formats = not self.is_old_of_bitnami
        return formats and self.release < (3, 7) and not _UUID.fullmatch(id)


class Of(Enum):
    """Which nodes a demand is made of, by their properties."""

    ANY = auto()
    WITH_ZOOKEEPER = auto()
    """Without `process.roles`."""
    WITHOUT_A_MODE = auto()
    """Neither with `process.roles` nor with `zookeeper.connect`."""
    WITHOUT_TLS_AND_SASL = auto()
    """As far as listeners and protocol map name any, and are known."""
    KRAFT = auto()
    KRAFT_WITH_ZOOKEEPER = auto()
    """… and with `zookeeper.connect`, of which it does not migrate."""
    KRAFT_BROKER = auto()
    """With the role broker, alone or not."""
    CONTROLLER_ALONE = auto()
    NAMED_SSL = auto()
    """A listener that it advertises has a name that ends in SSL."""
    NAMED_SASL = auto()
    """… a name with `SASL_` in it."""
    CONTROLLER_WITHOUT_VOTERS = auto()
    """It uses `controller.quorum.bootstrap.servers`; formatting defines the first voters."""
    CONTROLLER_AT_OTHER_SERVERS = auto()
    """`controller.quorum.bootstrap.servers` is not the default of bitnami's image."""
    SASL_BETWEEN_BROKERS = auto()
    """By the entry of `inter.broker.listener.name`, or INTERNAL, in the protocol map."""
    SASL_OF_CONTROLLERS = auto()
    """By the entry of `controller.listener.names`, or CONTROLLER, in the protocol map: asked for
    with ZooKeeper, too."""


@dataclass(frozen=True)
class Demand:
    """Variables that must be set, or that must not; ``instead`` is what takes their place."""

    image: Family
    source: str
    of: Of = Of.ANY
    since: Release = (0, 0)
    before: Release = (99, 0)
    needs: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    may_be_empty: bool = False
    as_yes: bool = False
    """The variable must say yes."""
    instead: str = ""
    otherwise: str = ""
    """What else would do where something is missing."""

    def holds(self, image: Image, kinds: Collection[Of]) -> bool:
        """Whether it is made of a node of these ``kinds`` in ``image``."""
        in_time = self.since <= image.release < self.before
        if image.family is Family.BITNAMI:
            in_time = in_time and image.is_old_of_bitnami == (self.source == BITNAMI_BEFORE)
        return image.family is self.image and in_time and self.of in kinds


def kinds_of(values: Mapping[str, str]) -> frozenset[Of]:
    """The kinds of a node with the properties ``values``."""
    roles = {role.strip() for role in values.get("process.roles", "").split(",")} - {""}
    inter_broker = values.get("inter.broker.listener.name", "INTERNAL")
    controllers = values.get("controller.listener.names", "CONTROLLER")
    advertised = values.get("advertised.listeners", "")
    protocols = [entry.split(":")[:2] for entry in _protocol_map(values).split(",") if ":" in entry]
    secured = (values.get("listeners", ""), _protocol_map(values))
    sasl = [name for name, protocol in protocols if protocol in ("SASL_PLAINTEXT", "SASL_SSL")]
    applies_by_kind = {
        Of.ANY: True,
        Of.WITH_ZOOKEEPER: not roles,
        Of.WITHOUT_A_MODE: not roles and "zookeeper.connect" not in values,
        Of.WITHOUT_TLS_AND_SASL: not any(re.search("SSL|SASL|[${]", text) for text in secured),
        Of.KRAFT: bool(roles),
        Of.KRAFT_WITH_ZOOKEEPER: bool(roles and values.get("zookeeper.connect"))
        and _NO.fullmatch(values.get("zookeeper.metadata.migration.enable", "")) is not None,
        Of.KRAFT_BROKER: "broker" in roles,
        Of.CONTROLLER_ALONE: roles == {"controller"},
        Of.NAMED_SSL: "SSL://" in advertised,
        Of.NAMED_SASL: re.search("SASL_.*://", advertised) is not None,
        Of.CONTROLLER_WITHOUT_VOTERS: "controller" in roles
        and bool(values.get("controller.quorum.bootstrap.servers"))
        and not values.get("controller.quorum.voters"),
        Of.CONTROLLER_AT_OTHER_SERVERS: "controller" in roles
        and values.get("controller.quorum.bootstrap.servers", "") not in ("", "localhost:9093"),
        Of.SASL_BETWEEN_BROKERS: inter_broker in sasl,
        Of.SASL_OF_CONTROLLERS: any(name in controllers and name != inter_broker for name in sasl),
    }
    return frozenset(kind for kind, applies in applies_by_kind.items() if applies)


def _protocol_map(values: Mapping[str, str]) -> str:
    return values.get("listener.security.protocol.map", "").replace(" ", ",")


REFUSED_BY_CONFLUENT = (
    "KAFKA_ADVERTISED_PORT",
    "KAFKA_ADVERTISED_HOST",
    "KAFKA_HOST",
    "KAFKA_PORT",
)
_BY_LISTENERS = "KAFKA_LISTENERS and KAFKA_ADVERTISED_LISTENERS, which replace it"
_bitnami = partial(Demand, Family.BITNAMI, BITNAMI_SCRIPT)
_confluent = partial(Demand, Family.CONFLUENT, CONFLUENT_SCRIPT)
DEMANDS = (
    _confluent(refuses=REFUSED_BY_CONFLUENT, instead=_BY_LISTENERS),
    _confluent(
        Of.WITH_ZOOKEEPER,
        before=(4, 0),
        needs=("KAFKA_ADVERTISED_LISTENERS", "KAFKA_ZOOKEEPER_CONNECT"),
    ),
    _confluent(Of.WITH_ZOOKEEPER, since=(4, 0), needs=("KAFKA_PROCESS_ROLES",)),
    Demand(  # 7.0 to 7.3: its script knows no KRaft, and asks every node for ZooKeeper
        Family.CONFLUENT,
        CONFLUENT_BEFORE,
        Of.KRAFT,
        before=(3, 4),
        needs=("KAFKA_ADVERTISED_LISTENERS", "KAFKA_ZOOKEEPER_CONNECT"),
        otherwise="an image of 7.4 or later, whose script knows KRaft",
    ),
    _confluent(Of.KRAFT_BROKER, since=(3, 4), needs=("KAFKA_ADVERTISED_LISTENERS",)),
    _confluent(  # its helper dub takes an empty text for none, ub in 8.0 does not
        Of.KRAFT, since=(3, 4), before=(4, 0), needs=("CLUSTER_ID",)
    ),
    _confluent(Of.KRAFT, since=(4, 0), needs=("CLUSTER_ID",), may_be_empty=True),
    *(
        Demand(
            family,
            script,
            Of.CONTROLLER_ALONE,
            since=since,
            refuses=("KAFKA_ADVERTISED_LISTENERS",),  # not where it is set to nothing
        )
        for family, script, since in (
            (Family.APACHE, APACHE_SCRIPT, (0, 0)),
            (Family.CONFLUENT, CONFLUENT_SCRIPT, (3, 4)),
        )
    ),
    *(
        Demand(  # it formats the storage without saying who the first voters are
            family,
            FORMAT_WITHOUT_VOTERS,
            Of.CONTROLLER_WITHOUT_VOTERS,
            since=(3, 9),
            needs=("KAFKA_CONTROLLER_QUORUM_VOTERS",),
        )
        for family in (Family.APACHE, Family.CONFLUENT)
    ),
    *(
        Demand(family, script, of, needs=needs, otherwise=f"a listener's name without {part}")
        for family, script in (
            (Family.APACHE, APACHE_SCRIPT),
            (Family.CONFLUENT, CONFLUENT_SCRIPT),
        )
        for of, part, needs in (
            (
                Of.NAMED_SSL,
                "SSL at its end",
                (
                    "KAFKA_SSL_KEYSTORE_FILENAME",
                    "KAFKA_SSL_KEY_CREDENTIALS",
                    "KAFKA_SSL_KEYSTORE_CREDENTIALS",
                ),
            ),
            (Of.NAMED_SASL, "SASL_", ("KAFKA_OPTS",)),
        )
    ),
    Demand(
        Family.BITNAMI,
        BITNAMI_BEFORE,
        Of.WITHOUT_TLS_AND_SASL,
        needs=("ALLOW_PLAINTEXT_LISTENER",),
        as_yes=True,
    ),
    _bitnami(Of.WITHOUT_A_MODE, since=(3, 5), before=(4, 0), needs=("KAFKA_CFG_PROCESS_ROLES",)),
    Demand(  # it takes no mode for granted, although its README of 3.5 says so of later releases
        Family.BITNAMI,
        BITNAMI_OF_4,
        Of.WITHOUT_A_MODE,
        since=(4, 0),
        needs=("KAFKA_CFG_PROCESS_ROLES", "KAFKA_CFG_NODE_ID"),
    ),
    _bitnami(
        Of.KRAFT_WITH_ZOOKEEPER,
        since=(3, 4),
        before=(4, 0),
        refuses=("KAFKA_CFG_ZOOKEEPER_CONNECT", "KAFKA_ZOOKEEPER_CONNECT"),
        instead="one of KAFKA_CFG_PROCESS_ROLES and KAFKA_CFG_ZOOKEEPER_CONNECT, or "
        "KAFKA_CFG_ZOOKEEPER_METADATA_MIGRATION_ENABLE with both",
    ),
    _bitnami(
        Of.SASL_BETWEEN_BROKERS,
        since=(3, 4),
        needs=("KAFKA_CFG_SASL_MECHANISM_INTER_BROKER_PROTOCOL",),
    ),
    _bitnami(
        Of.SASL_OF_CONTROLLERS,
        since=(3, 4),
        needs=("KAFKA_CFG_SASL_MECHANISM_CONTROLLER_PROTOCOL",),
    ),
    Demand(
        Family.BITNAMI,
        BITNAMI_OF_4_3,
        Of.CONTROLLER_AT_OTHER_SERVERS,
        since=(4, 3),
        needs=("KAFKA_INITIAL_CONTROLLERS",),
    ),
    *(
        Demand(
            Family.BITNAMI,
            script,
            Of.KRAFT,
            since=since,
            before=before,
            needs=("KAFKA_CFG_NODE_ID",),
        )
        for script, since, before in (
            (BITNAMI_SCRIPT, (3, 4), (4, 0)),
            (BITNAMI_OF_4, (4, 0), (99, 0)),
        )
    ),
)


def ignored_by_registry(servers: str, protocol: str) -> Sequence[str]:
    """The addresses ``servers`` of Schema Registry if it ignores them all, and does not start.

    It ignores those with another scheme than ``protocol``, its `kafkastore.security.protocol`
    (`SchemaRegistryConfig.endpointsToBootstrapServers`).
    """
    entries = [entry.strip() for entry in servers.split(",")]
    schemes = [entry.partition("://")[0].upper() for entry in entries if "://" in entry]
    is_open = len(schemes) < len(entries) or not all(map(is_known, (*schemes, protocol)))
    return () if is_open or protocol.strip().upper() in schemes else entries
