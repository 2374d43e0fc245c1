"""Which brokers would be removed that still hold replicas, according to the engines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from earshot.config.docker import DockerHost
from earshot.errors import EarshotError
from earshot.placement.node_container import DATA
from earshot.validation.cluster_state import ClusterState
from earshot.validation.wire import ExchangeError
from earshot_pulumi.docker import inner_listener, labels, throwaway
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import Seen, SeenContainer, SeenVolume, WantedStack
from earshot_pulumi.node_data import replicas
from earshot_pulumi.refusals import holds_replicas


def removed(wanted: WantedStack, seen: Seen) -> dict[int, list[SeenContainer | SeenVolume]]:
    """Brokers that ``wanted`` no longer has, with their containers and volumes on the engines."""
    staying = {node.id for node in wanted.plan.brokers}
    found: dict[int, list[SeenContainer | SeenVolume]] = {}
    for container in seen.containers:
        if wanted.owns(container.labels) and _was_broker(container.labels):
            found.setdefault(container.node, []).append(container)
    for volume in seen.volumes:
        if volume.labels.get(labels.STACK) == wanted.stack and _was_broker(volume.labels):
            found.setdefault(volume.node, []).append(volume)
    return {id: left for id, left in sorted(found.items()) if id not in staying}


def problems(
    engines: Engines, wanted: WantedStack, seen: Seen, hosts: Sequence[DockerHost]
) -> Iterator[str]:
    """Which brokers would be removed that still hold replicas; ``hosts`` are old and new ones.

    A broker that runs knows; where none does, the removed broker's volume is listed.
    """
    gone = removed(wanted, seen)
    if not gone:
        return
    known = _state(engines, wanted, seen)
    for id, left in gone.items():
        try:
            if known is not None:
                held = [str(it) for it in known.partitions if id in it.replicas]
            else:
                held = _on_disk(engines, left, hosts, wanted)
        except EarshotError as error:
            yield f"broker {id} would be removed, and whether it is empty is not known: {error}"
            continue
        if held:
            yield holds_replicas(id, held)


def _state(engines: Engines, wanted: WantedStack, seen: Seen) -> ClusterState | None:
    """What a broker that stays and runs knows of the cluster; None where none answers."""
    running = {it.node: it for it in seen.containers if wanted.owns(it.labels) and it.running}
    for node in wanted.plan.brokers:
        address = wanted.address_of(node.id)
        if node.id in running and address.can_be_asked:
            with contextlib.suppress(ExchangeError, EarshotError):
                client = engines.of(address)
                return inner_listener.state(client, running[node.id].id, address.endpoint)
    return None


def _on_disk(
    engines: Engines,
    left: Sequence[SeenContainer | SeenVolume],
    hosts: Sequence[DockerHost],
    wanted: WantedStack,
) -> list[str]:
    """The `topic-partition` replicas in the volumes of a removed broker."""
    volumes = [item for item in left if isinstance(item, SeenVolume)]
    image = next(iter(wanted.containers.values())).image
    found: set[str] = set()
    for volume in volumes:
        host = next(it for it in hosts if it.name == volume.host)
        # the engine may not have the wanted one yet
        images = [image, *(it.image for it in left if isinstance(it, SeenContainer))]
        command = ["ls", "-1", DATA]
        try:
            client = engines.of(host)
            listing = throwaway.ask_any(client, images, command, volumes={volume.name: DATA})
        except throwaway.NotAsked as reason:
            raise EarshotError(
                f"volume {volume.name} on Docker host {host.name}",
                observed=f"cannot be looked into: {reason.observed}",
                remedy=f"see that the engine has the image {image}, or remove the volume if "
                "it is no longer needed",
            ) from None
        found |= set(replicas(listing.split()))
    return sorted(found)


def _was_broker(found: Mapping[str, str]) -> bool:
    return "broker" in found.get(labels.ROLES, "").split(",")
