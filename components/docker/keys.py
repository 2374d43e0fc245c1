"""A node's key store on its engine: in a volume of its own, written before its container starts.

The engine shows a volume's name, not its content: no key is in a container's
description, its environment, a layer of its image or a state.
"""

import contextlib

import pulumi
from docker.errors import DockerException, NotFound
from pulumi.dynamic import Resource

from components.certificates import store_of
from components.docker import throwaway
from components.docker.container_address import Engines, asking
from components.dynamic import Props, Provider
from earshot.config.docker import DockerHost
from earshot.errors import EarshotError
from earshot.listeners.security import AUTHORITY, TRUSTED


class KeysProvider(Provider):
    """Writes the key store, and the authority's certificate beside it.

    Inputs: the Docker `host`; the `volume`, and its place in the node's container (`folder`); the
    id of the container's `image`; the key `store`'s name below `root` on this machine; its
    `certificate`'s fingerprint.
    """

    ID_IN = "volume"
    DECISIVE = ("host", "volume", "folder", "image", "store", "certificate")

    def differs(self, olds: Props, news: Props) -> bool:
        return super().differs(olds, news) or _made(olds) != olds.get("made")

    def made(self, _olds: Props, props: Props) -> Props:
        store, name = store_of(props), props["store"]
        with Engines() as engines:
            files = {AUTHORITY: store.authority(), f"{name}.pem": store.key_store(name).read_text()}
            if (store.folder / TRUSTED).exists():
                # a node that runs with the other name until its turn may start again before
                files[TRUSTED] = files[AUTHORITY]
            host = DockerHost.model_validate(props["host"])
            client = engines.of(host)
            try:
                throwaway.fill(client, props["image"], props["volume"], props["folder"], files)
            except throwaway.NotAsked as reason:
                raise EarshotError(
                    f"keys of {name} in volume {props['volume']} on Docker host {host.name}",
                    observed=f"cannot be written: {reason.object}: {reason.observed}",
                    remedy="see that the engine runs and has space, then run the same command "
                    "again",
                ) from None
        return {**props, "made": _made(props)}

    def delete(self, _id: str, props: Props) -> None:
        """Releases the volume, which is removed next; Pulumi reports where that fails."""
        with contextlib.suppress(DockerException, OSError, EarshotError), Engines() as engines:
            client = engines.of(DockerHost.model_validate(props["host"]))
            throwaway.remove_left(client, props["volume"])


class DockerKeys(Resource, module="earshot", name="DockerKeys"):
    """What a node shows to others, and whom it trusts."""

    certificate: pulumi.Output[str]
    """The fingerprint of the certificate that is there."""


def _made(props: Props) -> str:
    """When the volume was made: another one of its name is empty. Raises EarshotError where its
    engine does not tell; empty where there is none."""
    host = DockerHost.model_validate(props["host"])
    with Engines() as engines:
        client = engines.of(host)
        with contextlib.suppress(NotFound), asking(f"volume {props['volume']}", host):
            return str(client.api.inspect_volume(props["volume"])["CreatedAt"])
    return ""
