"""What a stack's volumes hold: data of a newer Kafka, and replicas of removed brokers."""

from __future__ import annotations

import base64
import contextlib
import io
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from earshot.config.docker import DockerHost
from earshot.errors import EarshotError
from earshot.placement.node_container import DATA
from earshot.validation.cluster_state import ClusterState
from earshot.validation.wire import ExchangeError
from earshot_pulumi.docker import inner_listener, labels, throwaway
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import (
    Seen,
    SeenContainer,
    SeenVolume,
    WantedStack,
    own_volumes,
    spots,
)
from earshot_pulumi.node_data import feature_level, is_formatted, replicas
from earshot_pulumi.refusals import goes_back, holds_replicas

NEWEST: Final = {"3.9": 21, "4.0": 25, "4.1": 27, "4.2": 29}
"""By release, the newest `metadata.version` that it reads, as a feature level. For other releases,
the version that a volume was made for decides. See `MetadataVersion` in Kafka's server-common."""
_OLDEST: Final = "0.0"
_CUT_SHORT: Final = (tarfile.TarError, EOFError, zlib.error, ValueError)  # base64's own is the last
_SCRIPT: Final = """\
cd "$1" && shift || exit 1
for name in meta.properties bootstrap.checkpoint __cluster_metadata-0; do
    [[ ! -e $name ]] || set -- "$@" "$name"
done
[[ $# == 0 ]] || tar -cz "$@" 2>/dev/null | base64"""


def version_problems(
    engines: Engines, wanted: WantedStack, seen: Seen, before: WantedStack | None
) -> Iterator[str]:
    """Which volumes hold data that the wanted Kafka cannot read.

    A newer Kafka writes data as the older one did, until a user raises its `metadata.version`. So a
    volume is looked into only where the stack's version ``before``, or the one that the volume was
    made for, is newer.
    """
    previous = before.plan.kafka_version if before else _OLDEST
    version = wanted.plan.kafka_version
    planned = spots(wanted.hosts, wanted.containers.values())
    for volume in own_volumes(wanted.stack, planned, seen):
        made_for = volume.labels.get(labels.KAFKA, _OLDEST)
        if not (goes_back(version, made_for) or goes_back(version, previous)):
            continue
        try:
            written, level = _look(engines, wanted, _images(wanted, seen, volume, before), volume)
        except throwaway.NotAsked:
            written, level = True, None
        if written and (why := _refusal(version, made_for, level)):
            yield (
                f"volume {volume.name} on Docker host {volume.host} {why}; a KRaft cluster goes "
                "forward only. Keep the version, or remove the data with "
                f"`data: delete` and `pulumi destroy`"
            )


def _images(
    wanted: WantedStack, seen: Seen, volume: SeenVolume, before: WantedStack | None
) -> Iterator[str]:
    """Images that the engine may have; the wanted one, which comes first, may still be missing."""
    yield wanted.containers[volume.node].image
    yield from (
        it.image for it in seen.containers if it.host == volume.host and wanted.owns(it.labels)
    )
    if before is not None:
        yield from {it.image for it in before.containers.values()}


def _refusal(version: str, made_for: str, level: int | None) -> str | None:
    """Why ``version`` cannot read data of the feature level; None is a level that is not known."""
    claimed = goes_back(version, made_for)
    older = f"was written by Kafka {made_for}, and {version} is older"
    newest = NEWEST.get(".".join(version.split(".")[:2]))
    if level is None or newest is None:
        return older if claimed else None
    if level <= newest:
        return None
    levels = f"its `metadata.version` is {level}, and {version} reads up to {newest}"
    return f"{older} ({levels})" if claimed else f"was upgraded: {levels}"


def _look(
    engines: Engines, wanted: WantedStack, images: Iterable[str], volume: SeenVolume
) -> tuple[bool, int | None]:
    """Whether Kafka has written to a volume, and the feature level found in it. Raises NotAsked."""
    host = next(it for it in wanted.hosts if it.name == volume.host)
    encoded = throwaway.ask_any(
        engines.of(host), images, ["bash", "-c", _SCRIPT, "look", DATA], volumes={volume.name: DATA}
    )
    return read(encoded)


def read(encoded: str) -> tuple[bool, int | None]:
    """Whether the base64 archive ``encoded`` holds data of Kafka, and its feature level."""
    folders: list[Path] = []
    with tempfile.TemporaryDirectory() as folder:
        if encoded:
            folders.append(Path(folder))
            # the archive may end early if a log was written to meanwhile
            with (
                contextlib.suppress(*_CUT_SHORT),
                tarfile.open(fileobj=io.BytesIO(base64.b64decode(encoded))) as archive,
            ):
                archive.extractall(folder, filter="data")
        return is_formatted(folders), feature_level(folders)


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


def removal_problems(
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
