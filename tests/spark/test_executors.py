import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from earshot.listeners.address import Address
from earshot.spark import executor_probe, executors
from earshot.spark.attempts import Route
from earshot.spark.executors import NoExecutors, is_reached, probe, vantage_of
from earshot.validation.deadline import Deadline
from earshot.validation.result import ReachedAddress, Vantage
from tests.raised import raised

ROUTE = Route("INTERNAL", 1, Address("kafka-1", 9092), 0)


def seen(reached: bool) -> Vantage:
    it = ReachedAddress(
        listener="INTERNAL", broker=1, address=Address("kafka-1", 9092), reached=reached
    )
    return Vantage(name="executor", kind="executor", reached=(it,))


def test_a_route_is_left_out_only_where_no_executor_reaches_it() -> None:
    assert is_reached(ROUTE, ())
    assert is_reached(ROUTE, (seen(False), seen(True)))
    assert not is_reached(ROUTE, (seen(False), seen(False)))
    for other in (replace(ROUTE, broker=2), replace(ROUTE, listener="EXTERNAL")):
        assert not is_reached(other, (seen(True),))


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
            reached |= {"cluster_id": "C"}
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
    found = probe(cast(Any, Cluster(2)), [ROUTE], (), Deadline(60))
    assert [(it.name, it.kind, it.where) for it in found] == [
        ("executor-0", "executor", "worker-0"),
        ("executor-1", "executor", "worker-1"),
    ]
    assert found[0].resolvers == ("192.0.2.53",)
    (reached,) = found[0].reached
    assert (str(reached.address), reached.resolved, reached.reached) == (
        "kafka-1:9092",
        ("192.0.2.1",),
        True,
    )


def test_a_cluster_without_executors_ends_at_the_deadline() -> None:
    with pytest.raises(NoExecutors, match=r"no executor within the deadline of 0\.3 s"):
        probe(cast(Any, Cluster(0)), [ROUTE], (), Deadline(0.3))


@pytest.mark.parametrize(("said", "waits"), [("2", False), ("0", True), ("3", True)])
def test_there_is_no_wait_if_all_expected_executors_are_there(
    said: str, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "SETTLED_SECONDS", 0.05)
    monkeypatch.setattr(executors, "EXPECTED_SECONDS", 0.05)
    end = Deadline(60)
    waited: list[float] = []
    monkeypatch.setattr(end.stop, "wait", waited.append)
    cluster = Cluster(2)
    monkeypatch.setattr(cluster, "getConf", lambda: {"spark.executor.instances": said})
    assert len(probe(cast(Any, cluster), [ROUTE], (), end)) == 2
    assert bool(waited) is waits


@pytest.mark.parametrize(("said", "waits"), [("", True), ("2", False)])
def test_an_expected_number_of_executors_is_optional(
    said: str, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "SETTLED_SECONDS", 0.05)
    end = Deadline(60)
    waited: list[float] = []
    monkeypatch.setattr(end.stop, "wait", waited.append)
    cluster = Cluster(2)
    monkeypatch.setattr(cluster, "getConf", lambda: {"spark.executor.instances": said})
    assert len(probe(cast(Any, cluster), [ROUTE], (), end)) == 2
    assert bool(waited) is waits


@pytest.mark.parametrize(("size", "tasks"), [(1, 4), (5, 10)])
def test_there_are_tasks_enough_for_every_executor(size: int, tasks: int) -> None:
    class Counting(Cluster):
        slices: int | None = None

        def parallelize(self, items: range, slices: int) -> Any:
            self.slices = slices
            return super().parallelize(items, slices)

    cluster = Counting(size)
    assert len(probe(cast(Any, cluster), [ROUTE], (), Deadline(60))) == size
    assert cluster.slices == tasks


def test_executors_are_told_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(
        executor_probe, "prober", lambda addresses, seconds: asked.extend(addresses)
    )
    external = replace(ROUTE, listener="EXTERNAL", address=Address("localhost", 9092))
    events: list[str] = []
    probe(cast(Any, Cluster(2)), [ROUTE, external], ("INTERNAL",), Deadline(60), events.append)
    assert asked == [
        ("INTERNAL", 1, "kafka-1", 9092, True),
        ("EXTERNAL", 1, "localhost", 9092, False),
    ]
    assert events == ["waiting for executors", "2 executor(s) resolve and connect"]


class Answering(Cluster):
    """Of two executors, those in ``rounds`` answer, one round after the other; then none."""

    def __init__(self, *rounds: list[str] | Exception) -> None:
        super().__init__(2)
        self.rounds = list(rounds)

    def parallelize(self, items: range, slices: int) -> Any:
        answers = super().parallelize(range(2), 2).mapPartitions(None).collect()

        def collect() -> list[dict[str, Any]]:
            reported = self.rounds.pop(0)
            if isinstance(reported, Exception):
                raise reported
            return [it for it in answers if it["executor"] in reported]

        return SimpleNamespace(mapPartitions=lambda function: SimpleNamespace(collect=collect))


@pytest.mark.parametrize(
    ("rounds", "found", "left"),
    [
        ([["0", "1"], ["0"]], ["executor-0", "executor-1"], 1),
        ([["1"], ["1", "0"], []], ["executor-0", "executor-1"], 1),
        ([["1"], [], ["1"], ["0"]], ["executor-1"], 1),
        ([["1"], RuntimeError("lost"), ["0"]], ["executor-1"], 1),
    ],
)
def test_executors_that_got_no_task_may_get_one_later(
    rounds: list[list[str] | Exception], found: list[str], left: int
) -> None:
    cluster = Answering(*rounds)
    assert [it.name for it in probe(cast(Any, cluster), [ROUTE], (), Deadline(60))] == found
    assert len(cluster.rounds) == left


def test_executors_that_do_not_answer_are_none() -> None:
    error = raised(NoExecutors, probe, cast(Any, Answering([], [], [])), [ROUTE], (), Deadline(60))
    assert str(error) == "no executor answered before the deadline of 60 s passed"


def test_what_takes_too_long_is_cancelled() -> None:
    cancelled = threading.Event()

    class Slow(Cluster):
        def parallelize(self, items: range, slices: int) -> Any:
            return SimpleNamespace(
                mapPartitions=lambda function: SimpleNamespace(collect=lambda: cancelled.wait(60))
            )

        def cancelAllJobs(self) -> None:
            cancelled.set()

    with pytest.raises(NoExecutors, match=r"^no executor answered before the deadline of 0\.5 s"):
        probe(cast(Any, Slow(2)), [ROUTE], (), Deadline(0.5))
    assert cancelled.is_set()


def test_executors_are_not_waited_for_after_the_deadline() -> None:
    returned, ended = threading.Event(), threading.Event()

    class Stuck(Cluster):
        def parallelize(self, items: range, slices: int) -> Any:
            def collect() -> None:
                returned.wait(60)
                ended.set()

            return SimpleNamespace(mapPartitions=lambda look: SimpleNamespace(collect=collect))

        def cancelAllJobs(self) -> None:
            pass

    with pytest.raises(NoExecutors):
        probe(cast(Any, Stuck(2)), [ROUTE], (), Deadline(0.5))
    assert not ended.is_set()
    returned.set()


def test_what_an_executor_met_stands_in_its_vantage() -> None:
    it = {"listener": "INTERNAL", "broker": 1, "resolved": ["192.0.2.1"], "stage": "tcp"}
    reached = [it | {"error": "timed out", "cluster_id": ""}]
    seen = {"executor": "7", "host": "worker", "resolvers": [], "reached": reached}
    expected = ReachedAddress(
        listener="INTERNAL",
        broker=1,
        address=ROUTE.address,
        resolved=("192.0.2.1",),
        reached=False,
        error="timed out",
    )
    assert vantage_of(seen, [ROUTE]).reached == (expected,)
    reached[0] |= {"error": "", "cluster_id": "C"}
    passed = expected.model_copy(update={"reached": True, "error": "", "cluster_id": "C"})
    assert vantage_of(seen, [ROUTE]).reached == (passed,)


def test_executors_that_cannot_run_python_are_no_fault_of_a_listener() -> None:
    reported = (
        "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: "
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version\n\tat a.b.C(D.scala:1)"
    )

    class Unable(Cluster):
        def parallelize(self, items: range, slices: int) -> Any:
            def fail() -> None:
                raise RuntimeError(reported)

            return SimpleNamespace(mapPartitions=lambda function: SimpleNamespace(collect=fail))

    with pytest.raises(NoExecutors) as caught:
        probe(cast(Any, Unable(1)), [ROUTE], (), Deadline(60))
    assert str(caught.value) == (
        "no executor could run the probe: SparkException: [PYTHON_VERSION_MISMATCH] Python in "
        "worker has different version"
    )
