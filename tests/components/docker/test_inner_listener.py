"""How a listener is asked inside its container; the shell's part runs in a real bash."""

import contextlib
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import DockerException
from earshot_pulumi.docker import engine_connection, inner_listener
from earshot_pulumi.docker.inner_listener import InnerListener, check_health

from earshot.listeners.model import Listener
from earshot.listeners.terms import Protocol, Scope
from earshot.validation.client import Failure
from earshot.validation.cluster_state import Quorum
from earshot.validation.wire import ExchangeError
from tests.components.docker.shells import EngineWithShells
from tests.doubles.closed_port import closed_port
from tests.raised import raised
from tests.validation.test_cluster_state import KNOWN, metadata_answer, quorum_answer

Answer = Callable[[bytes], bytes]
PATIENCE = 60


def listener(bind: str = "0.0.0.0", protocol: Protocol = Protocol.PLAINTEXT) -> Listener:
    return Listener(
        name="A", protocol=protocol, scopes=(Scope.INTERNAL,), bind_host=bind, bind_port=9092,
        host="k", port=9092,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("bind", "host"),
    [
        ("0.0.0.0", "127.0.0.1"),
        ("10.0.0.7", "10.0.0.7"),
        ("kafka-1", "kafka-1"),
        ("", "127.0.0.1"),
        ("::", "127.0.0.1"),
        ("[::]", "127.0.0.1"),
        ("[::1]", "::1"),
    ],
)
def test_a_listener_is_where_it_is_bound(bind: str, host: str) -> None:
    given = listener().model_copy(update={"bind_host": bind})
    assert InnerListener.of(given) == InnerListener(host, 9092, True, name="A")


def test_only_plaintext_can_be_asked() -> None:
    assert not InnerListener.of(listener(protocol=Protocol.SSL)).plaintext
    assert InnerListener("h", 1, False).health()[-1] == "exec 3<>/dev/tcp/h/1"


def test_the_health_check_stays_what_containers_were_made_with() -> None:
    """Another one would replace every container of a stack."""
    (*_, script) = InnerListener("h", 1, True).health()
    request = r"\x00\x00\x00\x0a\x00\x12\x00\x00\x65\x61\x72\x73\xff\xff"
    assert script == (
        f"LC_ALL=C; exec 3<>/dev/tcp/h/1 && printf '{request}' >&3 || exit 1; "
        "for _ in 1 2 3 4 5; do read -r -t 5 -d '' -u 3 || exit 1; "
        "[[ $REPLY == *ears ]] && exit 0; done; exit 1"
    )


@contextlib.contextmanager
def serving(answer: Answer) -> Iterator[InnerListener]:
    """A server that takes one request and sends what ``answer`` makes of it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(ConnectionResetError):
                (size,) = struct.unpack(">i", connection.recv(4))
                reply = answer(connection.recv(size))
                if reply:
                    connection.sendall(reply)
                    connection.settimeout(60)
                    connection.recv(1)  # until the other side has hung up

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield InnerListener("127.0.0.1", server.getsockname()[1], True)
        finally:
            thread.join(60)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def replied(content: bytes) -> Answer:
    """``content`` as Kafka's answer to a request."""
    return lambda request: framed(request[4:8] + content)


@pytest.fixture
def closed() -> Iterator[InnerListener]:
    with closed_port() as address:
        yield InnerListener(*address, True)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Of an engine whose containers are this machine; at the end, no shell is left."""
    for module in (inner_listener, engine_connection):
        monkeypatch.setattr(module, "SECONDS", PATIENCE)
    engine = EngineWithShells()
    yield engine
    engine.close()


def health(at: InnerListener) -> int:
    kind, *command = at.health()
    assert kind == "CMD"
    return subprocess.run(command, capture_output=True, timeout=120).returncode


@pytest.mark.parametrize("length", [10, 256, 300, 70_000])
def test_who_repeats_the_mark_is_healthy(length: int) -> None:
    with serving(lambda request: framed(request[4:8].ljust(length, b"\0"))) as at:
        assert health(at) == 0


@pytest.mark.parametrize(
    "answer", [b"", framed(b"HTTP/1.1 400 Bad Request\r\n"), framed(b"\0\0\0\1\0\0"), b"\0\0\0"]
)
def test_who_says_nothing_or_something_else_is_not(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inner_listener, "SECONDS", 1)
    with serving(lambda _: answer) as at:
        assert health(at) != 0


def test_a_port_at_which_nothing_listens_is_not_healthy(closed: InnerListener) -> None:
    assert health(closed) != 0
    assert health(InnerListener(closed.host, closed.port, False)) != 0


def test_the_state_and_the_quorum_are_asked_through_the_shell(client: Any) -> None:
    with serving(replied(metadata_answer(KNOWN))) as at:
        assert inner_listener.state(client, "c", at) == KNOWN
    voters = {id: id for id in (1, 2, 3)}
    with serving(replied(quorum_answer(2, voters))) as at:
        assert inner_listener.quorum(client, "c", at) == Quorum(2, voters)
    (_, command) = client.commands
    assert command[:4] == ["timeout", str(PATIENCE), "bash", "-c"]
    assert command[-2:] == ["127.0.0.1", str(at.port)]


@pytest.mark.parametrize(
    ("answer", "word", "words"),
    [
        (b"", "disconnected", "it closed the connection without an answer"),
        (framed(b"nope" + bytes(20)), "not-kafka", "a request that was not sent"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "http", "something that speaks HTTP"),
        (b"\xff" * 100, "not-kafka", "it announces an answer of -1 bytes"),
    ],
)
def test_what_cannot_be_read_is_no_answer(
    client: Any, answer: bytes, word: str, words: str
) -> None:
    with serving(lambda _: answer) as at, pytest.raises(ExchangeError, match=words) as caught:
        inner_listener.quorum(client, "c", at)
    assert caught.value.failure.error == word


def test_a_port_at_which_nothing_listens_refuses(client: Any, closed: InnerListener) -> None:
    error = raised(ExchangeError, inner_listener.state, client, "c", closed)
    assert error.failure == Failure("refused", "it refused the connection")


@pytest.mark.parametrize("reason", [DockerException("no such container"), OSError("broken pipe")])
def test_an_engine_that_cannot_ask_is_no_answer(reason: Exception) -> None:
    def create(*_: object, **__: object) -> None:
        raise reason

    client: Any = SimpleNamespace(api=SimpleNamespace(exec_create=create))
    error = raised(ExchangeError, inner_listener.state, client, "c", InnerListener("h", 7, True))
    assert error.failure == Failure("engine", str(reason))


@pytest.mark.parametrize(
    ("code", "output", "failure"),
    [
        (1, b"bash: connect: Connection refused\n", "refused"),
        (1, b"stopped", "disconnected"),
        (1, b"", "disconnected"),
        (0, b"", None),
    ],
)
def test_the_health_check_runs_in_the_container(
    code: int, output: bytes, failure: str | None
) -> None:
    at = InnerListener("127.0.0.1", 9092, plaintext=False)
    asked: list[list[str]] = []

    def exec_run(command: list[str]) -> tuple[int, bytes]:
        asked.append(command)
        return code, output

    container = SimpleNamespace(exec_run=exec_run)
    client: Any = SimpleNamespace(containers=SimpleNamespace(get=lambda _: container))
    if failure is None:
        check_health(client, "c", at)
    else:
        with pytest.raises(ExchangeError) as caught:
            check_health(client, "c", at)
        assert caught.value.failure.error == failure
    assert asked == [at.health()[1:]]
