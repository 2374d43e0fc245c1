"""Kafka's comma-separated lists, read strictly: listeners, protocol map, voters, names.

Each reader hands every good entry and every bad one to its caller, so that a rule can report all
of them; `only` makes one error of the first bad one. What is accepted here, every supported Kafka
reads alike; Kafka accepts more: `host_1`, port 99999, an IPv6 address without brackets.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from earshot.errors import AddressError
from earshot.listeners.address import Address, check_listener_name, check_port, parse_address
from earshot.listeners.terms import Protocol

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_ID = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
MAX_ID = 2**31 - 1
LISTENERS_ALLOWED = "NAME://host:port entries with one comma between them"
MAP_ALLOWED = f"NAME:PROTOCOL entries, PROTOCOL being one of {', '.join(Protocol)}"
VOTERS_ALLOWED = "id@host:port entries with one comma between them"
NAMES_ALLOWED = "listener names with one comma between them"


@dataclass(frozen=True)
class Bad:
    """An entry that the grammar refuses; ``name`` is its listener where one can be read."""

    name: str
    error: AddressError


def read_listeners(text: str) -> Iterator[tuple[str, Address] | Bad]:
    """`NAME://host:port,…`; an empty host is the wildcard and stays empty."""
    yield from distinct(_entries(text, "listener list", LISTENERS_ALLOWED, _listener))


def read_protocols(text: str) -> Iterator[tuple[str, Protocol] | Bad]:
    """`NAME:PROTOCOL,…`."""
    yield from distinct(_entries(text, "protocol map", MAP_ALLOWED, _protocol))


def read_voters(text: str) -> Iterator[tuple[int, Address] | Bad]:
    """`id@host:port,…`."""
    yield from distinct(_entries(text, "voter list", VOTERS_ALLOWED, _voter, named=False))


def read_names(text: str) -> Iterator[tuple[str, None] | Bad]:
    """`NAME,…`, without a blank round the commas: Kafka before 4.1 takes it into the name."""
    yield from distinct(_entries(text, "name list", NAMES_ALLOWED, _bare_name, trimmed=False))


def read_name(text: str) -> Iterator[tuple[str, None] | Bad]:
    """One listener name, as in `inter.broker.listener.name`."""
    try:
        yield _bare_name(text)
    except AddressError as error:
        yield Bad(_name_in(text), error)


def read_servers(text: str) -> Iterator[tuple[Address, None] | Bad]:
    """`host:port,…`, as in `controller.quorum.bootstrap.servers`."""
    yield from distinct(_entries(text, "server list", "host:port entries", _server, named=False))


def _server(entry: str) -> tuple[Address, None]:
    return parse_address(entry), None


def parse_entries(text: str) -> list[tuple[str, Address]]:
    """`NAME://host:port,…` as (name, address) pairs; an empty host is the wildcard.

    Raises AddressError for the first entry that the grammar refuses, repeated names included.
    """
    return [_only(listener) for listener in read_listeners(text)]


def _only(value: T | Bad) -> T:
    if isinstance(value, Bad):
        raise value.error
    return value


def _entries(
    text: str,
    what: str,
    allowed: str,
    read: Callable[[str], tuple[K, V]],
    trimmed: bool = True,
    named: bool = True,
) -> Iterator[tuple[K, V] | Bad]:
    """The entries of ``text``; those of a list that is ``named`` begin with a listener's name."""
    for raw in text.split(","):
        entry = raw.strip() if trimmed else raw
        try:
            if not entry.strip():
                raise AddressError(
                    f"{what} {text!r}",
                    observed="is empty" if text.strip() == "" else "has a blank entry",
                    allowed=allowed,
                )
            yield read(entry)
        except AddressError as error:
            yield Bad(_name_in(entry) if named else "", error)


def distinct(
    items: Iterable[tuple[K, V] | Bad], allowed: str = "distinct entries"
) -> Iterator[tuple[K, V] | Bad]:
    """``items``, with an error for each repeated key; ``allowed`` describes the rule."""
    seen: set[K] = set()
    for item in items:
        if not isinstance(item, Bad):
            key = item[0]
            if key in seen:
                error = AddressError(str(key), observed="occurs twice in one list", allowed=allowed)
                yield Bad(key if isinstance(key, str) else "", error)
                continue
            seen.add(key)
        yield item


def refused(what: str, entry: str, observed: str, allowed: str) -> AddressError:
    """The error about one entry of a list of ``what``."""
    return AddressError(f"{what} entry {entry!r}", observed=observed, allowed=allowed)


def _listener(entry: str) -> tuple[str, Address]:
    name, separator, rest = entry.partition("://")
    if not separator:
        raise refused("listener", entry, "has no ://", LISTENERS_ALLOWED)
    check_listener_name(name)
    host, colon, port = rest.rpartition(":")
    if colon and not host:
        return name, Address("", check_port(port))
    return name, parse_address(rest)


def _protocol(entry: str) -> tuple[str, Protocol]:
    name, colon, protocol = entry.rpartition(":")
    if not colon or protocol.strip() not in list(Protocol):
        observed = f"names the protocol {protocol.strip()!r}" if colon else "has no colon"
        raise refused("protocol map", entry, observed, MAP_ALLOWED)
    known, protocol_name = check_listener_name(name.strip()), Protocol(protocol.strip())
    if known in list(Protocol) and known != protocol_name:
        taken = f"image scripts take {known} at its word"
        observed = f"gives the name of one protocol to another; {taken}"
        raise refused("protocol map", entry, observed, f"{known}:{known}, or another name")
    return known, protocol_name


def _voter(entry: str) -> tuple[int, Address]:
    id, at, address = entry.partition("@")
    if not at or not _ID.fullmatch(id) or int(id) > MAX_ID:
        observed = f"has the id {id!r}" if at else "has no @"
        raise refused("voter", entry, observed, VOTERS_ALLOWED)
    return int(id), parse_address(address)


def _bare_name(entry: str) -> tuple[str, None]:
    return check_listener_name(entry), None


def _name_in(entry: str) -> str:
    """The listener that a bad entry seems to be about."""
    match = re.match(r"\s*([A-Za-z0-9_]+)\s*(?=:|$)", entry, re.ASCII)
    return match[1] if match else ""
