"""Requests to a broker over TLS, from inside its container.

TLS is done here, where the keys are; in the container a shell only passes bytes on between the
engine's connection and the broker's port. So no key is needed there, and no tool for TLS.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import docker

if TYPE_CHECKING:
    from earshot.certificates.store import Store

SECONDS: Final = 5
_STDOUT: Final = 1
# ends with the first of the two directions, and with `timeout` in any case
_PASS_ON: Final = """exec 3<>"/dev/tcp/$1/$2" || exit 1
cat <&3 & trap "kill $!" EXIT
cat >&3"""
T = TypeVar("T")


@dataclass(frozen=True)
class NodeKeys:
    """Files of this machine with which to log in as a node."""

    root: str
    """The folder of the stack's cluster."""
    store: str
    """What the node's key store is called."""
    host: str
    """The name that the broker's certificate is to be for."""

    def folder(self) -> Store:
        """The keys and passwords of the stack."""
        from components.certificates import store_of  # slow to import

        return store_of({"root": self.root})

    def context(self) -> ssl.SSLContext:
        """Raises EarshotError where the files are lost, OSError where they are no PEM."""
        store = self.folder()
        context = ssl.create_default_context(cadata=store.authority())
        context.load_cert_chain(store.key_store(self.store))
        return context


@contextlib.contextmanager
def exchange(
    client: docker.DockerClient, container: str, address: tuple[str, int], keys: NodeKeys
) -> Iterator[Callable[[bytes], bytes]]:
    """A connection: a function from a whole request of Kafka's protocol to its response, without
    its length.

    Raises OSError where the broker is not reached, is another one, or lets nobody in.
    """
    context, (host, port) = keys.context(), address
    command = ["timeout", str(SECONDS), "bash", "-c", _PASS_ON, "pass", host, str(port)]
    id = client.api.exec_create(container, command, stdin=True)["Id"]
    opened: Any = client.api.exec_start(id, socket=True)
    connection = getattr(opened, "_sock", opened)
    try:
        connection.settimeout(SECONDS)
        yield _Exchange(connection, context, keys.host).response
    finally:
        opened.close()
        connection.close()


class _Exchange:
    """TLS over the connection of a command that an engine runs."""

    def __init__(self, connection: Any, context: ssl.SSLContext, host: str) -> None:
        self._connection = connection
        self._chunks = _output(connection)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=host)

    def response(self, sent: bytes) -> bytes:
        self._until(self._tls.do_handshake)  # does nothing once it is done
        self._until(lambda: self._tls.write(sent))
        size = int.from_bytes(self._exactly(4), "big")
        return self._exactly(size)

    def _exactly(self, count: int) -> bytes:
        found = _read(lambda rest: self._until(lambda: self._tls.read(rest)), count)
        if len(found) < count:
            raise OSError("the broker closed the connection")
        return found

    def _until(self, step: Callable[[], T]) -> T:
        """The result of ``step``, once the other side has sent what it waits for."""
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                pass
            finally:
                if self._out.pending:
                    self._connection.sendall(self._out.read())
            chunk = next(self._chunks, b"")
            if not chunk:
                raise OSError("nothing came back")
            self._in.write(chunk)


def _output(connection: Any) -> Iterator[bytes]:
    """What the command writes, out of the frames in which an engine sends it.

    https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach
    """
    while header := _read(connection.recv, 8):
        content = _read(connection.recv, int.from_bytes(header[4:], "big"))
        if header[0] == _STDOUT:
            yield content


def _read(receive: Callable[[int], bytes], count: int) -> bytes:
    """``count`` bytes; none where the other side has ended."""
    found = b""
    while len(found) < count:
        part = receive(count - len(found))
        if not part:
            return b""
        found += part
    return found
