"""A connection to a port of a container, from inside the container, with or without TLS.

A shell in the container copies bytes between the engine's connection and the port. This process
does TLS. So this machine need not reach the port, and the container needs no keys or tools.
"""

import contextlib
import ssl
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import docker

from earshot.engine.client import early_output
from earshot.tunnel.via import PASS_ON

SECONDS: Final = 5
"""The time limit of one connection, for all its requests together."""
MAX_FRAME_BYTES: Final = 2**20
"""The maximum size of one part of the output; engines send at most 32 KiB."""
MAX_ERROR_BYTES: Final = 4096
REFUSED: Final = "Connection refused"
"""Bash's message for a port on which no process listens."""
_STDOUT: Final = 1
_HEAD: Final = 8
T = TypeVar("T")


class EngineConnection:
    """A socket-like connection; the engine sends the shell's output in frames.

    https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach
    """

    def __init__(self, client: docker.DockerClient, container: str, host: str, port: int) -> None:
        """Raises DockerException or OSError if the engine cannot run the shell."""
        command = ["timeout", str(SECONDS), "bash", "-c", PASS_ON, "pass", host, str(port)]
        id = client.api.exec_create(container, command, stdin=True)["Id"]
        self._stream: Any = client.api.exec_start(id, socket=True)
        self._socket = getattr(self._stream, "_sock", self._stream)
        self._frames, self._output, self._errors = bytearray(), bytearray(), bytearray()
        self._end = time.monotonic() + 2 * SECONDS
        self._early = early_output(self._stream)

    def settimeout(self, seconds: float, /) -> None:
        self._socket.settimeout(seconds)

    def sendall(self, data: bytes, /) -> None:
        # if the shell has ended, `recv` raises the reason
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def recv(self, max_bytes: int, /) -> bytes:
        """At most ``max_bytes`` of output. Raises OSError with the error of a failed shell."""
        while not self._output and self._read_frames():
            pass
        data = bytes(self._output[:max_bytes])
        del self._output[:max_bytes]
        if not data and (reason := first_line(self._errors)):
            raise ConnectionRefusedError if REFUSED in reason else OSError(reason)
        return data

    def _read_frames(self) -> bool:
        """Reads what has arrived; False at the end of the connection."""
        if time.monotonic() > self._end:  # parts without output may arrive for ever
            raise OSError(f"no output within {2 * SECONDS} s")
        chunk, frames = self._early or self._socket.recv(65536), self._frames
        self._early = b""
        frames += chunk
        while len(frames) >= _HEAD:
            size = int.from_bytes(frames[4:_HEAD], "big")
            if size > MAX_FRAME_BYTES:
                raise OSError(f"the engine announces {size} bytes of output at once")
            end = _HEAD + size
            if len(frames) < end:
                break
            stream = self._output if frames[0] == _STDOUT else self._errors
            stream += frames[_HEAD:end]
            del frames[:end], self._errors[MAX_ERROR_BYTES:]
        return bool(chunk)

    def close(self) -> None:
        # the response keeps the socket of an engine with TLS open, and cannot be closed after it
        if (response := getattr(self._stream, "_response", None)) is not None:
            response.close()
        self._stream.close()
        self._socket.close()


class TlsConnection:
    """TLS over ``connection``. The peer's certificate must be for ``host``."""

    def __init__(self, connection: EngineConnection, context: ssl.SSLContext, host: str) -> None:
        self._connection = connection
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=host)

    def settimeout(self, seconds: float, /) -> None:
        self._connection.settimeout(seconds)

    def sendall(self, data: bytes, /) -> None:
        self._until(self._tls.do_handshake)  # does nothing after the first time
        self._until(lambda: self._tls.write(data))

    def recv(self, max_bytes: int, /) -> bytes:
        return self._until(lambda: self._tls.read(max_bytes))

    def _until(self, step: Callable[[], T]) -> T:
        """The result of ``step``, repeated until the peer has sent the bytes that it needs."""
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError as error:
                raise OSError(error.verify_message) from None
            finally:
                if self._out.pending:
                    self._connection.sendall(self._out.read())
            chunk = self._connection.recv(65536)
            if not chunk:
                raise OSError("no answer arrived")
            self._in.write(chunk)


def first_line(errors: bytes | bytearray) -> str:
    """The first line on a command's stderr that is not blank, or an empty string."""
    lines = errors.decode(errors="replace").split("\n")
    return next((line for line in lines if line.strip()), "")
