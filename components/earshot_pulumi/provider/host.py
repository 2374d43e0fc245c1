"""The plugin process: one gRPC server for custom resources, the gate and components.

Pulumi's SDK serves components (`pulumi.provider.server`), but not custom resources in the same
plugin. So this file implements the plugin protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import grpc
import grpc.aio
import pulumi
from google.protobuf import any_pb2, empty_pb2, struct_pb2
from grpc.aio import ServicerContext as Context
from pulumi.provider import server as sdk
from pulumi.runtime import proto
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)

from earshot import __version__
from earshot.errors import EarshotError
from earshot.visible import visible
from earshot_pulumi.plugin_exit import end, exit_with_parent
from earshot_pulumi.provider.kind import (
    UNKNOWN,
    FailedUpdate,
    Interrupted,
    InvalidInputs,
    Kind,
    Operation,
    OperationFailed,
    Properties,
    Show,
    has_unknown,
)
from earshot_pulumi.provider.resource import PACKAGE, START_FUNCTION
from earshot_pulumi.provider.values import message, plain_properties

if TYPE_CHECKING:
    from earshot_pulumi.provider.construction import Package

T = TypeVar("T")
CANCEL_SECONDS = 0.5
"""Seconds for an operation to end after the engine has cancelled the update."""


class Registry(Protocol):
    """The resources and components of the plugin, each imported by the first call that needs it."""

    def package(self) -> Package:
        """The components and the schema."""

    def kind(self, token: str) -> Kind:
        """The behaviour of a type of custom resource."""

    def judge(self, inputs: Properties, show: Show) -> Properties:
        """The inputs of a provider instance with what the provider adds. Raises InvalidInputs."""

    def prepare(self) -> None:
        """Imports what every cluster needs."""


def _reported(
    method: Callable[..., Coroutine[Any, Any, Any]],
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """``method``; an error for the user aborts the call with its message."""

    @functools.wraps(method)
    async def answer(servicer: Servicer, request: Any, context: Any) -> Any:
        try:
            return await method(servicer, request, context)
        except (EarshotError, OperationFailed, pulumi.RunError) as error:
            # the CLI repeats the first line of an error next to the resource: that line is empty
            await context.abort(grpc.StatusCode.UNKNOWN, visible(f"\n{error}"))

    return answer


class Servicer(sdk.ProviderServicer):
    """Answers the engine: components through the SDK, custom resources and the gate here."""

    def __init__(self, registry: Registry, arguments: list[str], engine: str) -> None:
        # the SDK's constructor is not called, as it needs the package with all components
        self.args, self.engine_address = arguments, engine
        self._registry = registry
        self._config: Properties = {}
        self._cancelled = threading.Event()
        self._owners: dict[tuple[Kind, str], str] = {}
        self._kept: set[tuple[Kind, str]] = set()
        self._threads = ThreadPoolExecutor(32)
        channel = grpc.insecure_channel(engine, options=_GRPC_CHANNEL_OPTIONS)
        self._engine = engine_pb2_grpc.EngineStub(channel)

    @functools.cached_property
    def provider(self) -> Package:  # type: ignore[override]
        return self._registry.package()

    async def GetPluginInfo(self, request: empty_pb2.Empty, context: Context) -> proto.PluginInfo:
        return proto.PluginInfo(version=__version__)

    async def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: Context
    ) -> provider_pb2.ProviderHandshakeResponse:
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True, accept_resources=True, accept_outputs=True
        )

    async def Invoke(self, request: proto.InvokeRequest, context: Context) -> proto.InvokeResponse:
        if request.tok == START_FUNCTION:
            await self._run(self._registry.prepare)
            return proto.InvokeResponse()
        return await super().Invoke(request, context)

    @_reported
    async def Construct(
        self, request: proto.ConstructRequest, context: Context
    ) -> proto.ConstructResponse:
        return await super().Construct(request, context)

    @_reported
    async def CheckConfig(
        self, request: proto.CheckRequest, context: Context
    ) -> proto.CheckResponse:
        news = plain_properties(request.news)
        if (version := news.get("version", __version__)) not in (__version__, UNKNOWN):
            reason = (
                f"the program asks for earshot {version}, and this plugin is {__version__}; "
                f"fix: install earshot {version} where the plugin is found"
            )
            return proto.CheckResponse(failures=[proto.CheckFailure(reason=reason)])
        show = functools.partial(self._log, request.urn)
        try:
            inputs = await self._run(functools.partial(self._registry.judge, news, show))
        except InvalidInputs as error:
            return _failures(request.news, error)
        return proto.CheckResponse(inputs=message(inputs, request.news))

    async def DiffConfig(self, request: proto.DiffRequest, context: Context) -> proto.DiffResponse:
        # the engine compares inputs; "replace" here would replace every resource of the provider
        return proto.DiffResponse(changes=proto.DiffResponse.DIFF_UNKNOWN)

    async def Configure(
        self, request: proto.ConfigureRequest, context: Context
    ) -> proto.ConfigureResponse:
        settings = plain_properties(request.args)
        # as the substitute of Pulumi's dynamic providers, the plugin gets all settings of a stack
        config = {
            key if ":" in key else f"{PACKAGE}:{key}": value for key, value in settings.items()
        }
        self._config |= config
        return proto.ConfigureResponse(
            acceptSecrets=True, acceptResources=True, acceptOutputs=True, supportsPreview=True
        )

    async def Cancel(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:
        self._cancelled.set()
        return empty_pb2.Empty()

    @_reported
    async def Check(self, request: proto.CheckRequest, context: Context) -> proto.CheckResponse:
        kind = self._kind(request)
        olds, news = plain_properties(request.olds), plain_properties(request.news)
        try:
            self._check_owner(kind, request.urn, news)
            inputs = await self._operate(request, kind.check, olds, news)
        except InvalidInputs as error:
            return _failures(request.news, error)
        return proto.CheckResponse(inputs=message(inputs, request.news, kind.secrets))

    @_reported
    async def Diff(self, request: proto.DiffRequest, context: Context) -> proto.DiffResponse:
        kind = self._kind(request)
        olds, news = plain_properties(request.olds), plain_properties(request.news)
        self._kept.add(_owned(kind, news))
        difference = await self._operate(request, kind.diff, olds, news)
        response = proto.DiffResponse
        return response(
            changes=response.DIFF_SOME if difference.changed else response.DIFF_NONE,
            replaces=list(difference.replaced_by),
            deleteBeforeReplace=difference.delete_first,
        )

    @_reported
    async def Create(self, request: proto.CreateRequest, context: Context) -> proto.CreateResponse:
        kind = self._kind(request)
        news = plain_properties(request.properties)
        id, outputs = await self._operate(request, kind.create, news)
        if not request.preview:
            self._kept.add(_owned(kind, news))
        properties = message(outputs, request.properties, kind.secrets)
        return proto.CreateResponse(id="" if request.preview else id, properties=properties)

    @_reported
    async def Update(self, request: proto.UpdateRequest, context: Context) -> proto.UpdateResponse:
        kind = self._kind(request)
        olds, news = plain_properties(request.olds), plain_properties(request.news)
        try:
            outputs = await self._operate(request, kind.update, olds, news)
        except FailedUpdate as error:
            details = _kept_in_state(request, str(error), error.outputs, kind.secrets)
            context.set_trailing_metadata((("grpc-status-details-bin", details),))
            raise
        return proto.UpdateResponse(properties=message(outputs, request.news, kind.secrets))

    @_reported
    async def Read(self, request: proto.ReadRequest, context: Context) -> proto.ReadResponse:
        kind = self._kind(request)
        olds = plain_properties(request.properties)
        if not olds:  # an import, which has only an id
            raise EarshotError(
                f"resource {request.id}",
                observed="cannot be imported or read by an id",
                remedy="create it in the program",
            )
        outputs = await self._operate(request, kind.read, olds)
        if outputs is None:
            return proto.ReadResponse()
        properties = message(outputs, request.properties, kind.secrets)
        return proto.ReadResponse(id=request.id, properties=properties, inputs=request.inputs)

    @_reported
    async def Delete(self, request: proto.DeleteRequest, context: Context) -> empty_pb2.Empty:
        kind = self._kind(request)
        # inputs whose change does not update the resource are newer than its outputs
        olds = plain_properties(request.properties) | plain_properties(request.old_inputs)
        owned = _owned(kind, olds)
        # `pulumi destroy --target` compares resources, too, but checks none
        if owned in self._owners and owned in self._kept:
            return empty_pb2.Empty()
        # a resource of the program that is neither compared nor created yet is to be replaced
        act = kind.delete_before_replacement if owned in self._owners else kind.delete
        await self._operate(request, act, olds)
        return empty_pb2.Empty()

    def _kind(self, request: Any) -> Kind:
        """The kind that ``request`` names in its URN."""
        return self._registry.kind(request.urn.split("::")[2].rpartition("$")[2])

    async def _operate(self, request: Any, act: Callable[..., T], *values: Any) -> T:
        """The result of ``act``, a method of the kind, for an operation and ``values``."""
        operation = Operation(
            urn=request.urn,
            preview=getattr(request, "preview", False),
            cancelled=self._cancelled,
            log=functools.partial(self._log, request.urn),
            config=self._config,
        )
        act_with_values = functools.partial(act, operation, *values)
        return await self._run(act_with_values, self._kind(request).interrupted)

    def _check_owner(self, kind: Kind, urn: str, inputs: Properties) -> None:
        """Raises InvalidInputs if another resource of the program owns the same."""
        if not kind.OWNS or has_unknown([inputs.get(name) for name in kind.OWNS]):
            return
        owner = self._owners.setdefault(_owned(kind, inputs), urn)
        if owner != urn:
            values = ", ".join(f"{name} {inputs.get(name)}" for name in kind.OWNS)
            observed = f"found the same {values} as in {owner}"
            raise InvalidInputs({"": f"{observed}; fix: give each cluster of a stack its own name"})

    def _log(self, urn: str, text: str, is_warning: bool = False) -> None:
        severity = engine_pb2.WARNING if is_warning else engine_pb2.INFO
        line = engine_pb2.LogRequest(severity=severity, message=visible(text), urn=urn)
        with contextlib.suppress(grpc.RpcError):  # an engine that is ending accepts no more lines
            self._engine.Log(line)

    async def _run(self, act: Callable[[], T], interrupted: str = "interrupted") -> T:
        """The result of ``act``, run in a thread.

        Errors of ``act`` are raised again. If the engine cancels, this raises Interrupted with the
        text ``interrupted`` after `CANCEL_SECONDS`.
        """
        call = asyncio.get_running_loop().run_in_executor(self._threads, act)
        while not (call.done() or self._cancelled.is_set()):
            await asyncio.wait([call], timeout=0.1)
        await asyncio.wait([call], timeout=CANCEL_SECONDS)
        with contextlib.suppress(Interrupted):
            if call.done():
                return call.result()
        raise Interrupted(interrupted)


def _owned(kind: Kind, properties: Properties) -> tuple[Kind, str]:
    return kind, repr([properties.get(name) for name in kind.OWNS])


def _failures(inputs: struct_pb2.Struct, error: InvalidInputs) -> proto.CheckResponse:
    # with a property's name, Pulumi prints the property's value before the reason
    failures = [
        proto.CheckFailure(property="", reason=visible(reason)) for reason in error.reasons.values()
    ]
    return proto.CheckResponse(inputs=inputs, failures=failures)


def _kept_in_state(
    request: Any, reason: str, outputs: Properties, secrets: Collection[str]
) -> bytes:
    """The details of a failed update from which the engine takes the ``outputs`` for its state."""
    failed = provider_pb2.ErrorResourceInitFailed(
        id=request.id,
        properties=message(outputs, request.news, secrets),
        reasons=[visible(f"\n{reason}")],
        inputs=request.news,
    )
    packed = any_pb2.Any()
    packed.Pack(failed)
    code = grpc.StatusCode.UNKNOWN.value[0]
    status = status_pb2.Status(code=code, message=visible(f"\n{reason}"), details=[packed])
    return bytes(status.SerializeToString())


def serve(registry: Registry, arguments: list[str]) -> None:
    """Serves ``registry`` until the engine ends this process. ``arguments`` are from the engine."""
    logging.getLogger("grpc").setLevel(logging.CRITICAL)  # messages reach the user as errors
    exit_with_parent()
    os.environ.pop("PULUMI_CONFIG", None)  # contains secrets, which child processes would inherit
    # the engine sends SIGINT at the end of each run, and waits five seconds for the process
    signal.signal(signal.SIGINT, lambda *_: end(0))
    addresses = [text for text in arguments if not text.startswith("-")]
    if not addresses:
        raise EarshotError(
            "pulumi-resource-earshot",
            observed="was started without the address of a Pulumi engine",
            remedy="let `pulumi` start it (docs/module.md: how a program finds the plugin)",
        )
    asyncio.run(_serve(Servicer(registry, arguments, addresses[-1])))


async def _serve(servicer: Servicer) -> None:
    server = grpc.aio.server(options=_GRPC_CHANNEL_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()
