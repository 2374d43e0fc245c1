"""The Spark job: every listener writes its share, every listener reads all of it back.

One session for all listeners, whose writes and reads run at the same time. What fails as a whole is
done again broker by broker, so that the broken one is named and the others are still proven. The
records of a write that failed are unknown; they were written again under the next attempt.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from earshot.listeners.address import Address
from earshot.listeners.model import Protocol
from earshot.validation import executor_probe, spark_records
from earshot.validation.deadline import Deadline
from earshot.validation.probe import connects
from earshot.validation.result import Delivery, Reached, Vantage
from earshot.validation.spark_session import Session, innermost
from earshot.validation.verdict import Share, Tally, judge

# Kafka's defaults are minutes. A dead broker is noticed sooner (`_watch`); these bound one that
# hangs, and allow for a machine that is busy.
FAIL_FAST: Final[Mapping[str, str]] = {
    # both are needed for a driver that gives up in time (SPARK-32468)
    "kafka.request.timeout.ms": "8000",
    "kafka.default.api.timeout.ms": "12000",
    "kafka.socket.connection.setup.timeout.ms": "3000",
}
WRITING: Final[Mapping[str, str]] = {
    "kafka.acks": "all",
    "kafka.max.block.ms": "12000",
    "kafka.delivery.timeout.ms": "15000",
    "kafka.batch.size": "131072",
    "kafka.linger.ms": "5",
    "kafka.client.id": "earshot",
}
READING: Final[Mapping[str, str]] = {
    "startingOffsets": "earliest",
    "endingOffsets": "latest",
    "includeHeaders": "true",
    "failOnDataLoss": "true",
    "kafkaConsumer.pollTimeoutMs": "15000",
    "fetchOffset.numRetries": "1",
    "kafka.max.poll.records": "5000",
    # a consumer asks for more at the end of a partition too, and its next question waits behind
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.partition.fetch.bytes": "8388608",
}
AT_A_TIME: Final = 8
"""Jobs that one session runs side by side where brokers are tried one by one."""
CONNECT_SECONDS: Final = 2.0
WATCH_SECONDS: Final = 2.0
CANCEL_SECONDS: Final = 5.0
PROBE_SECONDS: Final = 4.0
REGISTER_SECONDS: Final = 20.0
"""How long executors may take to register; a cluster does not say how many will."""
SETTLED_SECONDS: Final = 3.0

R = TypeVar("R")
Key = tuple[str, int]
"""A listener's name and a broker's id."""


@dataclass(frozen=True)
class Route:
    """One (listener, broker) to be proven, and the partition that holds what is written there."""

    listener: str
    broker: int
    host: str
    port: int
    partition: int

    @property
    def key(self) -> Key:
        return self.listener, self.broker

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


class Trouble(StrEnum):
    """What became of a route that could not be proven."""

    REFUSED = "refused"
    """A client reported it, and the address accepts no connection any more."""
    FAILED = "failed"
    LATE = "late"
    """The deadline passed first: nothing is known."""


@dataclass(frozen=True)
class Problem:
    """Why a route could not be proven."""

    trouble: Trouble
    reason: str


@dataclass(frozen=True)
class Entrance:
    """How Spark comes in through one listener: bootstrap addresses, protocol, properties."""

    bootstrap: str
    protocol: Protocol
    client: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, str]:
        given = {f"kafka.{key}": value for key, value in self.client.items()}
        return (
            dict(FAIL_FAST)
            | given
            | {
                "kafka.bootstrap.servers": self.bootstrap,
                "kafka.security.protocol": str(self.protocol),
            }
        )


@dataclass(frozen=True)
class Findings:
    """All that the job found out; nothing of it judged."""

    shares: tuple[Share, ...] = ()
    tallies: tuple[Tally, ...] = ()
    reads: frozenset[tuple[str, int]] = frozenset()
    unwritten: Mapping[Key, Problem] = field(default_factory=dict)
    """Why nothing was acknowledged, by (listener, broker)."""
    unread: Mapping[Key, Problem] = field(default_factory=dict)
    """Why what the broker holds could not be read through the listener."""
    executors: tuple[Vantage, ...] = ()

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        return judge(self.shares, self.tallies, self.reads)


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """One attempt at some routes of a listener: what it gave, or why it failed."""

    routes: tuple[Route, ...]
    attempt: int
    result: R | None = None
    problem: Problem | None = None


class Job:
    """One run of the job in ``session``; everything ends by ``end``."""

    def __init__(
        self,
        session: Session,
        entrances: Mapping[str, Entrance],
        topic: str,
        run: str,
        end: Deadline,
        on_event: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._session = session
        self._spark = session.spark
        self._entrances = entrances
        self._topic = topic
        self._run = run
        self._end = end
        self._say = on_event

    def prove(self, routes: Sequence[Route], records: int) -> Findings:
        """Writes ``records`` through every route and reads them through every listener."""
        executors = () if self._session.is_local else self.probe(routes)
        usable = [route for route in routes if _reachable(route, executors)]
        shares, unwritten = self._write(usable, records)
        holding = {share.broker for share in shares if share.acknowledged}
        reading = [route for route in usable if route.broker in holding]
        tallies, reads, unread = self._read(reading, shares)
        return Findings(shares, tallies, reads, unwritten, unread, executors)

    def probe(self, routes: Sequence[Route]) -> tuple[Vantage, ...]:
        """What every executor resolves and reaches."""
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(executor_probe)  # type: ignore[no-untyped-call]
        context = self._spark.sparkContext
        expected = self._await_executors()
        self._say(f"{expected} executors resolve and connect")
        addresses = [(it.listener, it.broker, it.host, it.port) for it in routes]
        found: dict[str, dict[str, Any]] = {}
        for _ in range(3):
            tasks = 2 * max(context.defaultParallelism, expected)
            look = executor_probe.prober(addresses, PROBE_SECONDS)
            for seen in context.parallelize(range(tasks), tasks).mapPartitions(look).collect():
                found.setdefault(seen["executor"], seen)
            if len(found) >= expected or not self._end.left():
                break
        return tuple(_vantage(found[name], routes) for name in sorted(found))

    def _await_executors(self) -> int:
        """Waits until as many executors have registered as are expected, or no more arrive."""
        context = self._spark.sparkContext
        wanted = int(context.getConf().get("spark.executor.instances", "0") or 0)
        scala: Any = context._jsc
        count, since = 0, time.monotonic()
        limit = since + self._end.left(REGISTER_SECONDS)
        while time.monotonic() < limit:
            now: int = scala.sc().getExecutorMemoryStatus().size() - 1  # the driver counts too
            if now != count:
                count, since = now, time.monotonic()
            settled = count and time.monotonic() - since >= SETTLED_SECONDS
            if (wanted and count >= wanted) or (settled and count >= wanted):
                break
            time.sleep(0.1)
        return max(count, 1)

    def _write(
        self, routes: Sequence[Route], records: int
    ) -> tuple[tuple[Share, ...], dict[Key, Problem]]:
        def write(chosen: tuple[Route, ...], attempt: int) -> None:
            shares = [_share(route, attempt, records, True) for route in chosen]
            options = self._entrances[chosen[0].listener].options | dict(WRITING)
            frame = spark_records.written(self._spark, self._run, shares)
            frame.write.format("kafka").options(**options, topic=self._topic).save()

        self._say(f"{records} records through each of {len(routes)} addresses")
        outcomes = self._attempts(routes, write)
        shares = [
            _share(route, item.attempt, records, item.problem is None)
            for item in outcomes
            for route in item.routes
        ]
        return tuple(sorted(shares, key=lambda it: it.partition)), _failed(outcomes)

    def _read(
        self, routes: Sequence[Route], shares: Sequence[Share]
    ) -> tuple[tuple[Tally, ...], frozenset[tuple[str, int]], dict[Key, Problem]]:
        homes: dict[int, set[int]] = {}
        for share in shares:
            homes.setdefault(share.broker, set()).add(share.partition)

        def records(chosen: Sequence[Route]) -> Any:
            reader = chosen[0].listener
            partitions = sorted({it for route in chosen for it in homes[route.broker]})
            options = self._entrances[reader].options | dict(READING)
            options["assign"] = json.dumps({self._topic: partitions})
            rows = self._spark.read.format("kafka").options(**options).load()
            return spark_records.received(rows, self._run)

        def read(chosen: tuple[Route, ...], attempt: int) -> tuple[Tally, ...]:
            reader = chosen[0].listener
            outlines = spark_records.outline(records(chosen), reader, self._run, shares)
            if all(item.proven for item in outlines if _judged(item.tally)):
                return tuple(item.tally for item in outlines)
            self._say(f"counting one by one what came back through {reader}")
            return spark_records.exact(records(chosen), reader, self._run, shares)

        self._say("reading all of it back through every listener")
        outcomes = self._attempts(routes, read)
        reads = {
            (route.listener, partition)
            for item in outcomes
            if item.problem is None
            for route in item.routes
            for partition in homes[route.broker]
        }
        tallies = tuple(it for item in outcomes for it in item.result or ())
        return tallies, frozenset(reads), _failed(outcomes)

    def _attempts(
        self, routes: Sequence[Route], action: Callable[[tuple[Route, ...], int], R]
    ) -> list[Outcome[R]]:
        """``action`` for all routes of each listener; what failed again, route by route."""
        listeners = dict.fromkeys(route.listener for route in routes)
        whole = [tuple(route for route in routes if route.listener == name) for name in listeners]
        first = self._all(whole, 1, action)
        failed = [route for item in first if item.problem for route in item.routes]
        if not failed or not self._end.left():
            return first
        names = sorted({route.listener for route in failed})
        self._say(f"something failed through {', '.join(names)}: broker by broker now")
        dead = self._dead(failed)
        alone = [(route,) for route in failed if route not in dead]
        gone = [
            Outcome[R]((route,), 0, None, Problem(Trouble.REFUSED, reason))
            for route, reason in dead.items()
        ]
        return [*first, *gone, *self._all(alone, 2, action)]

    def _watch(self, futures: Sequence[Future[R]], routes: Sequence[Route]) -> set[Future[R]]:
        """Waits for ``futures``; those not done at the deadline, or when one of ``routes`` died.

        A client of Kafka tries a dead broker for all of its time-out; a refused connection, twice,
        says the same at once.
        """
        late = set(futures)
        suspects: set[Route] = set()
        while late and self._end.left():
            _, late = wait(late, timeout=self._end.left(WATCH_SECONDS if routes else None))
            dead = set(self._dead(routes)) if late and routes else set()
            if dead & suspects:
                break
            suspects = dead
        return late

    def _dead(self, routes: Sequence[Route]) -> dict[Route, str]:
        """Those that do not even accept a connection from here, where the doctor just had one."""
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            alive = pool.map(lambda it: connects(it.address, CONNECT_SECONDS), routes)
            return {
                route: f"{route.address} accepted connections, but no more while the job ran"
                for route, is_alive in zip(routes, alive, strict=True)
                if not is_alive
            }

    def _all(
        self,
        groups: Sequence[tuple[Route, ...]],
        attempt: int,
        action: Callable[[tuple[Route, ...], int], R],
    ) -> list[Outcome[R]]:
        if not groups:
            return []
        pool = ThreadPoolExecutor(min(AT_A_TIME, len(groups)), thread_name_prefix="spark")
        try:
            futures = [pool.submit(action, group, attempt) for group in groups]
            watched = [route for group in groups for route in group] if attempt == 1 else []
            late = self._watch(futures, watched)
            if late:
                self._spark.sparkContext.cancelAllJobs()
                wait(late, timeout=CANCEL_SECONDS)
            return [
                _outcome(group, attempt, future, self._end)
                for group, future in zip(groups, futures, strict=True)
            ]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _outcome(
    routes: tuple[Route, ...], attempt: int, future: Future[R], end: Deadline
) -> Outcome[R]:
    error = future.exception() if future.done() and not future.cancelled() else None
    if error is None and future.done() and not future.cancelled():
        return Outcome(routes, attempt, future.result())
    if error is None or not end.left():
        reason = f"not done when the deadline of {end.seconds:g} s passed"
        return Outcome(routes, attempt, None, Problem(Trouble.LATE, reason))
    return Outcome(routes, attempt, None, Problem(Trouble.FAILED, innermost(str(error))))


def _failed(outcomes: Sequence[Outcome[R]]) -> dict[Key, Problem]:
    """The last problem of every route that no attempt succeeded for."""
    done = {route.key for item in outcomes if item.problem is None for route in item.routes}
    return {
        route.key: item.problem
        for item in outcomes
        if item.problem is not None
        for route in item.routes
        if route.key not in done
    }


def _share(route: Route, attempt: int, records: int, acknowledged: bool) -> Share:
    return Share(route.listener, route.broker, attempt, route.partition, records, acknowledged)


def _judged(tally: Tally) -> bool:
    """Whether its exact figures matter: not those of unknown and of foreign records."""
    return tally.own and (tally.share is None or tally.share.acknowledged)


def _reachable(route: Route, executors: Collection[Vantage]) -> bool:
    """Whether any executor reaches it; without executors the driver is the one that does."""
    return not executors or any(
        (it.listener, it.broker) == route.key and it.reached
        for executor in executors
        for it in executor.reached
    )


def _vantage(seen: Mapping[str, Any], routes: Sequence[Route]) -> Vantage:
    addresses = {route.key: f"{route.host}:{route.port}" for route in routes}
    return Vantage(
        name=f"executor-{seen['executor']}",
        kind="executor",
        where=seen["host"],
        resolvers=tuple(seen["resolvers"]),
        reached=tuple(
            Reached(
                listener=it["listener"],
                broker=it["broker"],
                address=addresses[it["listener"], it["broker"]],
                resolved=tuple(it["resolved"]),
                reached=not it["error"],
                error=it["error"],
            )
            for it in seen["reached"]
        ),
    )
