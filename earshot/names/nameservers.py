"""Lookups at DNS servers through dnspython.

Separate from `resolvers`, because importing dnspython takes longer than checking a cluster.
Source: `dns.resolver` for how the diagnoses differ.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

import dns.exception
import dns.flags
import dns.message
import dns.nameserver
import dns.rcode
import dns.rdatatype
import dns.resolver

from earshot.errors import AddressError
from earshot.names import dns_wire
from earshot.names.lookup import Diagnosis, Lookup, combined, unanswered
from earshot.names.resolvers import parse_server

_LATE_FAMILY = 1.0
"""Seconds for the second address family once the first has answered."""
_LATE_SERVER = 1.0
"""Seconds for the other servers once one has resolved a name."""
_CUT_SHORT = "its answer is cut short, over TCP as well"
_MUTE = 2.0
"""Seconds of silence after which a server is not waited for, if others answer."""
_LOOK_AGAIN = 0.25
"""Seconds between two checks whether a server has answered for other names."""


class DnsResolver:
    """Queries all given DNS servers at the same time. One that resolves a name is enough.

    A client's own resolver believes the first server that denies a name; but which server is its
    first depends on the client's location, and the servers here are a sample of all servers.
    No search domain is appended, and no hosts file is read.
    """

    def __init__(self, servers: Iterable[str]) -> None:
        """``servers``: texts for `parse_server`, at least one; raises AddressError."""
        self.servers = tuple(dict.fromkeys(servers))
        self._servers = [_Server(text) for text in self.servers]
        if not self._servers:
            raise AddressError("DNS resolver", observed="has no server", allowed="one or more")

    @property
    def label(self) -> str:
        return ", ".join(self.servers)

    def resolve(self, name: str, seconds: float) -> Lookup:
        """The combined result of all servers, within ``seconds``.

        A silent server is not waited for all that time if another has resolved the name, or if it
        has not answered for any name while others did.
        """
        if len(self._servers) == 1:
            return self._servers[0].resolve(name, seconds)
        start = time.monotonic()
        futures: dict[Future[Lookup], _Server] = {}
        for server in self._servers:
            future: Future[Lookup] = Future()
            futures[future] = server
            arguments = (future, server, name, seconds)
            # a daemon, so that a silent server does not keep the process alive
            threading.Thread(target=_answer, args=arguments, daemon=True).start()
        open_futures: set[Future[Lookup]] = set(futures)
        resolved_at: float | None = None
        while open_futures and (remaining := start + seconds - time.monotonic()) > 0:
            finished, open_futures = wait(
                open_futures, min(remaining, _LOOK_AGAIN), FIRST_COMPLETED
            )
            now = time.monotonic()
            if resolved_at is None and any(future.result().ok for future in finished):
                resolved_at = now
            if resolved_at is not None and now - resolved_at >= min(_LATE_SERVER, seconds / 4):
                break
            any_answered = any(server.has_answered for server in self._servers)
            if any_answered and all(futures[future].is_mute(now) for future in open_futures):
                break
        elapsed = time.monotonic() - start
        lookups = [
            future.result() if future.done() else unanswered(name, server.label, elapsed)
            for future, server in futures.items()
        ]
        return combined(name, self.label, lookups)


def _answer(future: Future[Lookup], server: _Server, name: str, seconds: float) -> None:
    try:
        future.set_result(server.resolve(name, seconds))
    except Exception as error:  # a bug: raised again in `DnsResolver.resolve`
        future.set_exception(error)


class _Server:
    """One DNS server, and whether it has ever answered."""

    def __init__(self, text: str) -> None:
        self.label = text
        self.has_answered = False
        self._address = parse_server(text)
        self._kind = socket.AF_INET6 if ":" in self._address.host else socket.AF_INET
        self._first_asked: float | None = None
        self._patience = _MUTE

    def is_mute(self, now: float) -> bool:
        """True if the first query was a while ago and there was no answer since."""
        first_asked = self._first_asked
        return (
            not self.has_answered
            and first_asked is not None
            and now - first_asked >= self._patience
        )

    def resolve(self, name: str, seconds: float) -> Lookup:
        """The addresses of both families. One family with an address is enough."""
        start = time.monotonic()
        if self._first_asked is None:
            self._first_asked, self._patience = start, min(_MUTE, seconds / 2)
        first = self._ask(name, "A", seconds)
        if first.diagnosis in (Diagnosis.NXDOMAIN, Diagnosis.TIMEOUT):
            return first
        remaining = seconds - (time.monotonic() - start)
        # some servers never answer for AAAA: with an address, wait only a second for it
        second = self._ask(name, "AAAA", min(remaining, _LATE_FAMILY) if first.ok else remaining)
        elapsed = time.monotonic() - start
        # a failure has more information than a missing family
        worse = second if first.diagnosis is Diagnosis.NO_ANSWER else first
        diagnosis = Diagnosis.OK if first.ok or second.ok else worse.diagnosis
        addresses = first.addresses + second.addresses
        failed = (lookup.detail for lookup in (first, second) if not lookup.ok)
        detail = "; ".join(dict.fromkeys(filter(None, failed)))
        answered = first.answered or second.answered
        return Lookup(name, self.label, diagnosis, addresses, elapsed, detail, answered)

    def _ask(self, name: str, family: str, seconds: float) -> Lookup:
        lookup = self._lookup(name, family, seconds)
        self.has_answered = self.has_answered or lookup.answered
        return lookup

    def _lookup(self, name: str, family: str, seconds: float) -> Lookup:
        if seconds <= 0:
            return unanswered(name, self.label, max(seconds, 0.0))
        start = time.monotonic()
        try:
            texts = self._query_once(name, family, seconds)
            if texts is None:
                texts = self._query_with_retries(name, family, start + seconds - time.monotonic())
            elapsed = time.monotonic() - start
            addresses = tuple(dict.fromkeys(str(ipaddress.ip_address(text)) for text in texts))
            return Lookup(name, self.label, Diagnosis.OK, addresses, elapsed)
        except dns.resolver.NXDOMAIN:
            diagnosis, detail, answered = Diagnosis.NXDOMAIN, "the name does not exist", True
        except dns.resolver.NoAnswer as error:
            diagnosis, detail, answered = Diagnosis.NO_ANSWER, f"no {family} record", True
            if _is_cut_short(error):
                diagnosis, detail = Diagnosis.SERVER_FAILURE, _CUT_SHORT
        except dns.resolver.LifetimeTimeout as error:
            _, answered = _failures(error)
            diagnosis, detail = Diagnosis.TIMEOUT, f"no {family} answer within {seconds:.1f} s"
        except dns.exception.DNSException as error:
            detail, answered = _failures(error)
            diagnosis = Diagnosis.SERVER_FAILURE
        elapsed = time.monotonic() - start
        return Lookup(name, self.label, diagnosis, (), elapsed, detail, answered)

    def _query_once(self, name: str, family: str, seconds: float) -> Sequence[str] | None:
        """The addresses in the first answer over UDP; None if there is none, or it is incomplete.

        For thousands of names this takes a fraction of the time of `dns.resolver`. Raises its
        exceptions if the answer has no addresses.
        """
        kind = dns.rdatatype.from_text(family)
        question = dns_wire.question(name, kind)
        server = (self._address.host, self._address.port)
        try:
            with socket.socket(self._kind, socket.SOCK_DGRAM) as connection:
                connection.settimeout(_first_wait(seconds))
                connection.sendto(question, server)
                answer, sender = connection.recvfrom(65_535)
        except OSError:
            return None
        return dns_wire.addresses(question, answer, kind) if sender[:2] == server else None

    def _query_with_retries(self, name: str, family: str, seconds: float) -> Sequence[str]:
        """The addresses by `dns.resolver`, with retries, and over TCP if the answer is too long."""
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers = [dns.nameserver.Do53Nameserver(*self._address)]
        resolver.timeout = _first_wait(seconds)
        answer = resolver.resolve(
            dns_wire.absolute(name), family, lifetime=max(seconds, 0.0), search=False
        )
        return [str(record) for record in answer]


def _is_cut_short(error: dns.resolver.NoAnswer) -> bool:
    """True if the server marked the answer without addresses as incomplete."""
    response = error.kwargs.get("response")
    return response is not None and bool(response.flags & dns.flags.TC)


def _first_wait(seconds: float) -> float:
    """Seconds before the first retry."""
    return max(min(2.0, seconds / 2), 0.001)


def _failures(error: dns.exception.DNSException) -> tuple[str, bool]:
    """The failures of all attempts as text, and True if the server answered at all."""
    reasons, answered = [], False
    for _, _, _, reason, response in error.kwargs.get("errors", ()):
        if response is not None:
            answered = True
            if response.rcode() != dns.rcode.NOERROR:
                reason = f"answered {dns.rcode.to_text(response.rcode())}"
        elif isinstance(reason, OSError):
            reason = reason.strerror or type(reason).__name__
        elif isinstance(reason, dns.message.Truncated):
            answered = True
            reason = "its answer is too long for UDP"
        reasons.append(str(reason))
    return "; ".join(dict.fromkeys(reasons)) or str(error), answered
