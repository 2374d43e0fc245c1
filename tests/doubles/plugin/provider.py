"""The common part of doubles of provider plugins: which inputs they take, what a change needs,
and how calls of the engine reach a resource type.

An input that a double does not implement is refused by name, never ignored.
"""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from pulumi.provider.experimental import provider as protocol
from pulumi.provider.experimental.property_value import PropertyValue

from tests.doubles.plugin.kind import Client, Kind, ProviderError, changed_inputs, not_implemented
from tests.doubles.plugin.values import Plain, plain, wrapped

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class Double(protocol.Provider, Generic[Client]):
    """A provider plugin over ``kinds``, by token. Every call runs in its own thread."""

    official: str
    """The name of the official provider, as in ``the Docker provider``."""
    kinds: Mapping[str, Kind[Client]]
    settings: frozenset[str]
    """The provider's own inputs that it implements."""

    @abstractmethod
    def run(self, work: Callable[[Client], Result]) -> Result:
        """``work`` with a client. Its errors are raised as ProviderError."""

    async def check_config(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        inputs = plain(request.new_inputs)
        failures = [self.refusal(name) for name in inputs if name not in self.settings]
        return protocol.CheckResponse(request.new_inputs, failures)

    async def configure(self, request: protocol.ConfigureRequest) -> protocol.ConfigureResponse:
        self.set_up(plain(request.args))
        # No preview support: create is called only to create.
        return protocol.ConfigureResponse()

    @abstractmethod
    def set_up(self, settings: Plain) -> None:
        """Configures the provider with its own inputs, before any resource is created or read."""

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        kind = self.kind(request.type)
        inputs = self.values(request.new_inputs)
        failures = [self.refusal(path) for path in not_implemented(inputs, kind.shape)]
        failures += [protocol.CheckFailure(*objection) for objection in kind.objections(inputs)]
        checked = dict(request.new_inputs)
        if kind.name_input is not None and kind.name_input not in inputs:
            old_name = plain(request.old_inputs).get(kind.name_input)
            made_up = f"{request.name}-{request.random_seed.hex()[:7]}"
            checked |= wrapped({kind.name_input: old_name or made_up})
        return protocol.CheckResponse(checked, failures)

    async def diff(self, request: protocol.DiffRequest) -> protocol.DiffResponse:
        kind = self.kind(request.type)
        state = self.state(kind, request.old_state)
        inputs = self.values(request.new_inputs)
        names = [
            input_name
            for input_name in changed_inputs(kind, state, inputs)
            if input_name not in request.ignore_changes
        ]
        replaces = [name for name in names if kind.needs_replacement(name, state, inputs)]
        return protocol.DiffResponse(
            changes=bool(names),
            diffs=names,
            replaces=replaces,
            delete_before_replace=bool(replaces) and kind.deletes_first(state, inputs),
        )

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        kind, inputs = self.kind(request.type), self.values(request.properties)
        id, state = await self._call(
            "create", request.urn, lambda client: kind.create(client, inputs)
        )
        return protocol.CreateResponse(id, wrapped(state))

    def state(self, kind: Kind[Any], properties: Mapping[str, PropertyValue]) -> Plain:
        """A state in the form in which it is compared with inputs."""
        return self.values(properties)

    def values(self, properties: Mapping[str, PropertyValue]) -> Plain:
        """Inputs or a state without Pulumi's wrappers."""
        return plain(properties)

    async def read(self, request: protocol.ReadRequest) -> protocol.ReadResponse:
        kind, id, state = self.kind(request.type), request.resource_id, plain(request.properties)
        current = await self._call("read", request.urn, lambda client: kind.read(client, id, state))
        if current is None:
            return protocol.ReadResponse(resource_id="")
        return protocol.ReadResponse(id, wrapped(current), request.inputs)

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        kind, id = self.kind(request.type), request.resource_id
        olds, news = self.values(request.olds), self.values(request.news)
        state = await self._call(
            "update", request.urn, lambda client: kind.update(client, id, olds, news)
        )
        return protocol.UpdateResponse(wrapped(state))

    async def delete(self, request: protocol.DeleteRequest) -> None:
        kind, id, state = self.kind(request.type), request.resource_id, plain(request.properties)
        await self._call("delete", request.urn, lambda client: kind.delete(client, id, state))

    def kind(self, token: str) -> Kind[Client]:
        token = token.rpartition("$")[2]  # it follows the types of the resource's parents
        try:
            return self.kinds[token]
        except KeyError:
            raise ProviderError(
                f"{token} is not implemented by this test double of {self.official}; it knows"
                f" {', '.join(self.kinds)}"
            ) from None

    async def _call(self, verb: str, subject: str, work: Callable[[Client], Result]) -> Result:
        log.info("%s %s", verb, subject)
        return await asyncio.to_thread(self.run, work)

    def refusal(self, path: str) -> protocol.CheckFailure:
        return protocol.CheckFailure(
            path, f"the input {path} is not implemented by this test double of {self.official}"
        )
