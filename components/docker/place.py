"""One node's container as plain data: which engine has it, and at which door it can be asked."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from components.docker.inquiry import Door
from earshot.engine import HasEngine, address_of, connect, said
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Node
from earshot.placement import NodeContainer
from earshot.spec.docker import DockerHost

if TYPE_CHECKING:
    import docker


@dataclass(frozen=True)
class Place:
    """Where a node's container is, and how it is asked."""

    node_id: int
    name: str
    """Of the container."""
    network: str
    host: str
    """The Docker host's name, for messages."""
    broker: bool
    voter: bool
    door: Door
    engine: str | None = None
    cert_path: str | None = None

    @classmethod
    def of(cls, plan: ClusterPlan, node: Node, container: NodeContainer, host: DockerHost) -> Self:
        return cls(
            node_id=node.id,
            name=container.name,
            network=container.network,
            host=host.name,
            broker=node.is_broker,
            voter=node.is_controller,
            door=_door(plan, node, container.name),
            engine=host.engine,
            cert_path=host.cert_path,
        )

    @classmethod
    def from_props(cls, props: Mapping[str, Any]) -> Self:
        """Back from a resource's inputs: numbers have become floats, and what is None is gone."""
        door = props["door"]
        opened = Door(door["host"], int(door["port"]), door["plaintext"])
        return cls(**{**props, "node_id": int(props["node_id"]), "door": opened})

    def to_props(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def can_tell(self) -> bool:
        """Whether it can be asked about the cluster."""
        return self.broker and self.door.plaintext

    def __str__(self) -> str:
        return f"container {self.name} on Docker host {self.host}"


def _door(plan: ClusterPlan, node: Node, name: str) -> Door:
    """The node's listener for other brokers if it speaks plaintext, else any that does."""
    if not node.is_broker:  # it may be bound to its own name and nothing else
        (listener, *_) = node.listeners
        return replace(Door.of(listener), host=name)
    own = [item for item in node.listeners if item.name != plan.controller]
    own.sort(key=lambda item: item.name != plan.inter_broker)
    doors = [Door.of(item) for item in own]
    return next((door for door in doors if door.plaintext), doors[0])


class Engines(contextlib.AbstractContextManager["Engines"]):
    """Clients of several engines, each connected when it is first wanted; closed at the end."""

    def __init__(self) -> None:
        self._open: dict[tuple[str | None, str | None], docker.DockerClient] = {}
        self._stack = contextlib.ExitStack()

    def of(self, where: HasEngine) -> docker.DockerClient:
        """Raises EarshotError where no engine answers."""
        key = (where.engine, where.cert_path)
        if key not in self._open:
            self._open[key] = self._stack.enter_context(connect(where))
        return self._open[key]

    def __exit__(self, *details: object) -> None:
        self._stack.close()


def check_engine(where: HasEngine) -> None:
    """Raises EarshotError where it takes no new clients: one that is about to stop still serves
    those that it has, and ends its containers meanwhile."""
    with connect(where):
        pass


def inspected(engines: Engines, place: Place, id: str) -> dict[str, Any]:
    """What the engine says of the container ``id``. Raises EarshotError where it is gone."""
    from docker.errors import DockerException, NotFound

    try:
        found: dict[str, Any] = engines.of(place).api.inspect_container(id)
    except NotFound:
        raise EarshotError(
            str(place),
            observed="is gone; somebody has removed it, its volume is still there",
            remedy="`pulumi up --refresh` makes it anew, as `make up` does",
        ) from None
    except (DockerException, OSError) as reason:
        raise engine_failed(str(place), place, reason) from None
    return found


def engine_failed(what: str, where: HasEngine, reason: Exception) -> EarshotError:
    """What to say of ``what`` when its engine, which answered before, does not any more."""
    return EarshotError(
        what,
        observed=f"its engine at {address_of(where)} fails ({said(reason)})",
        remedy="see that the engine runs, then run the same command again",
    )


def is_up(found: Mapping[str, Any]) -> bool:
    """Running, or about to by its restart policy."""
    return bool(found["State"]["Running"] or found["State"]["Restarting"])


def incarnation(found: Mapping[str, Any]) -> str:
    """Changes when the container was replaced or started anew."""
    return f"{found['Id'][:12]}@{found['State']['StartedAt']}"
