"""Ctrl-C in the work of each type of custom resource, over gRPC.

The work itself is a double that does not look whether it was cancelled, the worst case.
"""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from earshot_pulumi.provider import former, registry
from earshot_pulumi.provider.host import Servicer
from earshot_pulumi.provider.kind import Kind
from earshot_pulumi.provider.resource import DYNAMIC, type_token
from earshot_pulumi.provider.values import message
from google.protobuf import empty_pb2
from pulumi.runtime import proto
from pulumi.runtime.proto import provider_pb2_grpc

FORMER = tuple(f"{DYNAMIC}:{name}" for name in former.KINDS)
CALLS: dict[str, tuple[str, Any]] = {
    "Check": ("check", proto.CheckRequest),
    "Create": ("create", proto.CreateRequest),
    "Update": ("update", proto.UpdateRequest),
    "Read": ("read", functools.partial(proto.ReadRequest, properties=message({"made": 1}))),
    "Delete": ("delete", proto.DeleteRequest),
}
"""By call: the method of a kind that does the work, and the message."""


@asynccontextmanager
async def plugin() -> AsyncIterator[provider_pb2_grpc.ResourceProviderStub]:
    """A client of the plugin's real server, which has all kinds."""
    server = grpc.aio.server()
    servicer = Servicer(registry, [], "127.0.0.1:1")
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield provider_pb2_grpc.ResourceProviderStub(channel)
    await server.stop(0)


@pytest.mark.parametrize("call", CALLS)
def test_a_cancel_says_what_may_be_half_made_while_the_work_goes_on(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = [*map(type_token, registry.kinds()), *FORMER]
    started, released = threading.Semaphore(0), threading.Event()
    method, request = CALLS[call]

    def deaf(*_: object) -> None:
        started.release()
        released.wait(240)

    for token in tokens:
        monkeypatch.setattr(registry.kind(token), method, deaf)

    async def error(work: Any) -> str:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await work
        return caught.value.details() or ""

    async def interrupted() -> list[str]:
        async with plugin() as client:
            works = [
                asyncio.ensure_future(
                    error(getattr(client, call)(request(urn=f"urn:pulumi:dev::p::{token}::x")))
                )
                for token in tokens
            ]
            for _ in tokens:
                assert await asyncio.to_thread(started.acquire, timeout=120)
            await client.Cancel(empty_pb2.Empty())
            return await asyncio.wait_for(asyncio.gather(*works), 60)

    try:
        details = asyncio.run(interrupted())
    finally:
        released.set()
    assert dict(zip(tokens, details, strict=True)) == {
        token: f"\n{registry.kind(token).interrupted}" for token in tokens
    }


def test_each_kind_has_its_own_text_for_an_interrupt() -> None:
    for token in map(type_token, registry.kinds()):
        text = registry.kind(token).interrupted
        assert text != Kind.interrupted, token
        assert text.startswith("interrupted") and len(text) > len("interrupted: "), token
