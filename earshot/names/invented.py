"""Answers that a resolver invents, because it answers for names that do not exist.

A captive portal answers every query with its own address. The DNS servers of some providers do so
for every name that does not exist, and some proxies give each name an address of its own.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import replace

from earshot.listeners.listed import briefly
from earshot.names.lookup import Diagnosis, Lookup, Resolver, combined

_CONTROL_SECONDS = 1.0
"""Time limit for the lookups of names that do not exist, once a resolver has resolved a name."""
_DOMAINS = ("invalid", "com")
"""RFC 6761 reserves the first, which many resolvers deny themselves. The second has no wildcard."""

Invented = Mapping[str, tuple[tuple[str, ...], ...]]
"""By DNS server, its addresses for each control name that it resolves."""


class DoubtedResolver:
    """A resolver whose invented answers count as denials.

    After its first answer with addresses it also looks up random names that do not exist. If the
    resolver does not answer for them in time, its other answers count.
    """

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._lock = threading.Lock()
        self._controls: list[Future[Lookup]] = []

    @property
    def label(self) -> str:
        return self._resolver.label

    def resolve(self, name: str, seconds: float) -> Lookup:
        """The resolver's result without invented addresses."""
        start = time.monotonic()
        lookup = self._resolver.resolve(name, seconds)
        if not lookup.ok:
            return lookup
        with self._lock:
            if not self._controls:
                self._controls = [self._begun(domain) for domain in _DOMAINS]
        remaining = start + seconds - time.monotonic()
        wait(self._controls, max(0.0, min(_CONTROL_SECONDS, remaining)))
        return without_invented(lookup, self._invented())

    def _begun(self, domain: str) -> Future[Lookup]:
        """The lookup of a name below ``domain`` that does not exist."""
        # its beginning tells who looks for it; without a search domain, which may have a wildcard
        name = f"earshot-control-{secrets.token_hex(8)}.{domain}."
        control: Future[Lookup] = Future()
        # a daemon, as getaddrinfo has no time limit and must not keep the process alive
        threading.Thread(target=self._answer, args=(control, name), daemon=True).start()
        return control

    def _answer(self, control: Future[Lookup], name: str) -> None:
        try:
            control.set_result(self._resolver.resolve(name, 0.9 * _CONTROL_SECONDS))
        except Exception as error:  # a bug: raised again in `_invented`
            control.set_exception(error)

    def _invented(self) -> Invented:
        lookups = [control.result() for control in self._controls if control.done()]
        invented: dict[str, tuple[tuple[str, ...], ...]] = {}
        for server_lookup in (each for lookup in lookups for each in lookup.each or (lookup,)):
            if server_lookup.ok:
                earlier = invented.get(server_lookup.resolver, ())
                invented[server_lookup.resolver] = (*earlier, server_lookup.addresses)
        return invented


def without_invented(lookup: Lookup, invented: Invented) -> Lookup:
    """``lookup`` without the results of servers that invent addresses, as denials."""
    if not (lookup.ok and invented):
        return lookup
    if not lookup.each:
        return _judged(lookup, invented.get(lookup.resolver, ()))
    each = [_judged(server, invented.get(server.resolver, ())) for server in lookup.each]
    return combined(lookup.name, lookup.resolver, each)


def _judged(lookup: Lookup, controls: tuple[tuple[str, ...], ...]) -> Lookup:
    """``lookup`` of one server, whose addresses for names that do not exist are ``controls``."""
    pool = {address for addresses in controls for address in addresses}
    if not (lookup.ok and pool):
        return lookup
    if pool.issuperset(lookup.addresses):
        detail = f"the server answers {briefly(lookup.addresses)} for names that do not exist, too"
        return replace(
            lookup, diagnosis=Diagnosis.NXDOMAIN, addresses=(), detail=f"{detail}: it invents them"
        )
    if len(controls) > 1 and not set.intersection(*map(set, controls)):
        detail = "the server gives each name that does not exist another address: it invents them"
        return replace(lookup, diagnosis=Diagnosis.SERVER_FAILURE, addresses=(), detail=detail)
    return lookup
