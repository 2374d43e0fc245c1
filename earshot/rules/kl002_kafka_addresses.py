"""KL002: addresses that Kafka accepts and nothing can bind or connect to (U).

Entries are read one by one, so that an unknown entry does not hide others.
"""

import re
from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings, Unreadable
from earshot.listeners.address import HOST_ALLOWED, MAX_PORT, Address, why_unusable
from earshot.listeners.placeholders import is_known
from earshot.names.kinds import NameKind, kind_of
from earshot.rules.kl022_host_verification import KEY as VERIFICATION
from earshot.rules.objections import Objection

BOUND = "listeners"
ADVERTISED = "advertised.listeners"
QUORUM = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
_HOST = re.compile(r"\[?([0-9a-zA-Z\-%._:]*)\]?", re.ASCII)
"""Kafka itself refuses other characters."""
_ZEROS = re.compile(r"0+(?:\.0+){0,3}", re.ASCII)
"""Java reads 0 and 0.0 as 0.0.0.0."""
_PORT = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_PLACEHOLDER = re.compile(
    r"your(?:[-_.][a-z]+)+|your(?:ip|host|server)[-_.a-z]*|(?:x{1,3}\.){3}x{1,3}"
    r"|(?:change|replace)[-_.]?(?:me|this)(?:[-_.][a-z]+)*"
    r"|(?:(?:my|public|private|external|local|lan|host|server|broker|node|machine|docker|ec2|vm)"
    r"[-_.]?)+ip(?:[-_.]?address)?|ip[-_.]?address",
    re.ASCII | re.IGNORECASE,
)
"""Placeholders for a host, such as Kafka's `your.host.name`."""


REFUSED_BY_JAVA = "Java clients refuse it with TLS (Illegal given domain name)"
UNDERSCORE_REMEDY = "advertise a name without an underscore, and have a certificate issued for it"


def bound(view: KafkaSettings) -> Iterator[Objection]:
    """U1; port 0 is any free port."""
    for name, address in _entries(view, BOUND):
        if why := why_unusable(address, lowest=0):
            yield _objection("U1", BOUND, name, why, "does not start")


def advertised(view: KafkaSettings) -> Iterator[Objection]:
    """U2."""
    for name, address in _entries(view, ADVERTISED):
        if why := why_unusable(address) or _every_interface(address):
            instead = "hands it out, and no client can connect to it"
            yield _objection("U2", ADVERTISED, name, why, instead)


def placeholder(view: KafkaSettings) -> Iterator[Objection]:
    """U2a: a warning, as a tool may replace the host."""
    for name, address in _entries(view, ADVERTISED):
        if _PLACEHOLDER.fullmatch(address.host):
            yield Objection(
                "U2a",
                ADVERTISED,
                f"{name} has the placeholder {address.host} as its host",
                "a name or an IP address of this broker",
                remedy=f"replace {address.host} by the host that clients connect to",
                listener=name.upper(),
                instead="hands it out, and clients do not resolve it",
                is_error=False,
            )


def named_for_tls(view: KafkaSettings) -> Iterator[Objection]:
    """U2b: Java refuses names with an underscore when it verifies a certificate's host (tried with
    Kafka 4.1.1 on Java 17). A warning if the file turns the verification off: clients may, too.

    Sources: `sun.security.util.HostnameChecker` and `javax.net.ssl.SNIHostName` of OpenJDK.
    """
    try:
        protocols = view.protocols
    except Unreadable:
        return
    for name, address in _entries(view, ADVERTISED):
        protocol = protocols.get(name.upper())
        is_name = not (why_unusable(address) or _PLACEHOLDER.fullmatch(address.host))
        if protocol is not None and protocol.tls and is_name and "_" in address.host:
            yield Objection(
                "U2b",
                ADVERTISED,
                f"{name} is {protocol} and has the host {address.host}, with an underscore",
                HOST_ALLOWED,
                remedy=UNDERSCORE_REMEDY,
                listener=name.upper(),
                instead=f"hands it out, and {REFUSED_BY_JAVA}",
                is_error=bool(view.values.get(view.key_of(name, VERIFICATION), "https").strip()),
            )


def quorum(view: KafkaSettings) -> Iterator[Objection]:
    """U3."""
    for key in QUORUM:
        for name, address in _entries(view, key):
            if why := why_unusable(address):
                instead = "takes it, and no node can connect to it"
                yield _objection("U3", key, name, why, instead)


def _entries(view: KafkaSettings, key: str) -> Iterator[tuple[str, Address]]:
    """The name or id of each entry, and its address; an unknown host is empty."""
    for entry in view.values.get(key, "").split(","):
        head, mark, address = entry.strip().rpartition("@" if key == QUORUM[0] else "://")
        host, _, port = address.rpartition(":")
        match = _HOST.fullmatch(host) if is_known(host) else _HOST.fullmatch("")
        if match is not None and (mark or key == QUORUM[1]) and _PORT.fullmatch(port):
            yield head, Address(match[1], int(port))


def _every_interface(address: Address) -> str:
    """The problem of a host that means every interface, or an empty string."""
    is_any = kind_of(address.host) is NameKind.ANY_ADDRESS or _ZEROS.fullmatch(address.host)
    if not is_any:
        return ""
    return f"has the host {address.host}, which means every interface"


def _objection(check: str, key: str, name: str, why: str, instead: str) -> Objection:
    return Objection(
        check,
        key,
        f"{name or 'an entry'} {why}",
        f"one name or IP address, and one port from 1 to {MAX_PORT}",
        remedy="write one host and one port",
        listener=None if key in QUORUM else name.upper(),
        instead=instead,
    )


CHECKS = (bound, advertised, placeholder, named_for_tls, quorum)
