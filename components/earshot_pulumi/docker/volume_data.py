"""Checks the data in a stack's volumes: is it of a newer Kafka, has a removed broker replicas, and
of which cluster is it.

The cluster id of a stack is generated once, then kept in the stack's state. Data outlives a stack.
A new stack takes over the id of kept data if this checkout has recorded it or the stack's file
names it. The stack's name is not enough: another deployment may use it too.
"""

import base64
import contextlib
import io
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from earshot.config.docker_host import DockerHost
from earshot.errors import EarshotError
from earshot.files import cache
from earshot.listeners.cluster_id import new_cluster_id, of_stack_name
from earshot.placement.node_container import DATA
from earshot.validation.cluster_state import ClusterState
from earshot.validation.wire import ExchangeError
from earshot_pulumi.docker import inner_listener, labels, throwaway
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.engine_objects import (
    EngineContainer,
    EngineObjects,
    EngineVolume,
    TargetStack,
    another_clusters_data,
    held_by_cluster,
    own_volumes,
)
from earshot_pulumi.node_data import feature_level, is_formatted, replicas
from earshot_pulumi.refusals import NO_WAY_BACK, goes_back, holds_replicas, leaves_data

NEWEST: Final = {"3.9": 21, "4.0": 25, "4.1": 27, "4.2": 29}
"""The newest `metadata.version` that a Kafka release reads, as a feature level, by release.

For other releases, the version for which a volume was created decides. See `MetadataVersion` in
Kafka's server-common.
"""
MAX_EXTRACTED: Final = 2 * 2**30
"""The maximum size in bytes of the files that are read from a volume; the rest is left out."""
_OLDEST: Final = "0.0"
_ODD: Final = (
    ArithmeticError,
    EOFError,
    LookupError,
    OSError,
    ValueError,
    tarfile.TarError,
    zlib.error,
)
"""Errors of an archive that is cut short, because Kafka wrote to a log, or has impossible files."""
_SCRIPT: Final = """\
cd "$1" && shift || exit 1
for name in meta.properties bootstrap.checkpoint __cluster_metadata-0; do
    [[ ! -e $name ]] || set -- "$@" "$name"
done
[[ $# == 0 ]] || tar -cz "$@" 2>/dev/null | base64"""


def version_problems(
    engines: Engines, target: TargetStack, objects: EngineObjects, former_stack: TargetStack | None
) -> Iterator[str]:
    """A message for each volume with data that the Kafka of ``target`` cannot read.

    A newer Kafka writes data like the older one until a user raises its `metadata.version`. So a
    volume is read only if the version of ``former_stack`` is newer, or the version for which the
    volume was created.
    """
    former_version = former_stack.plan.kafka_version if former_stack else _OLDEST
    version = target.plan.kafka_version
    for volume in own_volumes(target, objects):
        volume_version = volume.labels.get(labels.KAFKA, _OLDEST)
        if not (goes_back(version, volume_version) or goes_back(version, former_version)):
            continue
        try:
            has_data, level = _look(
                engines, target, _images(target, objects, volume, former_stack), volume
            )
        except throwaway.CommandFailed:
            has_data, level = True, None
        if has_data and (reason := _refusal(version, volume_version, level)):
            yield f"volume {volume.name} on Docker host {volume.host} {reason}; {NO_WAY_BACK}"


def _images(
    target: TargetStack,
    objects: EngineObjects,
    volume: EngineVolume,
    former_stack: TargetStack | None,
) -> Iterator[str]:
    """Images that the engine may have. The first is the target's, which may be missing."""
    yield target.containers[volume.node].image
    yield from (
        container.image
        for container in objects.containers
        if container.host == volume.host and target.owns(container.labels)
    )
    if former_stack is not None:
        yield from {container.image for container in former_stack.containers.values()}


def _refusal(version: str, volume_version: str, level: int | None) -> str | None:
    """Why Kafka ``version`` cannot read data of feature level ``level`` (None: unknown).

    None if it can. The volume was created for Kafka ``volume_version``.
    """
    is_older = goes_back(version, volume_version)
    older_text = f"was written by Kafka {volume_version}, and {version} is older"
    newest = NEWEST.get(".".join(version.split(".")[:2]))
    if level is None or newest is None:
        return older_text if is_older else None
    if level <= newest:
        return None
    levels = f"its `metadata.version` is {level}, and {version} reads up to {newest}"
    return f"{older_text} ({levels})" if is_older else f"was upgraded: {levels}"


def _look(
    engines: Engines, target: TargetStack, images: Iterable[str], volume: EngineVolume
) -> tuple[bool, int | None]:
    """True if Kafka has written to a volume, and the feature level in it. Raises CommandFailed."""
    host = next(candidate for candidate in target.hosts if candidate.name == volume.host)
    encoded = throwaway.ask_any(
        engines.of(host), images, ["bash", "-c", _SCRIPT, "look", DATA], volumes={volume.name: DATA}
    )
    return read(encoded)


def read(encoded: str) -> tuple[bool, int | None]:
    """True if the base64 archive ``encoded`` has data of Kafka, and its feature level."""
    folders: list[Path] = []
    with tempfile.TemporaryDirectory() as folder:
        if encoded:
            folders.append(Path(folder))
            with (
                contextlib.suppress(*_ODD),
                tarfile.open(fileobj=io.BytesIO(base64.b64decode(encoded))) as archive,
            ):
                archive.extractall(folder, _within_limit(archive), filter="data")
        return is_formatted(folders), feature_level(folders)


def _within_limit(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members of ``archive`` up to `MAX_EXTRACTED`."""
    extracted = 0
    for member in archive:
        extracted += member.size
        if extracted > MAX_EXTRACTED:
            return
        yield member


def removed(
    target: TargetStack, objects: EngineObjects
) -> dict[int, list[EngineContainer | EngineVolume]]:
    """Containers and volumes of brokers that ``target`` no longer has, by node id."""
    planned_ids = {node.id for node in target.plan.brokers}
    objects_by_node: dict[int, list[EngineContainer | EngineVolume]] = {}
    for container in objects.containers:
        if target.owns(container.labels) and _was_broker(container.labels):
            objects_by_node.setdefault(container.node, []).append(container)
    for volume in objects.volumes:
        if volume.labels.get(labels.STACK) == target.stack and _was_broker(volume.labels):
            objects_by_node.setdefault(volume.node, []).append(volume)
    return {
        id: node_objects
        for id, node_objects in sorted(objects_by_node.items())
        if id not in planned_ids
    }


def moved(
    target: TargetStack, objects: EngineObjects, cluster_id: str | None
) -> dict[int, list[EngineContainer | EngineVolume]]:
    """Volumes with data of cluster ``cluster_id`` whose nodes would get other volumes, by node id.

    A container of another name, or on another Docker host, has another volume.
    """
    volumes_by_node: dict[int, list[EngineContainer | EngineVolume]] = {}
    for id, planned in target.containers.items():
        volumes = {
            (volume.host, volume.name): volume
            for volume in objects.volumes
            if volume.labels.get(labels.STACK) == target.stack
            and (volume.node, labels.cluster_id_of(volume.labels)) == (id, cluster_id)
        }
        names = {
            (container.host, container.name)
            for container in objects.containers
            if target.owns(container.labels) and container.node == id
        }
        host = target.host_of(id)
        has_volume = volumes.pop((host, planned.volume), None) is not None
        stays = (host, planned.name) in names if names else has_volume
        if volumes and not stays:
            volumes_by_node[id] = list(volumes.values())
    return volumes_by_node


def data_problems(
    engines: Engines,
    target: TargetStack,
    objects: EngineObjects,
    hosts: Sequence[DockerHost],
    cluster_id: str | None,
) -> Iterator[str]:
    """A message for each node that would leave data of cluster ``cluster_id`` behind: it is
    removed, or gets another volume.

    ``hosts`` are the stack's former and new ones. The replicas are those that a running broker
    reports, or else those in the volume.
    """
    removed_objects, moved_volumes = removed(target, objects), moved(target, objects, cluster_id)
    if not (removed_objects or moved_volumes):
        return
    is_running = any(target.owns(node.labels) and node.running for node in objects.containers)
    state = _state(engines, target, objects)
    for id, node_objects in (removed_objects | moved_volumes).items():
        volume_texts = [
            f"{volume.name} on Docker host {volume.host}" for volume in moved_volumes.get(id, ())
        ]
        if volume_texts and target.plan.node(id).is_controller:
            if (
                not is_running
            ):  # `engine_objects.problems` refuses other addresses of running voters
                yield leaves_data(id, volume_texts, ())
            continue
        try:
            if state is not None:
                partitions = [
                    str(partition) for partition in state.partitions if id in partition.replicas
                ]
            else:
                partitions = _replicas_in_volumes(engines, node_objects, hosts, target)
        except EarshotError as error:
            end = "get another volume" if volume_texts else "be removed"
            yield f"broker {id} would {end}, and whether it is empty is not known: {error}"
            continue
        if partitions:
            yield (
                leaves_data(id, volume_texts, partitions)
                if volume_texts
                else holds_replicas(id, partitions)
            )


def _state(engines: Engines, target: TargetStack, objects: EngineObjects) -> ClusterState | None:
    """The cluster's state as a running broker that stays reports it; None if none answers."""
    running = {
        container.node: container
        for container in objects.containers
        if target.owns(container.labels) and container.running
    }
    for node in target.plan.brokers:
        address = target.address_of(node.id)
        if node.id in running and address.can_be_asked:
            with contextlib.suppress(ExchangeError, EarshotError):
                client = engines.of(address)
                return inner_listener.state(client, running[node.id].id, address.endpoint)
    return None


def _replicas_in_volumes(
    engines: Engines,
    broker_objects: Sequence[EngineContainer | EngineVolume],
    hosts: Sequence[DockerHost],
    target: TargetStack,
) -> list[str]:
    """The `topic-partition` replicas in the volumes of a broker."""
    volumes = [entry for entry in broker_objects if isinstance(entry, EngineVolume)]
    image = next(iter(target.containers.values())).image
    partitions: set[str] = set()
    for volume in volumes:
        host = next(candidate for candidate in hosts if candidate.name == volume.host)
        # the engine may not have the target's image yet
        images = [
            image,
            *(entry.image for entry in broker_objects if isinstance(entry, EngineContainer)),
        ]
        command = ["ls", "-1", DATA]
        try:
            client = engines.of(host)
            listing = throwaway.ask_any(client, images, command, volumes={volume.name: DATA})
        except throwaway.CommandFailed as reason:
            raise EarshotError(
                f"volume {volume.name} on Docker host {host.name}",
                observed=f"cannot be read: {reason.observed}",
                remedy=f"check that the engine has the image {image}, or remove the volume if "
                "it is no longer needed",
            ) from None
        partitions |= set(replicas(listing.split()))
    return sorted(partitions)


def _was_broker(object_labels: Mapping[str, str]) -> bool:
    return "broker" in object_labels.get(labels.ROLES, "").split(",")


TO_BE_MADE: Final = "made by the update"
"""The cluster id in the gate's inputs. The id is decided after the gate has approved them."""
ID_FILE: Final = "cluster-id"
"""File in a stack's state directory with the id of the cluster whose data the stack has."""
LEFT_BY_EARLIER_RELEASES: Final = ("contract.json", "report.json")
"""`make down` removes the first file, only `make clean` the second."""


def decided_id(
    target: TargetStack,
    current: str | None,
    configured: str | None,
    state_dir: Path,
    objects: EngineObjects,
) -> tuple[str, list[str]]:
    """The cluster id for ``target``, and the problems with it.

    For a stack without an id in its state (``current`` is None), or with another one in its file
    (``configured``).
    """
    volumes = held_by_cluster(target, objects)
    if current is not None and configured and current in volumes:
        text = (
            f"`cluster_id: {configured}` is not the id of this stack's cluster, which is {current} "
            f"and is in the data of every node. Remove the key, or write `cluster_id: {current}`"
        )
        return current, [text]
    recorded_id = own_id(target.stack, state_dir)
    id = configured or (recorded_id if recorded_id in volumes else None)
    return id or new_cluster_id(), list(another_clusters_data(target, id, objects))


def remember_id(state_dir: Path, cluster_id: str) -> None:
    state_dir.mkdir(parents=True, exist_ok=True)
    cache.write(state_dir / ID_FILE, cluster_id + "\n")


def remembered_id(state_dir: Path) -> str | None:
    """The recorded id, or None if there is none or it cannot be read."""
    try:
        return (state_dir / ID_FILE).read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def own_id(stack: str, state_dir: Path) -> str | None:
    """The cluster id in the data of ``stack``, or None if this checkout has no record of it.

    Earlier releases recorded no id, which was derived from the stack's name, but left other files.
    """
    cluster_id = remembered_id(state_dir)
    if cluster_id is None and any((state_dir / name).exists() for name in LEFT_BY_EARLIER_RELEASES):
        return of_stack_name(stack)
    return cluster_id
