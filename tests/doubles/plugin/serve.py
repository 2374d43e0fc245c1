"""A double as a process of Pulumi: `__main__.py` of the plugin's folder calls `main`."""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from google.protobuf import any_pb2
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import Provider
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from tests.doubles.plugin.assets import make_assets, spell_out_assets
from tests.doubles.plugin.kind import PartlyCreated, ProviderError
from tests.doubles.plugin.values import wrapped

LOG = "double.log"
log = logging.getLogger(__name__)


def main(folder: Path, version: str, double: Provider) -> None:
    """Serves until the CLI stops it. The log is in ``folder``, because Pulumi does not show a
    provider's output."""
    logging.basicConfig(
        filename=folder / LOG, level=logging.INFO, format="%(asctime)s %(process)d %(message)s"
    )
    # the CLI shows what a plugin prints, and Python would print a stack trace
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(_serve(version, double, sys.argv[-1]))


async def _serve(version: str, double: Provider, engine: str) -> None:
    server = grpc.aio.server(options=_GRPC_CHANNEL_OPTIONS)
    servicer = _Servicer(sys.argv[1:], version, double, engine)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


class _Servicer(ProviderServicer):
    """Reports errors by their message only, and keeps a partly created resource in the state."""

    async def CheckConfig(self, request: Any, context: Any) -> Any:
        return await _with_reported_errors(super().CheckConfig, request, context)

    async def Configure(self, request: Any, context: Any) -> Any:
        return await _with_reported_errors(super().Configure, request, context)

    async def Invoke(self, request: Any, context: Any) -> Any:
        return await _with_reported_errors(super().Invoke, request, context)

    async def Check(self, request: Any, context: Any) -> Any:
        return await _with_reported_errors(super().Check, request, context)

    async def Diff(self, request: Any, context: Any) -> Any:
        return await _with_reported_errors(super().Diff, request, context)

    async def Create(self, request: Any, context: Any) -> Any:
        return await _with_reported_errors(super().Create, request, context)

    async def Read(self, request: Any, context: Any) -> Any:
        return await _with_reported_errors(super().Read, request, context)

    async def Update(self, request: Any, context: Any) -> Any:
        return await _with_reported_errors(super().Update, request, context)

    async def Delete(self, request: Any, context: Any) -> Any:
        return await _with_reported_errors(super().Delete, request, context)


async def _with_reported_errors(
    method: Callable[..., Awaitable[Any]], request: Any, context: Any
) -> Any:
    subject = getattr(request, "urn", "") or getattr(request, "tok", "the provider's configuration")
    for values in _structs(request):
        spell_out_assets(values)
    try:
        answer = await method(request, context)
        for values in _structs(answer):
            make_assets(values)
        return answer
    except PartlyCreated as error:
        log.warning("%s: partly created: %s", subject, error)
        details = _initialization_failed(error, request.properties)
        context.set_trailing_metadata((("grpc-status-details-bin", details),))
        await context.abort(grpc.StatusCode.UNKNOWN, str(error))
    except ProviderError as error:
        log.warning("%s: %s", subject, error)
        await context.abort(grpc.StatusCode.UNKNOWN, str(error))
    except Exception:
        log.exception("%s", subject)
        raise


def _structs(message: Any) -> list[Any]:
    """The properties in ``message``."""
    return [
        value
        for field, value in message.ListFields()
        if field.message_type is not None and field.message_type.name == "Struct"
    ]


def _initialization_failed(error: PartlyCreated, inputs: Any) -> bytes:
    """The status with which the engine gets the id of a partly created resource."""
    detail = provider_pb2.ErrorResourceInitFailed(
        id=error.id,
        properties=PropertyValue.marshal_map(wrapped(error.state)),
        reasons=[str(error)],
        inputs=inputs,
    )
    packed = any_pb2.Any()
    packed.Pack(detail)
    code = grpc.StatusCode.UNKNOWN.value[0]
    status = status_pb2.Status(code=code, message=str(error), details=[packed])
    return bytes(status.SerializeToString())
