"""A connection to a port of a container from inside of it, with TLS or without.

In the container a shell only passes bytes on between the engine's connection and the port, and TLS
is done here. So no port has to be reachable from this machine, and no key or tool is needed there.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable
from typing import Any, Final, TypeVar

import docker

from earshot.tunnel.via import PASS_ON

SECONDS: Final = 5
"""The time limit of one connection, for all its requests together."""
MOST_ERRORS: Final = 4096
REFUSED: Final = "Connection refused"
"""What bash says of a port at which nothing listens."""
_STDOUT: Final = 1
_HEAD: Final = 8
T = TypeVar("T")


class EngineConnection:
    """Used like a socket; an engine sends what the shell writes in frames.

    https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach
    """

    def __init__(self, client: docker.DockerClient, container: str, host: str, port: int) -> None:
        """Raises DockerException or OSError where the engine cannot run the shell."""
        command = ["timeout", str(SECONDS), "bash", "-c", PASS_ON, "pass", host, str(port)]
        id = client.api.exec_create(container, command, stdin=True)["Id"]
        self._opened: Any = client.api.exec_start(id, socket=True)
        self._socket = getattr(self._opened, "_sock", self._opened)
        self._frames, self._output, self._errors = bytearray(), bytearray(), bytearray()

    def settimeout(self, seconds: float, /) -> None:
        self._socket.settimeout(seconds)

    def sendall(self, data: bytes, /) -> None:
        # a shell that has ended takes nothing, and `recv` says why
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def recv(self, most: int, /) -> bytes:
        """Raises OSError with what the shell complains of, where nothing comes back."""
        while not self._output and self._read_on():
            pass
        part = bytes(self._output[:most])
        del self._output[:most]
        if not part and (reason := first_line(self._errors)):
            raise ConnectionRefusedError if REFUSED in reason else OSError(reason)
        return part

    def _read_on(self) -> bool:
        """False at the end."""
        chunk, frames = self._socket.recv(65536), self._frames
        frames += chunk
        while len(frames) >= _HEAD:
            end = _HEAD + int.from_bytes(frames[4:_HEAD], "big")
            if len(frames) < end:
                break
            stream = self._output if frames[0] == _STDOUT else self._errors
            stream += frames[_HEAD:end]
            del frames[:end], self._errors[MOST_ERRORS:]
        return bool(chunk)

    def close(self) -> None:
        self._opened.close()
        self._socket.close()


class TlsConnection:
    """TLS over ``connection``, with a peer whose certificate is for ``host``."""

    def __init__(self, connection: EngineConnection, context: ssl.SSLContext, host: str) -> None:
        self._connection = connection
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=host)

    def settimeout(self, seconds: float, /) -> None:
        self._connection.settimeout(seconds)

    def sendall(self, data: bytes, /) -> None:
        self._until(self._tls.do_handshake)  # does nothing once it is done
        self._until(lambda: self._tls.write(data))

    def recv(self, most: int, /) -> bytes:
        return self._until(lambda: self._tls.read(most))

    def _until(self, step: Callable[[], T]) -> T:
        """The result of ``step``, once the other side has sent what it waits for."""
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
                raise OSError("nothing came back")
            self._in.write(chunk)


def first_line(errors: bytes | bytearray) -> str:
    """The first line on a command's stderr that is not blank, or an empty string."""
    lines = errors.decode(errors="replace").split("\n")
    return next((line for line in lines if line.strip()), "")
