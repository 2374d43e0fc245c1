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
from earshot.listeners.placeholders import is_known
from earshot.topology.container import NodePort, PublishedPort

_SHORT = re.compile(
    r"(?:(?:(?P<ip>\[[^\]]*\]|[^:\[\]]*):)?(?P<host>[0-9-]*):)?"
    r"(?P<container>[0-9-]+)(?:/(?P<protocol>[a-z]+))?",
    re.ASCII,
)
_VARIABLE = re.compile(
    r"(?:(\[[^\]]*\]|[0-9.]+):)?(\$\{?[A-Za-z_][A-Za-z0-9_]*\}?):([0-9]{1,5})(?:/([a-z]+))?",
    re.ASCII,
)
_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", re.ASCII)
_LONG = {"target", "published", "host_ip", "protocol", "mode", "name", "app_protocol"}
ALLOWED = (
    '"HOST:CONTAINER", "IP:HOST:CONTAINER" or "CONTAINER", with numbers or ranges of equal '
    "length and perhaps /tcp, or a map with target, published, host_ip and protocol"
)


def read_port(item: object, where: str) -> list[PublishedPort]:
    """The ports that one entry publishes, one each. Raises EarshotError."""
    if isinstance(item, Mapping):
        return list(_long(item, where))
    match = _SHORT.fullmatch(str(item).strip()) if isinstance(item, (str, int)) else None
    if match is None:
        raise _error(item, where)
    container, host, ip, protocol = match.group("container", "host", "ip", "protocol")
    ip = (ip or "").strip("[]")
    return list(_pairs(container, host or "", ip, protocol or "tcp", item, where))


def read_variable_port(item: object) -> PublishedPort | None:
    """A port of the container whose port on the host is a variable: `${PORT}:9092`, also after an
    address; None for anything else."""
    if isinstance(item, Mapping):
        host, inner = str(item.get("published") or ""), str(item.get("target"))
        ip, protocol = str(item.get("host_ip") or ""), str(item.get("protocol") or "tcp")
    else:
        match = _VARIABLE.fullmatch(str(item).strip())
        if match is None:
            return None
        ip, host, inner, protocol = (text or "" for text in match.groups())
    if is_known(host) or not (inner.isdecimal() and 1 <= int(inner) <= MAX_PORT):
        return None
    if ip and not _is_ip(ip.strip("[]")):
        return None
    return PublishedPort(int(inner), None, ip.strip("[]"), protocol or "tcp", host)


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
