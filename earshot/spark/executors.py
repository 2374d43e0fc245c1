"""The executors of a Spark cluster as vantages: the names that each resolves, and the addresses
that it reaches."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from earshot.spark import executor_probe
from earshot.spark.attempts import Route
from earshot.spark.session import innermost
from earshot.validation.deadline import Deadline
from earshot.validation.result import ReachedAddress, Vantage

if TYPE_CHECKING:
    from pyspark import SparkContext

ROUNDS: Final = 3
"""The number of rounds of tasks. An executor that Spark gave no task may get one in the next."""
SETTLED_SECONDS: Final = 3.0
"""If no executor is added in this time, all are there: a cluster does not announce their number."""
EXPECTED_SECONDS: Final = 20.0
"""The maximum wait for executors if `spark.executor.instances` gives their number."""


class NoExecutors(Exception):
    """No executor in time, or none that could run the probe."""


def probe(
    context: SparkContext,
    routes: Sequence[Route],
    plaintext: Collection[str],
    end: Deadline,
    on_event: Callable[[str], None] = lambda text: None,
) -> tuple[Vantage, ...]:
    """Every executor as a vantage, with its results for ``routes``. Raises NoExecutors.

    Executors also ask for the cluster id through the listeners named in ``plaintext``.
    """
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(executor_probe)  # type: ignore[no-untyped-call]
    on_event("waiting for executors")
    executor_count = _await_executors(context, end)
    on_event(f"{executor_count} executor(s) resolve and connect")
    addresses = [
        (route.listener, route.broker, *route.address, route.listener in plaintext)
        for route in routes
    ]
    probe_task = executor_probe.prober(addresses, seconds=4.0)
    executors: dict[str, dict[str, Any]] = {}

    def collect() -> list[dict[str, Any]]:
        tasks = 2 * max(context.defaultParallelism, executor_count)
        return context.parallelize(range(tasks), tasks).mapPartitions(probe_task).collect()

    pool = ThreadPoolExecutor(1, thread_name_prefix="spark-executors")
    try:
        for _ in range(ROUNDS):
            for row in pool.submit(collect).result(end.left()):
                executors.setdefault(row["executor"], row)
            if len(executors) >= executor_count:
                break
    except TimeoutError:
        context.cancelAllJobs()
    except Exception as error:  # py4j's own: no Python there, or another version
        if not executors:
            reason = innermost(str(error))
            raise NoExecutors(f"no executor could run the probe: {reason}") from None
    finally:
        pool.shutdown(wait=False)
    if not executors:
        raise NoExecutors(f"no executor answered before the deadline of {end.seconds:g} s passed")
    return tuple(vantage_of(executors[name], routes) for name in sorted(executors))


def _await_executors(context: SparkContext, end: Deadline) -> int:
    """The number of executors, once the expected number is there or no more are added."""
    instances = int(context.getConf().get("spark.executor.instances", "0") or 0)
    patience = EXPECTED_SECONDS if instances else SETTLED_SECONDS
    scala: Any = context._jsc
    count, last_change = 0, time.monotonic()
    while end.left():
        # without the driver, which has a status too
        current_count: int = scala.sc().getExecutorMemoryStatus().size() - 1
        if current_count != count:
            count, last_change = current_count, time.monotonic()
        if count and (0 < instances <= count or time.monotonic() - last_change >= patience):
            return count
        end.stop.wait(0.1)
    raise NoExecutors(f"the cluster gave no executor within the deadline of {end.seconds:g} s")


def is_reached(route: Route, executors: Collection[Vantage]) -> bool:
    """True if any executor reaches ``route``, or if there are no executors (local mode)."""
    return not executors or any(
        (target.listener, target.broker) == route.key and target.reached
        for executor in executors
        for target in executor.reached
    )


def vantage_of(row: Mapping[str, Any], routes: Sequence[Route]) -> Vantage:
    """The vantage of one executor. ``row`` is the result of `executor_probe` for ``routes``."""
    addresses = {route.key: route.address for route in routes}
    reached_addresses = []
    for address in row["reached"]:
        fields = {key: address[key] for key in ("listener", "broker", "error", "cluster_id")}
        fields |= {"resolved": tuple(address["resolved"]), "reached": not address["error"]}
        reached_addresses.append(
            ReachedAddress(address=addresses[address["listener"], address["broker"]], **fields)
        )
    return Vantage(
        name=f"executor-{row['executor']}",
        kind="executor",
        where=row["host"],
        resolvers=tuple(row["resolvers"]),
        reached=tuple(reached_addresses),
    )
