"""Hosts, ports and ``host:port``: a grammar stricter than Kafka's own.

Whatever is accepted here, every supported Kafka parses in the same way and every client can use.
Kafka itself takes `256.256.256.256`, `[host`, `a..b` or port 99999 without a word.
Sources: RFC 1123 section 2.1 (names), RFC 4291 section 2.2 (IPv6 text), Kafka's
`SocketServerConfigs` for what the broker would let through.
"""

import ipaddress
import re
from functools import lru_cache
from typing import NamedTuple

from earshot.errors import AddressError

MAX_NAME = 253
MAX_LABEL = 63
MAX_PORT = 65535
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?", re.ASCII)
_DIGITS = re.compile(r"[0-9.]+", re.ASCII)
_HEX = re.compile(r"0[xX][0-9A-Fa-f]*", re.ASCII)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_NAME = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)

HOST_ALLOWED = (
    "an RFC 1123 name (letters, digits and inner hyphens, labels of at most 63 characters, "
    "253 in all, no trailing dot), an IPv4 address, or an IPv6 address (in brackets before a port)"
)
PORT_ALLOWED = "a port from 1 to 65535, without sign or leading zero"
NAME_ALLOWED = "upper-case letters, digits and underscores, beginning with a letter"


class Address(NamedTuple):
    """One ``host:port``; an IPv6 host is kept without brackets and printed with them."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"


def bracketed(host: str) -> str:
    """``host`` as written before a port: IPv6 in brackets, anything else unchanged."""
    return f"[{host}]" if ":" in host else host


@lru_cache(maxsize=8192)  # a cluster repeats few hosts often, 0.0.0.0 above all
def check_host(text: str) -> str:
    """``text`` as a host, without brackets; raises AddressError with the reason."""
    if text.startswith("[") or text.endswith("]"):
        if not (text.startswith("[") and text.endswith("]")):
            raise _host_error(text, "has an unbalanced bracket")
        return _ipv6(text[1:-1], text)
    if ":" in text:
        return _ipv6(text, text)
    if not text:
        raise _host_error(text, "is empty")
    if text.rsplit(".", 1)[-1].isdigit() or _DIGITS.fullmatch(text):
        return _ipv4(text)
    if len(text) > MAX_NAME:
        raise _host_error(text, f"has {len(text)} characters")
    for label in text.split("."):
        if len(label) > MAX_LABEL:
            raise _host_error(text, f"has a label of {len(label)} characters")
        if not _LABEL.fullmatch(label):
            raise _host_error(text, f"has the label {_quoted(label)}")
    if _HEX.fullmatch(text.rsplit(".", 1)[-1]):
        raise _host_error(text, "ends in a hexadecimal number, which resolvers read as an address")
    return text


@lru_cache(maxsize=4096)
def unusable_host(text: str) -> str:
    """Why no machine can be reached as ``text``, a host that Kafka takes; "" where one may.

    Much that `check_host` refuses works for some clients, such as an underscore in a name.
    """
    if ":" in text:
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            return "holds a colon and is not an IPv6 address"
        return ""
    labels = text.removesuffix(".").split(".")
    if text and not all(labels):
        return "has an empty label"
    if len(text) > MAX_NAME or max(map(len, labels)) > MAX_LABEL:
        return f"is longer than DNS allows ({MAX_NAME} characters, {MAX_LABEL} between two dots)"
    numbers = [int(label) for label in labels if label.isdigit()]
    if len(numbers) == len(labels) >= 4 and (len(numbers) > 4 or max(numbers) > 255):
        return "looks like an IPv4 address, and is not one"
    return "has a percent sign" if "%" in text else ""


def why_unusable(address: Address, lowest: int = 1) -> str:
    """Why nothing can connect to ``address``, which Kafka takes; "" where something may."""
    if not lowest <= address.port <= MAX_PORT:
        return f"has the port {address.port}"
    problem = unusable_host(address.host)
    return problem and f"has the host {address.host}, which {problem}"


def check_port(port: int | str) -> int:
    """``port`` as a number; raises AddressError unless it is 1 to 65535 in plain digits."""
    text = str(port)
    if not _PORT.fullmatch(text) or int(text) > MAX_PORT:
        raise AddressError(
            f"port {_quoted(text)}", observed="is not a usable port", allowed=PORT_ALLOWED
        )
    return int(text)


def check_listener_name(text: str) -> str:
    """``text`` as a listener name; raises AddressError with a hint when only the case is wrong."""
    if _NAME.fullmatch(text):
        return text
    fixed = text.strip().upper()
    hint = f"write {fixed}" if len(fixed) <= MAX_NAME and _NAME.fullmatch(fixed) else ""
    raise AddressError(
        f"listener name {_quoted(text)}",
        observed="is not one that every Kafka and every tool reads alike",
        allowed=NAME_ALLOWED,
        remedy=hint,
    )


def parse_address(text: str) -> Address:
    """``host:port`` or ``[ipv6]:port``; raises AddressError."""
    what, allowed = f"address {_quoted(text)}", "host:port or [ipv6]:port"
    host, colon, port = text.rpartition(":")
    if not colon:
        raise AddressError(what, observed="has no port", allowed=allowed)
    if ":" in host and not host.startswith("["):
        raise AddressError(
            what,
            observed="has several colons outside brackets",
            allowed=allowed,
            remedy="put an IPv6 address in brackets, or take the extra port away",
        )
    return Address(check_host(host), check_port(port))


def read_address(text: str) -> Address:
    """What ``str`` made of an Address, whatever its host and port hold; nothing else is checked.

    For addresses that were observed: Kafka advertises what `parse_address` refuses. Raises
    ValueError if the last colon is not followed by a number.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not _NUMBER.fullmatch(port):
        raise ValueError("allowed: host:port or [ipv6]:port")
    inner = host[1:-1]
    return Address(inner if host == bracketed(inner) else host, int(port))


def _ipv4(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError as reason:
        raise _host_error(text, f"looks like an IPv4 address and is none ({reason})") from None


def _ipv6(text: str, whole: str) -> str:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError as reason:
        raise _host_error(whole, f"is no IPv6 address ({reason})") from None
    if address.scope_id is not None:
        raise _host_error(whole, "has a zone, which means something on one machine only")
    return str(address)


def _host_error(text: str, observed: str) -> AddressError:
    remedy = ""
    if "_" in text:
        remedy = "take the underscore out: Java's URI finds no host in such a name"
    elif text.endswith("."):
        remedy = "take the trailing dot away: certificates are compared without it"
    elif "$" in text or "{" in text:
        remedy = "a variable was not expanded"
    what = f"host {_quoted(text)}"
    return AddressError(what, observed=observed, allowed=HOST_ALLOWED, remedy=remedy)


def _quoted(text: str) -> str:
    """``text`` for a message, cut if it is far longer than any name."""
    return repr(text if len(text) <= 2 * MAX_NAME else f"{text[:57]}...")
