"""Whether a certificate is good for a host, as Kafka's clients decide. Pure.

What Java's and OpenSSL's clients both accept, and nothing that only one of them does. Sources:
RFC 6125, section 6.4; OpenSSL's `X509_check_host` without partial wildcards, which Python and
librdkafka call; Java's `HostnameChecker`. A common name counts for nothing: Java and OpenSSL look
at it only where a certificate has no alternative name at all, and Python and browsers never do.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

_WILDCARD = re.compile(r"\*(\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?){2,}", re.ASCII)
"""A whole first label, and two or more behind it: OpenSSL takes no `*.com`."""
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)


@dataclass(frozen=True)
class SubjectNames:
    """The subject alternative names of a certificate."""

    dns: tuple[str, ...] = ()
    """As they stand there; a wildcard is one of them."""
    addresses: tuple[str, ...] = ()
    """IP addresses, in the form that `ipaddress` prints."""

    @classmethod
    def of_hosts(cls, hosts: Iterable[str]) -> SubjectNames:
        """Exactly ``hosts``, each once: names in lower case, and addresses."""
        pairs = [(host.lower(), _address(host)) for host in hosts]
        names = dict.fromkeys(name for name, address in pairs if address is None)
        return cls(
            tuple(names),
            tuple(dict.fromkeys(address for _, address in pairs if address is not None)),
        )

    def cover(self, host: str) -> bool:
        """Whether a client that connects to ``host`` accepts a certificate with these names.

        ``host`` is a name or an address without brackets. A name that ends in a dot is covered by
        none, nor is one with an underscore, nor numbers that Java takes for an address (`10.1`):
        Java's clients refuse them whatever the certificate says.
        """
        address = _address(host)
        if address is not None:
            return address in self.addresses
        name = host.lower()
        labels = name.split(".")
        if not all(map(_LABEL.fullmatch, labels)):
            return False
        if len(labels) <= 4 and all(map(str.isdigit, labels)):
            return False
        return any(_matches(pattern.lower(), name) for pattern in self.dns)

    def same(self, other: SubjectNames) -> bool:
        """Whether these are the same names, in whatever order."""
        return {*self.dns} == {*other.dns} and {*self.addresses} == {*other.addresses}

    def __str__(self) -> str:
        return ", ".join((*self.dns, *self.addresses)) or "no name"


def _address(host: str) -> str | None:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None


def _matches(pattern: str, name: str) -> bool:
    if not _WILDCARD.fullmatch(pattern):
        return pattern == name and "*" not in pattern
    first, _, rest = name.partition(".")
    return bool(first) and rest == pattern[2:]
