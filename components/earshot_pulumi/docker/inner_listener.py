"""Requests to a listener from inside its node's container: health, state, quorum and login."""

from __future__ import annotations

import contextlib
import io
import ssl
import struct
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import docker

from earshot.certificates.store import Store
from earshot.engine.connection import root_cause
from earshot.engine.failures import FAILURES
from earshot.errors import EarshotError
from earshot.listeners.model import Listener
from earshot.listeners.security import VALIDATOR
from earshot.listeners.terms import Mechanism, Protocol
from earshot.validation import cluster_state
from earshot.validation.cluster_state import MAX_STATE_BYTES, ClusterState, Quorum
from earshot.validation.deadline import Deadline
from earshot.validation.login import Login
from earshot.validation.wire import Exchange, ExchangeError
from earshot_pulumi.certificates import store_of
from earshot_pulumi.docker.engine_connection import (
    REFUSED,
    SECONDS,
    EngineConnection,
    TlsConnection,
    first_line,
)

MAX_FILE_BYTES: Final = 4 << 20
"""Maximum size of the tar archive in which an engine sends a PEM file."""
_LOCATIONS: Final = ("KAFKA_SSL_TRUSTSTORE_LOCATION", "KAFKA_SSL_KEYSTORE_LOCATION")
_MARK: Final = b"ears"
"""The correlation id of the health check, which the response repeats."""
_API_VERSIONS: Final = struct.pack(">ihh4sh", 10, 18, 0, _MARK, -1)
_ANY: Final = ("", "0.0.0.0", "::", "[::]")


@dataclass(frozen=True)
class NodeKeys:
    """The keys to log in as a node, from the files in its container, or else from this machine."""

    root: str
    """The folder of the stack's cluster."""
    store: str
    """The name of the node's key store."""
    host: str
    """The host in the broker's certificate."""

    def folder(self) -> Store:
        """The keys and passwords of the stack."""
        return store_of({"root": self.root})

    def context(self, client: docker.DockerClient, container: str) -> ssl.SSLContext:
        """A TLS context with the node's certificate and its authorities.

        Raises EarshotError if the files are lost, OSError if they are not PEM.
        """
        authorities, key_store = _files_of(client, container) or self._local_files()
        context = ssl.create_default_context(cadata=authorities)
        # Python 3.13 and later would reject authorities without key identifiers
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "store.pem")
            file.write_text(key_store)
            context.load_cert_chain(file)
        return context

    def _local_files(self) -> tuple[str, str]:
        store = self.folder()
        return store.authority(), store.key_store(self.store).read_text()


def reached_at(bind_host: str) -> str:
    """The host with which processes in a container reach a listener bound to ``bind_host``."""
    return "127.0.0.1" if bind_host in _ANY else bind_host.strip("[]")


@dataclass(frozen=True)
class InnerListener:
    """A listener, with the address for processes in its node's container."""

    host: str
    port: int
    plaintext: bool
    """False if Kafka answers only clients with keys or passwords."""
    keys: NodeKeys | None = None
    """Set if the listener has TLS and the stack has certificates."""
    name: str = ""
    """The listener's name."""
    mechanisms: tuple[Mechanism, ...] = ()
    """The SASL mechanisms with which the stack's users log in."""

    @classmethod
    def of(
        cls,
        listener: Listener,
        keys: NodeKeys | None = None,
        mechanisms: tuple[Mechanism, ...] = (),
    ) -> InnerListener:
        """``keys`` apply to listeners with TLS, ``mechanisms`` to those with SASL."""
        protocol = listener.protocol
        return cls(
            reached_at(listener.bind_host),
            listener.bind_port,
            protocol is Protocol.PLAINTEXT,
            keys if protocol.tls else None,
            listener.name,
            mechanisms if protocol.sasl else (),
        )

    @property
    def answers(self) -> bool:
        """True if earshot can send requests about the cluster through this listener."""
        return self.plaintext or (self.keys is not None and not self.mechanisms)

    def health(self) -> list[str]:
        """A Docker health check: Kafka must answer on this listener, or, with TLS or SASL, accept a
        connection.

        It uses only bash built-ins, so that a probe that times out leaves no process behind.
        """
        connect = f"exec 3<>/dev/tcp/{self.host}/{self.port}"
        if not self.plaintext:
            return ["CMD", "bash", "-c", connect]
        request = "".join(f"\\x{byte:02x}" for byte in _API_VERSIONS)
        # a response begins with its length and the mark; `read` stops at zero bytes
        script = (
            f"LC_ALL=C; {connect} && printf '{request}' >&3 || exit 1; "
            f"for _ in 1 2 3 4 5; do read -r -t {SECONDS} -d '' -u 3 || exit 1; "
            f"[[ $REPLY == *{_MARK.decode()} ]] && exit 0; done; exit 1"
        )
        return ["CMD", "bash", "-c", script]


@contextlib.contextmanager
def opened(
    client: docker.DockerClient, container: str, listener: InnerListener
) -> Iterator[Exchange]:
    """An exchange of Kafka requests with the broker in ``container``. Raises ExchangeError."""
    keys = listener.keys
    try:
        context = keys.context(client, container) if keys else None
        engine_connection = EngineConnection(client, container, listener.host, listener.port)
    except EarshotError as error:
        raise ExchangeError("keys", error.line) from None
    except FAILURES as reason:
        raise ExchangeError("engine", root_cause(reason)) from None
    with contextlib.closing(engine_connection):
        connection = (
            TlsConnection(engine_connection, context, keys.host)
            if keys and context
            else engine_connection
        )
        yield Exchange(connection, Deadline(SECONDS), MAX_STATE_BYTES)


def state(client: docker.DockerClient, container: str, listener: InnerListener) -> ClusterState:
    """The cluster's state as the broker at ``listener`` reports it. Raises ExchangeError."""
    with opened(client, container, listener) as exchange:
        return cluster_state.cluster_state(exchange)


def quorum(client: docker.DockerClient, container: str, listener: InnerListener) -> Quorum:
    """The quorum as its leader reports it through the broker. Raises ExchangeError."""
    with opened(client, container, listener) as exchange:
        return cluster_state.quorum(exchange)


def log_in(client: docker.DockerClient, container: str, listener: InnerListener) -> None:
    """Logs in as the validator, with each mechanism. Raises ExchangeError."""
    assert listener.keys is not None  # without certificates the stack has no users
    try:
        password = listener.keys.folder().password(VALIDATOR)
    except EarshotError as error:
        raise ExchangeError("keys", error.line) from None
    for mechanism in listener.mechanisms:
        with opened(client, container, listener) as exchange:
            Login(mechanism.value, VALIDATOR, password).log_in(exchange)


def check_health(client: docker.DockerClient, container: str, listener: InnerListener) -> None:
    """Raises ExchangeError if the health check of ``listener`` fails."""
    kind, *command = listener.health()
    assert kind == "CMD"
    try:
        code, output = client.containers.get(container).exec_run(command)
    except FAILURES as reason:
        raise ExchangeError("engine", root_cause(reason)) from None
    if code:
        text = first_line(output) or f"its health check ends with status {code}"
        raise ExchangeError("refused" if REFUSED in text else "disconnected", text)


def _files_of(client: docker.DockerClient, container: str) -> tuple[str, str] | None:
    """The trusted authorities and the key store of ``container``, as PEM; None if unknown.

    The files of this machine may be those of a later update, which the broker does not have yet.
    """
    try:
        environment = client.api.inspect_container(container)["Config"]["Env"] or ()
        variables = dict(variable.split("=", 1) for variable in environment)
        authorities, key_store = (
            text_in(client, container, variables[name]) for name in _LOCATIONS
        )
    except (tarfile.TarError, *FAILURES):
        return None
    return authorities, key_store


def text_in(client: docker.DockerClient, container: str, path: str) -> str:
    """The text of the small file at ``path`` in ``container``. Raises ValueError, TarError, or one
    of `FAILURES`."""
    chunks, archive_bytes = client.api.get_archive(container, path)[0], bytearray()
    for chunk in chunks:
        archive_bytes += chunk
        if len(archive_bytes) > MAX_FILE_BYTES:
            raise ValueError(f"{path} is not a PEM file: it has more than {MAX_FILE_BYTES} bytes")
    with tarfile.open(fileobj=io.BytesIO(archive_bytes)) as archive:
        content = archive.extractfile(archive.getmembers()[0])
        if content is None:
            raise ValueError(f"{path} is not a file")
        return content.read().decode()
