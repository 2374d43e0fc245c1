"""Plans and boots for the tests of user data."""

from typing import Any

from earshot.config.aws_sections import KafkaRelease
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import Protocol, Role, Scope
from earshot.user_data.boot import Boot, System

CLUSTER_ID = "ZWFyc2hvdC10ZXN0cy1ydQ"
BOTH = (Role.BROKER, Role.CONTROLLER)
PORTS = {"INTERNAL": 19092, "EXTERNAL": 9092, "CONTROLLER": 29092}


def node(
    id: int = 1,
    roles: tuple[Role, ...] = BOTH,
    host: str = "",
    protocol: Protocol = Protocol.PLAINTEXT,
) -> Node:
    names = ["INTERNAL", "EXTERNAL"] if Role.BROKER in roles else []
    names += ["CONTROLLER"] if Role.CONTROLLER in roles else []
    listeners = tuple(
        Listener(
            name=name,
            protocol=protocol,
            scopes=(Scope(name.lower()),),
            bind_port=PORTS[name],
            host=host or f"broker-{id}.kafka.example.com",
            port=PORTS[name],
        )
        for name in names
    )
    return Node(id=id, roles=roles, listeners=listeners)


def cluster(*nodes: Node, kafka_version: str = "4.1.1", **extra: str) -> ClusterPlan:
    return ClusterPlan(
        kafka_version=kafka_version,
        inter_broker="INTERNAL",
        controller="CONTROLLER",
        controller_protocol=nodes[0].listeners[0].protocol,
        replication_factor=1,
        min_insync_replicas=1,
        extra=tuple(extra.items()),
        nodes=nodes,
    )


def boot(**changes: Any) -> Boot:
    values: dict[str, Any] = {
        "system": System.DEBIAN,
        "archive": KafkaRelease(
            url="https://mirror.example/kafka_2.13-4.1.1.tgz", sha512="0a" * 64
        ),
        "volume": "vol-0123456789abcdef0",
        "cluster_id": CLUSTER_ID,
        "report": ("report-it", "--value"),
    }
    return Boot(**values | changes)
