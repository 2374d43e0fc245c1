"""`ports` of a compose service, in its short and its long form.

Short: `[[host ip:][host port]:]container port[/protocol]`, ports as numbers or ranges, an IPv6
address in brackets. Long: a map of `target`, `published`, `host_ip` and `protocol`.
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from earshot.errors import EarshotError
from earshot.listeners.address import MAX_PORT
from earshot.topology.container import HiddenPort, NodePort, PublishedPort

_SHORT = re.compile(
    r"(?:(?:(?P<ip>\[[^\]]*\]|[^:\[\]]*):)?(?P<host>[0-9-]*):)?"
    r"(?P<container>[0-9-]+)(?:/(?P<protocol>[a-z]+))?",
    re.ASCII,
)
_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", re.ASCII)
_LONG = {"target", "published", "host_ip", "protocol", "mode", "name", "app_protocol"}
ALLOWED = (
    '"HOST:CONTAINER", "IP:HOST:CONTAINER" or "CONTAINER", with numbers or ranges of equal '
    "length and perhaps /tcp, or a map with target, published, host_ip and protocol"
)


def read_port(entry: object, where: str) -> list[PublishedPort]:
    """The ports that one entry publishes. Raises EarshotError."""
    if isinstance(entry, Mapping):
        return list(_long(entry, where))
    match = _SHORT.fullmatch(str(entry).strip()) if isinstance(entry, (str, int)) else None
    if match is None:
        raise _error(entry, where)
    container, host, ip, protocol = match.group("container", "host", "ip", "protocol")
    ip = (ip or "").strip("[]")
    return list(_pairs(container, host or "", ip, protocol or "tcp", entry, where))


def read_known_ports(entries: Iterable[object], unknown: list[str]) -> Iterator[PublishedPort]:
    """The ports of ``entries``; adds `ports` to ``unknown`` for an unreadable entry."""
    for entry in entries:
        try:
            yield from read_port(entry, "ports")
        except EarshotError:
            if hidden := _hidden_port(entry):
                yield hidden
            else:
                unknown.append("ports")


def refuse_impossible_port(entry: object, where: str) -> None:
    """Raises EarshotError for a short form that has a number above the highest port."""
    text = str(entry).strip() if isinstance(entry, (str, int)) else ""
    match = _SHORT.fullmatch(text)
    numbers = (
        re.findall(r"[0-9]+", " ".join(filter(None, match.group("host", "container"))))
        if match
        else ()
    )
    if any(len(number) > 5 or int(number) > MAX_PORT for number in numbers):
        shown = text if len(text) < 40 else f"{text[:40]}..."
        raise EarshotError(
            where,
            observed=f"found {shown!r}, which docker compose refuses",
            allowed=f"ports up to {MAX_PORT}",
        )


def _hidden_port(entry: object) -> HiddenPort | None:
    """The port of an entry with variables whose container port is known, or None."""
    if isinstance(entry, Mapping):
        target, protocol = str(entry.get("target") or ""), str(entry.get("protocol") or "tcp")
    else:
        outer = re.sub(r"\$\{[^}]*\}", "", str(entry))
        target, _, protocol = outer.rpartition(":")[2].partition("/")
        if outer == str(entry) or "$" in outer or ":" not in str(entry):
            return None
    if not re.fullmatch(r"[0-9]{1,5}", target, re.ASCII) or not 1 <= int(target) <= MAX_PORT:
        return None
    return HiddenPort(int(target), None, protocol=protocol or "tcp")


def _long(entry: Mapping[object, object], where: str) -> Iterator[PublishedPort]:
    unknown = [str(key) for key in entry if key not in _LONG and not str(key).startswith("x-")]
    if unknown or entry.get("target") in (None, ""):
        raise _error(dict(entry), where)
    host, ip, protocol = (str(entry.get(key) or "") for key in ("published", "host_ip", "protocol"))
    target = str(entry["target"])
    for port in _pairs(target, host, ip.strip("[]"), protocol or "tcp", dict(entry), where):
        yield NodePort(**asdict(port)) if entry.get("mode") == "host" else port


def _pairs(
    container: str, host: str, ip: str, protocol: str, entry: object, where: str
) -> Iterator[PublishedPort]:
    inner = _range(container, entry, where)
    outer = _range(host, entry, where) if host else None
    if ip and not _is_ip(ip):
        raise _error(entry, where)
    if outer is not None and len(outer) != len(inner):
        if len(inner) > 1:
            raise _error(entry, where)
        outer = None  # one port out of a range: Docker chooses
    for i, port in enumerate(inner):
        yield PublishedPort(port, None if outer is None else outer[i], ip, protocol)


def _range(text: str, entry: object, where: str) -> range:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise _error(entry, where)
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= first <= last <= MAX_PORT:
        raise _error(entry, where)
    return range(first, last + 1)


def _is_ip(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _error(entry: object, where: str) -> EarshotError:
    return EarshotError(where, observed=f"found {entry!r}", allowed=ALLOWED)
