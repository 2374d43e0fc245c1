"""Kafka's protocol with one peer over one connection, within bounds.

A peer may be no Kafka, or lie. librdkafka starts a thread for each broker that an answer lists, so
a peer is asked here first: every answer is bounded in bytes, in entries and in time, and whatever
breaks a bound or the format is a Failure with one sentence.

Formats: https://kafka.apache.org/protocol. The versions in use are taken by every release from 1.1.
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

MOST_BYTES: Final = 2**22
"""Bytes of one answer: the metadata of a thousand brokers has a fortieth of it."""
MOST_BROKERS: Final = 2000
"""Brokers of one answer: each costs a connection, and a thread in every client of librdkafka."""
LONGEST_HOST: Final = 255
"""Characters of a host; a longer one is no name, and is shortened."""

METADATA: Final = 3
LIST_OFFSETS: Final = 2
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
DESCRIBE_CONFIGS: Final = 32
SASL_AUTHENTICATE: Final = 36
CONTROLLERS_OWN: Final = frozenset({52, 62})
"""Vote and BrokerRegistration: requests that KRaft's controllers take, and brokers do not."""

_CLIENT_ID: Final = b"earshot"
_SLICE: Final = 0.25
"""Seconds after which a wait looks whether the run has been stopped."""
_SHOWN_BYTES: Final = 60
_BROKER_RESOURCE: Final = 4
_VARINT_BITS: Final = 35
"""Five bytes of seven bits."""
_OWN_ID: Final = re.compile(r"expected (\d{1,10})\b", re.ASCII)
_NEVER_SENT: Final = "it answers a request that was not sent"


class ExchangeError(Exception):
    """The peer gave no usable answer; ``failure`` says why."""

    def __init__(self, error: str, text: str) -> None:
        self.failure = Failure(error, text)
        super().__init__(text)


class Connection(Protocol):
    """A socket, or what passes bytes on like one."""

    def settimeout(self, seconds: float, /) -> None: ...

    def sendall(self, data: bytes, /) -> None: ...

    def recv(self, most: int, /) -> bytes: ...


class Exchange:
    """Requests and answers on one connection, all of them before ``end``."""

    def __init__(self, connection: Connection, end: Deadline, most: int = MOST_BYTES) -> None:
        """``most`` is how many bytes one answer may have."""
        self._connection = connection
        self._end, self._most = end, most
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
        if not 4 <= size <= self._most:
            raise self._no_kafka(head, size)
        return self._receive(size)

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            received += self._chunk(count - len(received), len(received))
        return bytes(received)

    def _chunk(self, most: int, before: int) -> bytes:
        while True:
            left = self._end.left(_SLICE)
            if not left:
                text = f"no answer within {self._end.seconds:.1f} s"
                part = f" but {before} bytes of one" if before else ""
                raise ExchangeError("timeout", text + part)
            self._connection.settimeout(left)
            try:
                chunk = self._connection.recv(min(most, 65536))
            except TimeoutError:
                continue
            except OSError as error:
                raise transport_error(error) from None
            if not chunk:
                raise ExchangeError("disconnected", "it closed the connection without an answer")
            return chunk

    def _no_kafka(self, head: bytes, size: int) -> ExchangeError:
        """What a peer is whose answer begins with ``head``, which is no length of an answer."""
        if head[:2] in (b"\x15\x03", b"\x16\x03"):  # an alert, or a handshake
            return ExchangeError("protocol", "it answers in TLS")
        if not all(32 <= byte < 127 or byte in b"\r\n\t" for byte in head):
            text = f"it announces an answer of {size:,} bytes; allowed: 4 to {self._most:,}"
            return ExchangeError("not-kafka", text)
        self._end = self._end.within(_SLICE)
        line = head
        try:
            while len(line) < _SHOWN_BYTES and b"\n" not in line:
                line += self._chunk(_SHOWN_BYTES - len(line), len(line))
        except ExchangeError:
            pass  # the first four bytes are enough
        return foreign(line)


def foreign(line: bytes) -> ExchangeError:
    """The error for a peer that answers with the text ``line``."""
    shown = line.splitlines()[0][:_SHOWN_BYTES].decode("ascii", "backslashreplace")
    if line.startswith(b"HTTP"):
        return ExchangeError("http", f"something that speaks HTTP listens there ({shown!r})")
    return ExchangeError("not-kafka", f"something else than Kafka listens there ({shown!r})")


def transport_error(error: OSError) -> ExchangeError:
    """The error for a connection that broke."""
    text = getattr(error, "reason", None) or error.strerror or str(error)
    if isinstance(error, TimeoutError):
        return ExchangeError("timeout", "the connection took nothing in time")
    if isinstance(error, ssl.SSLError) and "ALERT" in str(error).upper():
        word = "client-certificate" if refuses_certificate(str(error)) else "tls"
        return ExchangeError(word, text.lower().replace("_", " "))
    if isinstance(error, ConnectionRefusedError):
        return ExchangeError("refused", "it refused the connection")
    return ExchangeError("disconnected", f"the connection broke ({text.lower()})")


class Answer:
    """The content of one answer, read from its beginning; raises ExchangeError where it ends."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    @property
    def rest(self) -> bytes:
        """All that has not been read."""
        return self._content[self._at :]

    def number(self, size: int) -> int:
        """The next number of ``size`` bytes."""
        return int.from_bytes(self._take(size), "big", signed=True)

    def data(self, size: int) -> bytes:
        """The next bytes, behind their length of ``size`` bytes; null is empty."""
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
        """Passes over the next ``size`` bytes."""
        self._take(size)

    def skip_tags(self) -> None:
        """Passes over the tagged fields of a flexible version (KIP-482)."""
        for _ in range(self.varint()):
            self.varint()
            self.skip(self.varint())

    def count(self, least: int) -> int:
        """How many entries follow, of at least ``least`` bytes each; null is none."""
        entries = self.number(4)
        left = len(self._content) - self._at
        if entries < -1 or entries * least > left:
            raise _malformed(f"{entries:,} entries in {left:,} bytes")
        return max(0, entries)

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._content):
            raise _malformed(f"it ends after {len(self._content):,} bytes, in a field")
        part = self._content[self._at : end]
        self._at = end
        return part


def _malformed(observed: str) -> ExchangeError:
    return ExchangeError("not-kafka", f"its answer cannot be read: {observed}")


def metadata(exchange: Exchange) -> tuple[str, dict[int, Address]]:
    """The id of the peer's cluster and the advertised address of each broker. No topics are asked
    for. Raises ExchangeError; the word is `too-many` for more than `MOST_BROKERS`."""
    cluster, brokers = _listed(exchange.request(METADATA, 2, struct.pack(">i", 0)).rest)
    return cluster, dict(brokers)


@lru_cache(maxsize=64)  # a thousand brokers give the same answer, of a thousand lines each
def _listed(content: bytes) -> tuple[str, dict[int, Address]]:
    answer = Answer(content)
    count = answer.count(12)
    if count > MOST_BROKERS:
        text = f"it lists {count:,} brokers, and earshot asks at most {MOST_BROKERS:,}"
        raise ExchangeError("too-many", f"{text}: none of them was asked")
    brokers: dict[int, Address] = {}
    for _ in range(count):
        id, host, port = answer.number(4), answer.text(), answer.number(4)
        answer.text()  # its rack
        if id < 0:
            raise _malformed(f"broker {id}")
        if id in brokers:
            raise _malformed(f"broker {id} twice")
        brokers[id] = Address(_brief(host), port)
    return _brief(answer.text()), brokers


def _brief(text: str) -> str:
    return text if len(text) <= LONGEST_HOST else clipped(text, 60)


def answering_broker(exchange: Exchange, broker: int) -> int | None:
    """The id of the broker at the other end, which should be ``broker``; None if it does not say.

    Metadata cannot tell, as every broker gives the same. But a broker describes only its own
    configuration and refuses another's, naming both ids (Kafka's ConfigHelper). It takes the right
    DescribeConfigs on the cluster. Raises ExchangeError.
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
    named = _OWN_ID.search(text)
    return int(named[1]) if named else None


_NO_LEADER: Final = frozenset({3, 6})
"""Errors of a broker about a partition that it does not lead: unknown to it, and not its own."""


def leads(exchange: Exchange, topic: str, partition: int) -> bool | None:
    """Whether the peer leads ``partition`` of ``topic``; None where it does not say.

    Raises ExchangeError.
    """
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


def request_keys(exchange: Exchange) -> set[int]:
    """The requests that the peer takes (ApiVersions). Raises ExchangeError."""
    answer = exchange.request(API_VERSIONS, 0, b"")
    answer.number(2)
    keys = set()
    for _ in range(answer.count(6)):
        keys.add(answer.number(2))
        answer.number(4)
    return keys


def mechanisms(exchange: Exchange, wanted: str) -> tuple[int, tuple[str, ...]]:
    """The error code of a SaslHandshake for ``wanted``, and the mechanisms that are enabled.

    Raises ExchangeError.
    """
    name = wanted.encode()
    answer = exchange.request(SASL_HANDSHAKE, 1, struct.pack(">h", len(name)) + name)
    error = answer.number(2)
    names = tuple(clipped(answer.text(), 40) for _ in range(answer.count(2)))
    return error, names


def connect(
    ip: str, address: Address, context: ssl.SSLContext | None, end: Deadline
) -> socket.socket:
    """A connection to ``address`` at ``ip``, with TLS where there is a ``context``.

    Raises ExchangeError.
    """
    try:
        plain = socket.create_connection((ip, address.port), max(0.05, end.left()))
    except OSError as error:
        raise transport_error(error) from None
    if context is None:
        return plain
    try:
        return context.wrap_socket(plain, server_hostname=address.host)
    except (OSError, ValueError) as error:
        plain.close()
        if isinstance(error, OSError):
            raise transport_error(error) from None
        raise ExchangeError("tls", str(error)) from None
