"""Runs a Spark job per listener in parallel, and isolates the broker that makes a job fail.

A Spark job fails as a whole. Its routes are tried again without the brokers that died, then broker
by broker, so that the report names the broken broker and the others are still proven.
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

PARALLEL_JOBS: Final = 8
"""The maximum number of parallel jobs of a session."""
CONNECTIONS: Final = 32
"""The maximum number of parallel connections."""
CONNECT_SECONDS: Final = 2.0
WATCH_SECONDS: Final = 2.0
CANCEL_SECONDS: Final = 5.0
"""Time for a cancelled job to end. A result within this time still counts."""

R = TypeVar("R")
Key = tuple[str, int]
"""A listener's name and a broker's id."""
Group = tuple["Route", ...]
"""The routes of one job: all of one listener, or a single one."""


@dataclass(frozen=True)
class Route:
    """A (listener, broker) to prove, and the partition for its records."""

    listener: str
    broker: int
    address: Address
    partition: int

    @property
    def key(self) -> Key:
        return self.listener, self.broker


class RouteFailure(StrEnum):
    """Why a route could not be proven."""

    REFUSED = "refused"
    """The job failed, and the address no longer accepts connections."""
    JOB_FAILED = "failed"
    OTHER_CLUSTER = "stranger"
    """Another cluster answers at the address."""
    TIMED_OUT = "late"
    """The deadline expired before a result."""
    RESOURCE_LIMIT = "limited"
    """Spark ran out of disk, memory or files on its own machine: no fault of a broker."""


LIMITS: Final = re.compile(
    r"No space left on device|Disk quota exceeded|Too many open files|OutOfMemoryError"
    r"|unable to create (?:new )?native thread"
)


@dataclass(frozen=True)
class RouteProblem:
    """The failure of a route, with its reason as text."""

    failure: RouteFailure
    reason: str


@dataclass(frozen=True)
class JobAttempt(Generic[R]):
    """The result of one job for routes of a listener, or its problem."""

    routes: Group
    attempt: int
    result: R | None = None
    problem: RouteProblem | None = None


@dataclass(frozen=True)
class Attempts:
    """Runs an action for routes, with retries."""

    cancel: Callable[[], object]
    """Cancels the running jobs."""
    end: Deadline
    on_event: Callable[[str], None] = lambda text: None

    def run(
        self, routes: Sequence[Route], action: Callable[[Group, int], R]
    ) -> list[JobAttempt[R]]:
        """Every attempt at ``action``, whose arguments are the routes and the attempt (from 1)."""
        outcomes: list[JobAttempt[R]] = []
        groups, is_per_broker = _by_listener(routes), False
        for attempt in (1, 2, 3):
            attempts = self._run_all(groups, attempt, action, is_watched=not is_per_broker)
            failed_routes = [route for job in attempts if job.problem for route in job.routes]
            dead_routes = self._dead_routes(failed_routes) if self.end.left() else set()
            outcomes += [
                outcome for job in attempts for outcome in _split_by_dead(job, dead_routes)
            ]
            live_routes = [route for route in failed_routes if route not in dead_routes]
            if not live_routes or is_per_broker or not self.end.left():
                break
            is_per_broker = not dead_routes or attempt == 2
            groups = (
                [(route,) for route in live_routes] if is_per_broker else _by_listener(live_routes)
            )
            dead_brokers = ", ".join(map(str, sorted({route.broker for route in dead_routes})))
            next_attempt = "broker by broker" if is_per_broker else f"without broker {dead_brokers}"
            names = ", ".join(dict.fromkeys(route.listener for route in failed_routes))
            self.on_event(f"something failed through {names}: again, {next_attempt}")
        return outcomes

    def _run_all(
        self,
        groups: Sequence[Group],
        attempt: int,
        action: Callable[[Group, int], R],
        is_watched: bool,
    ) -> list[JobAttempt[R]]:
        if not groups:
            return []
        pool = ThreadPoolExecutor(min(PARALLEL_JOBS, len(groups)), thread_name_prefix="spark")
        try:
            futures = [pool.submit(action, group, attempt) for group in groups]
            open_futures = self._watch(futures, list(chain(*groups)) if is_watched else [])
            if open_futures:
                self.cancel()
                wait(open_futures, timeout=CANCEL_SECONDS)
            pairs = zip(groups, futures, strict=True)
            return [_outcome(group, attempt, future, self.end) for group, future in pairs]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _watch(self, futures: Sequence[Future[R]], routes: Sequence[Route]) -> set[Future[R]]:
        """Waits for ``futures``, until the deadline or until one of ``routes`` is dead. Returns
        the futures that are not done.

        A Kafka client retries a dead broker for its whole time-out. Two refused connections in
        succession show it sooner.
        """
        open_futures = set(futures)
        suspects: set[Route] = set()
        while open_futures and self.end.left():
            _, open_futures = wait(
                open_futures, timeout=self.end.left(WATCH_SECONDS if routes else None)
            )
            dead_routes = self._dead_routes(routes) if open_futures else set()
            if dead_routes & suspects:
                break
            suspects = dead_routes
        return open_futures

    def _dead_routes(self, routes: Sequence[Route]) -> set[Route]:
        """The routes whose address accepts no connection from here. It did for the doctor."""
        if not routes:
            return set()
        with ThreadPoolExecutor(min(CONNECTIONS, len(routes))) as pool:
            live_flags = pool.map(lambda route: connects(route.address, CONNECT_SECONDS), routes)
            return {
                route for route, is_alive in zip(routes, live_flags, strict=True) if not is_alive
            }


def _by_listener(routes: Iterable[Route]) -> list[Group]:
    groups: dict[str, list[Route]] = {}
    for route in routes:
        groups.setdefault(route.listener, []).append(route)
    return [tuple(group) for group in groups.values()]


def _split_by_dead(outcome: JobAttempt[R], dead: Collection[Route]) -> Iterator[JobAttempt[R]]:
    """``outcome``. If it failed: one part for each dead route, and one for all others."""
    dead_routes = [route for route in outcome.routes if route in dead]
    if outcome.problem is None or not dead_routes:
        yield outcome
        return
    if live_routes := tuple(route for route in outcome.routes if route not in dead):
        yield replace(outcome, routes=live_routes)
    for route in dead_routes:
        observed = f"{route.address} accepted connections, but no more while the job ran"
        problem = RouteProblem(RouteFailure.REFUSED, observed)
        yield replace(outcome, routes=(route,), problem=problem)


def _outcome(routes: Group, attempt: int, future: Future[R], end: Deadline) -> JobAttempt[R]:
    is_complete = future.done() and not future.cancelled()
    error = future.exception() if is_complete else None
    if is_complete and error is None:
        return JobAttempt(routes, attempt, future.result())
    failure, reason = RouteFailure.JOB_FAILED, f"cancelled, and not over {CANCEL_SECONDS:g} s later"
    if not end.left():
        reason = f"not done when the deadline of {end.seconds:g} s passed"
        failure = RouteFailure.TIMED_OUT
    elif is_complete:
        reason = innermost(str(error))
        if LIMITS.search(reason):
            failure = RouteFailure.RESOURCE_LIMIT
    return JobAttempt(routes, attempt, None, RouteProblem(failure, reason))


def unproven(outcomes: Sequence[JobAttempt[R]]) -> dict[Key, RouteProblem]:
    """The last problem of each route for which no attempt succeeded."""
    proven_keys = {
        route.key for outcome in outcomes if outcome.problem is None for route in outcome.routes
    }
    return {
        route.key: outcome.problem
        for outcome in outcomes
        if outcome.problem is not None
        for route in outcome.routes
        if route.key not in proven_keys
    }
