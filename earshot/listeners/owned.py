"""Broker properties that earshot computes, each with the key of the spec that governs it."""

from __future__ import annotations

_LISTENERS = "set it through `listeners`"
_QUORUM = "set it through `controllers`"
_REPLICAS = "set it through `replication_factor` and `min_insync_replicas`"
_PLACEMENT = "the placement decides where data lies"

OWNED: dict[str, str] = {
    "process.roles": _QUORUM,
    "node.id": "ids follow `brokers`",
    "broker.id": "ids follow `brokers`",
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
