"""One node's container as plain data: its engine, and how to send requests to its broker."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Self

import docker
from docker.errors import DockerException, NotFound
from pydantic import Field

from earshot.config.docker_host import DockerHost
from earshot.engine.connection import (
    UNREADABLE,
    DockerObject,
    HasEngine,
    address_of,
    another_form,
    connect,
    root_cause,
)
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.security import node_name
from earshot.placement.node_container import NodeContainer
from earshot.validation.failure import Failure
from earshot.validation.wire import ExchangeError
from earshot_pulumi.docker import inner_listener
from earshot_pulumi.docker.inner_listener import InnerListener, NodeKeys
from earshot_pulumi.driver import DisturbedNode
from earshot_pulumi.provider.kind import Properties

_DESCRIPTION: Final[Mapping[str, type | tuple[type, ...]]] = {
    "Id": str,
    "Name": str,
    "RestartCount": int,
    "State.Status": str,
    "State.Running": bool,
    "State.Paused": bool,
    "State.Restarting": bool,
    "State.ExitCode": int,
    "State.Error": str,
    "State.StartedAt": str,
    "State.FinishedAt": str,
    "Config.Labels": (dict, type(None)),
    "Config.Env": (list, type(None)),
    "HostConfig": dict,
    "NetworkSettings.Networks": (dict, type(None)),
}
"""The values of a container's description that earshot reads, with their types."""


@dataclass(frozen=True)
class ContainerAddress:
    """A node's container, and the listeners that requests to its broker use."""

    node_id: int
    name: str
    """The container's name."""
    network: str
    host: str
    """The Docker host's name, for messages."""
    broker: bool
    voter: bool
    endpoint: Annotated[InnerListener, Field(alias="door")]  # the key in states of release 0.1.0
    engine: str | None = None
    cert_path: str | None = None
    clients: tuple[InnerListener, ...] = ()
    """A broker's listeners for clients: all except the controller's and the inter-broker one."""

    @classmethod
    def of(
        cls,
        plan: ClusterPlan,
        node: Node,
        container: NodeContainer,
        host: DockerHost,
        root: Path | None = None,
    ) -> Self:
        """``root`` is the folder with the keys of a secured cluster."""
        return cls(
            node_id=node.id,
            name=container.name,
            network=container.network,
            host=host.name,
            broker=node.is_broker,
            voter=node.is_controller,
            endpoint=_endpoint(plan, node, container.name, root),
            engine=host.engine,
            cert_path=host.cert_path,
            clients=tuple(
                _inner(plan, node, listener, root)
                for listener in node.listeners
                if node.is_broker and listener.name not in (plan.controller, plan.inter_broker)
            ),
        )

    @property
    def can_be_asked(self) -> bool:
        """True if the node is a broker that answers requests about the cluster."""
        return self.broker and self.endpoint.answers

    def __str__(self) -> str:
        return f"container {self.name} on Docker host {self.host}"


def _endpoint(plan: ClusterPlan, node: Node, name: str, root: Path | None) -> InnerListener:
    """The inter-broker listener if requests can use it, else any such listener, else the first."""
    if not node.is_broker:  # it may be bound to the container's name only
        (listener, *_) = node.listeners
        return replace(InnerListener.of(listener), host=name)
    listeners = [listener for listener in node.listeners if listener.name != plan.controller]
    listeners.sort(key=lambda listener: listener.name != plan.inter_broker)
    endpoints = [_inner(plan, node, listener, root) for listener in listeners]
    return next((endpoint for endpoint in endpoints if endpoint.answers), endpoints[0])


def _inner(plan: ClusterPlan, node: Node, listener: Listener, root: Path | None) -> InnerListener:
    security = plan.security
    if security is None or root is None:
        return InnerListener.of(listener)
    keys = NodeKeys(str(root), node_name(node.id), listener.advertised.host)
    return InnerListener.of(listener, keys, security.mechanisms(listener))


class Engines(contextlib.ExitStack):
    """Docker clients of several engines; each connects at its first use."""

    def __init__(self) -> None:
        super().__init__()
        self._clients: dict[tuple[str | None, str | None], docker.DockerClient] = {}

    def of(self, host: HasEngine) -> docker.DockerClient:
        """The client of an engine. Raises EarshotError if it does not answer."""
        key = (host.engine, host.cert_path)
        if key not in self._clients:
            self._clients[key] = self.enter_context(connect(host))
        return self._clients[key]

    def inspect(self, subject: str, host: HasEngine, id: str) -> DockerObject | None:
        """The engine's description of the container ``id``, or None if there is none.

        Raises EarshotError about ``subject`` if the engine fails.
        """
        with asking(subject, host):
            try:
                return _description(self.of(host).api.inspect_container(id))
            except NotFound:
                return None

    def seconds_up(self, subject: str, host: HasEngine, container: DockerObject) -> float:
        """Seconds for which an inspected container has run, by the clock of its engine.

        Raises EarshotError about ``subject`` if the engine fails.
        """
        with asking(subject, host):
            clock = datetime.fromisoformat(self.of(host).api.info()["SystemTime"])
            since = datetime.fromisoformat(container["State"]["StartedAt"])
            return (clock - since).total_seconds()


def failure(
    engines: Engines, address: ContainerAddress, container: str, listener: InnerListener
) -> Failure | None:
    """Why ``listener`` of the broker in ``container`` does not serve clients; None if it does."""
    try:
        client = engines.of(address)
        if listener.answers:
            inner_listener.state(client, container, listener)
        elif listener.keys is not None:
            inner_listener.log_in(client, container, listener)
        else:
            inner_listener.check_health(client, container, listener)
    except ExchangeError as error:
        return error.failure
    except EarshotError as error:
        return Failure("engine", error.line)
    return None


def check_engine(host: HasEngine) -> None:
    """Raises EarshotError if the engine accepts no new connection.

    An engine that is stopping ends its containers, but still serves its existing connections.
    """
    with connect(host):
        pass


def inspected(engines: Engines, address: ContainerAddress, id: str) -> DockerObject:
    """The engine's description of the container ``id``. Raises EarshotError if it was removed."""
    container = engines.inspect(str(address), address, id)
    if container is None:
        raise DisturbedNode(
            str(address),
            observed="was removed by hand; its volume still exists",
            remedy="`pulumi up --refresh` creates it again",
        )
    return container


@contextlib.contextmanager
def asking(subject: str, host: HasEngine) -> Iterator[None]:
    """Turns failures of an engine, and answers of another form, into an EarshotError about
    ``subject``."""
    try:
        yield
    except (DockerException, OSError) as reason:
        raise EarshotError(
            subject,
            observed=f"its engine at {address_of(host)} fails ({root_cause(reason)})",
            remedy="check that the engine runs, then run the same command again",
        ) from None
    except UNREADABLE as reason:
        raise EarshotError(
            subject,
            observed=f"its engine at {address_of(host)} {another_form(reason)}",
            remedy="check that a Docker engine listens there, then run the same command again",
        ) from None


def _description(container: Any) -> DockerObject:
    """The description ``container``, if it has the form of Docker's.

    Raises one of `UNREADABLE`.
    """
    for key, kinds in _DESCRIPTION.items():
        value = container
        for part in key.split("."):
            value = value[part]
        if not isinstance(value, kinds):
            raise TypeError(f"{key} is of type {type(value).__name__}")
    for moment in ("StartedAt", "FinishedAt"):
        datetime.fromisoformat(container["State"][moment])
    settings: Properties = container["NetworkSettings"]
    networks = settings["Networks"] or {}
    if not all(isinstance(network, dict) for network in networks.values()):
        raise TypeError("a network is no object")
    return {**container, "NetworkSettings": {**settings, "Networks": networks}}


def is_up(container: DockerObject) -> bool:
    """True if an inspected container runs, or its engine is about to restart it."""
    return bool(container["State"]["Running"] or container["State"]["Restarting"])


def runs(engines: Engines, address: ContainerAddress) -> bool:
    """True if the container at ``address`` runs; False also if its engine does not answer."""
    try:
        return is_up(inspected(engines, address, address.name))
    except EarshotError:
        return False


def incarnation(container: DockerObject) -> str:
    """An id that changes when the container is replaced or restarted."""
    return f"{container['Id'][:12]}@{container['State']['StartedAt']}"
