"""Short-lived containers, each for one command on an engine.

Such a container only sleeps, and the command runs in it. It ends by itself, and its engine then
removes it, even where this process was killed first; unless that was before it was started.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

import docker
from docker.errors import APIError, DockerException
from docker.models.containers import Container

from earshot.engine import root_cause
from earshot.errors import EarshotError
from earshot.remote.archive import folder_archive
from earshot_pulumi.docker import labels

LIFETIME: Final = 120
"""Seconds that such a container lives if it is not removed before."""


class NotAsked(EarshotError):
    """The command could not be run, so nothing is known about what it asks."""


def ask(
    client: docker.DockerClient,
    image: str,
    command: Sequence[str],
    *,
    network: str = "none",
    environment: Mapping[str, str] | None = None,
    volumes: Mapping[str, str] | None = None,
) -> str:
    """The standard output of ``command`` in a container of ``image``, a name or an id.

    It must end by itself, within `LIFETIME`. ``environment`` is for it alone, and is stored
    nowhere; ``volumes`` are paths by volume name, mounted read-only. Raises NotAsked where the
    engine cannot run it, or where it ends with another status than 0.
    """
    mounted = {name: {"bind": path, "mode": "ro"} for name, path in (volumes or {}).items()}
    with _sleeping(client, image, network, mounted) as container:
        # not the container's own environment, which every user of the engine can read
        status, (output, errors) = container.exec_run(
            list(command), environment=dict(environment or {}), demux=True
        )
    if status != 0:
        text = " ".join((errors or output or b"").decode(errors="replace").split())
        raise NotAsked(
            f"a container of the image {image}",
            observed=text or f"{command[0]} ended with status {status}",
        )
    return (output or b"").decode(errors="replace")


def fill(
    client: docker.DockerClient,
    image: str,
    volume: str,
    folder: str,
    files: Mapping[str, str],
    keep: Callable[[str], bool],
) -> None:
    """Puts ``files`` (texts by name) into ``volume``, mounted at ``folder``.

    There the image's own user alone may read them. They go through the engine's own connection,
    and its descriptions of containers do not hold them. Other files stay if ``keep`` is true of
    their names. Raises NotAsked.
    """
    place = PurePosixPath(folder)
    mounted = {volume: {"bind": folder, "mode": "rw"}}
    with _sleeping(client, image, "none", mounted) as container:
        owner = (_number(container, "-u"), _number(container, "-g"))
        content = {name: text.encode() for name, text in files.items()}
        container.put_archive(str(place.parent), folder_archive(place.name, content, 0o400, owner))
        _, listed = container.exec_run(["ls", "-A", folder])
        others = [
            name for name in listed.decode(errors="replace").splitlines() if name not in files
        ]
        if gone := [str(place / name) for name in others if not keep(name)]:
            container.exec_run(["rm", "-f", "--", *gone])


def remove_left(client: docker.DockerClient, volume: str) -> None:
    """Removes containers of killed processes that never began to sleep, and so still hold
    ``volume``. Raises DockerException."""
    wanted = {"label": labels.THROWAWAY, "volume": volume}
    for container in client.containers.list(all=True, filters=wanted, ignore_removed=True):
        with contextlib.suppress(APIError):
            container.remove(force=True, v=True)


def _number(container: Container, of: str) -> int:
    """The id of the container's own user (`-u`) or group (`-g`). Raises ValueError."""
    status, output = container.exec_run(["id", of])
    if status != 0:
        raise ValueError(f"it does not tell its user: {output.decode(errors='replace').strip()}")
    return int(output)


def ask_any(
    client: docker.DockerClient,
    images: Iterable[str],
    command: Sequence[str],
    *,
    volumes: Mapping[str, str],
) -> str:
    """As `ask`, in the first of ``images`` that the engine has. Raises NotAsked."""
    for image in images:
        try:
            client.images.get(image)
        except DockerException:
            continue
        except OSError as reason:
            raise NotAsked("the volumes", observed=root_cause(reason)) from None
        return ask(client, image, command, volumes=volumes)
    raise NotAsked("the volumes", observed="no image is there to look into them with")


@contextlib.contextmanager
def _sleeping(
    client: docker.DockerClient, image: str, network: str, volumes: Mapping[str, Mapping[str, str]]
) -> Iterator[Container]:
    """A container that waits for commands. Raises NotAsked, also for what goes wrong with it."""
    try:
        container = client.containers.create(
            image,
            entrypoint=["sleep", str(LIFETIME)],
            command=[],
            labels={labels.THROWAWAY: "yes"},
            network_mode=network,
            volumes=dict(volumes),
            healthcheck={"test": ["NONE"]},
            auto_remove=True,
        )
        try:
            container.start()
            yield container
        finally:
            with contextlib.suppress(APIError, OSError):
                container.remove(force=True, v=True)
    except (DockerException, OSError, ValueError) as reason:
        raise NotAsked(f"a container of the image {image}", observed=root_cause(reason)) from None
