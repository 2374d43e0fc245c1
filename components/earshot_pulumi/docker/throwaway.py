"""Short-lived containers, each for one command on an engine.

Such a container only sleeps, and the command runs in it. It ends after `LIFETIME` seconds, and its
engine then removes it, even if this process was killed. Only a container that was created and never
started remains: a later update on this machine removes it, or `remove_unstarted`.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

import docker
from docker.errors import APIError, DockerException
from docker.models.containers import Container

from earshot.engine.connection import MAX_SHOWN, UNREADABLE, root_cause
from earshot.engine.failures import FAILURES
from earshot.errors import EarshotError
from earshot.listeners.listed import clipped
from earshot.remote.archive import folder_archive
from earshot.remote.leftovers import labels_of
from earshot_pulumi.docker import labels

LIFETIME: Final = 120
"""Seconds after which such a container ends, if it is not removed before."""
TRIES: Final = 3
"""Maximum number of attempts: an engine may lose the output of a command that ends at once."""
_END: Final = "\n### end of the output\n"
_WITH_END: Final = f'"$@"; status=$?; printf %s "{_END}"; exit $status'
"""The script of a shell that runs its arguments, and then prints the end mark."""


class CommandFailed(EarshotError):
    """A command could not be run, or ended with another status than 0."""


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

    The command must end within `LIFETIME`. Only the command gets ``environment``, which is not
    stored. ``volumes`` maps volume names to paths, mounted read-only. Raises CommandFailed.
    """
    mounts = {name: {"bind": path, "mode": "ro"} for name, path in (volumes or {}).items()}
    with _sleeping(client, image, network, mounts) as container:
        # every user of the engine can read a container's own environment
        status, output, errors = whole_output(container, command, environment)
    if status != 0:
        text = " ".join((errors or output).decode(errors="replace").split())
        raise CommandFailed(
            f"a container of the image {image}",
            observed=clipped(text, MAX_SHOWN) or f"{command[0]} ended with status {status}",
        )
    return output.decode(errors="replace")


def whole_output(
    container: Container, command: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[int, bytes, bytes]:
    """Runs ``command`` in ``container``. Returns its status, output and error output.

    The engine's stream has no end of its own: a connection that broke looks like one. Raises
    OSError or DockerException unless the whole output has arrived.
    """
    status, (output, errors) = container.exec_run(
        ["sh", "-c", _WITH_END, "sh", *command], environment=dict(environment or {}), demux=True
    )
    output, errors = output or b"", errors or b""
    if not output.endswith(_END.encode()):
        reason = errors or (output if status else b"")
        raise OSError(reason.decode(errors="replace").strip() or "its output is cut short")
    return status, output.removesuffix(_END.encode()), errors


def fill(
    client: docker.DockerClient,
    image: str,
    volume: str,
    folder: str,
    files: Mapping[str, str],
    keep: Callable[[str], bool],
) -> None:
    """Writes ``files`` (texts by name) into ``volume``, mounted at ``folder``.

    Only the image's default user may read them. They are sent over the engine's connection and
    appear in no container's description. Other files are removed unless ``keep(name)`` is true.
    Raises CommandFailed.
    """
    path = PurePosixPath(folder)
    mounts = {volume: {"bind": folder, "mode": "rw"}}
    with _sleeping(client, image, "none", mounts) as container:
        owner = (_own_id(container, "-u"), _own_id(container, "-g"))
        contents = {name: text.encode() for name, text in files.items()}
        container.put_archive(str(path.parent), folder_archive(path.name, contents, 0o400, owner))
        _, listing = container.exec_run(["ls", "-A", folder])
        names = listing.decode(errors="replace").splitlines()
        if stale := [str(path / name) for name in names if name not in files and not keep(name)]:
            container.exec_run(["rm", "-f", "--", *stale])


def remove_unstarted(client: docker.DockerClient, volume: str) -> None:
    """Removes throwaway containers with ``volume`` that killed processes created and never started.

    Raises DockerException.
    """
    filters = {"label": labels.THROWAWAY, "volume": volume}
    for container in client.containers.list(all=True, filters=filters, ignore_removed=True):
        with contextlib.suppress(APIError):
            if labels.THROWAWAY in labels.of_object(container):
                container.remove(force=True, v=True)


def _own_id(container: Container, option: str) -> int:
    """The id of the container's default user (`-u`) or group (`-g`). Raises ValueError."""
    for _ in range(TRIES):
        status, output = container.exec_run(["id", option])
        if status != 0 or output.strip():
            break
    text = output.decode(errors="replace").strip()
    if status != 0 or not text:
        raise ValueError(f"its user is unknown: {text or '`id` printed nothing'}")
    return int(text)


def ask_any(
    client: docker.DockerClient,
    images: Iterable[str],
    command: Sequence[str],
    *,
    volumes: Mapping[str, str],
) -> str:
    """Like `ask`, with the first of ``images`` that the engine has. Raises CommandFailed."""
    for image in images:
        try:
            client.images.get(image)
        except DockerException:
            continue
        except (OSError, *UNREADABLE) as reason:
            raise CommandFailed("the volumes", observed=root_cause(reason)) from None
        return ask(client, image, command, volumes=volumes)
    raise CommandFailed("the volumes", observed="the engine has no image with which to read them")


@contextlib.contextmanager
def _sleeping(
    client: docker.DockerClient, image: str, network: str, volumes: Mapping[str, Mapping[str, str]]
) -> Iterator[Container]:
    """A container that waits for commands. Raises CommandFailed, also if a command in the block
    fails."""
    try:
        container = client.containers.create(
            image,
            entrypoint=["sleep", str(LIFETIME)],
            command=[],
            labels={labels.THROWAWAY: "yes", **labels_of(labels.THROWAWAY)},
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
    except FAILURES as reason:
        raise CommandFailed(
            f"a container of the image {image}", observed=root_cause(reason)
        ) from None
