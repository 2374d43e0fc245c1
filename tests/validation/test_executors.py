from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from earshot.validation.attempts import Route
from earshot.validation.deadline import Deadline
from earshot.validation.executors import NoExecutors, is_reached, probe
from earshot.validation.result import Reached, Vantage

ROUTE = Route("INTERNAL", 1, "kafka-1", 9092, 0)


def seen(reached: bool) -> Vantage:
    it = Reached(listener="INTERNAL", broker=1, address="kafka-1:9092", reached=reached)
    return Vantage(name="executor", kind="executor", reached=(it,))


def test_a_route_is_left_out_only_where_no_executor_reaches_it() -> None:
    assert is_reached(ROUTE, ())
    assert is_reached(ROUTE, (seen(False), seen(True)))
    assert not is_reached(ROUTE, (seen(False), seen(False)))


class Cluster:
    """A double of a Spark context whose cluster has ``size`` executors."""

    defaultParallelism = 2

    def __init__(self, size: int) -> None:
        memory = SimpleNamespace(size=lambda: size + 1)  # the driver counts too
        status = SimpleNamespace(getExecutorMemoryStatus=lambda: memory)
        self._jsc = SimpleNamespace(sc=lambda: status)
        self._size = size

    def getConf(self) -> dict[str, str]:
        return {"spark.executor.instances": str(self._size)}

    def parallelize(self, items: range, slices: int) -> Any:
        def answers() -> list[dict[str, Any]]:
            reached = {"listener": "INTERNAL", "broker": 1, "resolved": ["192.0.2.1"]}
            return [
                {
                    "executor": str(item % self._size),
                    "host": f"worker-{item % self._size}",
                    "resolvers": ["192.0.2.53"],
                    "reached": [reached | {"stage": "", "error": ""}],
                }
                for item in items
            ]

        return SimpleNamespace(
            mapPartitions=lambda function: SimpleNamespace(collect=lambda: answers())
        )


def test_every_executor_becomes_a_vantage_with_what_it_reached() -> None:
    found = probe(cast(Any, Cluster(2)), [ROUTE], Deadline(10))
    assert [(it.name, it.kind, it.where) for it in found] == [
        ("executor-0", "executor", "worker-0"),
        ("executor-1", "executor", "worker-1"),
    ]
    assert found[0].resolvers == ("192.0.2.53",)
    (reached,) = found[0].reached
    assert (reached.address, reached.resolved, reached.reached) == (
        "kafka-1:9092",
        ("192.0.2.1",),
        True,
    )


def test_a_cluster_without_executors_ends_at_the_deadline() -> None:
    with pytest.raises(NoExecutors, match=r"no executor within the deadline of 0\.3 s"):
        probe(cast(Any, Cluster(0)), [ROUTE], Deadline(0.3))
