"""What brokers are asked and what their answers mean; the shell's part runs in a real bash."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.docker import inquiry
from components.docker.inquiry import Door, Metadata, NoAnswer, Partition, Quorum
from earshot.listeners.model import Listener, Protocol, Scope

MARK = b"ears"
Answer = Callable[[bytes], bytes]


def listener(bind: str = "0.0.0.0", protocol: Protocol = Protocol.PLAINTEXT) -> Listener:
    return Listener(
        name="A", protocol=protocol, scopes=(Scope.INTERNAL,), bind_host=bind, bind_port=9092,
        host="k", port=9092,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("bind", "host"), [("0.0.0.0", "127.0.0.1"), ("10.0.0.7", "10.0.0.7"), ("kafka-1", "kafka-1")]
)
def test_a_door_is_where_the_listener_is_bound(bind: str, host: str) -> None:
    assert Door.of(listener(bind)) == Door(host, 9092, True)


def test_only_plaintext_can_be_asked() -> None:
    assert not Door.of(listener(protocol=Protocol.SSL)).plaintext
    assert Door("h", 1, False).health()[-1] == "exec 3<>/dev/tcp/h/1"


@contextlib.contextmanager
def serving(answer: Answer) -> Iterator[Door]:
    """A server that takes one request and sends what ``answer`` makes of it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(ConnectionResetError):
                (size,) = struct.unpack(">i", connection.recv(4))
                reply = answer(connection.recv(size))
                if reply:
                    connection.sendall(reply)
                    connection.settimeout(10)
                    connection.recv(1)  # until the other side has hung up

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Door("127.0.0.1", server.getsockname()[1], True)
        finally:
            thread.join(20)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def health(door: Door) -> int:
    kind, *command = door.health()
    assert kind == "CMD"
    return subprocess.run(command, capture_output=True, timeout=30).returncode


@pytest.mark.parametrize("length", [10, 256, 300, 70_000])
def test_who_repeats_the_mark_is_healthy(length: int) -> None:
    with serving(lambda request: framed(request[4:8].ljust(length, b"\0"))) as door:
        assert health(door) == 0


@pytest.mark.parametrize(
    "answer", [b"", framed(b"HTTP/1.1 400 Bad Request\r\n"), framed(b"\0\0\0\1\0\0"), b"\0\0\0"]
)
def test_who_says_nothing_or_something_else_is_not(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inquiry, "ANSWER_SECONDS", 1)
    with serving(lambda _: answer) as door:
        assert health(door) != 0


def test_where_nobody_listens_nobody_is_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert health(Door("127.0.0.1", port, True)) != 0
    assert health(Door("127.0.0.1", port, False)) != 0


def local_client() -> Any:
    """Stands in for a client of Docker's SDK: what is executed "in a container" runs here."""
    commands: dict[str, list[str]] = {}

    def create(container: str, command: list[str]) -> dict[str, str]:
        commands[container] = command
        return {"Id": container}

    def start(id: str, demux: bool) -> tuple[bytes | None, bytes | None]:
        done = subprocess.run(commands[id], capture_output=True, timeout=30)
        return done.stdout or None, done.stderr or None

    return SimpleNamespace(api=SimpleNamespace(exec_create=create, exec_start=start))


def text(value: str | None) -> bytes:
    raw = b"" if value is None else value.encode()
    return struct.pack(">h", -1 if value is None else len(raw)) + raw


def many(items: list[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def numbers(values: tuple[int, ...]) -> bytes:
    return many([struct.pack(">i", value) for value in values])


def metadata_answer(known: Metadata) -> bytes:
    """As a broker writes it: Metadata version 1."""
    brokers = [
        struct.pack(">i", id) + text(f"k{id}") + struct.pack(">i", 9092) + text(None)
        for id in known.brokers
    ]
    topics: Mapping[str, list[Partition]] = {
        name: [it for it in known.partitions if it.topic == name]
        for name in dict.fromkeys(it.topic for it in known.partitions)
    }
    listed = [
        struct.pack(">h", 0) + text(name) + b"\0" + many(
            [
                struct.pack(">hii", 0, it.number, it.leader)
                + numbers(it.replicas)
                + numbers(it.in_sync)
                for it in partitions
            ]
        )
        for name, partitions in topics.items()
    ]  # fmt: skip
    return many(brokers) + struct.pack(">i", 1) + many(listed)


KNOWN = Metadata(
    (1, 2, 3),
    (
        Partition("a", 0, 1, (1, 2), (1, 2)),
        Partition("a", 1, 2, (2, 3), (2,)),
        Partition("b", 0, -1, (3,), ()),
    ),
)


def test_metadata_is_asked_and_read() -> None:
    asked: list[bytes] = []

    def answer(request: bytes) -> bytes:
        asked.append(request)
        return framed(request[4:8] + metadata_answer(KNOWN))

    with serving(answer) as door:
        assert inquiry.metadata(local_client(), "c", door) == KNOWN
    assert asked == [struct.pack(">hh4shi", 3, 1, MARK, -1, -1)], "all topics"


def test_what_a_broker_lacks() -> None:
    assert KNOWN.behind(1) == []
    assert [str(it) for it in KNOWN.behind(3)] == ["a-1", "b-0"]
    assert [str(it) for it in KNOWN.behind(3, led=True)] == ["a-1"], "b-0 has no leader"
    assert [str(it) for it in KNOWN.held_by(2)] == ["a-0", "a-1"]


def compact(items: list[bytes]) -> bytes:
    return bytes([len(items) + 1]) + b"".join(items)


def quorum_answer(leader: int, voters: dict[int, int], error: int = 0) -> bytes:
    """As a controller writes it: DescribeQuorum version 1."""
    replicas = [struct.pack(">iqqq", id, 9, -1, when) + b"\0" for id, when in voters.items()]
    partition = (
        struct.pack(">ihiiq", 0, error, leader, 7, 9) + compact(replicas) + compact([]) + b"\0"
    )
    topic = bytes([len("x") + 1]) + b"x" + compact([partition]) + b"\0"
    return b"\0" + struct.pack(">h", 0) + compact([topic]) + b"\0"


def test_the_quorum_is_asked_and_read() -> None:
    voters = {1: 10_000, 2: 9_400, 3: -1}
    with serving(lambda it: framed(it[4:8] + quorum_answer(1, voters))) as door:
        found = inquiry.quorum(local_client(), "c", door)
    assert found == Quorum(1, voters)
    assert (found.lag(1), found.lag(2), found.lag(3), found.lag(4)) == (0, 600, None, None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "nothing came back"),
        (framed(b"nope" + bytes(20)), "not Kafka"),
        (framed(MARK + quorum_answer(1, {}, error=6)), "Kafka's error 6"),
        (framed(MARK + quorum_answer(1, {1: 1})[:-9]), "ends too early"),
    ],
)
def test_what_cannot_be_read_is_no_answer(answer: bytes, words: str) -> None:
    with serving(lambda _: answer) as door, pytest.raises(NoAnswer, match=words):
        inquiry.quorum(local_client(), "c", door)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NoAnswer, match="Connection refused"):
        inquiry.metadata(local_client(), "c", Door("127.0.0.1", port, True))


ids = st.integers(0, 2**31 - 1)
several = st.lists(ids, max_size=4).map(tuple)
partitions = st.builds(
    Partition, st.sampled_from(["a", "b", "ü"]), st.integers(0, 99), ids, several, several
)


@given(several, st.lists(partitions, max_size=5))
def test_any_metadata_is_read_back(brokers: tuple[int, ...], parts: list[Partition]) -> None:
    ordered = sorted(parts, key=lambda it: it.topic)
    known = Metadata(brokers, tuple(ordered))
    assert inquiry._read(MARK + metadata_answer(known), inquiry._metadata) == known


@given(st.integers(0, 200), st.binary(max_size=200))
def test_no_answer_is_worse_than_unreadable(cut: int, noise: bytes) -> None:
    whole = metadata_answer(KNOWN)
    for answer, parse in (
        (whole[: min(cut, len(whole) - 1)], inquiry._metadata),
        (noise, inquiry._quorum),
        (noise, inquiry._metadata),
    ):
        with contextlib.suppress(NoAnswer):
            inquiry._read(MARK + answer, parse)
