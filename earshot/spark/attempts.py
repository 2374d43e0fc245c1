"""Doing one thing through every listener at once, and finding the broker that spoils it.

A job of Spark fails as a whole. What failed is done again without the brokers that died, then
broker by broker, so that the broken one is named and the others are proven all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Final, Generic, TypeVar

from earshot.doctor.probe import connects
from earshot.listeners.address import Address
from earshot.spark.session import innermost
from earshot.validation.deadline import Deadline

AT_A_TIME: Final = 8
"""Jobs that one session runs side by side."""
CONNECTIONS: Final = 32
"""Addresses tried at the same time."""
CONNECT_SECONDS: Final = 2.0
WATCH_SECONDS: Final = 2.0
CANCEL_SECONDS: Final = 5.0
"""What a cancelled job may take to end; an answer that arrives in it still counts."""

R = TypeVar("R")
Key = tuple[str, int]
"""A listener's name and a broker's id."""
Group = tuple["Route", ...]
"""Routes of one listener, or one route, that are done as one."""


@dataclass(frozen=True)
class Route:
    """One (listener, broker) to be proven, and the partition that holds what is written there."""

    listener: str
    broker: int
    address: Address
    partition: int

    @property
    def key(self) -> Key:
        return self.listener, self.broker


class RouteFailure(StrEnum):
    """What became of a route that could not be proven."""

    REFUSED = "refused"
    """A client reported it, and the address accepts no connection any more."""
    FAILED = "failed"
    STRANGER = "stranger"
    """Another cluster answers at the address."""
    LATE = "late"
    """The deadline passed first: nothing is known."""
    LIMITED = "limited"
    """Spark ran out of disk, memory or files where it runs, which says nothing of a broker."""


LIMITS: Final = re.compile(
    r"No space left on device|Disk quota exceeded|Too many open files|OutOfMemoryError"
    r"|unable to create (?:new )?native thread"
)


@dataclass(frozen=True)
class RouteProblem:
    """Why a route could not be proven."""

    trouble: RouteFailure
    reason: str


@dataclass(frozen=True)
class JobAttempt(Generic[R]):
    """One attempt at some routes of a listener: what it gave, or why it failed."""

    routes: Group
    attempt: int
    result: R | None = None
    problem: RouteProblem | None = None


@dataclass(frozen=True)
class Attempts:
    """Does an action for routes."""

    cancel: Callable[[], object]
    """Ends whatever of it is under way."""
    end: Deadline
    on_event: Callable[[str], None] = lambda text: None

    def run(
        self, routes: Sequence[Route], action: Callable[[Group, int], R]
    ) -> list[JobAttempt[R]]:
        """Every attempt at ``action``, which gets the routes and the attempt's number (from 1)."""
        outcomes: list[JobAttempt[R]] = []
        groups, alone = _by_listener(routes), False
        for attempt in (1, 2, 3):
            failures = self._all(groups, attempt, action, watched=not alone)
            failed = [route for failure in failures if failure.problem for route in failure.routes]
            dead = self._dead(failed) if self.end.left() else set()
            outcomes += [part for failure in failures for part in _parts(failure, dead)]
            living = [route for route in failed if route not in dead]
            if not living or alone or not self.end.left():
                break
            alone = not dead or attempt == 2
            groups = [(route,) for route in living] if alone else _by_listener(living)
            gone = ", ".join(map(str, sorted({route.broker for route in dead})))
            how = "broker by broker" if alone else f"without broker {gone}"
            names = ", ".join(dict.fromkeys(route.listener for route in failed))
            self.on_event(f"something failed through {names}: again, {how}")
        return outcomes

    def _all(
        self,
        groups: Sequence[Group],
        attempt: int,
        action: Callable[[Group, int], R],
        watched: bool,
    ) -> list[JobAttempt[R]]:
        if not groups:
            return []
        pool = ThreadPoolExecutor(min(AT_A_TIME, len(groups)), thread_name_prefix="spark")
        try:
            futures = [pool.submit(action, group, attempt) for group in groups]
            late = self._watch(futures, list(chain(*groups)) if watched else [])
            if late:
                self.cancel()
                wait(late, timeout=CANCEL_SECONDS)
            done = zip(groups, futures, strict=True)
            return [_outcome(group, attempt, future, self.end) for group, future in done]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _watch(self, futures: Sequence[Future[R]], routes: Sequence[Route]) -> set[Future[R]]:
        """Waits for ``futures``; those not done at the deadline, or when one of ``routes`` died.

        A client of Kafka tries a dead broker for all of its time-out; a refused connection, twice,
        says the same at once.
        """
        late = set(futures)
        suspects: set[Route] = set()
        while late and self.end.left():
            _, late = wait(late, timeout=self.end.left(WATCH_SECONDS if routes else None))
            dead = self._dead(routes) if late else set()
            if dead & suspects:
                break
            suspects = dead
        return late

    def _dead(self, routes: Sequence[Route]) -> set[Route]:
        """Those that do not even accept a connection from here, where the doctor just had one."""
        if not routes:
            return set()
        with ThreadPoolExecutor(min(CONNECTIONS, len(routes))) as pool:
            alive = pool.map(lambda it: connects(it.address, CONNECT_SECONDS), routes)
            return {route for route, is_alive in zip(routes, alive, strict=True) if not is_alive}


def _by_listener(routes: Iterable[Route]) -> list[Group]:
    groups: dict[str, list[Route]] = {}
    for route in routes:
        groups.setdefault(route.listener, []).append(route)
    return [tuple(group) for group in groups.values()]


def _parts(outcome: JobAttempt[R], dead: Collection[Route]) -> Iterator[JobAttempt[R]]:
    """``outcome``; where it failed, one part for each route of the ``dead``, one for the rest."""
    gone = [route for route in outcome.routes if route in dead]
    if outcome.problem is None or not gone:
        yield outcome
        return
    if rest := tuple(route for route in outcome.routes if route not in dead):
        yield replace(outcome, routes=rest)
    for route in gone:
        observed = f"{route.address} accepted connections, but no more while the job ran"
        problem = RouteProblem(RouteFailure.REFUSED, observed)
        yield replace(outcome, routes=(route,), problem=problem)


def _outcome(routes: Group, attempt: int, future: Future[R], end: Deadline) -> JobAttempt[R]:
    ended = future.done() and not future.cancelled()
    error = future.exception() if ended else None
    if ended and error is None:
        return JobAttempt(routes, attempt, future.result())
    kind, reason = RouteFailure.FAILED, f"cancelled, and not over {CANCEL_SECONDS:g} s later"
    if not end.left():
        reason = f"not done when the deadline of {end.seconds:g} s passed"
        kind = RouteFailure.LATE
    elif ended:
        reason = innermost(str(error))
        if LIMITS.search(reason):
            kind = RouteFailure.LIMITED
    return JobAttempt(routes, attempt, None, RouteProblem(kind, reason))


def unproven(outcomes: Sequence[JobAttempt[R]]) -> dict[Key, RouteProblem]:
    """The last problem of every route that no attempt succeeded for."""
    done = {
        route.key for outcome in outcomes if outcome.problem is None for route in outcome.routes
    }
    return {
        route.key: outcome.problem
        for outcome in outcomes
        if outcome.problem is not None
        for route in outcome.routes
        if route.key not in done
    }
