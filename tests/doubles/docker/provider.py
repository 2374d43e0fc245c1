"""A test double of the Docker provider plugin: the same resource types and inputs, over the Docker
SDK for Python on a real engine.

For tests on machines where the official plugin cannot be downloaded; users never get it. It
implements what is commonly used. An input that it does not implement is refused by name, never
ignored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from typing import TypeVar

import docker
import requests
from pulumi.provider.experimental import provider as protocol

from tests.doubles.docker.container import Container
from tests.doubles.docker.image import RemoteImage
from tests.doubles.docker.kind import EngineError, Kind, PartlyCreated, changed, not_implemented
from tests.doubles.docker.network import Network
from tests.doubles.docker.values import plain, wrapped
from tests.doubles.docker.volume import Volume

KINDS: dict[str, Kind] = {
    "docker:index/container:Container": Container(),
    "docker:index/network:Network": Network(),
    "docker:index/remoteImage:RemoteImage": RemoteImage(),
    "docker:index/volume:Volume": Volume(),
}
SETTINGS = ("host", "version")
DEFAULT_HOST = "unix:///var/run/docker.sock"
CLIENT_SECONDS = 120

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class DockerDouble(protocol.Provider):
    """Every call works with a client of its own, in a thread: the engine runs many at a time."""

    def __init__(self) -> None:
        self._host = os.environ.get("DOCKER_HOST") or DEFAULT_HOST

    async def check_config(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        failures = [_refused(name) for name in plain(request.new_inputs) if name not in SETTINGS]
        return protocol.CheckResponse(request.new_inputs, failures)

    async def configure(self, request: protocol.ConfigureRequest) -> protocol.ConfigureResponse:
        self._host = plain(request.args).get("host") or self._host
        # No preview support: create is called only to create.
        return protocol.ConfigureResponse()

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        kind = _kind(request.type)
        inputs = plain(request.new_inputs)
        failures = [_refused(path) for path in not_implemented(inputs, kind.shape)]
        checked = dict(request.new_inputs)
        if "name" not in inputs:
            old = plain(request.old_inputs).get("name")
            checked |= wrapped({"name": old or f"{request.name}-{request.random_seed.hex()[:7]}"})
        return protocol.CheckResponse(checked, failures)

    async def diff(self, request: protocol.DiffRequest) -> protocol.DiffResponse:
        kind = _kind(request.type)
        state, inputs = plain(request.old_state), plain(request.new_inputs)
        names = [n for n in changed(kind, state, inputs) if n not in request.ignore_changes]
        replaces = [name for name in names if name not in kind.in_place]
        return protocol.DiffResponse(
            changes=bool(names),
            diffs=names,
            replaces=replaces,
            delete_before_replace=bool(replaces) and state.get("name") == inputs.get("name"),
        )

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        kind, inputs = _kind(request.type), plain(request.properties)
        id, state = await self._call(request, lambda client: kind.create(client, inputs))
        return protocol.CreateResponse(id, wrapped(state))

    async def read(self, request: protocol.ReadRequest) -> protocol.ReadResponse:
        kind, state = _kind(request.type), plain(request.properties)
        found = await self._call(
            request, lambda client: kind.read(client, request.resource_id, state)
        )
        if found is None:
            return protocol.ReadResponse(resource_id="")
        return protocol.ReadResponse(request.resource_id, wrapped(found), request.inputs)

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        kind = _kind(request.type)
        olds, news = plain(request.olds), plain(request.news)
        state = await self._call(
            request, lambda client: kind.update(client, request.resource_id, olds, news)
        )
        return protocol.UpdateResponse(wrapped(state))

    async def delete(self, request: protocol.DeleteRequest) -> None:
        kind, state = _kind(request.type), plain(request.properties)
        await self._call(request, lambda client: kind.delete(client, request.resource_id, state))

    async def _call(
        self,
        request: protocol.CreateRequest
        | protocol.ReadRequest
        | protocol.UpdateRequest
        | protocol.DeleteRequest,
        work: Callable[[docker.DockerClient], Result],
    ) -> Result:
        what = f"{type(request).__name__.removesuffix('Request').lower()} {request.urn}"
        log.info("%s", what)
        try:
            return await asyncio.to_thread(self._with_client, work)
        except PartlyCreated:
            raise
        except docker.errors.APIError as error:
            raise EngineError(" ".join(str(error.explanation or error).split())) from error
        except (docker.errors.DockerException, requests.RequestException) as error:
            reason = " ".join(str(error).split())
            raise EngineError(f"no Docker engine answers at {self._host}: {reason}") from error

    def _with_client(self, work: Callable[[docker.DockerClient], Result]) -> Result:
        client = docker.DockerClient(
            base_url=self._host,
            timeout=CLIENT_SECONDS,
            use_ssh_client=self._host.startswith("ssh://"),
        )
        with contextlib.closing(client):
            return work(client)


def _kind(token: str) -> Kind:
    try:
        return KINDS[token]
    except KeyError:
        raise EngineError(
            f"{token} is not implemented by this test double of the Docker provider; it knows"
            f" {', '.join(KINDS)}"
        ) from None


def _refused(path: str) -> protocol.CheckFailure:
    return protocol.CheckFailure(
        path, f"the input {path} is not implemented by this test double of the Docker provider"
    )
