"""From a plan to Kafka's settings: per node, as `server.properties` or `KAFKA_*` variables.

The complete set is always written, never a delta: one lone `KAFKA_` variable makes the
`apache/kafka` image drop all of its defaults (KAFKA-17953).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.properties import (
    NodeSettings,
    property_of,
    property_of_3,
    write_environment,
    write_properties,
)
from earshot.listeners.security import security_settings

if TYPE_CHECKING:
    from earshot.listeners.model import ClusterPlan, Listener, Node


def server_properties(plan: ClusterPlan, node: Node) -> str:
    """The text of `server.properties` for ``node``."""
    return write_properties(annotated(plan, node))


def environment(plan: ClusterPlan, node: Node) -> dict[str, str]:
    """The `KAFKA_*` variables of ``node``, as the `apache/kafka` image maps them.

    That image and cp-kafka refuse to start a controller alone that is given
    `KAFKA_ADVERTISED_LISTENERS`, although Kafka takes it. Such a node binds the very address that
    the voters name, which Kafka then advertises by itself. Raises EarshotError where that address
    has another port than the listener, and for an `extra` key that no variable can set.
    """
    settings = annotated(plan, node)
    values = dict(settings.values)
    if not node.is_broker:
        del values["advertised.listeners"]
        values["listeners"] = ",".join(
            f"{listener.name}://{_own_address(node, listener)}" for listener in node.listeners
        )
    property_of_variable = property_of_3 if plan.kafka_version.startswith("3.") else property_of
    return write_environment(NodeSettings(values, settings.notes), property_of_variable)


def annotated(plan: ClusterPlan, node: Node) -> NodeSettings:
    """The settings of ``node``, with what earshot must know to read them back."""
    return NodeSettings(settings(plan, node), notes(plan, node))


def settings(plan: ClusterPlan, node: Node) -> dict[str, str]:
    """The broker properties of ``node``, in a stable order."""
    protocols = {listener.name: listener.protocol for listener in node.listeners}
    # a broker-only node needs the controller's entry in the map too, or Kafka refuses to start
    protocols.setdefault(plan.controller, plan.controller_protocol)
    values = {
        "process.roles": ",".join(node.roles),
        "node.id": str(node.id),
        "listeners": ",".join(f"{listener.name}://{listener.bind}" for listener in node.listeners),
        # Kafka 3.9 and later lets a controller advertise, and requires it: see rule KL002, C10
        "advertised.listeners": ",".join(
            f"{listener.name}://{listener.advertised}" for listener in node.listeners
        ),
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
        "controller.listener.names": plan.controller,
        "controller.quorum.voters": voters(plan),
    }
    if node.is_broker:
        values["inter.broker.listener.name"] = plan.inter_broker
        if node.rack:
            values["broker.rack"] = node.rack
    values["log.dirs"] = node.log_dir
    values |= _replication(plan)
    values |= security_settings(plan, node)
    values |= dict(plan.extra)
    return values


def _own_address(node: Node, listener: Listener) -> Address:
    if listener.port != listener.bind_port:
        raise EarshotError(
            f"controller {node.id}, listener {listener.name}",
            observed=f"listens on port {listener.bind_port}, and the voters name {listener.port}",
            allowed="one and the same port: by variables alone an image advertises no other",
            remedy="let the brokers be controllers too (`controllers.mode: combined`)",
        )
    return listener.advertised


def voters(plan: ClusterPlan) -> str:
    """`controller.quorum.voters`: exactly what the controllers advertise, so both always agree."""
    return ",".join(
        f"{node.id}@{listener.advertised}"
        for node in plan.controllers
        if (listener := node.listener(plan.controller)) is not None
    )


def notes(plan: ClusterPlan, node: Node) -> dict[str, str]:
    """What earshot must know to read a node back and Kafka has no setting for."""
    scopes = ",".join(f"{listener.name}:{'+'.join(listener.scopes)}" for listener in node.listeners)
    return {"kafka_version": plan.kafka_version, "scopes": scopes}


def _replication(plan: ClusterPlan) -> dict[str, str]:
    replicas, insync = str(plan.replication_factor), str(plan.min_insync_replicas)
    values = {
        "default.replication.factor": replicas,
        "min.insync.replicas": insync,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": insync,
    }
    if not plan.kafka_version.startswith("3."):
        values["share.coordinator.state.topic.replication.factor"] = replicas
        values["share.coordinator.state.topic.min.isr"] = insync
    return values
