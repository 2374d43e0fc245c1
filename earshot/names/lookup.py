"""Batches of name lookups, each once per resolver, with a time limit for the batch.

The result of a lookup is a value; a name that does not resolve raises no exception. Resolvers are
passed in: `resolvers` and `nameservers` have the real ones.
"""

from __future__ import annotations

import ipaddress
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Diagnosis(StrEnum):
    """The result of a lookup; the four failures have different causes and different remedies."""

    OK = "ok"
    NXDOMAIN = "nxdomain"
    """The name does not exist for this resolver: a typo, the wrong zone, the wrong network."""
    NO_ANSWER = "no-answer"
    """The name exists, without an address record."""
    SERVER_FAILURE = "server-failure"
    """Every server refused or failed: broken delegation, or a resolver that does not serve us."""
    TIMEOUT = "timeout"
    """No resolver answered in time: perhaps the vantage is broken, not the name."""


@dataclass(frozen=True)
class Lookup:
    """The result for ``name`` at ``resolver``."""

    name: str
    resolver: str
    """The resolver's label in reports."""
    diagnosis: Diagnosis
    addresses: tuple[str, ...] = ()
    """In the resolver's order, link-local ones with their zone; empty after a failure."""
    seconds: float = 0.0
    detail: str = ""
    answered: bool = True
    """True if any server answered, even with a failure."""
    each: tuple[Lookup, ...] = ()
    """The result of each server, if there were several."""

    @property
    def ok(self) -> bool:
        return self.diagnosis is Diagnosis.OK

    @property
    def unresolved_at(self) -> tuple[str, ...]:
        """The servers that did not resolve the name although others did, with their failures."""
        failed = (lookup for lookup in self.each if not lookup.ok) if self.ok else ()
        return tuple(f"{failure.resolver}: {failure.diagnosis}" for failure in failed)

    def servers_with(self, address: str) -> tuple[str, ...]:
        """The servers that returned ``address``; empty if all did."""
        servers = tuple(lookup.resolver for lookup in self.each if address in lookup.addresses)
        return servers if len(servers) < len(self.each) else ()


class Resolver(Protocol):
    """A DNS server, or another source, of the addresses of a name."""

    @property
    def label(self) -> str:
        """The name in reports; resolvers with the same label are the same."""

    def resolve(self, name: str, seconds: float) -> Lookup:
        """The addresses of ``name``; should return within ``seconds``, but may take longer."""


def combined(name: str, resolver: str, each: Sequence[Lookup]) -> Lookup:
    """The results ``each`` of several servers (at least one), as one lookup.

    One server that resolves the name is enough, as servers of other networks may have more names.
    If none does, an answer about the name counts more than a missing one.
    """
    seconds = max(lookup.seconds for lookup in each)
    if any(lookup.ok for lookup in each):
        addresses = dict.fromkeys(address for lookup in each for address in lookup.addresses)
        return Lookup(name, resolver, Diagnosis.OK, tuple(addresses), seconds, each=tuple(each))
    diagnosis = next(
        candidate for candidate in _FAILURES if candidate in [lookup.diagnosis for lookup in each]
    )
    texts = [lookup.detail or str(lookup.diagnosis) for lookup in each]
    if len(set(texts)) == 1:
        texts = [each[0].detail]
    else:
        texts = [f"{lookup.resolver}: {text}" for lookup, text in zip(each, texts, strict=True)]
    detail, answered = "; ".join(texts), any(lookup.answered for lookup in each)
    return Lookup(name, resolver, diagnosis, (), seconds, detail, answered, tuple(each))


_FAILURES = (Diagnosis.NO_ANSWER, Diagnosis.NXDOMAIN, Diagnosis.SERVER_FAILURE, Diagnosis.TIMEOUT)
"""Failures, those with the most information about a name first."""
LITERAL = "none (an address)"
"""The resolver of an address, which needs no lookup."""
_WORKERS = 128
"""Maximum number of simultaneous lookups at one resolver."""
_FIRST_PAUSE = 0.5
_MAX_PAUSE = 5.0


def literal(host: str) -> Lookup | None:
    """The lookup of a host that is an IP address; None for a name."""
    if ":" not in host and not host[-1:].isdigit():
        return None
    if not (host.isascii() and host.isprintable()):  # a zone may be any text
        return None
    try:
        return Lookup(host, LITERAL, Diagnosis.OK, (str(ipaddress.ip_address(host)),))
    except ValueError:
        return None


def look_up(
    questions: Iterable[tuple[str, Resolver]],
    seconds: float,
    retry: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[tuple[str, str], Lookup]:
    """One lookup per (name in lower case, resolver's label), all within ``seconds``.

    A lookup that has not returned by then counts as timed out. If ``retry`` is positive, names that
    did not resolve are looked up again, with growing pauses, until ``retry`` seconds after the
    first round, as a new record may take time to spread.
    """
    queries: dict[tuple[str, str], tuple[str, Resolver]] = {}
    for name, resolver in questions:
        queries.setdefault((name.lower(), resolver.label), (name, resolver))
    start = clock()
    lookups = _round(queries, seconds)
    pause = _FIRST_PAUSE
    while failed := {key: queries[key] for key, lookup in lookups.items() if not lookup.ok}:
        remaining = start + retry - clock()
        if remaining <= pause:
            break
        sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE)
        lookups |= _round(failed, min(seconds, remaining))
    return lookups


_Key = tuple[str, str]
_Questions = queue.SimpleQueue[tuple[_Key, str, Resolver]]
_Answers = queue.SimpleQueue[tuple[_Key, Lookup | Exception]]


def _round(queries: Mapping[_Key, tuple[str, Resolver]], seconds: float) -> dict[_Key, Lookup]:
    lookups: dict[_Key, Lookup] = {}
    # a queue for each resolver, so that one that never answers does not delay the others
    by_resolver: dict[str, _Questions] = {}
    for key, (name, resolver) in queries.items():
        if address := literal(name):
            lookups[key] = address
        else:
            by_resolver.setdefault(resolver.label, queue.SimpleQueue()).put((key, name, resolver))
    missing = len(queries) - len(lookups)
    answers: _Answers = queue.SimpleQueue()
    deadline = time.monotonic() + seconds
    workers = [
        (number, questions)
        for questions in by_resolver.values()
        for number in range(min(_WORKERS, questions.qsize()))
    ]
    # sorted, so that each resolver begins at once
    for _, questions in sorted(workers, key=lambda worker: worker[0]):
        # a daemon, as getaddrinfo has no time limit and must not keep the process alive
        threading.Thread(target=_work, args=(questions, answers, deadline), daemon=True).start()
    for _ in range(missing):
        try:
            key, answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(answer, Exception):
            raise answer
        lookups[key] = answer
    return {
        key: lookups.get(key) or unanswered(name, resolver.label, seconds)
        for key, (name, resolver) in queries.items()
    }


def _work(questions: _Questions, answers: _Answers, deadline: float) -> None:
    while (remaining := deadline - time.monotonic()) > 0:
        try:
            key, name, resolver = questions.get_nowait()
        except queue.Empty:
            return
        try:
            # a little less than the rest, so that the resolver's own result arrives in time
            answers.put((key, resolver.resolve(name, 0.95 * remaining)))
        except Exception as error:  # a bug: raised again in `_round`
            answers.put((key, error))


def unanswered(name: str, resolver: str, seconds: float) -> Lookup:
    """The lookup of a name that got no answer within ``seconds``."""
    detail = f"no answer within {seconds:.1f} s"
    return Lookup(name, resolver, Diagnosis.TIMEOUT, (), seconds, detail, answered=False)
