"""The gRPC server of the service, which ends by a signal or with the engine's process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message_factory import GetMessageClass
from pulumi.runtime.proto import language_pb2

from toolchain.language_host.children import Children
from toolchain.language_host.relay import CHANNEL_OPTIONS, WORKERS
from toolchain.language_host.service import LanguageRuntime

ENGINE_POLL_SECONDS = 0.5


def serve(*, engine_address: str, engine_pid: int, bin_directory: Path) -> int:
    """Serve until a signal (INT, TERM, HUP) or the engine's end; then end this process's children.

    The first line on stdout is the port. The user would see any later line, so none is printed.
    """
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: ending.set())

    children = Children()
    service = LanguageRuntime(children, engine_address=engine_address, bin_directory=bin_directory)
    server = grpc.server(ThreadPoolExecutor(WORKERS), options=CHANNEL_OPTIONS)
    server.add_generic_rpc_handlers((_handlers(service),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the engine is gone already
        ending.set()

    # Not by PR_SET_PDEATHSIG: that signals the end of the engine's *thread*, and Go's threads end
    # early. Only the parent's pid shows that the engine is gone.
    while not ending.wait(ENGINE_POLL_SECONDS):
        if os.getppid() != engine_pid:
            break
    children.stop_all()
    server.stop(grace=0.2).wait(1)
    os._exit(0)  # a worker still inside a call must not hold up the exit


def _handlers(service: LanguageRuntime) -> Any:
    """Handlers of the methods that ``service`` has; gRPC answers UNIMPLEMENTED for the others.

    The generated servicer class would raise for those, and the user would see the traceback.
    """
    descriptor = language_pb2.DESCRIPTOR.services_by_name["LanguageRuntime"]
    handlers = {}
    for method in descriptor.methods:
        implementation = getattr(service, method.name, None)
        if implementation is None:
            continue
        make = (
            grpc.unary_stream_rpc_method_handler
            if method.server_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        handlers[method.name] = make(
            implementation,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )
    return grpc.method_handlers_generic_handler(descriptor.full_name, handlers)
