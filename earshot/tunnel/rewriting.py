"""Replaces the brokers' addresses in Kafka's answers with local ones.

The answers to Metadata, FindCoordinator and DescribeCluster contain addresses that clients connect
to. In newer versions, so do those to Produce and Fetch. Clients learn the usable versions from
ApiVersions, so versions that this module does not rewrite are removed from that answer. The bytes
after the addresses are copied. Formats: https://kafka.apache.org/protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from earshot.listeners.address import MAX_NAME, Address

PRODUCE: Final = 0
FETCH: Final = 1
METADATA: Final = 3
FIND_COORDINATOR: Final = 10
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
DESCRIBE_CLUSTER: Final = 60
SHARE_FETCH: Final = 78
SHARE_ACKNOWLEDGE: Final = 79

REWRITTEN: Final = frozenset({METADATA, FIND_COORDINATOR, API_VERSIONS, DESCRIBE_CLUSTER})
"""Requests whose answers are read as a whole."""
NEWEST: Final[Mapping[int, int]] = {
    METADATA: 13,
    FIND_COORDINATOR: 6,
    API_VERSIONS: 4,
    DESCRIBE_CLUSTER: 2,
    PRODUCE: 9,  # from 10 on its answer names leaders (KIP-951)
    FETCH: 15,  # from 16 on its answer names leaders (KIP-951)
}
"""The newest version of a request that clients may use."""
OLDEST: Final[Mapping[int, int]] = {
    SASL_HANDSHAKE: 1,  # after version 0, the login does not use Kafka's requests (KIP-152)
}
"""The oldest version of a request that clients may use."""
LEFT_OUT: Final = frozenset({SHARE_FETCH, SHARE_ACKNOWLEDGE})
"""Requests whose answers name leaders in every version (KIP-932)."""
LAST_KEY: Final = 92
"""The last request of Kafka 4.1. Answers to later ones might contain addresses."""
FLEXIBLE_FROM: Final[Mapping[int, int]] = {
    METADATA: 9,
    FIND_COORDINATOR: 3,
    API_VERSIONS: 3,
    DESCRIBE_CLUSTER: 0,
}
"""The first version whose texts and lists are compact, and that has tagged fields (KIP-482)."""

MAX_FIELDS: Final = 200_000
"""The maximum number of fields read of an answer: 10 times those of 2,000 brokers."""

_UNSUPPORTED_VERSION: Final = 35
_MAX_VARINT: Final = 5

Local = Callable[[Address], Address]
"""Returns the local address for a broker's address."""


class RewriteError(Exception):
    """An answer that cannot be rewritten; the text has the reason."""


def rewritten(key: int, version: int, frame: bytes, local: Local) -> bytes:
    """``frame`` with local addresses. It is the answer to a request of `REWRITTEN`, with its header
    and without its size. Raises RewriteError."""
    if version > NEWEST[key]:
        raise RewriteError(f"version {version} of request {key} is not known")
    if key == API_VERSIONS and frame[4:6] == _UNSUPPORTED_VERSION.to_bytes(2, "big"):
        version = 0  # the answer to an unsupported version (KIP-511)
    answer = _Answer(frame, local, compact=version >= FLEXIBLE_FROM[key])
    answer.skip(4)
    if key == API_VERSIONS:  # its header has no tagged fields in any version (KIP-511)
        answer.skip(2)
        _offer(answer)
        return answer.result()
    answer.skip_tags()
    if key == METADATA:
        _metadata(answer, version)
    elif key == FIND_COORDINATOR:
        _coordinators(answer, version)
    else:
        _cluster(answer, version)
    return answer.result()


def _metadata(answer: _Answer, version: int) -> None:
    if version >= 3:
        answer.skip(4)
    for _ in range(answer.count()):
        answer.skip(4)
        answer.move()
        if version >= 1:
            answer.text()
        answer.skip_tags()


def _coordinators(answer: _Answer, version: int) -> None:
    if version >= 1:
        answer.skip(4)
    if version >= 4:
        for _ in range(answer.count()):
            answer.text()
            answer.skip(4)
            answer.move()
            answer.skip(2)
            answer.text()
            answer.skip_tags()
        return
    answer.skip(2)
    if version >= 1:
        answer.text()
    answer.skip(4)
    answer.move()


def _cluster(answer: _Answer, version: int) -> None:
    answer.skip(6)
    answer.text()
    if version >= 1:
        answer.skip(1)
    answer.text()
    answer.skip(4)
    for _ in range(answer.count()):
        answer.skip(4)
        answer.move()
        answer.text()
        if version >= 2:
            answer.skip(1)
        answer.skip_tags()


def _offer(answer: _Answer) -> None:
    """Limits the broker's versions to those that clients may use."""
    start = answer.position
    entries: list[bytes] = []
    for _ in range(answer.count()):
        key, oldest, newest = (answer.number(2) for _ in range(3))
        tags = answer.position
        answer.skip_tags()
        newest = min(newest, NEWEST.get(key, newest))
        oldest = max(oldest, OLDEST.get(key, oldest))
        if key not in LEFT_OUT and key <= LAST_KEY and oldest <= newest:
            numbers = (number.to_bytes(2, "big", signed=True) for number in (key, oldest, newest))
            entries.append(b"".join(numbers) + answer.between(tags, answer.position))
    answer.replace(start, answer.position, answer.counted(len(entries)) + b"".join(entries))


class _Answer:
    """An answer with a read position, and its changes. Raises RewriteError."""

    def __init__(self, content: bytes, local: Local, *, compact: bool) -> None:
        self._content, self._local, self._compact = content, local, compact
        self.position = 0
        self._fields = 0
        self._chunks: list[bytes] = []
        self._copied = 0

    def result(self) -> bytes:
        """The answer with all changes."""
        return b"".join([*self._chunks, self._content[self._copied :]])

    def between(self, start: int, end: int) -> bytes:
        return self._content[start:end]

    def replace(self, start: int, end: int, new_bytes: bytes) -> None:
        """Replaces the bytes from ``start`` to ``end``. Later changes begin at ``end`` or after."""
        self._chunks += [self._content[self._copied : start], new_bytes]
        self._copied = end

    def skip(self, size: int) -> None:
        self.position += size
        self._fields += 1
        if self._fields > MAX_FIELDS:
            raise RewriteError(f"the broker sent an answer of more than {MAX_FIELDS:,} fields")
        if size < 0 or self.position > len(self._content):
            raise RewriteError(f"it ends after {len(self._content):,} bytes, in a field")

    def number(self, size: int) -> int:
        start = self.position
        self.skip(size)
        return int.from_bytes(self._content[start : self.position], "big", signed=True)

    def text(self) -> str | None:
        """The next text; None for null."""
        length = self._varint() - 1 if self._compact else self.number(2)
        if length < 0:
            return None
        start = self.position
        self.skip(length)
        return self._content[start : self.position].decode("utf-8", "backslashreplace")

    def count(self) -> int:
        """The number of entries that follow, each of at least a byte; null is 0."""
        entries = self._varint() - 1 if self._compact else self.number(4)
        if entries > len(self._content) - self.position:
            raise RewriteError(
                f"{entries:,} entries in {len(self._content) - self.position:,} bytes"
            )
        return max(0, entries)

    def counted(self, entries: int) -> bytes:
        """``entries`` encoded as the length of a list."""
        return _varint(entries + 1) if self._compact else entries.to_bytes(4, "big")

    def move(self) -> None:
        """Replaces the next address by the local one. An empty host (in an error) is kept."""
        start = self.position
        host = self.text()
        port = self.number(4)
        if not host or port < 0:
            return
        if len(host) > MAX_NAME:
            raise RewriteError(f"a broker advertises a host of {len(host):,} characters")
        local_address = self._local(Address(host, port))
        name = local_address.host.encode()
        length = _varint(len(name) + 1) if self._compact else len(name).to_bytes(2, "big")
        self.replace(start, self.position, length + name + local_address.port.to_bytes(4, "big"))

    def skip_tags(self) -> None:
        if not self._compact:
            return
        for _ in range(self._tags()):
            self._varint()
            self.skip(self._varint())

    def _tags(self) -> int:
        tags = self._varint()
        if tags > len(self._content) - self.position:
            raise RewriteError(f"{tags:,} tagged fields")
        return tags

    def _varint(self) -> int:
        value = 0
        for position in range(_MAX_VARINT):
            byte = self.number(1) & 0xFF
            value |= (byte & 0x7F) << 7 * position
            if byte < 0x80:
                return value
        raise RewriteError("a number of more than five bytes")


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value >= 0x80:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])
