"""The Spark job: every listener writes its share, every listener reads all of it back.

One session for all listeners, whose writes and reads run at the same time. What fails as a whole is
done again broker by broker, so that the broken one is named and the others are still proven. The
records of a write that failed are unknown; they are written again under the next attempt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from earshot.listeners.terms import Protocol
from earshot.spark import records as spark_records
from earshot.spark.attempts import Attempts, Key, Route, RouteFailure, RouteProblem, unproven
from earshot.spark.cluster import met_strangers, strangers
from earshot.spark.executors import NoExecutors, is_reached, probe
from earshot.spark.session import Session
from earshot.validation.deadline import Deadline
from earshot.validation.result import Delivery, Vantage
from earshot.validation.verdict import Share, Tally, verdict_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    """All that the job found out; nothing of it checked."""

    shares: tuple[Share, ...] = ()
    tallies: tuple[Tally, ...] = ()
    reads: frozenset[tuple[str, int]] = frozenset()
    unwritten: Mapping[Key, RouteProblem] = field(default_factory=dict)
    """Why nothing was acknowledged, by (listener, broker)."""
    unread: Mapping[Key, RouteProblem] = field(default_factory=dict)
    """Why what the broker holds could not be read through the listener."""
    executors: tuple[Vantage, ...] = ()

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        return verdict_of(self.shares, self.tallies, self.reads)


class Job:
    """One run of the job in ``session``; everything ends by ``end``.

    What stands before the offset ``begin`` of a partition of ``topic`` is none of its business.
    """

    def __init__(
        self,
        session: Session,
        entrances: Mapping[str, Entrance],
        topic: str,
        begin: Mapping[int, int],
        run: str,
        end: Deadline,
        on_event: Callable[[str], None] = lambda text: None,
        cluster_id: str | None = None,
    ) -> None:
        """Records go to the cluster ``cluster_id`` alone; None: whichever answers."""
        self._session = session
        self._cluster_id = cluster_id
        self._spark = session.spark
        self._entrances = entrances
        self._topic = topic
        self._begin = begin
        self._run = run
        self._end = end
        self._say = on_event
        self._attempts = Attempts(self._spark.sparkContext.cancelAllJobs, end, on_event)

    def prove(self, routes: Sequence[Route], records: int) -> Findings:
        """Writes ``records`` through every route and reads them through every listener."""
        executors: tuple[Vantage, ...] = ()
        if not self._session.is_local:
            try:
                context = self._spark.sparkContext
                executors = probe(context, routes, self._plaintext, self._end, self._say)
            except NoExecutors as reason:
                late = RouteProblem(RouteFailure.LATE, str(reason))
                return Findings(unwritten={route.key: late for route in routes})
        strange = self._strangers(routes)
        avoided = strange.keys() | met_strangers(executors, self._cluster_id)
        usable = [it for it in routes if is_reached(it, executors) and it.key not in avoided]
        shares, unwritten = self._write(usable, records)
        unwritten |= strange
        holding = {share.broker for share in shares if share.acknowledged}
        reading = [route for route in usable if route.broker in holding]
        tallies, reads, unread = self._read(reading, shares)
        return Findings(shares, tallies, reads, unwritten, unread, executors)

    @property
    def _plaintext(self) -> set[str]:
        """The listeners that anybody may ask something."""
        return {name for name, it in self._entrances.items() if it.protocol is Protocol.PLAINTEXT}

    def _strangers(self, routes: Sequence[Route]) -> dict[Key, RouteProblem]:
        if self._cluster_id is None:
            return {}
        options = {name: entrance.options for name, entrance in self._entrances.items()}
        return strangers(self._spark, routes, options, self._cluster_id, self._end)

    def _write(
        self, routes: Sequence[Route], records: int
    ) -> tuple[tuple[Share, ...], dict[Key, RouteProblem]]:
        def write(chosen: tuple[Route, ...], attempt: int) -> None:
            shares = [_share(route, attempt, records, True) for route in chosen]
            options = self._entrances[chosen[0].listener].options | dict(WRITING)
            frame = spark_records.written(self._spark, self._run, shares)
            frame.write.format("kafka").options(**options, topic=self._topic).save()

        self._say(f"{records} records through each of {len(routes)} addresses")
        outcomes = self._attempts.run(routes, write)
        shares = [
            _share(route, item.attempt, records, item.problem is None)
            for item in outcomes
            for route in item.routes
        ]
        return tuple(sorted(shares, key=lambda it: it.partition)), unproven(outcomes)

    def _read(
        self, routes: Sequence[Route], shares: Sequence[Share]
    ) -> tuple[tuple[Tally, ...], frozenset[tuple[str, int]], dict[Key, RouteProblem]]:
        homes: dict[int, set[int]] = {}
        for share in shares:
            homes.setdefault(share.broker, set()).add(share.partition)

        def records(chosen: Sequence[Route]) -> DataFrame:
            reader = chosen[0].listener
            partitions = sorted({it for route in chosen for it in homes[route.broker]})
            options = self._entrances[reader].options | dict(READING)
            begin = {str(it): self._begin[it] for it in partitions}
            options["assign"] = json.dumps({self._topic: partitions})
            options["startingOffsets"] = json.dumps({self._topic: begin})
            rows = self._spark.read.format("kafka").options(**options).load()
            return spark_records.received(rows, self._run)

        def read(chosen: tuple[Route, ...], attempt: int) -> tuple[Tally, ...]:
            reader = chosen[0].listener
            outlines = spark_records.outline(records(chosen), reader, self._run, shares)
            if all(item.proven for item in outlines if _checked(item.tally)):
                return tuple(item.tally for item in outlines)
            self._say(f"counting one by one what came back through {reader}")
            return spark_records.exact(records(chosen), reader, self._run, shares)

        self._say("reading all of it back through every listener")
        outcomes = self._attempts.run(routes, read)
        reads = {
            (route.listener, partition)
            for item in outcomes
            if item.problem is None
            for route in item.routes
            for partition in homes[route.broker]
        }
        tallies = tuple(it for item in outcomes for it in item.result or ())
        return tallies, frozenset(reads), unproven(outcomes)


def _share(route: Route, attempt: int, records: int, acknowledged: bool) -> Share:
    return Share(route.listener, route.broker, attempt, route.partition, records, acknowledged)


def _checked(tally: Tally) -> bool:
    """Whether its exact figures matter: not those of unknown and of foreign records."""
    return tally.own and (tally.share is None or tally.share.acknowledged)
