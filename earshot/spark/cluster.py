"""Which cluster Spark itself meets at each address: its driver by Kafka's Java client, executors by
a plain request. Names may resolve otherwise there than for the doctor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from earshot.spark.attempts import AT_A_TIME, Key, Route, RouteFailure, RouteProblem
from earshot.validation.deadline import Deadline
from earshot.validation.result import ReachedAddress, Vantage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASK_SECONDS: Final = 4.0
"""For one address; the doctor has just had its metadata in far less."""


def strangers(
    spark: SparkSession,
    routes: Sequence[Route],
    options: Mapping[str, Mapping[str, str]],
    cluster_id: str,
    end: Deadline,
) -> dict[Key, RouteProblem]:
    """Those of ``routes`` at whose address Spark's driver meets another cluster, and which.

    ``options`` are Spark's (`kafka.…`), by listener. An address that says nothing until ``end`` is
    no stranger's.
    """
    if not routes:
        return {}
    with ThreadPoolExecutor(min(AT_A_TIME, len(routes)), thread_name_prefix="spark-ask") as pool:
        cluster_ids = pool.map(lambda it: _cluster_at(spark, it, options[it.listener], end), routes)
        return {
            route.key: RouteProblem(
                RouteFailure.STRANGER, f"for Spark, {route.address} belongs to cluster {id}"
            )
            for route, id in zip(routes, cluster_ids, strict=True)
            if id and id != cluster_id
        }


def foreign(seen: ReachedAddress, cluster_id: str | None) -> bool:
    """Whether an executor met another cluster there; not where either id is not known."""
    return bool(seen.cluster_id and cluster_id and seen.cluster_id != cluster_id)


def met_strangers(executors: Iterable[Vantage], cluster_id: str | None) -> set[Key]:
    """Where any of ``executors`` met another cluster: any of them may be the one that writes."""
    return {
        (target.listener, target.broker)
        for executor in executors
        for target in executor.reached
        if foreign(target, cluster_id)
    }


def _cluster_at(
    spark: SparkSession, route: Route, options: Mapping[str, str], end: Deadline
) -> str:
    """The id of the cluster that answers there; empty if it is not known, or no time is left."""
    limit = int(1000 * end.left(ASK_SECONDS))
    if not limit:
        return ""
    jvm: Any = spark.sparkContext._jvm
    with contextlib.suppress(Exception):  # py4j's own: the job meets it again and says so
        properties = jvm.java.util.Properties()
        for key, value in {**options, "bootstrap.servers": str(route.address)}.items():
            properties.setProperty(key.removeprefix("kafka."), value)
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
        try:
            unit = jvm.java.util.concurrent.TimeUnit.MILLISECONDS
            return str(admin.describeCluster().clusterId().get(limit, unit) or "")
        finally:
            admin.close(jvm.java.time.Duration.ZERO)
    return ""
