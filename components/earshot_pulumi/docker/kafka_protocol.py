"""Metadata and quorum as a broker reports them, asked from inside its container.

That takes nothing but the image's shell: no Java, and no port of the container that this machine
can reach. Formats: https://kafka.apache.org/protocol (ApiVersions 0,
Metadata 2, DescribeQuorum 1: all Kafka versions from 3.9 on take them).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import docker
from docker.errors import DockerException

from earshot.engine import root_cause
from earshot.errors import EarshotError
from earshot.listeners.model import Listener
from earshot.listeners.security import VALIDATOR
from earshot.listeners.terms import Mechanism, Protocol
from earshot_pulumi.docker.scram import ScramClient
from earshot_pulumi.docker.tls_exchange import MOST_BYTES, NodeKeys, exchange, first_line
from earshot_pulumi.node_data import METADATA_TOPIC

ANSWER_SECONDS: Final = 5
CAUGHT_UP_MS: Final = 3000
"""How far a voter may be behind: the leader appends something every half second."""
_MARK: Final = b"ears"
"""The correlation id, which every response repeats."""
_VARINT_BITS: Final = 35
"""Of Kafka's unsigned numbers of variable length: five bytes of seven bits."""
_ANY: Final = ("", "0.0.0.0", "::", "[::]")
T = TypeVar("T")


class NoAnswer(Exception):
    """No readable response; the message says what came instead."""


class Refused(NoAnswer):
    """The broker does not know the user, or has another password for it."""


class NotEnabled(NoAnswer):
    """The listener does not take logins by that mechanism."""


@dataclass(frozen=True)
class InnerListener:
    """A listener as processes in its node's own container reach it."""

    host: str
    port: int
    plaintext: bool
    """Otherwise Kafka answers nothing without keys or passwords."""
    keys: NodeKeys | None = None
    """Where it has TLS, and the stack has certificates."""
    name: str = ""
    """The listener's."""
    mechanisms: tuple[Mechanism, ...] = ()
    """By which users of the stack log in."""

    @classmethod
    def of(
        cls,
        listener: Listener,
        keys: NodeKeys | None = None,
        mechanisms: tuple[Mechanism, ...] = (),
    ) -> InnerListener:
        """``keys`` are for listeners with TLS, ``mechanisms`` for those with logins."""
        host = "127.0.0.1" if listener.bind_host in _ANY else listener.bind_host.strip("[]")
        protocol = listener.protocol
        return cls(
            host,
            listener.bind_port,
            protocol is Protocol.PLAINTEXT,
            keys if protocol.tls else None,
            listener.name,
            mechanisms if protocol.sasl else (),
        )

    @property
    def answers(self) -> bool:
        """Whether earshot can ask brokers for their state through it."""
        return self.plaintext or (self.keys is not None and not self.mechanisms)

    def health(self) -> list[str]:
        """A health check: Kafka itself must answer on this listener, or with TLS or SASL accept.

        It uses only built-ins of bash, so that a late probe leaves no process behind.
        """
        connect = f"exec 3<>/dev/tcp/{self.host}/{self.port}"
        if not self.plaintext:
            return ["CMD", "bash", "-c", connect]
        # a response begins with its length, then the mark; `read` ends at zero bytes
        script = (
            f"LC_ALL=C; {connect} && printf '{_escaped(_request(18, 0, b''))}' >&3 || exit 1; "
            f"for _ in 1 2 3 4 5; do read -r -t {ANSWER_SECONDS} -d '' -u 3 || exit 1; "
            f"[[ $REPLY == *{_MARK.decode()} ]] && exit 0; done; exit 1"
        )
        return ["CMD", "bash", "-c", script]


@dataclass(frozen=True)
class Partition:
    """One partition, as a broker knows it."""

    topic: str
    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True)
class Metadata:
    """The living brokers, and all partitions."""

    brokers: tuple[int, ...]
    partitions: tuple[Partition, ...]
    cluster_id: str = ""
    """Empty where the broker does not report it."""

    def behind(self, id: int, led: bool = False) -> list[Partition]:
        """Partitions of which broker ``id`` has a replica that is not in sync.

        With ``led``, only those with a leader: the others depend on another broker.
        """
        return [
            item
            for item in self.partitions
            if id in item.replicas and id not in item.in_sync and (item.leader >= 0 or not led)
        ]


@dataclass(frozen=True)
class Quorum:
    """The KRaft quorum: its leader, and when (ms, its clock) each voter was last caught up."""

    leader: int
    caught_up: dict[int, int]

    def lag(self, id: int) -> int | None:
        """Milliseconds by which a voter is behind its leader; None where that is not known."""
        voter, leader = self.caught_up.get(id, -1), self.caught_up.get(self.leader, -1)
        return None if voter < 0 or leader < 0 else max(0, leader - voter)


def metadata(client: docker.DockerClient, container: str, endpoint: InnerListener) -> Metadata:
    """What the broker at ``endpoint`` knows. Raises NoAnswer."""
    request = _request(3, 2, struct.pack(">i", -1))
    return _read(_ask(client, container, endpoint, request), _metadata)


def quorum(client: docker.DockerClient, container: str, endpoint: InnerListener) -> Quorum:
    """The quorum as its leader knows it, asked through any broker. Raises NoAnswer."""
    topic = METADATA_TOPIC.encode()
    body = b"\x02" + bytes([len(topic) + 1]) + topic + b"\x02" + struct.pack(">i", 0) + b"\0\0\0"
    return _read(_ask(client, container, endpoint, _request(55, 1, b"\0" + body)), _quorum)


def log_in(client: docker.DockerClient, container: str, endpoint: InnerListener) -> None:
    """Logs in as the validator, by each mechanism. Raises NoAnswer; `Refused`, `NotEnabled`."""
    assert endpoint.keys is not None  # else nothing has made users
    try:
        password = endpoint.keys.folder().password(VALIDATOR)
        for mechanism in endpoint.mechanisms:
            at = (endpoint.host, endpoint.port)
            with exchange(client, container, at, endpoint.keys) as ask:
                _log_in(ask, ScramClient(mechanism, VALIDATOR, password))
    except EarshotError as error:
        raise NoAnswer(error.line) from None
    except (DockerException, OSError) as reason:
        raise NoAnswer(root_cause(reason)) from None


def _log_in(ask: Callable[[bytes], bytes], login: ScramClient) -> None:
    """SaslHandshake 1 and SaslAuthenticate 0."""
    name = login.mechanism.encode()
    request = _request(17, 1, struct.pack(">h", len(name)) + name)
    if error := _read(ask(request), lambda reader: reader.number(2)):
        raise NotEnabled(f"{login.mechanism} is not enabled (Kafka's error {error})")

    def authenticate(message: bytes) -> bytes:
        def answer(reader: _ResponseReader) -> bytes:
            error, text = reader.number(2), reader.text()
            if error:
                raise Refused(text or f"Kafka's error {error}")
            return reader.take(max(0, reader.number(4)))

        packed = struct.pack(">i", len(message)) + message
        return _read(ask(_request(36, 0, packed)), answer)

    try:
        login.check(authenticate(login.final(authenticate(login.first))))
    except ValueError as reason:
        raise NoAnswer(str(reason)) from None


# dd reads byte by byte, so that the next command finds the rest of the response
_ASK: Final = f"""exec 3<>"/dev/tcp/$1/$2" || exit 1
printf "$3" >&3
size=$(dd bs=1 count=4 <&3 2>/dev/null | od -An -tx1 | tr -d ' \\n')
size=$((16#${{size:-0}}))
not_kafka="what answered is not Kafka: it announces a response of $size bytes"
(( size <= {MOST_BYTES} )) || {{ echo "$not_kafka" >&2; exit 1; }}
head -c "$size" <&3"""


def _ask(
    client: docker.DockerClient, container: str, endpoint: InnerListener, request: bytes
) -> bytes:
    command = ["timeout", str(ANSWER_SECONDS), "bash", "-c", _ASK, "ask"]
    command += [endpoint.host, str(endpoint.port), _escaped(request)]
    try:
        if endpoint.keys is not None:
            at = (endpoint.host, endpoint.port)
            with exchange(client, container, at, endpoint.keys) as ask:
                return ask(request)
        started = client.api.exec_create(container, command)["Id"]
        answer, errors = client.api.exec_start(started, demux=True)
    except EarshotError as error:
        raise NoAnswer(error.line) from None
    except (DockerException, OSError) as reason:
        raise NoAnswer(root_cause(reason)) from None
    if not answer:
        raise NoAnswer(first_line(errors or b"") or "nothing came back")
    return bytes(answer)


def _request(key: int, version: int, body: bytes) -> bytes:
    """A request without a client id; in flexible versions, ``body`` begins with header tags."""
    content = struct.pack(">hh4sh", key, version, _MARK, -1) + body
    return struct.pack(">i", len(content)) + content


def _escaped(data: bytes) -> str:
    """``data`` for bash's `printf`."""
    return "".join(f"\\x{byte:02x}" for byte in data)


class _ResponseReader:
    """The types of Kafka's protocol, read one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._data):
            raise NoAnswer(f"the answer of {len(self._data)} bytes ends too early")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def varint(self) -> int:
        value = shift = 0
        while True:
            if shift >= _VARINT_BITS:
                raise NoAnswer("a number in the answer never ends")
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def text(self) -> str:
        return self.take(max(0, self.number(2))).decode(errors="replace")

    def array(self, item: Callable[[], T]) -> tuple[T, ...]:
        return tuple(item() for _ in range(max(0, self.number(4))))

    def compact_array(self, item: Callable[[], T]) -> tuple[T, ...]:
        return tuple(item() for _ in range(max(0, self.varint() - 1)))

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.take(self.varint())


def _read(answer: bytes, parse: Callable[[_ResponseReader], T]) -> T:
    reader = _ResponseReader(answer)
    if reader.take(4) != _MARK:
        raise NoAnswer("what answered is not Kafka")
    return parse(reader)


def _metadata(reader: _ResponseReader) -> Metadata:
    def broker() -> int:
        id = reader.number(4)
        reader.text()  # its host
        reader.number(4)
        reader.text()  # its rack
        return id

    def ids() -> tuple[int, ...]:
        return reader.array(lambda: reader.number(4))

    def topic() -> list[Partition]:
        reader.number(2)  # its error; what matters of it is in the partitions
        name = reader.text()
        reader.take(1)

        def partition() -> Partition:
            reader.number(2)
            number, leader = reader.number(4), reader.number(4)
            return Partition(name, number, leader, ids(), ids())

        return list(reader.array(partition))

    brokers = reader.array(broker)
    cluster_id = reader.text()
    reader.number(4)  # the controller, as far as clients are concerned
    partitions = tuple(item for found in reader.array(topic) for item in found)
    return Metadata(brokers, partitions, cluster_id)


def _quorum(reader: _ResponseReader) -> Quorum:
    reader.skip_tags()
    if error := reader.number(2):
        raise NoAnswer(f"Kafka's error {error}")

    def replica() -> tuple[int, int]:
        id = reader.number(4)
        reader.take(16)  # its log's end, its last fetch
        when = reader.number(8)
        reader.skip_tags()
        return id, when

    def partition() -> Quorum:
        reader.number(4)
        if error := reader.number(2):
            raise NoAnswer(f"Kafka's error {error}")
        leader = reader.number(4)
        reader.take(12)  # its epoch, the high watermark
        voters = dict(reader.compact_array(replica))
        reader.compact_array(replica)
        reader.skip_tags()
        return Quorum(leader, voters)

    def topic() -> tuple[Quorum, ...]:
        reader.take(max(0, reader.varint() - 1))
        found = reader.compact_array(partition)
        reader.skip_tags()
        return found

    found = [item for topics in reader.compact_array(topic) for item in topics]
    if not found:
        raise NoAnswer("the quorum is not in the answer")
    return found[0]
