"""Writes a node's key store into a separate volume on its engine, before its container starts.

The engine shows a volume's name, not its content: no key is in a container's description, its
environment, a layer of its image or the state. File names begin with the certificate's version. So
the old container still finds its files until the new one serves.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import docker
import pulumi
from docker.errors import NotFound

from earshot.config.docker_host import DockerHost
from earshot.engine.connection import root_cause
from earshot.engine.failures import FAILURES
from earshot.errors import EarshotError
from earshot.listeners.security import AUTHORITY, TRUSTED
from earshot.placement.node_container import KEYS
from earshot_pulumi.certificates import store_of
from earshot_pulumi.docker import put_back, throwaway
from earshot_pulumi.docker.container_address import Engines, asking
from earshot_pulumi.properties import here
from earshot_pulumi.provider.kind import Kind, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource

_DIGITS: Final = 12
"""Length of a certificate's version in file names."""


class DockerKeysKind(Kind):
    """Writes the key store and the authority's certificate into a volume.

    Inputs: the Docker `host`; the `volume`, and its path in the node's container (`folder`); the
    id of the container's `image`; the name of the key `store` below `root` on this machine; the
    fingerprint of its `certificate`.
    """

    ID_IN = "volume"
    OWNS = ("host", "volume")
    DECISIVE = ("host", "volume", "folder", "image", "store", "certificate")
    interrupted = (
        "interrupted while keys were written: the node's running container still has its own; the "
        "next `pulumi up` writes them again"
    )

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        if super().differs(operation, olds, news):  # also while the certificate is unknown
            return True
        # earlier releases used other file names
        has_files = versioned(news["certificate"], AUTHORITY) in (olds.get("files") or ())
        return not has_files or _created_at(olds) != olds.get("made")

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        props = news
        store, name, folder = store_of(props), props["store"], props["folder"]
        with Engines() as engines:
            texts = {AUTHORITY: store.authority(), f"{name}.pem": store.key_store(name).read_text()}
            if (store.folder / TRUSTED).exists():
                texts[TRUSTED] = texts[AUTHORITY]
            files = {versioned(props["certificate"], file): text for file, text in texts.items()}
            host = DockerHost.model_validate(props["host"])
            client = engines.of(host)
            try:
                used_paths = _paths_in_use(client, props["volume"], here(props["root"]).parent)
                throwaway.fill(
                    client,
                    props["image"],
                    props["volume"],
                    folder,
                    files,
                    keep=lambda file: f"{folder}/{file}" in used_paths,
                )
            except throwaway.CommandFailed as reason:
                raise EarshotError(
                    f"keys of {name} in volume {props['volume']} on Docker host {host.name}",
                    observed=f"cannot be written: {reason.object}: {reason.observed}",
                    remedy="check that the engine runs and has space, then run the same command "
                    "again",
                ) from None
        return {**props, "made": _created_at(props), "files": sorted(files)}

    def delete(self, operation: Operation, olds: Properties) -> None:
        """Releases the volume. Pulumi removes it next, and reports a failure of that."""
        with contextlib.suppress(*FAILURES, EarshotError), Engines() as engines:
            client = engines.of(DockerHost.model_validate(olds["host"]))
            throwaway.remove_unstarted(client, olds["volume"])


def versioned(certificate: str, name: str) -> str:
    """The name of a node's file, prefixed with the version of its certificate."""
    return f"{certificate[:_DIGITS]}-{name}"


def with_versions(variables: Mapping[str, str], certificate: str) -> dict[str, str]:
    """A container's environment, with the versioned names of files in `KEYS`."""
    prefix = f"{KEYS}/"
    return {
        key: prefix + versioned(certificate, value.removeprefix(prefix))
        if value.startswith(prefix)
        else value
        for key, value in variables.items()
    }


def _paths_in_use(client: docker.DockerClient, volume: str, state: Path) -> str:
    """Text that contains the path of each file of ``volume`` that a container uses, or would use
    if it were put back.

    Raises CommandFailed.
    """
    try:
        containers = client.containers.list(
            all=True, filters={"volume": volume}, ignore_removed=True
        )
        texts = [
            text for container in containers for text in container.attrs["Config"]["Env"] or ()
        ]
    except FAILURES as reason:
        raise throwaway.CommandFailed(f"volume {volume}", observed=root_cause(reason)) from None
    return "\n".join((*texts, *put_back.kept_texts(state))) + "\n"


class DockerKeys(InternalResource):
    """A node's own certificate and key, and the authorities that it trusts."""

    certificate: pulumi.Output[str]
    """The fingerprint of the certificate in the volume."""


def _created_at(props: Properties) -> str:
    """The volume's creation time, or an empty string if there is no such volume.

    It distinguishes a new, empty volume from the one with the keys. Raises EarshotError if the
    engine fails.
    """
    host = DockerHost.model_validate(props["host"])
    with Engines() as engines:
        client = engines.of(host)
        with asking(f"volume {props['volume']}", host):
            try:
                return str(client.api.inspect_volume(props["volume"])["CreatedAt"])
            except NotFound:
                return ""
