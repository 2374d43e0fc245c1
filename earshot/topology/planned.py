"""The nodes of a plan as brokers in containers, for walks before they run."""

from earshot.listeners.model import ClusterPlan, Node
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.container import Container


def planned_broker(plan: ClusterPlan, node: Node, container: Container) -> Broker:
    """``node`` in ``container``; an unknown host is an unknown advertised address."""
    return Broker(
        service=container.name,
        container=container,
        id=node.id,
        endpoints=tuple(
            Endpoint(
                listener.name,
                listener.bind,
                listener.advertised if listener.known else None,
                listener.name == plan.controller,
                listener.protocol,
            )
            for listener in node.listeners
        ),
        inter_broker=plan.inter_broker,
        cluster="plan",
        is_broker=node.is_broker,
        is_controller=node.is_controller,
    )
