"""Plans of placement `aws`, as its tests need them."""

from collections.abc import Sequence

from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import Role, Scope

INTERNAL, EXTERNAL, CONTROLLER = Scope.INTERNAL, Scope.EXTERNAL, Scope.CONTROLLER
BOTH = (Role.BROKER, Role.CONTROLLER)
Wanted = Sequence[tuple[str, int, tuple[Scope, ...]]]
"""Name, port and scopes of each listener."""
TWO_LISTENERS: Wanted = (("INTERNAL", 19092, (INTERNAL,)), ("EXTERNAL", 9092, (EXTERNAL,)))
"""The internal and the external scope on a listener each."""
ONE_LISTENER: Wanted = (("PLAINTEXT", 9092, (INTERNAL, EXTERNAL)),)
"""Both scopes on one listener that advertises the external name."""


def node(id: int, listeners: Wanted = TWO_LISTENERS, roles: tuple[Role, ...] = BOTH) -> Node:
    listener_settings = list(listeners) if Role.BROKER in roles else []
    if Role.CONTROLLER in roles:
        listener_settings.append(("CONTROLLER", 29092, (CONTROLLER,)))
    return Node(
        id=id,
        roles=roles,
        listeners=tuple(
            Listener(name=name, scopes=scopes, bind_port=port, host=f"10.0.0.{id % 250}", port=port)
            for name, port, scopes in listener_settings
        ),
    )


def plan(*nodes: Node) -> ClusterPlan:
    return ClusterPlan(
        kafka_version="4.1.1",
        inter_broker=nodes[0].listeners[0].name,
        controller="CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=nodes,
    )
