"""Checks on the engines that need the images, before any broker is touched.

They ask whether Kafka itself accepts the settings of every node, and whether the ports to publish
are free. A preview runs them where an engine has its image already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import without_references
from earshot.listeners.render import server_properties
from earshot_pulumi.docker import broker_settings, host_ports, on_engines
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import Seen, WantedStack
from earshot_pulumi.docker.throwaway import NotAsked
from earshot_pulumi.provider.internal import CheckedKind, InternalResource
from earshot_pulumi.provider.kind import Operation, Properties, Unknown
from earshot_pulumi.refusals import refused_settings

AT_ONCE: Final = 8
"""Engines asked at the same time."""


class DockerPreflightKind(CheckedKind):
    """Asks the engines.

    Inputs beside those of `WantedStack`: `images`, their ids by the index of their host, and
    `last`, the plan at the end of a change where `plan` is a step before.
    """

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> list[str]:
        if not on_engines.can_be_asked(news):
            return []
        wanted = WantedStack.from_props(news)
        before = _settings(olds) if olds else {}
        changed = {id: it for id, it in _settings(news).items() if before.get(id) != it}
        last = _settings(news, "last") if news.get("last") else {}
        used = sorted({it.host for it in wanted.containers.values()})
        with Engines() as engines, ThreadPoolExecutor(AT_ONCE) as pool:
            seen = on_engines.look(engines, [wanted.hosts[index] for index in used])
            asked = [
                _Asked(engines, wanted, index, news["images"][str(index)], operation.log)
                for index in used
            ]
            taken = list(pool.map(lambda host: list(host.taken_ports(seen)), asked))
            refused = list(pool.map(lambda host: host.refusals(changed), asked))
            # or the change would end half-way
            refused += pool.map(lambda host: host.refusals(last), asked)
        messages = {id: text for found in refused for id, text in found.items()}
        listed = [text for found in taken for text in found]
        return listed + list(refused_settings(wanted.plan.kafka_version, messages))


class DockerPreflight(InternalResource):
    """What must hold before a broker is touched, and takes the image to find out."""


def _settings(props: Properties, key: str = "plan") -> dict[int, tuple[str, str]]:
    """By id of each node of the plan at ``key``, its properties and the id of its image."""
    containers = WantedStack.from_props(props).containers
    plan = ClusterPlan.model_validate(props[key])
    return {
        node.id: (server_properties(plan, node), props["images"][str(containers[node.id].host)])
        for node in plan.nodes
        if node.id in containers  # a node that comes with a later step has no container yet
    }


class _Asked:
    """A Docker host, and its problems with the plan."""

    def __init__(
        self,
        engines: Engines,
        wanted: WantedStack,
        index: int,
        image: str | Unknown,
        say: Callable[[str], None],
    ) -> None:
        self._wanted, self._index, self._say = wanted, index, say
        self._host = wanted.hosts[index]
        self._client = engines.of(self._host)
        self._image = None if isinstance(image, Unknown) else image

    def taken_ports(self, seen: Seen) -> Iterator[str]:
        running = {it.name: it.ports for it in seen.containers if it.host == self._host.name}
        published = [port for ports in running.values() for port in ports]
        wanted = {
            port: id
            for id, container in self._wanted.containers.items()
            for port in container.ports
            if container.host == self._index
            and port.host_port
            and port not in running.get(container.name, ())  # else it publishes it now
        }
        if not wanted:
            return
        try:
            holders = host_ports.holders(
                self._client, self._host, self._image, list(wanted), published
            )
        except NotAsked as reason:
            if self._image is not None:
                self._say(f"Docker host {self._host.name}: ports not looked at: {reason.observed}")
            return  # in a preview without the image: the update looks
        for port, holder in holders.items():
            yield (
                f"port {port.host_port} of Docker host {self._host.name}, for node "
                f"{wanted[port]}, is taken by {holder}, which is no container. Free the port, or "
                "choose another `port` (or `published`) for the listener"
            )

    def refusals(self, changed: Mapping[int, tuple[str, str]]) -> dict[int, str]:
        texts = {
            id: without_references(text)
            for id, (text, _) in changed.items()
            if self._wanted.containers[id].host == self._index
        }
        if self._image is None or not texts:
            return {}  # in a preview without the image: the update asks
        try:
            return broker_settings.refusals(self._client, self._image, texts)
        except NotAsked as reason:
            self._say(
                f"Docker host {self._host.name}: Kafka has not read the settings beforehand: "
                f"{reason.observed}"
            )
            return {}
