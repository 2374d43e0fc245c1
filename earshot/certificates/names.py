"""Decides whether a certificate covers a host, as Kafka's clients do.

A host is covered if both Java's and OpenSSL's clients accept it. Sources: RFC 6125, section 6.4;
OpenSSL's `X509_check_host` without partial wildcards, which Python and librdkafka call; Java's
`HostnameChecker`. The common name is ignored: Java and OpenSSL use it only if a certificate has no
alternative name, and Python and browsers never do.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

_WILDCARD = re.compile(r"\*(\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?){2,}", re.ASCII)
"""A wildcard label before two or more labels, as OpenSSL rejects `*.com`."""
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)


@dataclass(frozen=True)
class SubjectNames:
    """The subject alternative names of a certificate."""

    dns: tuple[str, ...] = ()
    """DNS names as the certificate has them, including wildcards."""
    addresses: tuple[str, ...] = ()
    """IP addresses in the form that `ipaddress` prints."""

    @classmethod
    def of_hosts(cls, hosts: Iterable[str]) -> SubjectNames:
        """The distinct ``hosts``: names in lower case, and addresses."""
        pairs = [(host.lower(), _address(host)) for host in hosts]
        names = dict.fromkeys(name for name, address in pairs if address is None)
        return cls(
            tuple(names),
            tuple(dict.fromkeys(address for _, address in pairs if address is not None)),
        )

    def covers(self, host: str) -> bool:
        """True if a client that connects to ``host`` accepts a certificate with these names.

        ``host`` is a name or an address without brackets. No certificate covers a name that ends in
        a dot, a name with an underscore, or numbers that Java reads as an address (`10.1`), as
        Java's clients refuse all of them.
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

    def has_same_names(self, other_names: SubjectNames) -> bool:
        """True if both have the same names, in any order."""
        return {*self.dns} == {*other_names.dns} and {*self.addresses} == {*other_names.addresses}

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
    first_label, _, domain = name.partition(".")
    return bool(first_label) and domain == pattern[2:]
