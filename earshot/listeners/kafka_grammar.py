"""Kafka's comma-separated lists as Kafka itself reads them, for settings that others wrote.

More is accepted than in `earshot.listeners.grammar`: lower-case names, hyphens, underscores in
hosts, IPv6 without brackets, blank entries. What is refused here, Kafka refuses. Source:
`SocketServerConfigs` and `CoreUtils` of Kafka 2.8 to 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from earshot.errors import AddressError
from earshot.listeners.address import MAX_PORT, Address
from earshot.listeners.grammar import (
    LISTENERS_ALLOWED,
    MAP_ALLOWED,
    MAX_ID,
    VOTERS_ALLOWED,
    Bad,
)
from earshot.listeners.terms import Protocol

K = TypeVar("K")
V = TypeVar("V")

_ENDPOINT = re.compile(r"(.*)://(\[?)([0-9a-zA-Z\-%._:]*)(\]?):(-?[0-9]+)", re.ASCII | re.DOTALL)
_SERVER = re.compile(r"(?:[^:]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:0*([0-9]{1,5})", re.ASCII)


def read_listeners(text: str) -> Iterator[tuple[str, Address] | Bad]:
    """`NAME://host:port,…`; names in upper case, as Kafka compares them.

    An entry that stands twice word by word counts once, as Kafka 4.3 has it.
    """
    yield from _distinct(_entries(text, _listener))


def read_protocols(text: str) -> Iterator[tuple[str, Protocol] | Bad]:
    """`NAME:PROTOCOL,…`; of a name that stands twice the last one counts."""
    yield from _entries(text, _protocol)


def read_voters(text: str) -> Iterator[tuple[int, Address] | Bad]:
    """`id@host:port,…`."""
    yield from _entries(text, _voter)


def read_servers(text: str) -> Iterator[tuple[Address, None] | Bad]:
    """`host:port,…`, each with or without `NAME://` before it."""
    yield from _entries(text, _server)


def read_names(text: str) -> Iterator[tuple[str, None] | Bad]:
    """`NAME,…`, with their case: Kafka compares these as they are written."""
    yield from _entries(text, lambda entry: (entry, None))


def read_name(text: str) -> Iterator[tuple[str, None] | Bad]:
    """One listener name, in upper case."""
    yield text.strip().upper(), None


def _entries(text: str, read: Callable[[str], tuple[K, V]]) -> Iterator[tuple[K, V] | Bad]:
    for entry in filter(None, map(str.strip, text.split(","))):
        try:
            yield read(entry)
        except AddressError as error:
            yield Bad(entry.partition(":")[0], error)


def _distinct(items: Iterator[tuple[str, V] | Bad]) -> Iterator[tuple[str, V] | Bad]:
    seen: dict[str, V] = {}
    for item in items:
        if not isinstance(item, Bad):
            if seen.get(item[0]) == item[1]:
                continue
            if item[0] in seen:
                error = AddressError(
                    item[0], observed="stands twice in one list", allowed="each name once"
                )
                yield Bad(item[0], error)
                continue
            seen[item[0]] = item[1]
        yield item


def _listener(entry: str) -> tuple[str, Address]:
    match = _ENDPOINT.fullmatch(entry)
    if match is None or not match[1].strip() or len(match[5]) > 10 or int(match[5]) > MAX_ID:
        raise AddressError(
            f"listener entry {_masked(entry)!r}",
            observed="cannot be read",
            allowed=LISTENERS_ALLOWED,
        )
    return match[1].upper(), Address(match[3], int(match[5]))


def _protocol(entry: str) -> tuple[str, Protocol]:
    name, colon, protocol = entry.rpartition(":")
    wanted = protocol.strip().upper()
    if not colon or wanted not in list(Protocol):
        raise AddressError(
            f"protocol map entry {entry!r}",
            observed=f"names the protocol {protocol.strip()!r}" if colon else "has no colon",
            allowed=MAP_ALLOWED,
        )
    return name.strip().upper(), Protocol(wanted)


def _voter(entry: str) -> tuple[int, Address]:
    id, at, address = entry.partition("@")
    match = _SERVER.fullmatch(address.strip())
    is_id = re.fullmatch(r"-?[0-9]{1,10}", id.strip(), re.ASCII)
    if not at or not is_id or match is None or int(match[2]) > MAX_PORT:
        raise AddressError(
            f"voter entry {entry!r}",
            observed="cannot be read" if at else "has no @",
            allowed=VOTERS_ALLOWED,
        )
    return int(id), Address(match[1], int(match[2]))


def _server(entry: str) -> tuple[Address, None]:
    match = _SERVER.fullmatch(entry)
    if match is None or not match[1] or int(match[2]) > MAX_PORT:
        raise AddressError(
            f"server entry {_masked(entry)!r}",
            observed="cannot be read",
            allowed="host:port entries",
        )
    return Address(match[1], int(match[2])), None


def _masked(entry: str) -> str:
    """``entry`` without what may be a user and a password before its host."""
    return re.sub(r"://.*@", "://***@", entry)
