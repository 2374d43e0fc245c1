"""Kafka's protocol over one connection, with limits for untrusted answers.

A peer may not be Kafka, or may be malicious. librdkafka starts a thread for each broker in an
answer, so this module asks a peer before librdkafka does. It limits the bytes, the entries and the
time of every answer, and raises ExchangeError beyond a limit or for a wrong format.

Formats: https://kafka.apache.org/protocol. Every release from 1.1 supports the versions in use.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
from functools import lru_cache
from typing import Final, Protocol

from earshot.listeners.address import Address
from earshot.listeners.listed import clipped
from earshot.validation.deadline import Deadline
from earshot.validation.failure import Failure, refuses_certificate

MAX_BYTES: Final = 2**22
"""The maximum size of an answer: 40 times the metadata of a thousand brokers."""
MAX_BROKERS: Final = 2000
"""The maximum number of brokers in an answer: each needs a connection, and a thread per librdkafka
client."""
MAX_HOST: Final = 255
"""The maximum length of a host. A longer text is not a name, and is shortened."""

FETCH: Final = 1
METADATA: Final = 3
LIST_OFFSETS: Final = 2
FIND_COORDINATOR: Final = 10
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
DESCRIBE_CONFIGS: Final = 32
SASL_AUTHENTICATE: Final = 36
CONTROLLER_REQUESTS: Final = frozenset({52, 62})
"""Vote and BrokerRegistration: requests that KRaft controllers support, and brokers do not."""

_CLIENT_ID: Final = b"earshot"
_SLICE: Final = 0.25
"""Seconds between two checks whether the run has been stopped."""
_SHOWN_BYTES: Final = 60
_BROKER_RESOURCE: Final = 4
_VARINT_BITS: Final = 35
"""Five bytes of seven bits."""
UNSUPPORTED_MECHANISM: Final = 33
"""Kafka's error code for a SASL mechanism that is not enabled."""
ILLEGAL_SASL_STATE: Final = 34
"""Kafka's error code for a SaslHandshake at a listener without SASL."""
_OWN_ID: Final = re.compile(r"expected (\d{1,10})\b", re.ASCII)
_NEVER_SENT: Final = "it answers a request that was not sent"


class ExchangeError(Exception):
    """The peer gave no usable answer; ``failure`` has the reason."""

    def __init__(self, error: str, text: str) -> None:
        self.failure = Failure(error, text)
        super().__init__(text)


class Connection(Protocol):
    """A socket, or an object with the same methods."""

    def settimeout(self, seconds: float, /) -> None: ...

    def sendall(self, data: bytes, /) -> None: ...

    def recv(self, max_bytes: int, /) -> bytes: ...


class Exchange:
    """Requests and answers on one connection, all of them before ``end``."""

    def __init__(self, connection: Connection, end: Deadline, max_bytes: int = MAX_BYTES) -> None:
        """``max_bytes`` limits the size of one answer."""
        self._connection = connection
        self._end, self._max_bytes = end, max_bytes
        self._number = 0

    def request(self, key: int, version: int, body: bytes) -> Answer:
        """The answer to one request. Raises ExchangeError."""
        self._number += 1
        header = struct.pack(">hhih", key, version, self._number, len(_CLIENT_ID)) + _CLIENT_ID
        content = header + body
        self._send(struct.pack(">i", len(content)) + content)
        answer = Answer(self._frame())
        if answer.number(4) != self._number:
            raise ExchangeError("not-kafka", _NEVER_SENT)
        return answer

    def _send(self, data: bytes) -> None:
        self._connection.settimeout(max(0.05, self._end.left()))
        try:
            self._connection.sendall(data)
        except OSError as error:
            raise transport_error(error) from None

    def _frame(self) -> bytes:
        head = self._receive(4)
        (size,) = struct.unpack(">i", head)
        if not 4 <= size <= self._max_bytes:
            raise self._not_kafka(head, size)
        return self._receive(size)

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            received += self._chunk(count - len(received), len(received))
        return bytes(received)

    def _chunk(self, max_bytes: int, received: int) -> bytes:
        while True:
            seconds_left = self._end.left(_SLICE)
            if not seconds_left:
                text = f"no answer within {self._end.seconds:.1f} s"
                progress = f" but {received} bytes of one" if received else ""
                raise ExchangeError("timeout", text + progress)
            self._connection.settimeout(seconds_left)
            try:
                chunk = self._connection.recv(min(max_bytes, 65536))
            except TimeoutError:
                continue
            except OSError as error:
                raise transport_error(error) from None
            if not chunk:
                raise ExchangeError("disconnected", "it closed the connection without an answer")
            return chunk

    def _not_kafka(self, head: bytes, size: int) -> ExchangeError:
        """The error for an answer that begins with ``head``, which is not a valid length."""
        if head[:2] in (b"\x15\x03", b"\x16\x03"):  # an alert, or a handshake
            return ExchangeError("protocol", "it answers in TLS")
        if not all(32 <= byte < 127 or byte in b"\r\n\t" for byte in head):
            text = f"it announces an answer of {size:,} bytes; allowed: 4 to {self._max_bytes:,}"
            return ExchangeError("not-kafka", text)
        self._end = self._end.within(_SLICE)
        line = head
        try:
            while len(line) < _SHOWN_BYTES and b"\n" not in line:
                line += self._chunk(_SHOWN_BYTES - len(line), len(line))
        except ExchangeError:
            pass  # the first four bytes are enough
        return foreign_server(line)


def foreign_server(line: bytes) -> ExchangeError:
    """The error for a peer that answers with the text ``line``."""
    first_line = line.splitlines()[0][:_SHOWN_BYTES].decode("ascii", "backslashreplace")
    if line.startswith(b"HTTP"):
        return ExchangeError("http", f"something that speaks HTTP listens there ({first_line!r})")
    return ExchangeError("not-kafka", f"something other than Kafka listens there ({first_line!r})")


def transport_error(error: OSError) -> ExchangeError:
    """The error for a connection that broke."""
    text = getattr(error, "reason", None) or error.strerror or str(error)
    if isinstance(error, TimeoutError):
        return ExchangeError("timeout", "the connection accepted no data in time")
    if isinstance(error, ssl.SSLError) and "ALERT" in str(error).upper():
        word = "client-certificate" if refuses_certificate(str(error)) else "tls"
        return ExchangeError(word, text.lower().replace("_", " "))
    if isinstance(error, ConnectionRefusedError):
        return ExchangeError("refused", "it refused the connection")
    return ExchangeError("disconnected", f"the connection broke ({text.lower()})")


class Answer:
    """The content of one answer, with a read position. Reading beyond the end raises
    ExchangeError."""

    def __init__(self, content: bytes) -> None:
        self._content, self._offset = content, 0

    @property
    def unread_bytes(self) -> bytes:
        """The bytes that have not been read."""
        return self._content[self._offset :]

    def number(self, size: int) -> int:
        """The next number of ``size`` bytes."""
        return int.from_bytes(self._take(size), "big", signed=True)

    def data(self, size: int) -> bytes:
        """The next byte string, after its length in ``size`` bytes; null is empty."""
        length = self.number(size)
        if length < -1:
            raise _malformed(f"a length of {length:,}")
        return self._take(max(0, length))

    def text(self) -> str:
        """The next string; null is empty."""
        return self.data(2).decode("utf-8", "backslashreplace")

    def varint(self) -> int:
        """The next unsigned number of variable length."""
        value = shift = 0
        while shift < _VARINT_BITS:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return value
            shift += 7
        raise _malformed("a number of more than five bytes")

    def skip(self, size: int) -> None:
        """Skips the next ``size`` bytes."""
        self._take(size)

    def skip_tags(self) -> None:
        """Skips the tagged fields of a flexible version (KIP-482)."""
        for _ in range(self.varint()):
            self.varint()
            self.skip(self.varint())

    def count(self, min_size: int) -> int:
        """The number of entries that follow, each of at least ``min_size`` bytes; null is 0."""
        entries = self.number(4)
        bytes_left = len(self._content) - self._offset
        if entries < -1 or entries * min_size > bytes_left:
            raise _malformed(f"{entries:,} entries in {bytes_left:,} bytes")
        return max(0, entries)

    def _take(self, size: int) -> bytes:
        end = self._offset + size
        if end > len(self._content):
            raise _malformed(f"it ends after {len(self._content):,} bytes, in a field")
        data = self._content[self._offset : end]
        self._offset = end
        return data


def _malformed(observed: str) -> ExchangeError:
    return ExchangeError("not-kafka", f"its answer cannot be read: {observed}")


def metadata(exchange: Exchange) -> tuple[str, dict[int, Address]]:
    """The peer's cluster id and the advertised address of each broker, without topics.

    Raises ExchangeError, with the error `too-many` beyond `MAX_BROKERS`.
    """
    cluster, brokers = _read_brokers(
        exchange.request(METADATA, 2, struct.pack(">i", 0)).unread_bytes
    )
    return cluster, dict(brokers)


@lru_cache(maxsize=64)  # all brokers of a cluster give the same long answer
def _read_brokers(content: bytes) -> tuple[str, dict[int, Address]]:
    answer = Answer(content)
    count = answer.count(12)
    if count > MAX_BROKERS:
        text = f"it lists {count:,} brokers, and earshot asks at most {MAX_BROKERS:,}"
        raise ExchangeError("too-many", f"{text}: none of them was asked")
    brokers: dict[int, Address] = {}
    for _ in range(count):
        id, host, port = answer.number(4), answer.text(), answer.number(4)
        answer.text()  # its rack
        if id < 0:
            raise _malformed(f"broker {id}")
        if id in brokers:
            raise _malformed(f"broker {id} twice")
        brokers[id] = Address(_shortened_text(host), port)
    return _shortened_text(answer.text()), brokers


def _shortened_text(text: str) -> str:
    return text if len(text) <= MAX_HOST else clipped(text, 60)


def answering_broker(exchange: Exchange, broker: int) -> int | None:
    """Like `metadata.identify`, on an open connection: the id of the broker at the other end.

    ``broker`` is the expected id. None if the id is unknown. Raises ExchangeError.
    """
    name, key = str(broker).encode(), b"node.id"
    body = struct.pack(">ibh", 1, _BROKER_RESOURCE, len(name)) + name
    body += struct.pack(">ih", 1, len(key)) + key + b"\0"
    answer = exchange.request(DESCRIBE_CONFIGS, 1, body)
    answer.number(4)
    if not answer.count(9):
        return None
    error, text = answer.number(2), answer.text()
    if error == 0:
        return broker
    own_id = _OWN_ID.search(text)
    return int(own_id[1]) if own_id else None


_NO_LEADER: Final = frozenset({3, 6})
"""Errors of a broker for a partition that it does not lead: unknown partition, not the leader."""


def leads_partition(exchange: Exchange, topic: str, partition: int) -> bool | None:
    """True if the peer leads ``partition`` of ``topic``; None if unknown. Raises ExchangeError."""
    name = topic.encode()
    body = struct.pack(">iih", -1, 1, len(name)) + name
    body += struct.pack(">iiq", 1, partition, -1)
    answer = exchange.request(LIST_OFFSETS, 1, body)
    if not answer.count(6):
        return None
    answer.text()
    if not answer.count(22):
        return None
    answer.number(4)
    error = answer.number(2)
    return True if error == 0 else False if error in _NO_LEADER else None


def fetch(exchange: Exchange, topic: str, partition: int, offset: int) -> bytes:
    """The record batches that the peer returns for ``partition`` of ``topic`` from ``offset``.

    Raises ExchangeError.
    """
    name = topic.encode()
    body = struct.pack(">iiiibi", -1, 500, 1, 2**20, 0, 1) + struct.pack(">h", len(name)) + name
    body += struct.pack(">iiqi", 1, partition, offset, 2**20)
    answer = exchange.request(FETCH, 4, body)
    answer.number(4)
    if not answer.count(6):
        return b""
    answer.text()
    if not answer.count(30):
        return b""
    answer.skip(4 + 2 + 8 + 8)  # partition, error, high watermark, last stable offset
    for _ in range(answer.count(16)):
        answer.skip(16)
    return answer.data(4)


def request_keys(exchange: Exchange) -> set[int]:
    """The keys of the requests that the peer supports (ApiVersions). Raises ExchangeError."""
    answer = exchange.request(API_VERSIONS, 0, b"")
    answer.number(2)
    keys = set()
    for _ in range(answer.count(6)):
        keys.add(answer.number(2))
        answer.number(4)
    return keys


def negotiate_versions(exchange: Exchange) -> None:
    """Sends ApiVersions like a client, as the first request of its connections. Any answer is
    enough. Raises ExchangeError."""
    header_tags, name, version, tags = b"\0", b"\x08earshot", b"\x021", b"\0"
    exchange.request(API_VERSIONS, 3, header_tags + name + version + tags)


def find_coordinator(exchange: Exchange, group: str) -> int:
    """Kafka's error code of a lookup of the coordinator of ``group``; 0 if there is one.

    Raises ExchangeError.
    """
    name = group.encode()
    answer = exchange.request(FIND_COORDINATOR, 1, struct.pack(">h", len(name)) + name + b"\0")
    answer.number(4)
    return answer.number(2)


def sasl_handshake(exchange: Exchange, mechanism: str) -> tuple[int, tuple[str, ...]]:
    """The error code of a SaslHandshake for ``mechanism``, and the enabled mechanisms.

    Raises ExchangeError.
    """
    name = mechanism.encode()
    answer = exchange.request(SASL_HANDSHAKE, 1, struct.pack(">h", len(name)) + name)
    error = answer.number(2)
    names = tuple(clipped(answer.text(), 40) for _ in range(answer.count(2)))
    return error, names


def connect(
    ip: str, address: Address, context: ssl.SSLContext | None, end: Deadline
) -> socket.socket:
    """A connection to ``address`` at IP address ``ip``, with TLS if ``context`` is given.

    Raises ExchangeError.
    """
    try:
        connection = socket.create_connection((ip, address.port), max(0.05, end.left()))
    except OSError as error:
        raise transport_error(error) from None
    if context is None:
        return connection
    try:
        return context.wrap_socket(connection, server_hostname=address.host)
    except (OSError, ValueError) as error:
        connection.close()
        if isinstance(error, OSError):
            raise transport_error(error) from None
        raise ExchangeError("tls", str(error)) from None
