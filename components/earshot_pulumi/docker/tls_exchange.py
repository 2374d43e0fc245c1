"""Requests to a broker over TLS, from inside its container.

TLS is done here; in the container a shell only passes bytes on between the
engine's connection and the broker's port. So no key is needed there, and no tool for TLS.
"""

from __future__ import annotations

import contextlib
import io
import ssl
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import docker
from docker.errors import DockerException

if TYPE_CHECKING:
    from earshot.certificates.store import Store

SECONDS: Final = 5
MOST_BYTES: Final = 64 << 20
"""A longer response is not read: metadata of a million partitions is shorter."""
MOST_ERRORS: Final = 4096
MOST_FILE_BYTES: Final = 4 << 20
"""Of a key store or of trusted authorities, as the archive in which an engine sends it."""
_STDOUT: Final = 1
_LOCATIONS: Final = ("KAFKA_SSL_TRUSTSTORE_LOCATION", "KAFKA_SSL_KEYSTORE_LOCATION")
# ends with the first of the two directions, and with `timeout` in any case
_PASS_ON: Final = """exec 3<>"/dev/tcp/$1/$2" || exit 1
cat <&3 & trap "kill $!" EXIT
cat >&3"""
T = TypeVar("T")


@dataclass(frozen=True)
class NodeKeys:
    """How to log in as a node: with the files that its container has, or else this machine."""

    root: str
    """The folder of the stack's cluster."""
    store: str
    """What the node's key store is called."""
    host: str
    """The name that the broker's certificate is to be for."""

    def folder(self) -> Store:
        """The keys and passwords of the stack."""
        from earshot_pulumi.certificates import store_of  # slow to import

        return store_of({"root": self.root})

    def context(self, client: docker.DockerClient, container: str) -> ssl.SSLContext:
        """Raises EarshotError where the files are lost, OSError where they are no PEM."""
        trusted, own = _files_of(client, container) or self._of_this_machine()
        context = ssl.create_default_context(cadata=trusted)
        # from Python 3.13 on, it would refuse authorities without key identifiers
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "store.pem")
            file.write_text(own)
            context.load_cert_chain(file)
        return context

    def _of_this_machine(self) -> tuple[str, str]:
        store = self.folder()
        return store.authority(), store.key_store(self.store).read_text()


def _files_of(client: docker.DockerClient, container: str) -> tuple[str, str] | None:
    """The trusted authorities and the key store with which ``container`` runs; None: not known.

    The files of this machine may be those of a later update, which the broker does not know.
    """
    try:
        listed = client.api.inspect_container(container)["Config"]["Env"] or ()
        variables = dict(item.split("=", 1) for item in listed)
        trusted, own = (_file(client, container, variables[name]) for name in _LOCATIONS)
    except (DockerException, OSError, KeyError, ValueError, tarfile.TarError):
        return None
    return trusted, own


def _file(client: docker.DockerClient, container: str, path: str) -> str:
    chunks, packed = client.api.get_archive(container, path)[0], bytearray()
    for chunk in chunks:
        packed += chunk
        if len(packed) > MOST_FILE_BYTES:
            raise ValueError(f"{path} is no PEM file: it has more than {MOST_FILE_BYTES} bytes")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        content = archive.extractfile(archive.getmembers()[0])
        if content is None:
            raise ValueError(f"{path} is no file")
        return content.read().decode()


@contextlib.contextmanager
def exchange(
    client: docker.DockerClient, container: str, address: tuple[str, int], keys: NodeKeys
) -> Iterator[Callable[[bytes], bytes]]:
    """A connection: a function from a whole request of Kafka's protocol to its response, without
    its length.

    Raises OSError where the broker is not reached, is another one, or refuses the login.
    """
    context, (host, port) = keys.context(client, container), address
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
        self._connection, self._errors = connection, bytearray()
        self._chunks = _output(connection, self._errors)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=host)

    def response(self, sent: bytes) -> bytes:
        self._until(self._tls.do_handshake)  # does nothing once it is done
        self._until(lambda: self._tls.write(sent))
        size = int.from_bytes(self._exactly(4), "big")
        if size > MOST_BYTES:
            raise OSError(f"what answered is not Kafka: it announces a response of {size} bytes")
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
                raise OSError(first_line(self._errors) or "nothing came back")
            self._in.write(chunk)


def first_line(errors: bytes | bytearray) -> str:
    """The first line on a command's stderr that is not blank, or an empty string."""
    lines = errors.decode(errors="replace").split("\n")
    return next((line for line in lines if line.strip()), "")


def _output(connection: Any, errors: bytearray) -> Iterator[bytes]:
    """The stdout of a command, from the frames in which an engine sends it.

    Adds its stderr to ``errors``.

    https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach
    """
    while header := _read(connection.recv, 8):
        content = _read(connection.recv, int.from_bytes(header[4:], "big"))
        if header[0] == _STDOUT:
            yield content
        elif len(errors) < MOST_ERRORS:
            errors += content


def _read(receive: Callable[[int], bytes], count: int) -> bytes:
    """``count`` bytes; none where the other side has ended."""
    found = bytearray()
    while len(found) < count:
        part = receive(count - len(found))
        if not part:
            return b""
        found += part
    return bytes(found)
