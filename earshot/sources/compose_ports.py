"""`ports` of a compose service, in its short and its long form.

Short: `[[host ip:][host port]:]container port[/protocol]`, ports as numbers or ranges, an IPv6
address in brackets. Long: a map of `target`, `published`, `host_ip` and `protocol`.
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping
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


def read_port(item: object, where: str) -> list[PublishedPort]:
    """The ports that one entry publishes. Raises EarshotError."""
    if isinstance(item, Mapping):
        return list(_long(item, where))
    match = _SHORT.fullmatch(str(item).strip()) if isinstance(item, (str, int)) else None
    if match is None:
        raise _error(item, where)
    container, host, ip, protocol = match.group("container", "host", "ip", "protocol")
    ip = (ip or "").strip("[]")
    return list(_pairs(container, host or "", ip, protocol or "tcp", item, where))


def read_hidden_port(item: object) -> list[PublishedPort]:
    """The port of an entry with variables whose container port is known; else empty."""
    if isinstance(item, Mapping):
        target, protocol = str(item.get("target") or ""), str(item.get("protocol") or "tcp")
    else:
        outer = re.sub(r"\$\{[^}]*\}", "", str(item))
        target, _, protocol = outer.rpartition(":")[2].partition("/")
        if outer == str(item) or "$" in outer or ":" not in str(item):
            return []
    if not re.fullmatch(r"[0-9]{1,5}", target, re.ASCII) or not 1 <= int(target) <= MAX_PORT:
        return []
    return [HiddenPort(int(target), None, protocol=protocol or "tcp")]


def _long(item: Mapping[object, object], where: str) -> Iterator[PublishedPort]:
    unknown = [str(key) for key in item if key not in _LONG and not str(key).startswith("x-")]
    if unknown or item.get("target") in (None, ""):
        raise _error(dict(item), where)
    host, ip, protocol = (str(item.get(it) or "") for it in ("published", "host_ip", "protocol"))
    target = str(item["target"])
    for found in _pairs(target, host, ip.strip("[]"), protocol or "tcp", dict(item), where):
        yield NodePort(**asdict(found)) if item.get("mode") == "host" else found


def _pairs(
    container: str, host: str, ip: str, protocol: str, item: object, where: str
) -> Iterator[PublishedPort]:
    inner = _range(container, item, where)
    outer = _range(host, item, where) if host else None
    if ip and not _is_ip(ip):
        raise _error(item, where)
    if outer is not None and len(outer) != len(inner):
        if len(inner) > 1 or len(outer) == 0:
            raise _error(item, where)
        outer = None  # one port out of a range: Docker chooses
    for i, port in enumerate(inner):
        yield PublishedPort(port, None if outer is None else outer[i], ip, protocol)


def _range(text: str, item: object, where: str) -> range:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise _error(item, where)
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= first <= last <= MAX_PORT:
        raise _error(item, where)
    return range(first, last + 1)


def _is_ip(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _error(item: object, where: str) -> EarshotError:
    return EarshotError(where, observed=f"found {item!r}", allowed=ALLOWED)
