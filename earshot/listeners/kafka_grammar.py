"""Kafka's comma-separated lists as Kafka itself reads them, for settings that others wrote.

More is accepted than in `earshot.listeners.grammar`: lower-case names, hyphens, underscores in
hosts, IPv6 without brackets, and before 4.2 blank entries. What is refused here, Kafka refuses.
Sources: `SocketServerConfigs`, `CoreUtils`, `QuorumConfig` and `Utils` of Kafka 2.8 to 4.4, each of
which `make kafka-judge` asks.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from earshot.errors import AddressError
from earshot.listeners.address import MAX_PORT, Address
from earshot.listeners.grammar import (
    LISTENERS_ALLOWED,
    MAP_ALLOWED,
    MAX_ID,
    NAMES_ALLOWED,
    VOTERS_ALLOWED,
    Bad,
    distinct,
    refused,
)
from earshot.listeners.terms import Protocol

K = TypeVar("K")
V = TypeVar("V")

SERVERS_ALLOWED = "host:port entries"
_ONCE = "each name once"
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_ENDPOINT = re.compile(r"(.*)://(\[?)([0-9a-zA-Z\-%._:]*)(\]?):(-?[0-9]+)", re.ASCII | re.DOTALL)
_HOST_AND_PORT = r"\[?([0-9a-zA-Z\-%._:]*)\]?:0*([0-9]{1,5})"
_SERVER = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?" + _HOST_AND_PORT, re.ASCII)
_SERVER_AFTER_ANYTHING = re.compile(r".*?" + _HOST_AND_PORT, re.ASCII)
_NOT_OF_HOST = re.compile(r"[^0-9a-zA-Z\-%._:\[\]]", re.ASCII)
_ID = re.compile(r"[+-]?0*[0-9]{1,10}", re.ASCII)


@dataclass(frozen=True)
class KafkaGrammar:
    """The lists as a release of Kafka, (major, minor) at least, reads them."""

    release: tuple[int, ...]

    def read_listeners(self, text: str) -> Iterator[tuple[str, Address] | Bad]:
        """`NAME://host:port,…`; names in upper case, as Kafka compares them."""
        yield from distinct(_read(self._listed(text), LISTENERS_ALLOWED, _listener), _ONCE)

    def read_protocols(self, text: str) -> Iterator[tuple[str, Protocol] | Bad]:
        """`NAME:PROTOCOL,…`; of a name that occurs twice the last one counts."""
        last: dict[str, str] = {}
        for entry in _without_trailing_blanks(_COMMA.split(text.strip())):
            name, colon, _ = entry.rpartition(":")
            last[name.strip() if colon else f"{entry},"] = entry  # a comma is in no name
        items = _read(last.values(), MAP_ALLOWED, partial(_protocol, named=self.release >= (3, 6)))
        yield from distinct(items, _ONCE) if self.release >= (4, 1) else items

    def read_voters(self, text: str) -> Iterator[tuple[int, Address] | Bad]:
        """`id@host:port,…`."""
        yield from _read(_split(text), VOTERS_ALLOWED, partial(_voter, self._server))

    def read_servers(self, text: str) -> Iterator[tuple[Address, None] | Bad]:
        """`host:port,…`, each with or without `NAME://` before it; looked at since 3.8."""
        if self.release >= (3, 8):
            yield from _read(_split(text), SERVERS_ALLOWED, partial(_server, self._server))

    def read_names(self, text: str) -> Iterator[tuple[str, None] | Bad]:
        """`NAME,…`, with their case: Kafka compares these as they are written.

        Before 4.1 a blank after a comma is a part of the name.
        """
        if self.release >= (4, 1):
            yield from _read(self._listed(text), NAMES_ALLOWED, _name)
            return
        entries = _without_trailing_blanks(text.strip().split(","))
        if self.release >= (3, 6):
            yield from _read(entries, NAMES_ALLOWED, _name)
        else:
            yield from map(_name, entries)

    def read_name(self, text: str) -> Iterator[tuple[str, None] | Bad]:
        """One listener name, in upper case."""
        yield text.strip().upper(), None

    def _listed(self, text: str) -> Iterable[str]:
        """Since 4.2 a blank entry is refused, and one that occurs twice counts once."""
        if self.release < (4, 2):
            return filter(None, _COMMA.split(text.strip()))
        return dict.fromkeys(_COMMA.split(text.strip()))

    @property
    def _server(self) -> re.Pattern[str]:
        """The pattern of a server: up to 3.7, and from 3.9.1 on in 3.9, with any text before it."""
        loose = self.release < (3, 8) or self.release[:2] == (3, 9)
        return _SERVER_AFTER_ANYTHING if loose else _SERVER


def _split(text: str) -> list[str]:
    return _COMMA.split(text.strip()) if text.strip() else []


def _without_trailing_blanks(entries: list[str]) -> list[str]:
    """``entries`` without empty ones at the end, as Java splits a text."""
    while entries and not entries[-1]:
        entries.pop()
    return entries


def _read(
    entries: Iterable[str], allowed: str, read: Callable[[str], tuple[K, V]]
) -> Iterator[tuple[K, V] | Bad]:
    for entry in entries:
        try:
            if not entry:
                raise AddressError("an entry", observed="is blank", allowed=allowed)
            yield read(entry)
        except AddressError as error:
            yield Bad(entry.partition(":")[0], error)


def _listener(entry: str) -> tuple[str, Address]:
    match = _ENDPOINT.fullmatch(entry)
    if match is None or not match[1].strip() or len(match[5]) > 10 or int(match[5]) > MAX_ID:
        raise refused("listener", _masked(entry), _why_unread(entry), LISTENERS_ALLOWED)
    return match[1].upper(), Address(match[3], int(match[5]))


def _why_unread(entry: str) -> str:
    """The first part of a listener that Kafka cannot read, without what may be a password."""
    name, separator, address = entry.rpartition("://")
    host, colon, port = address.rpartition(":")
    foreign = dict.fromkeys(_NOT_OF_HOST.findall(host))
    if not separator or not name.strip():
        return "has no name before ://" if separator else "has no ://"
    if not colon or not re.fullmatch(r"-?[0-9]+", port, re.ASCII):
        return "has no port number at its end"
    if foreign:
        return f"has {'@' if '@' in foreign else ''.join(foreign)[:20]!r} in its host"
    return "cannot be read"


def _protocol(entry: str, *, named: bool) -> tuple[str, Protocol]:
    name, colon, protocol = entry.rpartition(":")
    protocol_name = protocol.strip().upper()
    observed = "" if colon else "has no colon"
    if colon and protocol_name not in list(Protocol):
        observed = f"names the protocol {protocol.strip()!r}"
    elif colon and named and not name.strip():
        observed = "has no name"
    if observed:
        raise refused("protocol map", entry, observed, MAP_ALLOWED)
    return name.strip().upper(), Protocol(protocol_name)


def _voter(server: re.Pattern[str], entry: str) -> tuple[int, Address]:
    id, at, address = entry.rstrip("@").partition("@")
    match = server.fullmatch(address)
    is_id = _ID.fullmatch(id) and -MAX_ID - 1 <= int(id) <= MAX_ID
    if not at or "@" in address or not is_id or match is None or int(match[2]) > MAX_PORT:
        raise refused("voter", entry, "cannot be read" if at else "has no @", VOTERS_ALLOWED)
    return int(id), Address(match[1], int(match[2]))


def _server(server: re.Pattern[str], entry: str) -> tuple[Address, None]:
    match = server.fullmatch(entry)
    if match is None or int(match[2]) > MAX_PORT:
        raise refused("server", _masked(entry), "cannot be read", SERVERS_ALLOWED)
    return Address(match[1], int(match[2])), None


def _name(entry: str) -> tuple[str, None]:
    return entry, None


def _masked(entry: str) -> str:
    """``entry`` without what may be a user and a password before its host."""
    return re.sub(r"://.*@", "://***@", entry)
