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
from earshot.spark.session import is_local
from earshot.validation.client import connecting
from earshot.validation.deadline import Deadline
from earshot.validation.result import Delivery, Vantage
from earshot.validation.verdict import Share, Tally, verdict_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
class ListenerAccess:
    """How Spark comes in through one listener: bootstrap addresses, protocol, properties."""

    bootstrap: str
    protocol: Protocol
    client: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, str]:
        return {
            **FAIL_FAST,
            **{f"kafka.{key}": value for key, value in connecting(self.client).items()},
            "kafka.bootstrap.servers": self.bootstrap,
            "kafka.security.protocol": str(self.protocol),
        }


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


@dataclass(frozen=True)
class Job:
    """One run of the job in the session ``spark``; everything ends by ``end``."""

    spark: SparkSession
    entrances: Mapping[str, ListenerAccess]
    topic: str
    begin: Mapping[int, int]
    """By partition of ``topic``, the offset of its first record that is of this run."""
    run: str
    end: Deadline
    on_event: Callable[[str], None]
    cluster_id: str | None
    """Records go to this cluster alone; None: whichever answers."""

    def prove(self, routes: Sequence[Route], records: int) -> Findings:
        """Writes ``records`` through every route and reads them through every listener."""
        executors: tuple[Vantage, ...] = ()
        if not is_local(self.spark):
            # who is in plaintext may be asked something by anybody
            plaintext = {
                name for name, way in self.entrances.items() if way.protocol is Protocol.PLAINTEXT
            }
            try:
                context = self.spark.sparkContext
                executors = probe(context, routes, plaintext, self.end, self.on_event)
            except NoExecutors as reason:
                late = RouteProblem(RouteFailure.LATE, str(reason))
                return Findings(unwritten={route.key: late for route in routes})
        strange: dict[Key, RouteProblem] = {}
        if self.cluster_id is not None:
            options = {name: entrance.options for name, entrance in self.entrances.items()}
            strange = strangers(self.spark, routes, options, self.cluster_id, self.end)
        avoided = strange.keys() | met_strangers(executors, self.cluster_id)
        usable = [
            route for route in routes if is_reached(route, executors) and route.key not in avoided
        ]
        shares, unwritten = self._write(usable, records)
        unwritten |= strange
        holding = {share.broker for share in shares if share.acknowledged}
        reading = [route for route in usable if route.broker in holding]
        tallies, reads, unread = self._read(reading, shares)
        return Findings(shares, tallies, reads, unwritten, unread, executors)

    @property
    def _attempts(self) -> Attempts:
        return Attempts(self.spark.sparkContext.cancelAllJobs, self.end, self.on_event)

    def _write(
        self, routes: Sequence[Route], records: int
    ) -> tuple[tuple[Share, ...], dict[Key, RouteProblem]]:
        def write(chosen: tuple[Route, ...], attempt: int) -> None:
            shares = [_share(route, attempt, records, True) for route in chosen]
            options = self.entrances[chosen[0].listener].options | dict(WRITING)
            frame = spark_records.written(self.spark, self.run, shares)
            frame.write.format("kafka").options(**options, topic=self.topic).save()

        self.on_event(f"{records} records through each of {len(routes)} addresses")
        outcomes = self._attempts.run(routes, write)
        shares = [
            _share(route, outcome.attempt, records, outcome.problem is None)
            for outcome in outcomes
            for route in outcome.routes
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
            partitions = sorted({home for route in chosen for home in homes[route.broker]})
            options = self.entrances[reader].options | dict(READING)
            begin = {str(partition): self.begin[partition] for partition in partitions}
            options["assign"] = json.dumps({self.topic: partitions})
            options["startingOffsets"] = json.dumps({self.topic: begin})
            rows = self.spark.read.format("kafka").options(**options).load()
            return spark_records.received(rows, self.run)

        def read(chosen: tuple[Route, ...], attempt: int) -> tuple[Tally, ...]:
            reader = chosen[0].listener
            outlines = spark_records.outline(records(chosen), reader, self.run, shares)
            # the exact figures of unknown and of foreign records do not matter
            checked = [
                outline
                for outline in outlines
                if outline.tally.own and _is_known(outline.tally.share)
            ]
            if all(file.proven for file in checked):
                return tuple(outline.tally for outline in outlines)
            self.on_event(f"counting one by one what came back through {reader}")
            return spark_records.exact(records(chosen), reader, self.run, shares)

        self.on_event("reading all of it back through every listener")
        outcomes = self._attempts.run(routes, read)
        reads = {
            (route.listener, partition)
            for outcome in outcomes
            if outcome.problem is None
            for route in outcome.routes
            for partition in homes[route.broker]
        }
        tallies = tuple(row for outcome in outcomes for row in outcome.result or ())
        return tallies, frozenset(reads), unproven(outcomes)


def _share(route: Route, attempt: int, records: int, acknowledged: bool) -> Share:
    return Share(route.listener, route.broker, attempt, route.partition, records, acknowledged)


def _is_known(share: Share | None) -> bool:
    return share is None or share.acknowledged
