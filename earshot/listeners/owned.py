"""Broker properties: which ones earshot computes, and what a free one may look like."""

import re
from collections.abc import Mapping

from earshot.listeners.problems import shown

_KEY = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)

_LISTENERS = "set it through `listeners`"
_QUORUM = "set it through `controllers`"
_REPLICAS = "set it through `replication_factor` and `min_insync_replicas`"
_PLACEMENT = "the placement decides where data lies"
_RACK = "placement aws takes the availability zone; others have no racks"

OWNED: dict[str, str] = {
    "process.roles": _QUORUM,
    "node.id": "ids follow `brokers`",
    "broker.id": "ids follow `brokers`",
    "broker.rack": _RACK,
    "listeners": _LISTENERS,
    "advertised.listeners": _LISTENERS,
    "listener.security.protocol.map": _LISTENERS,
    "inter.broker.listener.name": "set it through `inter_broker`",
    "security.inter.broker.protocol": "set it through `inter_broker`",
    "early.start.listeners": _LISTENERS,
    "port": _LISTENERS,
    "host.name": _LISTENERS,
    "advertised.port": _LISTENERS,
    "advertised.host.name": _LISTENERS,
    "control.plane.listener.name": "KRaft has no control-plane listener",
    "zookeeper.connect": "earshot runs KRaft only",
    "zookeeper.metadata.migration.enable": "earshot runs KRaft only",
    "controller.listener.names": _QUORUM,
    "controller.quorum.voters": _QUORUM,
    "controller.quorum.bootstrap.servers": _QUORUM,
    "controller.quorum.auto.join.enable": _QUORUM,
    "log.dir": _PLACEMENT,
    "log.dirs": _PLACEMENT,
    "metadata.log.dir": _PLACEMENT,
    "default.replication.factor": _REPLICAS,
    "min.insync.replicas": _REPLICAS,
    "offsets.topic.replication.factor": _REPLICAS,
    "transaction.state.log.replication.factor": _REPLICAS,
    "transaction.state.log.min.isr": _REPLICAS,
    "share.coordinator.state.topic.replication.factor": _REPLICAS,
    "share.coordinator.state.topic.min.isr": _REPLICAS,
}


def owner_of(key: str) -> str:
    """How to set ``key`` instead, or an empty text where it is free to set."""
    return OWNED.get(key.strip().lower(), "")


def check_property(key: object, value: object) -> str:
    """``value`` as the text of the free broker property ``key``.

    Raises ValueError, which does not repeat the value: it may be a secret.
    What passes reads back alike from a properties file; `write_environment` takes less.
    """
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ValueError(
            f"{shown(key)} is no property name; allowed: letters, digits, dots, hyphens and "
            "underscores"
        )
    if owner := owner_of(key):
        raise ValueError(f"{key} is computed by earshot; {owner}")
    if isinstance(value, bool):
        value = str(value).lower()
    if not isinstance(value, (str, int, float)):
        raise ValueError(f"{key}: found {_kind(value)}; allowed: one line of text, or a number")
    text = str(value)
    hidden = next((char for char in text if not char.isprintable()), "")
    if hidden or text != text.strip():
        observed = f"the character {hidden!a}" if hidden else "an outer blank"
        raise ValueError(
            f"{key}: found {observed}; allowed: printable text without line breaks and outer "
            "blanks, which Kafka cuts off"
        )
    return text


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a map"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"
