"""This machine's configured DNS servers and search domains.

Sources: resolv.conf(5); systemd-resolved(8) for its stub and the file with its upstream servers;
the output of macOS's `scutil --dns`, which includes /etc/resolver and VPNs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from earshot.errors import AddressError
from earshot.names.resolvers import parse_server

RESOLV_CONF: Final = Path("/etc/resolv.conf")
BEHIND_STUB: Final = Path("/run/systemd/resolve/resolv.conf")
"""systemd-resolved's file with the servers of every link, including VPNs."""
_STUBS: Final = frozenset({"127.0.0.53", "127.0.0.54"})
_RESOLVER: Final = re.compile(r"^resolver #\d+$", re.MULTILINE)
_ENTRY: Final = re.compile(
    r"^\s+(?P<key>[a-z ]+?)(?:\[\d+\])?\s*: (?P<value>.*?)\s*$", re.MULTILINE
)


@dataclass(frozen=True)
class Configuration:
    """The configuration of a machine's resolver."""

    servers: tuple[str, ...] = ()
    """Texts for `parse_server`, in the order in which they are configured."""
    search: tuple[str, ...] = ()
    """Domains that are appended to a name without dots."""


def read_resolv_conf(text: str) -> Configuration:
    """The configuration in a resolv.conf; the last `search` or `domain` line counts."""
    servers: list[str] = []
    search: tuple[str, ...] = ()
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver":
            servers.append(words[1])
        elif len(words) > 1 and words[0] in ("search", "domain"):
            search = tuple(words[1:]) if words[0] == "search" else (words[1],)
    return Configuration(_usable(servers), _domains(search))


def nameservers(file: Path = RESOLV_CONF) -> tuple[str, ...]:
    """The DNS servers in ``file``, by default this machine's resolv.conf."""
    return read_resolv_conf(_text(file)).servers


def read_scutil(text: str) -> Configuration:
    """The configuration in the output of `scutil --dns`, with resolvers of single domains.

    Multicast resolvers have no server. Resolvers of one interface (`Scoped`) are left out, as only
    programs that bind to it use them.
    """
    servers: list[str] = []
    search: list[str] = []
    for block in _RESOLVER.split(text)[1:]:
        entries = [(match["key"], match["value"]) for match in _ENTRY.finditer(block)]
        values = dict(entries)
        if "Scoped" in values.get("flags", "") or "mdns" in values.get("options", ""):
            continue
        port = values.get("port", "53")
        for key, value in entries:
            if key == "nameserver":
                host = f"[{value}]" if ":" in value else value
                servers.append(value if port == "53" else f"{host}:{port}")
            elif key == "search domain":
                search.append(value)
    return Configuration(_usable(servers), _domains(search))


def configuration(platform: str = sys.platform) -> Configuration:
    """This machine's configuration, which may have no server.

    systemd-resolved's stub is replaced with the servers of every link, as it also answers from this
    machine's hosts file, which is not evidence for other machines.
    """
    system = read_resolv_conf(_text(RESOLV_CONF))
    behind = nameservers(BEHIND_STUB)
    if behind and _STUBS & set(system.servers):
        other_servers = [server for server in system.servers if server not in _STUBS]
        system = Configuration(_usable([*behind, *other_servers]), system.search)
    if platform == "darwin":
        mac = read_scutil(_scutil())
        servers, search = (*system.servers, *mac.servers), (*system.search, *mac.search)
        system = Configuration(_usable(servers), _domains(search))
    return system


def _usable(servers: Iterable[str]) -> tuple[str, ...]:
    """The distinct ``servers`` that are IP addresses: resolvers ignore others."""
    servers_kept = []
    for text in dict.fromkeys(servers):
        try:
            parse_server(text)
        except AddressError:
            continue
        servers_kept.append(text)
    return tuple(servers_kept)


def _domains(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (text.strip(".").lower() for text in texts))))


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _scutil() -> str:
    try:
        process = subprocess.run(
            ["/usr/sbin/scutil", "--dns"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=3.0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout
