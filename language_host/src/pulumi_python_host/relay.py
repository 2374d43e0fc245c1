"""A relay between the engine and a policy pack, which gives the pack its stack.

pulumi-policy reads project, stack and configuration from environment variables when it starts, but
the engine sends them only afterwards, in ``ConfigureStack``. So the relay listens instead of the
pack, starts the pack once it knows the stack, and forwards every call unchanged.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import grpc
from grpc import ServicerContext
from pulumi.runtime.proto import analyzer_pb2

from pulumi_python_host.children import Children
from pulumi_python_host.output import Chunk, output_of

ANSWER_SECONDS = 2.0
# The limits of Pulumi's own SDK: all properties of a resource are in one message.
MESSAGE_BYTES = 400 * 1024 * 1024
CHANNEL_OPTIONS = [
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
]
# Run and every RunPlugin occupy a worker until their process ends.
WORKERS = 64

Start = Callable[[Mapping[str, str]], "subprocess.Popen[bytes]"]


class PackError(Exception):
    """The pack does not answer; the text is for the user."""


class PackRelay:
    """Serves ``pulumirpc.Analyzer`` on its own port and forwards calls to the pack."""

    def __init__(self, start: Start, children: Children, *, name: str) -> None:
        self._start = start
        self._children = children
        self._name = name
        self._packs: SimpleQueue[subprocess.Popen[bytes] | OSError | None] = SimpleQueue()
        """The pack, once it was started; or why it was not; None after `cancel`."""
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        """The first line that the pack prints."""
        self._lock = threading.Lock()
        self._channel: Any = None
        self._failure: PackError | None = None
        self._server = grpc.server(
            ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="relay"),
            options=CHANNEL_OPTIONS,
        )

    def serve(self) -> Iterator[Chunk]:
        """The relay's port, which the engine gets as the pack's, then the output of the pack.

        Raises OSError if the pack cannot be started.
        """
        try:
            yield Chunk(stdout=f"{self._listen()}\n".encode())
            pack = self._packs.get()
            if isinstance(pack, OSError):
                raise pack
            if pack is not None:
                yield from output_of(pack, self._children, self._lines.put)
        finally:
            self._close()

    def cancel(self) -> None:
        """End the output, and the calls that wait for the pack's first line."""
        self._packs.put(None)
        self._lines.put(b"")

    def _listen(self) -> int:
        service = analyzer_pb2.DESCRIPTOR.services_by_name["Analyzer"]
        # Messages are not decoded, so that fields unknown to this version pass too.
        handlers = {
            method.name: grpc.unary_unary_rpc_method_handler(self._handler(method.name))
            for method in service.methods
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service.full_name, handlers),)
        )
        port: int = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        return port

    def _close(self) -> None:
        # A call that is about to report why the pack ended gets time for it, without a wait here.
        self._server.stop(grace=ANSWER_SECONDS)
        if self._channel is not None:
            self._channel.close()

    def _handler(self, method: str) -> Callable[[bytes, Any], bytes]:
        def call(message: bytes, context: ServicerContext) -> bytes:
            # The pack has the engine's address as an argument. An empty response has no bytes.
            if method == "Handshake" or (method == "Cancel" and self._channel is None):
                return b""
            stack: Mapping[str, str] = {}
            if method == "ConfigureStack":
                stack = stack_variables(
                    analyzer_pb2.AnalyzerStackConfigureRequest.FromString(message)
                )
            try:
                pack = self._connect(stack)
                answer: bytes = pack.unary_unary(f"/pulumirpc.Analyzer/{method}")(message)
                return answer
            except PackError as error:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
            except grpc.RpcError as error:
                context.set_trailing_metadata(error.trailing_metadata() or ())
                context.abort(error.code(), error.details())
            raise AssertionError("abort raises")

        return call

    def _connect(self, stack: Mapping[str, str]) -> Any:
        """The channel to the pack. The first call starts the pack, and others wait here."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._channel is None:
                try:
                    port = self._start_pack(stack)
                except PackError as error:
                    self._failure = error
                    raise
                self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", CHANNEL_OPTIONS)
            return self._channel

    def _start_pack(self, stack: Mapping[str, str]) -> int:
        try:
            child = self._start(stack)
        except OSError as error:
            self._packs.put(error)
            raise PackError(f"policy pack {self._name} could not be started: {error}") from None
        self._packs.put(child)
        line = self._lines.get()
        if line.isdigit() and 0 < int(line) < 65536:
            return int(line)
        self._children.stop(child)
        text = f"it printed {line.decode(errors='replace')!r}" if line else "it ended without one"
        raise PackError(
            f"could not read policy pack port: {self._name} has to print it first, but {text}"
        )


def stack_variables(request: analyzer_pb2.AnalyzerStackConfigureRequest) -> dict[str, str]:
    """The stack as pulumi-policy reads it: environment variables at start-up.

    The configuration is decrypted, secrets included, as it is for the program.
    """
    return {
        "PULUMI_PROJECT": request.project,
        "PULUMI_STACK": request.stack,
        "PULUMI_ORGANIZATION": request.organization or "organization",
        "PULUMI_DRY_RUN": "true" if request.dry_run else "false",
        "PULUMI_CONFIG": json.dumps(dict(request.config)),
    }
