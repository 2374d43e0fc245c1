"""The plugin process: one gRPC server for custom resources, the gate and components.

Pulumi's SDK serves components (`pulumi.provider.server`) but no custom resources beside them, so
this is the one file that knows the plugin protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, Protocol, TypeVar

import grpc
import grpc.aio
import pulumi
from google.protobuf import empty_pb2, struct_pb2
from pulumi.errors import InputPropertiesError
from pulumi.provider import ConstructResult
from pulumi.provider import server as sdk
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.experimental.property_value import Computed, PropertyValue
from pulumi.runtime import proto, rpc
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc

from earshot import __version__
from earshot.errors import EarshotError
from earshot_pulumi.cluster_args import ClusterArgs, ClusterListenerArgs
from earshot_pulumi.owner import end, exit_with_parent
from earshot_pulumi.provider.kind import (
    UNKNOWN,
    Interrupted,
    InvalidInputs,
    Kind,
    Operation,
    OperationFailed,
    Properties,
    Show,
)
from earshot_pulumi.provider.resource import PACKAGE, EarshotResource, camel_case, type_token
from earshot_pulumi.provider.schema import completed

T = TypeVar("T")
_NOT_SECRET = PropertyValue(None)
CANCEL_SECONDS = 0.5
"""Seconds that an operation has to end by itself once the engine has cancelled the update."""


def plain(value: PropertyValue) -> Any:
    """``value`` as plain data: whole numbers are int, unknown values are `UNKNOWN`.

    Maps are without keys whose value is null, as in states that Pulumi's dynamic providers wrote.
    """
    inner = value.value
    if isinstance(inner, Computed) or inner == rpc.UNKNOWN:
        return UNKNOWN
    if isinstance(inner, bool) or inner is None or isinstance(inner, str):
        return inner
    if isinstance(inner, float):
        return int(inner) if inner.is_integer() else inner
    if isinstance(inner, Mapping):
        return {key: plain(item) for key, item in inner.items() if item.value is not None}
    if isinstance(inner, Sequence):
        return [plain(item) for item in inner if isinstance(item, PropertyValue)]
    raise TypeError(f"no input of earshot takes a {type(inner).__name__}")


def plain_properties(struct: struct_pb2.Struct) -> Properties:
    """The properties of a message."""
    return {key: plain(item) for key, item in PropertyValue.unmarshal_map(struct).items()}


def message(
    properties: Properties,
    arrived: struct_pb2.Struct | None = None,
    secrets: Collection[str] = (),
) -> struct_pb2.Struct:
    """``properties`` for the engine, which encrypts secrets in the state.

    Secret are those called ``secrets`` and those that ``arrived`` as secrets: of an unchanged map
    only what was secret in it, otherwise the whole property.
    """
    known = PropertyValue.unmarshal_map(arrived) if arrived is not None else {}
    return PropertyValue.marshal_map(
        {
            key: _marked(item, known.get(key), key in secrets)
            for key, item in properties.items()
            if item is not None
        }
    )


def _marked(value: Any, arrived: PropertyValue | None, secret: bool) -> PropertyValue:
    if secret or arrived is None or not arrived.contains_secret():
        return _wrapped(value).with_secret(secret)
    if plain(arrived) == value:
        return _wrapped(value, arrived)
    return _wrapped(value).with_secret(True)


def _wrapped(value: Any, like: PropertyValue = _NOT_SECRET) -> PropertyValue:
    """``value``, with the secrets of ``like``, which has the same data."""
    inner = like.value
    made: PropertyValue
    if value is UNKNOWN:
        made = PropertyValue(rpc.UNKNOWN)  # the SDK marshals no `Computed`
    elif value is None or isinstance(value, bool | str):
        made = PropertyValue(value)
    elif isinstance(value, int | float):
        made = PropertyValue(float(value))
    elif isinstance(value, Mapping):
        parts = inner if isinstance(inner, Mapping) else {}
        made = PropertyValue(
            {k: _wrapped(it, parts.get(k, _NOT_SECRET)) for k, it in value.items()}
        )
    else:
        # of another length only where ``like`` is no list
        items = inner if isinstance(inner, list | tuple) else [_NOT_SECRET] * len(value)
        made = PropertyValue([_wrapped(*pair) for pair in zip(value, items, strict=True)])
    return made.with_secret(like.is_secret)


class Package(ComponentProvider):
    """The schema of the provider, and the construction of its components."""

    def __init__(
        self,
        components: Sequence[type[pulumi.ComponentResource]],
        kinds: Mapping[type[EarshotResource], Kind],
    ) -> None:
        super().__init__([*components, *kinds], PACKAGE, None, __version__)  # type: ignore[list-item]
        assert self.schema is not None
        described = {
            type_token(it.__name__): self._inherited(*it.__mro__[1:], ClusterArgs)
            for it in components
        }
        described[type_token("DockerListener")] = self._inherited(ClusterListenerArgs)
        self.schema = completed(self.schema, kinds, described)

    def _inherited(self, *bases: type) -> dict[str, str]:
        """By name, the docstrings of ``bases``: Pulumi reads those of one class."""
        return {
            camel_case(name): text
            for base in bases
            if base.__module__.startswith("earshot_pulumi.")
            for name in inspect.get_annotations(base)
            if (text := self.analyzer.get_docstring(base, name))
        }

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: Any = None
    ) -> ConstructResult:
        """Raises InputPropertiesError, which the engine shows as the user's own error."""
        try:
            return super().construct(name, resource_type, inputs, options)
        except sdk.ComponentInitError as error:
            if isinstance(error.inner, EarshotError | pulumi.RunError):
                # without a list, Pulumi's own code for the answer fails
                raise InputPropertiesError(str(error.inner), []) from None
            raise


class Parts(Protocol):
    """What the plugin offers; each part is imported when a call first needs it."""

    def package(self) -> Package:
        """The components and the schema."""

    def kind(self, token: str) -> Kind:
        """The behaviour of a type of custom resource."""

    def judge(self, inputs: Properties, show: Show) -> Properties:
        """The inputs of a provider instance with what the provider adds. Raises InvalidInputs."""


class Servicer(sdk.ProviderServicer):
    """Answers the engine: components as the SDK does, custom resources and the gate here."""

    def __init__(self, parts: Parts, arguments: list[str], engine: str) -> None:
        # not the SDK's constructor, which takes the package: a run without components does not
        # import them
        self.args, self.engine_address = arguments, engine
        self._parts = parts
        self._config: dict[str, Any] = {}
        self._cancelled = threading.Event()
        self._threads = ThreadPoolExecutor(32)
        channel = grpc.insecure_channel(engine, options=_GRPC_CHANNEL_OPTIONS)
        self._engine = engine_pb2_grpc.EngineStub(channel)

    @functools.cached_property
    def provider(self) -> Package:  # type: ignore[override]
        return self._parts.package()

    async def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return proto.PluginInfo(version=__version__)

    async def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True, accept_resources=True, accept_outputs=True
        )

    async def CheckConfig(self, request: Any, context: Any) -> Any:
        news = plain_properties(request.news)
        if (wanted := news.get("version", __version__)) not in (__version__, UNKNOWN):
            reason = (
                f"the program asks for earshot {wanted}, and this plugin is {__version__}; "
                f"fix: install earshot {wanted} where the plugin is found"
            )
            return proto.CheckResponse(failures=[proto.CheckFailure(reason=reason)])
        show = functools.partial(self._log, request.urn)
        try:
            inputs = await self._run(context, functools.partial(self._parts.judge, news, show))
        except InvalidInputs as error:
            return _failures(request.news, error)
        return proto.CheckResponse(inputs=message(inputs, request.news))

    async def DiffConfig(self, request: Any, context: Any) -> Any:
        # the engine compares inputs; "replace" here would replace every resource of the provider
        return proto.DiffResponse(changes=proto.DiffResponse.DIFF_UNKNOWN)

    async def Configure(self, request: Any, context: Any) -> Any:
        given = plain_properties(request.args)
        # in the place of Pulumi's dynamic providers, it is given all settings of a stack
        own = {key if ":" in key else f"{PACKAGE}:{key}": it for key, it in given.items()}
        self._config |= own
        return proto.ConfigureResponse(
            acceptSecrets=True, acceptResources=True, acceptOutputs=True, supportsPreview=True
        )

    async def Cancel(self, request: Any, context: Any) -> Any:
        self._cancelled.set()
        return empty_pb2.Empty()

    async def Check(self, request: Any, context: Any) -> Any:
        kind, operation = self._called(request)
        olds, news = plain_properties(request.olds), plain_properties(request.news)
        try:
            check = functools.partial(kind.check, operation, olds, news)
            inputs = await self._run(context, check, kind.interrupted)
        except InvalidInputs as error:
            return _failures(request.news, error)
        return proto.CheckResponse(inputs=message(inputs, request.news, kind.secrets))

    async def Diff(self, request: Any, context: Any) -> Any:
        kind, operation = self._called(request)
        olds, news = plain_properties(request.olds), plain_properties(request.news)
        diff = functools.partial(kind.diff, operation, request.id, olds, news)
        difference = await self._run(context, diff, kind.interrupted)
        response = proto.DiffResponse
        return response(
            changes=response.DIFF_SOME if difference.changed else response.DIFF_NONE,
            replaces=list(difference.replaced_by),
            deleteBeforeReplace=difference.delete_first,
        )

    async def Create(self, request: Any, context: Any) -> Any:
        kind, operation = self._called(request, preview=request.preview)
        news = plain_properties(request.properties)
        create = functools.partial(kind.create, operation, news)
        id, outputs = await self._run(context, create, kind.interrupted)
        properties = message(outputs, request.properties, kind.secrets)
        return proto.CreateResponse(id="" if request.preview else id, properties=properties)

    async def Update(self, request: Any, context: Any) -> Any:
        kind, operation = self._called(request, preview=request.preview)
        olds, news = plain_properties(request.olds), plain_properties(request.news)
        update = functools.partial(kind.update, operation, request.id, olds, news)
        outputs = await self._run(context, update, kind.interrupted)
        return proto.UpdateResponse(properties=message(outputs, request.news, kind.secrets))

    async def Read(self, request: Any, context: Any) -> Any:
        kind, operation = self._called(request)
        olds = plain_properties(request.properties)
        read = functools.partial(kind.read, operation, request.id, olds)
        outputs = await self._run(context, read, kind.interrupted)
        if outputs is None:
            return proto.ReadResponse()
        properties = message(outputs, request.properties, kind.secrets)
        return proto.ReadResponse(id=request.id, properties=properties, inputs=request.inputs)

    async def Delete(self, request: Any, context: Any) -> Any:
        kind, operation = self._called(request)
        # outputs stay as they are when inputs change that change no resource: the last inputs count
        olds = plain_properties(request.properties) | plain_properties(request.old_inputs)
        delete = functools.partial(kind.delete, operation, request.id, olds)
        await self._run(context, delete, kind.interrupted)
        return empty_pb2.Empty()

    def _called(self, request: Any, *, preview: bool = False) -> tuple[Kind, Operation]:
        """The kind that ``request`` names in its URN, and the operation on it."""
        token = request.urn.split("::")[2].rpartition("$")[2]
        operation = Operation(
            urn=request.urn,
            preview=preview,
            cancelled=self._cancelled,
            log=functools.partial(self._log, request.urn),
            config=self._config,
        )
        return self._parts.kind(token), operation

    def _log(self, urn: str, text: str, is_warning: bool = False) -> None:
        severity = engine_pb2.WARNING if is_warning else engine_pb2.INFO
        line = engine_pb2.LogRequest(severity=severity, message=text, urn=urn)
        with contextlib.suppress(grpc.RpcError):  # an engine that is ending takes no more lines
            self._engine.Log(line)

    async def _run(self, context: Any, act: Callable[[], T], interrupted: str = "interrupted") -> T:
        """The result of ``act``, run in a thread; errors that users can mend abort the call.

        InvalidInputs pass. If the engine cancels, ``act`` has `CANCEL_SECONDS` left, and the call
        fails with ``interrupted``.
        """
        work = asyncio.get_running_loop().run_in_executor(self._threads, act)
        try:
            return await self._until_cancelled(work, interrupted)
        except InvalidInputs:
            raise
        except Interrupted:
            await _abort(context, interrupted)
        except (EarshotError, OperationFailed) as error:
            await _abort(context, str(error))

    async def _until_cancelled(self, work: asyncio.Future[T], interrupted: str) -> T:
        while not work.done():
            if self._cancelled.is_set():
                await asyncio.wait([work], timeout=CANCEL_SECONDS)
                if not work.done():
                    raise Interrupted(interrupted)
                break
            await asyncio.wait([work], timeout=0.1)
        return work.result()


async def _abort(context: Any, text: str) -> NoReturn:
    # the CLI repeats the first line of an error beside the resource: an empty one is not read twice
    await context.abort(grpc.StatusCode.UNKNOWN, f"\n{text}")
    raise AssertionError  # abort has raised


def _failures(inputs: struct_pb2.Struct, error: InvalidInputs) -> Any:
    # with a property's name, Pulumi prints the property's value before the reason
    failures = [proto.CheckFailure(property="", reason=reason) for reason in error.reasons.values()]
    return proto.CheckResponse(inputs=inputs, failures=failures)


def serve(parts: Parts, arguments: list[str]) -> None:
    """Serves ``parts`` until the engine ends this process; ``arguments`` are the engine's."""
    logging.getLogger("grpc").setLevel(logging.CRITICAL)  # messages reach the user as errors
    exit_with_parent()
    os.environ.pop("PULUMI_CONFIG", None)  # has secrets, and processes that are started inherit it
    # the engine sends SIGINT at the end of each run, and waits five seconds for the process
    signal.signal(signal.SIGINT, lambda *_: end(0))
    addresses = [text for text in arguments if not text.startswith("-")]
    if not addresses:
        raise EarshotError(
            "pulumi-resource-earshot",
            observed="was started without the address of a Pulumi engine",
            remedy="let `pulumi` start it: docs/module.md says how a program finds it",
        )
    asyncio.run(_serve(Servicer(parts, arguments, addresses[-1])))


async def _serve(servicer: Servicer) -> None:
    server = grpc.aio.server(options=_GRPC_CHANNEL_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()
