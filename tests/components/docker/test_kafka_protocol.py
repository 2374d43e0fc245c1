"""What brokers are asked and what their answers mean; the shell's part runs in a real bash."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import DockerException
from earshot_pulumi.docker import kafka_protocol
from earshot_pulumi.docker.kafka_protocol import (
    InnerListener,
    Metadata,
    NoAnswer,
    Partition,
    Quorum,
)
from earshot_pulumi.docker.tls_exchange import NodeKeys
from hypothesis import given
from hypothesis import strategies as st

from earshot.listeners.model import Listener
from earshot.listeners.terms import Protocol, Scope

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
    assert InnerListener.of(listener(bind)) == InnerListener(host, 9092, True, name="A")


def test_only_plaintext_can_be_asked() -> None:
    assert not InnerListener.of(listener(protocol=Protocol.SSL)).plaintext
    assert InnerListener("h", 1, False).health()[-1] == "exec 3<>/dev/tcp/h/1"


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
                    connection.settimeout(10)
                    connection.recv(1)  # until the other side has hung up

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield InnerListener("127.0.0.1", server.getsockname()[1], True)
        finally:
            thread.join(20)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def health(door: InnerListener) -> int:
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
    monkeypatch.setattr(kafka_protocol, "ANSWER_SECONDS", 1)
    with serving(lambda _: answer) as door:
        assert health(door) != 0


def test_where_nobody_listens_nobody_is_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert health(InnerListener("127.0.0.1", port, True)) != 0
    assert health(InnerListener("127.0.0.1", port, False)) != 0


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
    """As a broker writes it: Metadata version 2."""
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
    return many(brokers) + text(known.cluster_id) + struct.pack(">i", 1) + many(listed)


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
        assert kafka_protocol.metadata(local_client(), "c", door) == KNOWN
    assert asked == [struct.pack(">hh4shi", 3, 2, MARK, -1, -1)], "all topics"


def test_what_a_broker_lacks() -> None:
    assert KNOWN.behind(1) == []
    assert [str(it) for it in KNOWN.behind(3)] == ["a-1", "b-0"]
    assert [str(it) for it in KNOWN.behind(3, led=True)] == ["a-1"], "b-0 has no leader"


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
        found = kafka_protocol.quorum(local_client(), "c", door)
    assert found == Quorum(1, voters)
    assert (found.lag(1), found.lag(2), found.lag(3), found.lag(4)) == (0, 600, None, None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "nothing came back"),
        (framed(b"nope" + bytes(20)), "not Kafka"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not Kafka: it announces a response of 1213486160"),
        (b"\xff" * 100, "not Kafka: it announces a response of 4294967295 bytes"),
        (framed(MARK + b"\x80" * 100_000), "a number in the answer never ends"),
        (framed(MARK + quorum_answer(1, {}, error=6)), "Kafka's error 6"),
        (framed(MARK + quorum_answer(1, {1: 1})[:-9]), "ends too early"),
    ],
)
def test_what_cannot_be_read_is_no_answer(answer: bytes, words: str) -> None:
    with serving(lambda _: answer) as door, pytest.raises(NoAnswer, match=words):
        kafka_protocol.quorum(local_client(), "c", door)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NoAnswer, match="Connection refused"):
        kafka_protocol.metadata(local_client(), "c", InnerListener("127.0.0.1", port, True))


ids = st.integers(0, 2**31 - 1)
several = st.lists(ids, max_size=4).map(tuple)
partitions = st.builds(
    Partition, st.sampled_from(["a", "b", "ü"]), st.integers(0, 99), ids, several, several
)


@given(several, st.lists(partitions, max_size=5))
def test_any_metadata_is_read_back(brokers: tuple[int, ...], parts: list[Partition]) -> None:
    ordered = sorted(parts, key=lambda it: it.topic)
    known = Metadata(brokers, tuple(ordered))
    assert kafka_protocol._read(MARK + metadata_answer(known), kafka_protocol._metadata) == known


@given(st.integers(0, 200), st.binary(max_size=200))
def test_no_answer_is_worse_than_unreadable(cut: int, noise: bytes) -> None:
    whole = metadata_answer(KNOWN)
    for answer, parse in (
        (whole[: min(cut, len(whole) - 1)], kafka_protocol._metadata),
        (noise, kafka_protocol._quorum),
        (noise, kafka_protocol._metadata),
    ):
        with contextlib.suppress(NoAnswer):
            kafka_protocol._read(MARK + answer, parse)


@pytest.mark.parametrize(
    ("bind", "host"),
    [("", "127.0.0.1"), ("::", "127.0.0.1"), ("[::]", "127.0.0.1"), ("[::1]", "::1")],
)
def test_a_door_of_any_address_is_the_loopback(bind: str, host: str) -> None:
    given = listener().model_copy(update={"bind_host": bind})
    assert InnerListener.of(given).host == host


def test_the_quorum_s_request_names_the_metadata_log() -> None:
    asked: list[bytes] = []

    def answer(request: bytes) -> bytes:
        asked.append(request)
        return framed(request[4:8] + quorum_answer(2, {2: 5}))

    with serving(answer) as door:
        assert kafka_protocol.quorum(local_client(), "c", door) == Quorum(2, {2: 5})
    topic = b"__cluster_metadata"
    assert asked == [
        struct.pack(">hh4shb", 55, 1, MARK, -1, 0)
        + b"\x02" + bytes([len(topic) + 1]) + topic
        + b"\x02" + struct.pack(">i", 0) + b"\0\0\0"
    ]  # fmt: skip


def test_what_is_executed_is_told_how_long_it_may_take() -> None:
    seen: list[list[str]] = []

    def create(container: str, command: list[str]) -> dict[str, str]:
        seen.append([container, *command[:4], *command[5:]])
        return {"Id": "e"}

    def start(id: str, demux: bool) -> tuple[bytes, None]:
        assert (id, demux) == ("e", True)
        return MARK + metadata_answer(KNOWN), None

    client: Any = SimpleNamespace(api=SimpleNamespace(exec_create=create, exec_start=start))
    assert kafka_protocol.metadata(client, "c", InnerListener("h", 7, True)) == KNOWN
    request = struct.pack(">ihh4shi", 14, 3, 2, MARK, -1, -1)
    shown = "".join(f"\\x{byte:02x}" for byte in request)
    assert seen == [["c", "timeout", "5", "bash", "-c", "ask", "h", "7", shown]]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (DockerException("no such container"), "no such container"),
        (OSError("broken pipe"), "broken pipe"),
        ((b"", b"\n \nfirst\nsecond\n"), "first"),
        ((None, None), "nothing came back"),
        ((b"", b" \n"), "nothing came back"),
    ],
)
def test_an_engine_that_cannot_ask_is_no_answer(answer: Any, said: str) -> None:
    def start(id: str, demux: bool) -> tuple[bytes | None, bytes | None]:
        if isinstance(answer, Exception):
            raise answer
        answered: tuple[bytes | None, bytes | None] = answer
        return answered

    api = SimpleNamespace(exec_create=lambda *_: {"Id": "e"}, exec_start=start)
    client: Any = SimpleNamespace(api=api)
    with pytest.raises(NoAnswer) as caught:
        kafka_protocol.metadata(client, "c", InnerListener("h", 7, True))
    assert str(caught.value) == said


def read_quorum(answer: bytes) -> Quorum:
    return kafka_protocol._read(MARK + answer, kafka_protocol._quorum)


def test_the_quorum_s_leader_is_never_behind_itself() -> None:
    assert Quorum(1, {1: 5, 2: 9}).lag(2) == 0, "a clock that was set"
    assert Quorum(1, {1: 0, 2: 0}).lag(2) == 0
    assert Quorum(1, {1: -1, 2: 7}).lag(2) is None
    assert Quorum(3, {1: 7}).lag(1) is None


def test_tags_of_later_versions_are_passed_over() -> None:
    tags = b"\x02\x07\x03abc\x81\x01\x00"  # two: 7 with three bytes, 129 with none
    replica = struct.pack(">iqqq", 1, 9, -1, 5) + tags
    observer = struct.pack(">iqqq", 4, 9, -1, 5) + tags
    partition = (
        struct.pack(">ihiiq", 0, 0, 1, 7, 9) + compact([replica]) + compact([observer]) + tags
    )
    other = struct.pack(">ihiiq", 1, 0, 2, 7, 9) + compact([]) + compact([]) + tags
    topic = b"\x02x" + compact([partition, other]) + tags
    assert read_quorum(tags + struct.pack(">h", 0) + compact([topic]) + tags) == Quorum(1, {1: 5})


def test_an_answer_of_many_voters_is_read() -> None:
    voters = {id: id for id in range(1, 150)}  # more than one byte counts
    replicas = [struct.pack(">iqqq", id, 9, -1, when) + b"\0" for id, when in voters.items()]
    count = len(replicas) + 1
    listed = bytes([count & 0x7F | 0x80, count >> 7]) + b"".join(replicas)
    partition = struct.pack(">ihiiq", 0, 0, 1, 7, 9) + listed + compact([]) + b"\0"
    answer = b"\0" + struct.pack(">h", 0) + compact([b"\x02x" + compact([partition]) + b"\0"])
    assert read_quorum(answer + b"\0") == Quorum(1, voters)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\0" + struct.pack(">h", 41), "Kafka's error 41"),
        (b"\0" + struct.pack(">h", 0) + compact([]), "the quorum is not in the answer"),
        (b"\0" + struct.pack(">h", 0) + b"\0", "the quorum is not in the answer"),
        (b"\0" + struct.pack(">h", 0) + compact([b"\0" + b"\1" + b"\0"]), "not in the answer"),
        (quorum_answer(1, {}, error=6), "Kafka's error 6"),
        (b"", "the answer of 4 bytes ends too early"),
    ],
)
def test_a_quorum_that_is_not_told_is_no_answer(answer: bytes, said: str) -> None:
    with pytest.raises(NoAnswer) as caught:
        read_quorum(answer)
    assert said in str(caught.value)


def test_what_is_not_known_of_a_topic_is_empty() -> None:
    """Null arrays and texts are of the length -1."""
    answer = struct.pack(">i", -1) + text(None) + struct.pack(">i", 1) + struct.pack(">i", -1)
    assert kafka_protocol._read(MARK + answer, kafka_protocol._metadata) == Metadata((), ())
    with pytest.raises(NoAnswer, match="what answered is not Kafka"):
        kafka_protocol._read(b"sraE" + answer, kafka_protocol._metadata)


def test_a_key_store_that_is_lost_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    root = tmp_path / ".earshot" / "stacks" / "s" / "kafka"
    keys = NodeKeys(str(root), "node-1", "kafka-1")
    endpoint = InnerListener("127.0.0.1", 19092, plaintext=False, keys=keys)
    api = SimpleNamespace(inspect_container=lambda _: {"Config": {"Env": []}})
    client: Any = SimpleNamespace(api=api)
    with pytest.raises(NoAnswer) as caught:
        kafka_protocol.metadata(client, "id", endpoint)
    assert str(caught.value) == (
        f"{root}/security/ca.pem: cannot be read (No such file or directory); fix: deploy the "
        "stack again: missing files are made again"
    )
