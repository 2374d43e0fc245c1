"""The executors of a cluster as vantages: which there are, what each resolves and reaches."""

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
"""Spark spreads tasks as it likes; an executor that got none may get one in the next round."""
SETTLED_SECONDS: Final = 3.0
"""With no further executor in this time, all are there; a cluster does not say how many will be."""
EXPECTED_SECONDS: Final = 20.0
"""How long the others may take where `spark.executor.instances` says how many there will be."""


class NoExecutors(Exception):
    """The cluster gave this application no executor in time, or none that could look."""


def probe(
    context: SparkContext,
    routes: Sequence[Route],
    plaintext: Collection[str],
    end: Deadline,
    on_event: Callable[[str], None] = lambda text: None,
) -> tuple[Vantage, ...]:
    """What every executor resolves and reaches of ``routes``; raises NoExecutors.

    Through the listeners ``plaintext`` they also ask which cluster it is.
    """
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(executor_probe)  # type: ignore[no-untyped-call]
    on_event("waiting for executors")
    expected = _await_executors(context, end)
    on_event(f"{expected} executor(s) resolve and connect")
    addresses = [
        (route.listener, route.broker, *route.address, route.listener in plaintext)
        for route in routes
    ]
    look = executor_probe.prober(addresses, seconds=4.0)
    executors: dict[str, dict[str, Any]] = {}

    def once() -> list[dict[str, Any]]:
        tasks = 2 * max(context.defaultParallelism, expected)
        return context.parallelize(range(tasks), tasks).mapPartitions(look).collect()

    pool = ThreadPoolExecutor(1, thread_name_prefix="spark-executors")
    try:
        for _ in range(ROUNDS):
            for seen in pool.submit(once).result(end.left()):
                executors.setdefault(seen["executor"], seen)
            if len(executors) >= expected:
                break
    except TimeoutError:
        context.cancelAllJobs()
    except Exception as error:  # py4j's own: a Python that is missing there, or another version
        if not executors:
            raise NoExecutors(f"no executor could look: {innermost(str(error))}") from None
    finally:
        pool.shutdown(wait=False)
    if not executors:
        raise NoExecutors(f"no executor answered before the deadline of {end.seconds:g} s passed")
    return tuple(vantage_of(executors[name], routes) for name in sorted(executors))


def _await_executors(context: SparkContext, end: Deadline) -> int:
    """How many there are, once as many are there as are expected or no more arrive."""
    wanted = int(context.getConf().get("spark.executor.instances", "0") or 0)
    patience = EXPECTED_SECONDS if wanted else SETTLED_SECONDS
    scala: Any = context._jsc
    count, since = 0, time.monotonic()
    while end.left():
        now: int = scala.sc().getExecutorMemoryStatus().size() - 1  # the driver counts too
        if now != count:
            count, since = now, time.monotonic()
        if count and (0 < wanted <= count or time.monotonic() - since >= patience):
            return count
        end.stop.wait(0.1)
    raise NoExecutors(f"the cluster gave no executor within the deadline of {end.seconds:g} s")


def is_reached(route: Route, executors: Collection[Vantage]) -> bool:
    """Whether any executor reaches it; without executors the driver is the one that does."""
    return not executors or any(
        (target.listener, target.broker) == route.key and target.reached
        for executor in executors
        for target in executor.reached
    )


def vantage_of(seen: Mapping[str, Any], routes: Sequence[Route]) -> Vantage:
    """What ``seen`` (of `executor_probe`) says of ``routes``, those that it was asked about."""
    addresses = {route.key: route.address for route in routes}
    reached = []
    for address in seen["reached"]:
        fields = {key: address[key] for key in ("listener", "broker", "error", "cluster_id")}
        fields |= {"resolved": tuple(address["resolved"]), "reached": not address["error"]}
        reached.append(
            ReachedAddress(address=addresses[address["listener"], address["broker"]], **fields)
        )
    return Vantage(
        name=f"executor-{seen['executor']}",
        kind="executor",
        where=seen["host"],
        resolvers=tuple(seen["resolvers"]),
        reached=tuple(reached),
    )
