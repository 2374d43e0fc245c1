"""TLS that is done here, over bytes that a command in a container passes on."""

import contextlib
import socket as sockets
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPResponse
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from earshot_pulumi.docker import engine_connection
from earshot_pulumi.docker.engine_connection import EngineConnection
from earshot_pulumi.docker.inner_listener import (
    MAX_FILE_BYTES,
    InnerListener,
    NodeKeys,
    opened,
)

from earshot.certificates.authority import Subject
from earshot.certificates.store import Store
from earshot.certificates.target import TargetCertificates
from earshot.engine.connection import connect
from earshot.listeners.security import NODE, NODES
from earshot.placement.standpoint import CandidateEngine
from earshot.remote.archive import archive
from earshot.validation.cluster_state import MAX_STATE_BYTES
from earshot.validation.wire import ExchangeError
from tests.doubles.engine_server import UPGRADED, Answer, endless, engine_server, frame
from tests.raised import raised

NUMBER = b"\0\0\0\1"
"""Of the first request on a connection, which its answer repeats."""
RESPONSE = NUMBER + bytes(range(256)) * 200
"""More than one record of TLS holds."""


def issued(root: Path) -> Store:
    store = Store(root / "security")
    nodes = {"node-1": ("kafka-1",)}
    store.fill(TargetCertificates("s", nodes, Subject(NODE, NODES), (), 90, 30), datetime.now(UTC))
    return store


class EngineDouble:
    """Runs the command of an exchange: passes bytes on to a broker, in frames as an engine does."""

    def __init__(self, store: Store, response: bytes) -> None:
        self.asked: list[bytes] = []
        self.commands: list[list[str]] = []
        self._store, self._response = store, response
        self.announced = len(RESPONSE)
        self.errors = b"said"
        """What the command writes to stderr before each answer."""
        self.files: dict[str, str] = {}
        """Files of the container by path; without any, its environment names none."""
        self.api = SimpleNamespace(
            exec_create=self._create,
            exec_start=self._start,
            inspect_container=self._inspect,
            get_archive=self._archive,
        )

    def _inspect(self, container: str) -> Any:
        names = ("KAFKA_SSL_TRUSTSTORE_LOCATION", "KAFKA_SSL_KEYSTORE_LOCATION")
        located = zip(names, self.files, strict=False)
        return {"Config": {"Env": [f"{name}={path}" for name, path in located]}}

    def _archive(self, container: str, path: str) -> Any:
        packed = archive({Path(path).name: self.files[path].encode()})
        return iter((packed[:300], packed[300:])), {}

    def _create(self, container: str, command: list[str], stdin: bool) -> dict[str, str]:
        assert container == "kafka-1" and stdin
        self.commands.append(command)
        return {"Id": "exec"}

    def _start(self, id: str, socket: bool) -> Any:
        assert id == "exec" and socket
        here, there = sockets.socketpair()
        threading.Thread(target=self._broker, args=(there,), daemon=True).start()
        return SimpleNamespace(_sock=here, close=lambda: None)

    def _broker(self, connection: sockets.socket) -> None:
        context = ssl.create_default_context(
            ssl.Purpose.CLIENT_AUTH, cadata=self._store.authority()
        )
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self._store.key_store("node-1"))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        with connection, contextlib.suppress(OSError):
            steps = (tls.do_handshake, lambda: self.asked.append(tls.read()), self._answer(tls))
            for step in steps:
                while True:
                    with contextlib.suppress(ssl.SSLWantReadError):
                        step()
                        break
                    self._send(connection, outgoing)
                    if not (chunk := connection.recv(65536)):
                        return
                    incoming.write(chunk)
            self._send(connection, outgoing)

    def _answer(self, tls: ssl.SSLObject) -> Any:
        return lambda: tls.write(self.announced.to_bytes(4, "big") + self._response)

    def _send(self, connection: sockets.socket, outgoing: ssl.MemoryBIO) -> None:
        connection.sendall(b"\2\0\0\0" + len(self.errors).to_bytes(4, "big") + self.errors)
        while content := outgoing.read(5000):
            connection.sendall(b"\1\0\0\0" + len(content).to_bytes(4, "big") + content)


REQUEST = (17).to_bytes(4, "big") + b"\0\x12\0\0" + NUMBER + b"\0\7earshot"


def asked(engine: EngineDouble, root: Path, host: str = "kafka-1") -> bytes:
    keys = NodeKeys(str(root), "node-1", host)
    listener = InnerListener("127.0.0.1", 19092, plaintext=False, keys=keys)
    with opened(cast(Any, engine), "kafka-1", listener) as exchange:
        return exchange.request(18, 0, b"").unread_bytes


def test_a_broker_that_wants_a_certificate_answers(root: Path) -> None:
    engine = EngineDouble(issued(root), RESPONSE)
    assert asked(engine, root) == RESPONSE[4:]
    assert engine.asked == [REQUEST]
    ((*_, host, port),) = engine.commands
    assert (host, port) == ("127.0.0.1", "19092")
    assert "PRIVATE" not in str(engine.commands)


def test_the_files_of_the_container_count_before_those_of_this_machine(root: Path) -> None:
    """A later update may have replaced the files of this machine while the broker runs on."""
    store = issued(root / "before")
    engine = EngineDouble(store, RESPONSE)
    engine.files = {
        "/keys/1-ca.pem": store.authority(),
        "/keys/1-node-1.pem": store.key_store("node-1").read_text(),
    }
    issued(root)
    assert asked(engine, root) == RESPONSE[4:]
    engine.files = {}
    with pytest.raises(ExchangeError, match="certificate"):
        asked(engine, root)


def test_a_file_of_the_container_that_is_too_long_is_not_read(root: Path) -> None:
    store = issued(root)
    engine = EngineDouble(store, RESPONSE)
    engine.files = {"/keys/1-ca.pem": store.authority(), "/keys/1-node-1.pem": "endless"}
    sent: list[int] = []

    def endless(_container: str, path: str) -> Any:
        def chunks() -> Iterator[bytes]:
            while len(sent) < 100:
                sent.append(1)
                yield bytes(MAX_FILE_BYTES // 4)

        return chunks(), {}

    engine.api.get_archive = endless
    assert asked(engine, root) == RESPONSE[4:], "with the files of this machine"
    assert len(sent) == 5


def test_a_broker_with_a_certificate_for_another_name_is_told_nothing(root: Path) -> None:
    engine = EngineDouble(issued(root), RESPONSE)
    with pytest.raises(ExchangeError, match="kafka-2"):
        asked(engine, root, host="kafka-2")
    assert engine.asked == []


@pytest.mark.parametrize(("response", "changes", "reason"), [
    (RESPONSE[:100], {"errors": b""}, "no answer arrived"),
    (b"", {"errors": b"\npass: connect: Connection refused\n"
                     b"pass: /dev/tcp/127.0.0.1/19092: refused\n"}, "it refused the connection"),
    (RESPONSE, {"announced": MAX_STATE_BYTES + 1}, "it announces an answer of 67,108,865 bytes"),
], ids=["ends too early", "the command has the reason", "too long to be read"])  # fmt: skip
def test_an_answer_that_is_none_has_its_reason(
    root: Path, response: bytes, changes: dict[str, Any], reason: str
) -> None:
    engine = EngineDouble(issued(root), response)
    vars(engine).update(changes)
    with pytest.raises(ExchangeError, match=reason):
        asked(engine, root)


def test_keys_that_are_lost_are_named(root: Path) -> None:
    engine, keys = EngineDouble(issued(root), RESPONSE), root / "security" / "node-1.pem"
    keys.unlink()
    assert str(raised(ExchangeError, asked, engine, root)) == (
        f"{keys}: cannot be read (No such file or directory); fix: deploy the stack again: missing "
        "files are created again"
    )


class TlsSocket(sockets.socket):
    """As of an engine with TLS: open as long as the response reads from it."""


def close_connection_over(opened: Any) -> None:
    """Closes a connection for which the engine has opened a socket."""
    api = SimpleNamespace(
        exec_create=lambda *_, **__: {"Id": "exec"}, exec_start=lambda *_, **__: opened
    )
    client: Any = SimpleNamespace(api=api)
    EngineConnection(client, "kafka-1", "127.0.0.1", 19092).close()


def test_no_socket_to_an_engine_with_tls_stays_open() -> None:
    here, there = sockets.socketpair()
    opened: Any = TlsSocket(fileno=here.detach())
    reader = opened.makefile("rb")
    opened._response = SimpleNamespace(close=reader.close)
    with there:
        close_connection_over(opened)
        assert opened.fileno() == -1


def test_the_response_of_an_engine_without_tls_is_closed_before_its_socket() -> None:
    here, there = sockets.socketpair()
    response: Any = HTTPResponse(here)
    opened = response.fp.raw
    opened._response = response
    with there:
        close_connection_over(opened)
        assert here.fileno() == -1 and opened.closed


EXECUTE = "POST /v1.41/exec/[^/]+/start"


def received(answer: Answer) -> bytes:
    """What a connection receives first from an engine that answers its command with ``answer``."""
    with (
        engine_server({EXECUTE: answer}) as address,
        connect(CandidateEngine(engine=address), {}) as client,
    ):
        connection = EngineConnection(client, "kafka-1", "127.0.0.1", 19092)
        with contextlib.closing(connection):
            connection.settimeout(30)
            return connection.recv(100)


def test_output_that_arrives_with_the_headers_is_not_lost() -> None:
    assert received(UPGRADED + frame(b"text")) == b"text"
    refused = b"bash: connect: Connection refused\n"
    with pytest.raises(ConnectionRefusedError):
        received(UPGRADED + frame(refused, 2))


@pytest.mark.parametrize(("answer", "error"), [
    (endless(UPGRADED, frame(b"")), "no output within 0.4 s"),
    (endless(UPGRADED, frame(b"x" * 5000, 2)), "no output within 0.4 s"),
    (UPGRADED + b"\1\0\0\0\xff\xff\xff\xff", "announces 4294967295 bytes"),
], ids=["nothing", "errors", "announces 4 GiB"])  # fmt: skip
def test_an_engine_that_sends_no_output_is_not_awaited_for_ever(
    answer: Answer, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_connection, "SECONDS", 0.2)
    with pytest.raises(OSError, match=error):
        received(answer)
