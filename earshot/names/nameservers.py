"""DNS servers, given ones or this machine's, asked through dnspython.

Apart from `resolvers`, because importing dnspython takes longer than judging a cluster.
Source: `dns.resolver` for what tells the diagnoses apart.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterable
from pathlib import Path

import dns.exception
import dns.nameserver
import dns.rcode
import dns.resolver

from earshot.errors import AddressError
from earshot.names.lookup import Diagnosis, Lookup, unanswered
from earshot.names.resolvers import parse_server

_STUBS = frozenset({"127.0.0.53", "127.0.0.54"})
_BEHIND_STUB = Path("/run/systemd/resolve/resolv.conf")
_LATE_FAMILY = 1.0
"""Seconds for the second address family once the first has answered."""


class DnsResolver:
    """Given DNS servers, asked as a resolver does: the next one where one fails or is silent.

    A name is taken as it is: no search domain is appended, no hosts file is read.
    """

    def __init__(self, servers: Iterable[str], label: str = "") -> None:
        """``servers``: texts for `parse_server`, at least one; raises AddressError."""
        self.servers = tuple(servers)
        self._addresses = [parse_server(text) for text in self.servers]
        if not self._addresses:
            raise AddressError("DNS resolver", observed="has no server", allowed="one or more")
        self._label = label or ", ".join(self.servers)

    @property
    def label(self) -> str:
        return self._label

    def resolve(self, name: str, seconds: float) -> Lookup:
        """Both families; one of them is enough."""
        begun = time.monotonic()
        first = self._ask(name, "A", seconds)
        if first.diagnosis in (Diagnosis.NXDOMAIN, Diagnosis.TIMEOUT):
            return first
        left = seconds - (time.monotonic() - begun)
        # some servers never answer for AAAA: once there is an address, that costs a second only
        second = self._ask(name, "AAAA", min(left, _LATE_FAMILY) if first.ok else left)
        took = time.monotonic() - begun
        if not first.ok and not second.ok:
            # a failure says more than the absence of the other family
            worse = second if first.diagnosis is Diagnosis.NO_ANSWER else first
            detail = "; ".join(dict.fromkeys(filter(None, (first.detail, second.detail))))
            answered = first.answered or second.answered
            return Lookup(name, self.label, worse.diagnosis, (), took, detail, answered)
        failed = next((item for item in (first, second) if not item.ok), None)
        detail = "" if failed is None else failed.detail
        return Lookup(
            name, self.label, Diagnosis.OK, first.addresses + second.addresses, took, detail
        )

    def _ask(self, name: str, family: str, seconds: float) -> Lookup:
        if seconds <= 0:
            return unanswered(name, self.label, max(seconds, 0.0))
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers = [dns.nameserver.Do53Nameserver(*item) for item in self._addresses]
        resolver.timeout = min(2.0, seconds / (len(self._addresses) + 1))
        begun = time.monotonic()
        try:
            answer = resolver.resolve(f"{name}.", family, lifetime=seconds, search=False)
            addresses = tuple(str(ipaddress.ip_address(str(record))) for record in answer)
            took = time.monotonic() - begun
            return Lookup(name, self.label, Diagnosis.OK, addresses, took)
        except dns.resolver.NXDOMAIN:
            diagnosis, detail, answered = Diagnosis.NXDOMAIN, "the name does not exist", True
        except dns.resolver.NoAnswer:
            diagnosis, detail, answered = Diagnosis.NO_ANSWER, f"no {family} record", True
        except dns.resolver.LifetimeTimeout as error:
            _, answered = _failures(error)
            diagnosis, detail = Diagnosis.TIMEOUT, f"no {family} answer within {seconds:.1f} s"
        except dns.exception.DNSException as error:
            detail, answered = _failures(error)
            diagnosis = Diagnosis.SERVER_FAILURE
        took = time.monotonic() - begun
        return Lookup(name, self.label, diagnosis, (), took, detail, answered)


def _failures(error: dns.exception.DNSException) -> tuple[str, bool]:
    """What each server did, and whether any of them answered at all."""
    told: dict[str, None] = {}
    answered = False
    for server, _, _, reason, response in error.kwargs.get("errors", ()):
        if response is not None:
            answered = True
            reason = f"answered {dns.rcode.to_text(response.rcode())}"
        elif isinstance(reason, OSError):
            reason = reason.strerror or type(reason).__name__
        told[f"{str(server).removeprefix('Do53:').partition('@')[0]}: {reason}"] = None
    return "; ".join(told) or str(error), answered


def configured_servers() -> tuple[str, ...]:
    """This machine's DNS servers, or nothing where it has none.

    systemd-resolved's stub answers from this machine's hosts file, which is no evidence for other
    machines: the servers behind it are returned instead.
    """
    try:
        servers = _read(None)
        if servers and _STUBS.issuperset(servers) and _BEHIND_STUB.is_file():
            servers = _read(_BEHIND_STUB)
    except (dns.resolver.NoResolverConfiguration, OSError):
        return ()
    return servers


def _read(path: Path | None) -> tuple[str, ...]:
    resolver = dns.resolver.Resolver(configure=path is None)
    if path is not None:
        resolver.read_resolv_conf(str(path))
    return tuple(str(server) for server in resolver.nameservers)
