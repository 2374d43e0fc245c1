import threading
from collections.abc import Callable, Sequence
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


def vantage(reached: bool) -> Vantage:
    address = ReachedAddress(listener="INTERNAL", broker=1, address=ROUTE.address, reached=reached)
    return Vantage(name="executor", kind="executor", reached=(address,))


def test_a_route_is_left_out_only_where_no_executor_reaches_it() -> None:
    assert is_reached(ROUTE, ())
    assert is_reached(ROUTE, (vantage(False), vantage(True)))
    assert not is_reached(ROUTE, (vantage(False), vantage(False)))
    for route in (replace(ROUTE, broker=2), replace(ROUTE, listener="EXTERNAL")):
        assert not is_reached(route, (vantage(True),))


class Cluster:
    """A double of a Spark context whose cluster has ``size`` executors.

    ``collect`` is called for the answers of the executors that have a task.
    """

    defaultParallelism = 2

    def __init__(
        self, size: int, collect: Callable[[list[dict[str, Any]]], Any] = lambda answers: answers
    ) -> None:
        memory = SimpleNamespace(size=lambda: size + 1)  # the driver counts too
        status = SimpleNamespace(getExecutorMemoryStatus=lambda: memory)
        self._jsc = SimpleNamespace(sc=lambda: status)
        self._size, self._collect = size, collect
        self.expected = str(size)
        self.slices = 0
        self.cancelled = threading.Event()

    def getConf(self) -> dict[str, str]:
        return {"spark.executor.instances": self.expected}

    def cancelAllJobs(self) -> None:
        self.cancelled.set()

    def parallelize(self, items: range, slices: int) -> Any:
        self.slices = slices

        def collect() -> Any:
            return self._collect([self._answer(str(number % self._size)) for number in items])

        return SimpleNamespace(mapPartitions=lambda function: SimpleNamespace(collect=collect))

    def _answer(self, executor: str) -> dict[str, Any]:
        reached = {"listener": "INTERNAL", "broker": 1, "resolved": ["192.0.2.1"]}
        reached |= {"cluster_id": "C", "stage": "", "error": ""}
        return {
            "executor": executor,
            "host": f"worker-{executor}",
            "resolvers": ["192.0.2.53"],
            "reached": [reached],
        }


def probe_cluster(cluster: Cluster, end: Deadline | None = None) -> Sequence[Vantage]:
    return probe(cast(Any, cluster), [ROUTE], (), end or Deadline(60))


def test_every_executor_becomes_a_vantage_with_what_it_reached() -> None:
    vantages = probe_cluster(Cluster(2))
    assert [(vantage.name, vantage.kind, vantage.where) for vantage in vantages] == [
        ("executor-0", "executor", "worker-0"),
        ("executor-1", "executor", "worker-1"),
    ]
    assert vantages[0].resolvers == ("192.0.2.53",)
    (reached,) = vantages[0].reached
    assert (str(reached.address), reached.resolved) == ("kafka-1:9092", ("192.0.2.1",))
    assert reached.reached


def test_a_cluster_without_executors_ends_at_the_deadline() -> None:
    with pytest.raises(NoExecutors, match=r"no executor within the deadline of 0\.3 s"):
        probe_cluster(Cluster(0), Deadline(0.3))


@pytest.mark.parametrize(
    ("expected", "waits"), [("2", False), ("0", True), ("3", True), ("", True)]
)
def test_expected_executors(expected: str, waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "SETTLED_SECONDS", 0.05)
    monkeypatch.setattr(executors, "EXPECTED_SECONDS", 0.05)
    cluster, end, waited = Cluster(2), Deadline(60), list[float]()
    cluster.expected = expected
    monkeypatch.setattr(end.stop, "wait", waited.append)
    assert len(probe_cluster(cluster, end)) == 2
    assert bool(waited) is waits


@pytest.mark.parametrize(("size", "tasks"), [(1, 4), (5, 10)])
def test_there_are_tasks_enough_for_every_executor(size: int, tasks: int) -> None:
    cluster = Cluster(size)
    assert len(probe_cluster(cluster)) == size
    assert cluster.slices == tasks


def test_executors_are_told_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    probed_addresses: list[object] = []
    monkeypatch.setattr(
        executor_probe, "prober", lambda addresses, seconds: probed_addresses.extend(addresses)
    )
    external = replace(ROUTE, listener="EXTERNAL", address=Address("localhost", 9092))
    events: list[str] = []
    probe(cast(Any, Cluster(2)), [ROUTE, external], ("INTERNAL",), Deadline(60), events.append)
    assert probed_addresses == [
        ("INTERNAL", 1, "kafka-1", 9092, True),
        ("EXTERNAL", 1, "localhost", 9092, False),
    ]
    assert events == ["waiting for executors", "2 executor(s) resolve and connect"]


@pytest.mark.parametrize(
    ("rounds", "names", "remaining_rounds"),
    [
        ([["0", "1"], ["0"]], ["executor-0", "executor-1"], 1),
        ([["1"], ["1", "0"], []], ["executor-0", "executor-1"], 1),
        ([["1"], [], ["1"], ["0"]], ["executor-1"], 1),
        ([["1"], RuntimeError("lost"), ["0"]], ["executor-1"], 1),
        ([[], [], []], [], 0),
    ],
)
def test_executors_without_task(
    rounds: list[list[str] | Exception], names: list[str], remaining_rounds: int
) -> None:
    def collect(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
        executor_ids = rounds.pop(0)
        if isinstance(executor_ids, Exception):
            raise executor_ids
        first_answers = {answer["executor"]: answer for answer in answers}
        return [first_answers[id] for id in sorted(executor_ids)]

    cluster = Cluster(2, collect)
    if names:
        assert [vantage.name for vantage in probe_cluster(cluster)] == names
    else:
        error = raised(NoExecutors, probe_cluster, cluster)
        assert str(error) == "no executor answered before the deadline of 60 s passed"
    assert len(rounds) == remaining_rounds


def test_what_takes_too_long_is_cancelled() -> None:
    cluster = Cluster(2, lambda answers: cluster.cancelled.wait(60))
    with pytest.raises(NoExecutors, match=r"^no executor answered before the deadline of 0\.5 s"):
        probe_cluster(cluster, Deadline(0.5))
    assert cluster.cancelled.is_set()


def test_executors_are_not_waited_for_after_the_deadline() -> None:
    returned, ended = threading.Event(), threading.Event()

    def stuck(answers: object) -> None:
        returned.wait(60)
        ended.set()

    with pytest.raises(NoExecutors):
        probe_cluster(Cluster(2, stuck), Deadline(0.5))
    assert not ended.is_set()
    returned.set()


def test_a_vantage_has_what_its_executor_met() -> None:
    reached = {"listener": "INTERNAL", "broker": 1, "resolved": ["192.0.2.1"], "stage": "tcp"}
    reached |= {"error": "timed out", "cluster_id": ""}
    executor_answer = {"executor": "7", "host": "worker", "resolvers": [], "reached": [reached]}
    expected = ReachedAddress(
        listener="INTERNAL",
        broker=1,
        address=ROUTE.address,
        resolved=("192.0.2.1",),
        reached=False,
        error="timed out",
    )
    assert vantage_of(executor_answer, [ROUTE]).reached == (expected,)
    reached |= {"error": "", "cluster_id": "C"}
    passed = expected.model_copy(update={"reached": True, "error": "", "cluster_id": "C"})
    assert vantage_of(executor_answer, [ROUTE]).reached == (passed,)


def test_executors_that_cannot_run_python_are_no_fault_of_a_listener() -> None:
    def fail(answers: object) -> None:
        raise RuntimeError(
            "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: "
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version\n\tat a.b.C(D.scala)"
        )

    assert str(raised(NoExecutors, probe_cluster, Cluster(1, fail))) == (
        "no executor could run the probe: SparkException: [PYTHON_VERSION_MISMATCH] Python in "
        "worker has different version"
    )
