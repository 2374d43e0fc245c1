"""Checks which cluster Spark reaches at each address: names may resolve differently there.

The driver asks with Kafka's Java client, executors send a plain request.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from earshot.spark.attempts import PARALLEL_JOBS, Key, Route, RouteFailure, RouteProblem
from earshot.validation.deadline import Deadline
from earshot.validation.result import ReachedAddress, Vantage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASK_SECONDS: Final = 4.0
"""Time limit per address. The doctor has just got its metadata in far less."""


def routes_to_other_clusters(
    spark: SparkSession,
    routes: Sequence[Route],
    options: Mapping[str, Mapping[str, str]],
    cluster_id: str,
    end: Deadline,
) -> dict[Key, RouteProblem]:
    """The ``routes`` whose address leads Spark's driver to another cluster, with its id.

    ``options`` are Spark's (`kafka.…`), by listener name. An address without an answer by ``end``
    is not reported.
    """
    if not routes:
        return {}
    with ThreadPoolExecutor(
        min(PARALLEL_JOBS, len(routes)), thread_name_prefix="spark-ask"
    ) as pool:
        cluster_ids = pool.map(
            lambda route: _cluster_at(spark, route, options[route.listener], end), routes
        )
        return {
            route.key: RouteProblem(
                RouteFailure.OTHER_CLUSTER, f"for Spark, {route.address} belongs to cluster {id}"
            )
            for route, id in zip(routes, cluster_ids, strict=True)
            if id and id != cluster_id
        }


def is_other_cluster(address: ReachedAddress, cluster_id: str | None) -> bool:
    """True if an executor reached another cluster at ``address``; False if an id is unknown."""
    return bool(address.cluster_id and cluster_id and address.cluster_id != cluster_id)


def other_cluster_keys(executors: Iterable[Vantage], cluster_id: str | None) -> set[Key]:
    """The routes that lead any of ``executors`` to another cluster. Any of them may write."""
    return {
        (target.listener, target.broker)
        for executor in executors
        for target in executor.reached
        if is_other_cluster(target, cluster_id)
    }


def _cluster_at(
    spark: SparkSession, route: Route, options: Mapping[str, str], end: Deadline
) -> str:
    """The id of the cluster that answers at ``route``; empty if unknown, or no time is left."""
    limit = int(1000 * end.left(ASK_SECONDS))
    if not limit:
        return ""
    jvm: Any = spark.sparkContext._jvm
    with contextlib.suppress(Exception):  # py4j's own; the job reports the error later
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
