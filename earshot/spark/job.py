"""The Spark job: every listener writes its share of the records, every listener reads all of them.

One session runs the writes of all listeners in parallel, then the reads. A failed job is repeated
broker by broker (`attempts`). The records of a failed write are unknown, and are written again with
the next attempt's number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from earshot.listeners.terms import Protocol
from earshot.spark import records as spark_records
from earshot.spark.attempts import Attempts, Key, Route, RouteFailure, RouteProblem, unproven
from earshot.spark.cluster import other_cluster_keys, routes_to_other_clusters
from earshot.spark.executors import NoExecutors, is_reached, probe
from earshot.spark.session import is_local
from earshot.validation.client import connecting
from earshot.validation.deadline import Deadline
from earshot.validation.result import Delivery, Vantage
from earshot.validation.terms import Verdict
from earshot.validation.verdict import Share, Tally, verdict_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Kafka's defaults are minutes. These bound a broker that hangs, and allow for a busy machine. A
# dead broker is detected sooner (`Attempts`).
FAIL_FAST: Final[Mapping[str, str]] = {
    # the driver needs both to give up in time (SPARK-32468)
    "kafka.request.timeout.ms": "8000",
    "kafka.default.api.timeout.ms": "12000",
    "kafka.socket.connection.setup.timeout.ms": "3000",
}
WRITE_OPTIONS: Final[Mapping[str, str]] = {
    "kafka.acks": "all",
    "kafka.max.block.ms": "12000",
    "kafka.delivery.timeout.ms": "15000",
    "kafka.batch.size": "131072",
    "kafka.linger.ms": "5",
    "kafka.client.id": "earshot",
}
READ_OPTIONS: Final[Mapping[str, str]] = {
    "endingOffsets": "latest",
    "includeHeaders": "true",
    "failOnDataLoss": "true",
    "kafkaConsumer.pollTimeoutMs": "15000",
    "fetchOffset.numRetries": "1",
    "kafka.max.poll.records": "5000",
    # at the end of a partition a fetch waits for new records and delays the next request
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.partition.fetch.bytes": "8388608",
}


@dataclass(frozen=True)
class ListenerAccess:
    """Spark's access to one listener: bootstrap addresses, protocol, client properties."""

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
class JobResult:
    """The counts of the job, before any verdict."""

    shares: tuple[Share, ...] = ()
    """The written records: a count for each route, attempt and partition."""
    tallies: tuple[Tally, ...] = ()
    """The records that were read back: a count for each reader and share."""
    reads: frozenset[tuple[str, int]] = frozenset()
    """The (listener, partition) of each read that did not fail."""
    unwritten: Mapping[Key, RouteProblem] = field(default_factory=dict)
    """Why no record was acknowledged, by (listener, broker)."""
    unread: Mapping[Key, RouteProblem] = field(default_factory=dict)
    """Why the broker's records could not be read through the listener, by (listener, broker)."""
    executors: tuple[Vantage, ...] = ()

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        return verdict_of(self.shares, self.tallies, self.reads)

    @property
    def all_delivered(self) -> bool:
        """True if records were delivered, and none was lost."""
        deliveries = self.deliveries
        return bool(deliveries) and all(one.verdict is Verdict.PASS for one in deliveries)


@dataclass(frozen=True)
class Job:
    """One run of the job in the session ``spark``; everything ends by ``end``."""

    spark: SparkSession
    listener_access: Mapping[str, ListenerAccess]
    topic: str
    begin: Mapping[int, int]
    """The offset of the first record of this run, by partition of ``topic``."""
    run: str
    end: Deadline
    on_event: Callable[[str], None]
    cluster_id: str | None
    """The only cluster to write to; None for any."""

    def prove(self, routes: Sequence[Route], records: int) -> JobResult:
        """Writes ``records`` through every route and reads them through every listener."""
        executors: tuple[Vantage, ...] = ()
        if not is_local(self.spark):
            # executors speak neither TLS nor SASL
            plaintext = {
                name
                for name, access in self.listener_access.items()
                if access.protocol is Protocol.PLAINTEXT
            }
            try:
                context = self.spark.sparkContext
                executors = probe(context, routes, plaintext, self.end, self.on_event)
            except NoExecutors as reason:
                problem = RouteProblem(RouteFailure.TIMED_OUT, str(reason))
                return JobResult(unwritten={route.key: problem for route in routes})
        other_cluster_routes: dict[Key, RouteProblem] = {}
        if self.cluster_id is not None:
            options = {name: access.options for name, access in self.listener_access.items()}
            other_cluster_routes = routes_to_other_clusters(
                self.spark, routes, options, self.cluster_id, self.end
            )
        avoided_keys = other_cluster_routes.keys() | other_cluster_keys(executors, self.cluster_id)
        usable_routes = [
            route
            for route in routes
            if is_reached(route, executors) and route.key not in avoided_keys
        ]
        shares, unwritten = self._write(usable_routes, records)
        unwritten |= other_cluster_routes
        written_brokers = {share.broker for share in shares if share.acknowledged}
        read_routes = [route for route in usable_routes if route.broker in written_brokers]
        tallies, reads, unread = self._read(read_routes, shares)
        return JobResult(shares, tallies, reads, unwritten, unread, executors)

    @property
    def _attempts(self) -> Attempts:
        return Attempts(self.spark.sparkContext.cancelAllJobs, self.end, self.on_event)

    def _write(
        self, routes: Sequence[Route], records: int
    ) -> tuple[tuple[Share, ...], dict[Key, RouteProblem]]:
        def write(group: tuple[Route, ...], attempt: int) -> None:
            shares = [_share(route, attempt, records, True) for route in group]
            options = self.listener_access[group[0].listener].options | dict(WRITE_OPTIONS)
            frame = spark_records.record_frame(self.spark, self.run, shares)
            frame.write.format("kafka").options(**options, topic=self.topic).save()

        self.on_event(f"{records} records through each of {len(routes)} addresses")
        outcomes = self._attempts.run(routes, write)
        shares = [
            _share(route, outcome.attempt, records, outcome.problem is None)
            for outcome in outcomes
            for route in outcome.routes
        ]
        return tuple(sorted(shares, key=lambda share: share.partition)), unproven(outcomes)

    def _read(
        self, routes: Sequence[Route], shares: Sequence[Share]
    ) -> tuple[tuple[Tally, ...], frozenset[tuple[str, int]], dict[Key, RouteProblem]]:
        partitions_of: dict[int, set[int]] = {}
        for share in shares:
            partitions_of.setdefault(share.broker, set()).add(share.partition)

        def records(group: Sequence[Route]) -> DataFrame:
            reader = group[0].listener
            partitions = sorted(
                {partition for route in group for partition in partitions_of[route.broker]}
            )
            options = self.listener_access[reader].options | dict(READ_OPTIONS)
            begin = {str(partition): self.begin[partition] for partition in partitions}
            options["assign"] = json.dumps({self.topic: partitions})
            options["startingOffsets"] = json.dumps({self.topic: begin})
            rows = self.spark.read.format("kafka").options(**options).load()
            return spark_records.parsed_records(rows, self.run)

        def read(group: tuple[Route, ...], attempt: int) -> tuple[Tally, ...]:
            reader = group[0].listener
            outlines = spark_records.outlines_of(records(group), reader, self.run, shares)
            # exact counts of unknown and foreign records do not matter
            own_outlines = [
                outline
                for outline in outlines
                if outline.tally.own and _is_countable(outline.tally.share)
            ]
            if all(outline.is_complete for outline in own_outlines):
                return tuple(outline.tally for outline in outlines)
            self.on_event(f"counting single records that came back through {reader}")
            return spark_records.exact_tallies(records(group), reader, self.run, shares)

        self.on_event("reading all records back through every listener")
        outcomes = self._attempts.run(routes, read)
        reads = {
            (route.listener, partition)
            for outcome in outcomes
            if outcome.problem is None
            for route in outcome.routes
            for partition in partitions_of[route.broker]
        }
        tallies = tuple(row for outcome in outcomes for row in outcome.result or ())
        return tallies, frozenset(reads), unproven(outcomes)


def _share(route: Route, attempt: int, records: int, acknowledged: bool) -> Share:
    return Share(route.listener, route.broker, attempt, route.partition, records, acknowledged)


def _is_countable(share: Share | None) -> bool:
    """Whether the exact count of the records of ``share`` matters; None: of no known share."""
    return share is None or share.acknowledged
