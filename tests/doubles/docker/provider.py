"""A test double of the Docker provider plugin: the same resource types and inputs, over the Docker
SDK for Python on a real engine.

For tests on machines where the official plugin cannot be downloaded; users never get it. It
implements what is commonly used.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import docker
import requests
from docker.tls import TLSConfig
from pulumi.provider.experimental import provider as protocol
from pulumi.provider.experimental.property_value import PropertyValue

from earshot.engine.connection import tls_config
from tests.doubles.docker.container import Container
from tests.doubles.docker.defaults import with_defaults, without_names
from tests.doubles.docker.image import RemoteImage
from tests.doubles.docker.network import Network
from tests.doubles.docker.volume import Volume
from tests.doubles.plugin.kind import Kind, PartlyCreated, ProviderError
from tests.doubles.plugin.provider import Double, Result
from tests.doubles.plugin.values import Plain, plain, wrapped

KINDS: dict[str, Kind[docker.DockerClient]] = {
    "docker:index/container:Container": Container(),
    "docker:index/network:Network": Network(),
    "docker:index/remoteImage:RemoteImage": RemoteImage(),
    "docker:index/volume:Volume": Volume(),
}
DEFAULT_HOST = "unix:///var/run/docker.sock"
CLIENT_SECONDS = 120


class DockerDouble(Double[docker.DockerClient]):
    """Every call has its own client, because the engine runs many calls at a time."""

    official = "the Docker provider"
    kinds = KINDS
    settings = frozenset({"host", "version", "certPath"})

    def __init__(self) -> None:
        self._host = os.environ.get("DOCKER_HOST") or DEFAULT_HOST
        self._tls: TLSConfig | None = None

    def set_up(self, settings: Plain) -> None:
        self._host = settings.get("host") or self._host
        if folder := settings.get("certPath"):
            self._tls = tls_config(Path(folder))
        self.run(lambda client: client.ping())

    async def get_schema(self, request: protocol.GetSchemaRequest) -> protocol.GetSchemaResponse:
        from tests.doubles.docker.schema import schema  # the SDK is slow to import

        return protocol.GetSchemaResponse(schema())

    def values(self, properties: Mapping[str, PropertyValue]) -> Plain:
        values: Plain = without_names(plain(properties))
        return values

    def state(self, kind: Kind[Any], properties: Mapping[str, PropertyValue]) -> Plain:
        # a state that an earlier release of the plugin wrote has fewer defaults
        state: Plain = without_names(with_defaults(self.values(properties), {}, kind.shape))
        return state

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        answer = await super().check(request)
        kind, inputs = self.kind(request.type), answer.inputs or {}
        values = with_defaults(self.values(inputs), dict(kind.defaults), kind.shape)
        changed_inputs = {  # an unchanged input keeps its secrets
            name: value
            for name, value in values.items()
            if name not in inputs or kind.shape.get(name) is not None
        }
        return protocol.CheckResponse({**inputs, **wrapped(changed_inputs)}, answer.failures)

    def run(self, work: Callable[[docker.DockerClient], Result]) -> Result:
        try:
            client = docker.DockerClient(
                base_url=self._host,
                tls=self._tls,
                timeout=CLIENT_SECONDS,
                use_ssh_client=self._host.startswith("ssh://"),
            )
            with contextlib.closing(client):
                return work(client)
        except PartlyCreated:
            raise
        except docker.errors.APIError as error:
            raise ProviderError(" ".join(str(error.explanation or error).split())) from error
        except (docker.errors.DockerException, requests.RequestException) as error:
            reason = " ".join(str(error).split())
            text = f"failed to connect to any docker daemon at {self._host}: {reason}"
            raise ProviderError(text) from error
