from dataclasses import replace

import pytest

from earshot.listeners.address import Address
from earshot.listeners.terms import Scope
from earshot.spark.attempts import RouteFailure, RouteProblem
from earshot.spark.cluster import other_cluster_keys
from earshot.spark.job import JobResult
from earshot.spark.merge import blame, merge, without_spark
from earshot.validation.client import Failure
from earshot.validation.refusals import refusal
from earshot.validation.result import Cell, Delivery, ReachedAddress, StageResult, Vantage, combine
from earshot.validation.terms import Stage, Verdict
from earshot.validation.verdict import Share, Tally

LISTENERS = ("INTERNAL", "EXTERNAL")


def cell(listener: str, broker: int, verdict: Verdict = Verdict.PASS) -> Cell:
    return Cell(
        vantage="host",
        listener=listener,
        broker=broker,
        scopes=(Scope.HOST,),
        address=Address(f"kafka-{broker}.example.com", 9092),
        verdict=verdict,
        stages=tuple(StageResult(stage=stage, verdict=verdict, detail="seen") for stage in Stage),
        latency_ms=1.5,
    )


CELLS = [cell(listener, broker) for listener in LISTENERS for broker in (1, 2)]
SHARES = tuple(
    Share(item.listener, item.broker, 1, partition, 10, True)
    for partition, item in enumerate(CELLS)
)
TALLIES = tuple(
    Tally(reader, share, share.partition, 10, distinct=10)
    for reader in LISTENERS
    for share in SHARES
)
READS = frozenset((reader, share.partition) for reader in LISTENERS for share in SHARES)
WHOLE = JobResult(SHARES, TALLIES, READS)


def by_key(cells: tuple[Cell, ...], vantage: str = "host") -> dict[tuple[str, int], Cell]:
    return {(it.listener, it.broker): it for it in cells if it.vantage == vantage}


def verdicts(cells: tuple[Cell, ...], vantage: str = "host") -> dict[tuple[str, int], Verdict]:
    return {key: item.verdict for key, item in by_key(cells, vantage).items()}


def test_what_both_proved_passes_and_says_how() -> None:
    cells = merge(CELLS, WHOLE)
    assert set(verdicts(cells).values()) == {Verdict.PASS}
    details = {stage.stage: stage.detail for stage in cells[0].stages}
    assert details[Stage.PRODUCE] == "seen; Spark: 10 records acknowledged"
    assert details[Stage.CONSUME] == "seen; Spark: all read back through EXTERNAL, INTERNAL"
    assert details[Stage.TCP] == "seen"
    assert cells[0].latency_ms == 1.5


def test_a_cell_that_the_doctor_failed_stays_as_it_is() -> None:
    failed = cell("INTERNAL", 3, Verdict.FAIL)
    assert merge([failed], WHOLE) == (failed,)


def test_what_was_not_acknowledged_fails_at_produce() -> None:
    problem = RouteProblem(RouteFailure.JOB_FAILED, "TimeoutException: expired")
    findings = JobResult(SHARES, TALLIES, READS, unwritten={("EXTERNAL", 2): problem})
    found = by_key(merge(CELLS, findings))["EXTERNAL", 2]
    assert (found.verdict, found.failed_stage) == (Verdict.FAIL, Stage.PRODUCE)
    assert found.cause is not None and found.cause.observed == (
        "Spark's records were not acknowledged: TimeoutException: expired"
    )
    assert [item.detail for item in found.stages] == [
        *["seen"] * 5,
        found.cause.observed,
        "produce failed",
    ]
    assert [item.verdict for item in found.stages] == [
        *[Verdict.PASS] * 5,
        Verdict.FAIL,
        Verdict.SKIP,
    ]


def test_what_could_not_be_read_fails_its_reader_only() -> None:
    problem = RouteProblem(RouteFailure.JOB_FAILED, "TimeoutException: no position")
    findings = JobResult(SHARES, TALLIES, READS, unread={("INTERNAL", 1): problem})
    found = merge(CELLS, findings)
    assert verdicts(found) == {
        ("INTERNAL", 1): Verdict.FAIL,
        ("INTERNAL", 2): Verdict.PASS,
        ("EXTERNAL", 1): Verdict.PASS,
        ("EXTERNAL", 2): Verdict.PASS,
    }
    failed = by_key(found)["INTERNAL", 1]
    assert failed.failed_stage is Stage.CONSUME
    assert failed.cause is not None and failed.cause.observed == (
        "Spark's records could not be read back: TimeoutException: no position"
    )


def test_a_broker_that_died_meanwhile_fails_where_it_stopped_to_answer() -> None:
    gone = RouteProblem(RouteFailure.REFUSED, "accepted connections, but no more while the job ran")
    findings = JobResult(SHARES, TALLIES, READS, unwritten={("INTERNAL", 1): gone})
    found = by_key(merge(CELLS, findings))["INTERNAL", 1]
    assert found.failed_stage is Stage.TCP
    assert found.cause is not None
    assert (found.cause.kind, found.cause.observed) == ("refused", gone.reason)


def test_what_was_not_done_in_time_is_inconclusive() -> None:
    late = RouteProblem(RouteFailure.TIMED_OUT, "not done when the deadline of 9 s passed")
    findings = JobResult((), (), frozenset(), unwritten={("INTERNAL", 1): late})
    found = by_key(merge(CELLS[:1], findings))["INTERNAL", 1]
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == "Spark: not done when the deadline of 9 s passed"


def test_a_limit_of_the_machine_that_runs_spark_is_no_fault_of_a_broker() -> None:
    full = RouteProblem(RouteFailure.RESOURCE_LIMIT, "IOException: No space left on device")
    findings = JobResult(SHARES, TALLIES, READS, unread={("INTERNAL", 1): full})
    found = by_key(merge(CELLS[:1], findings))["INTERNAL", 1]
    assert (found.verdict, found.cause) == (Verdict.INCONCLUSIVE, None)
    assert found.reason.endswith(
        "the machine that it runs on: IOException: No space left on device"
    )


def test_without_spark_nothing_that_passed_is_proven() -> None:
    failed = cell("INTERNAL", 3, Verdict.FAIL)
    cells = without_spark([CELLS[0], failed], "no topic")
    assert [item.verdict for item in cells] == [Verdict.INCONCLUSIVE, Verdict.FAIL]
    assert cells[0].reason == "no topic"
    cause = refusal(Failure("authorization", "Topic authorization failed"))
    assert [item.cause for item in without_spark([CELLS[0], failed], "no topic", cause)] == [
        cause,
        None,
    ]


def delivery(writer: str, reader: str, lost: int) -> Delivery:
    return Delivery(
        written_through=writer,
        read_through=reader,
        broker=1,
        acknowledged=10,
        read=10 - lost,
        lost=lost,
    )


def test_what_one_reader_misses_is_the_readers_failure() -> None:
    found = blame(
        [
            delivery("INTERNAL", "INTERNAL", 0),
            delivery("INTERNAL", "EXTERNAL", 3),
            delivery("EXTERNAL", "EXTERNAL", 0),
            delivery("EXTERNAL", "INTERNAL", 0),
        ]
    )
    assert set(found) == {("EXTERNAL", 1)}


def test_what_every_reader_misses_is_the_writers_failure() -> None:
    found = blame([delivery("INTERNAL", "INTERNAL", 3), delivery("INTERNAL", "EXTERNAL", 3)])
    assert set(found) == {("INTERNAL", 1)}


def test_lost_records_fail_the_cell_with_their_numbers() -> None:
    short = tuple(
        Tally(it.read_through, it.share, it.partition, 7, distinct=7, missing=(1, 2, 3))
        if it.share == SHARES[0]
        else it
        for it in TALLIES
    )
    found = by_key(merge(CELLS, JobResult(SHARES, short, READS)))["INTERNAL", 1]
    assert found.failed_stage is Stage.CONSUME
    assert found.cause is not None and found.cause.kind == "lost"
    reported = "of 10 records written through INTERNAL, 3 never came back through"
    assert found.cause.observed == f"{reported} EXTERNAL; {reported} INTERNAL"
    assert found.cause.remedy == (
        "see the log of broker 1 for this time, and the network between its listeners and their "
        "clients (proxies, port mappings)"
    )


OF_TEN = "of 10 records written through INTERNAL"
LOST_AND_SWAPPED = (
    f"1 never came back through EXTERNAL; {OF_TEN}, 2 came back out of order through EXTERNAL"
)


@pytest.mark.parametrize(
    ("changes", "kind", "reported"),
    [
        ({"corrupt": 2}, "corrupt", "2 came back changed through EXTERNAL"),
        ({"descents": 1}, "out-of-order", "1 came back out of order through EXTERNAL"),
        ({"distinct": 9, "missing": (4,), "descents": 2}, "lost", LOST_AND_SWAPPED),
    ],
)
def test_what_happened_to_records(changes: dict[str, object], kind: str, reported: str) -> None:
    """By the reader's cell, as the other listener gave the same records back."""
    tallies = tuple(
        replace(it, **changes)  # type: ignore[arg-type]
        if (it.share, it.read_through) == (SHARES[0], "EXTERNAL")
        else it
        for it in TALLIES
    )
    found = by_key(merge(CELLS, JobResult(SHARES, tallies, READS)))
    assert found["INTERNAL", 1].verdict is Verdict.PASS
    cause = found["EXTERNAL", 1].cause
    assert cause is not None and cause.kind == kind
    assert cause.observed == f"{OF_TEN}, {reported}"


def executor(name: str, *failures: ReachedAddress) -> Vantage:
    failed = {(item.listener, item.broker): item for item in failures}
    seen = tuple(
        failed.get(
            (item.listener, item.broker),
            ReachedAddress(
                listener=item.listener,
                broker=item.broker,
                address=item.address,
                resolved=("192.0.2.1",),
                reached=True,
            ),
        )
        for item in CELLS
    )
    return Vantage(name=name, kind="executor", where="worker", reached=seen)


def missed(listener: str, broker: int, resolved: tuple[str, ...], error: str) -> ReachedAddress:
    return ReachedAddress(
        listener=listener,
        broker=broker,
        address=Address(f"kafka-{broker}.example.com", 9092),
        resolved=resolved,
        reached=False,
        error=error,
    )


def test_an_executor_that_cannot_resolve_fails_its_cell_and_not_the_drivers() -> None:
    blind = executor("executor-1", missed("EXTERNAL", 2, (), "kafka-2.example.com: not known"))
    far = executor("executor-2", missed("EXTERNAL", 1, ("192.0.2.1",), "timed out"))
    findings = JobResult(SHARES, TALLIES, READS, executors=(executor("executor-0"), blind, far))
    cells = merge(CELLS, findings)
    assert set(verdicts(cells).values()) == {Verdict.PASS}
    assert set(verdicts(cells, "executor-0").values()) == {Verdict.PASS}
    proven = by_key(cells, "executor-0")["EXTERNAL", 2]
    assert [(item.stage, item.verdict, item.detail) for item in proven.stages] == [
        (Stage.RESOLVE, Verdict.PASS, "192.0.2.1"),
        (Stage.TCP, Verdict.PASS, ""),
        (Stage.PRODUCE, Verdict.PASS, "by the executors together"),
        (Stage.CONSUME, Verdict.PASS, "by the executors together"),
    ]
    assert (proven.latency_ms, proven.cause, proven.reason) == (None, None, "")
    unresolved = by_key(cells, "executor-1")["EXTERNAL", 2]
    assert (unresolved.verdict, unresolved.failed_stage) == (Verdict.FAIL, Stage.RESOLVE)
    assert unresolved.cause is not None and unresolved.cause.observed == (
        "executor-1 on worker: kafka-2.example.com: not known"
    )
    assert [(item.stage, item.verdict) for item in unresolved.stages] == [
        (Stage.RESOLVE, Verdict.FAIL),
        *[(stage, Verdict.SKIP) for stage in list(Stage)[3:]],
    ]
    unreached = by_key(cells, "executor-2")["EXTERNAL", 1]
    assert unreached.failed_stage is Stage.TCP
    assert unreached.cause is not None
    assert (unreached.cause.kind, unreached.cause.observed) == (
        "timeout",
        "executor-2 on worker: timed out",
    )
    assert [(item.stage, item.verdict) for item in unreached.stages[:2]] == [
        (Stage.RESOLVE, Verdict.PASS),
        (Stage.TCP, Verdict.FAIL),
    ]
    failed = [it for it in cells if it.verdict is Verdict.FAIL]
    assert len(failed) == 2 and all(it.latency_ms is None for it in failed)


def test_several_findings_are_told_together_and_the_gravest_names_the_cause() -> None:
    changes: dict[str, dict[str, object]] = {
        "EXTERNAL": {"corrupt": 2},
        "INTERNAL": {"distinct": 9, "missing": (4,)},
    }
    tallies = tuple(
        replace(it, **changes[it.read_through])  # type: ignore[arg-type]
        if it.share == SHARES[0]
        else it
        for it in TALLIES
    )
    cause = by_key(merge(CELLS, JobResult(SHARES, tallies, READS)))["INTERNAL", 1].cause
    assert cause is not None and cause.kind == "lost"
    assert cause.observed == (
        f"{OF_TEN}, 2 came back changed through EXTERNAL; "
        f"{OF_TEN}, 1 never came back through INTERNAL"
    )


def test_an_executors_cell_has_nothing_of_the_doctors() -> None:
    problem = refusal(Failure("authorization", "denied"))
    failed = CELLS[0].model_copy(
        update={"verdict": Verdict.FAIL, "cause": problem, "reason": "a reason"}
    )
    findings = replace(WHOLE, executors=(executor("executor-0"),))
    found = by_key(merge([failed, *CELLS[1:]], findings), "executor-0")["INTERNAL", 1]
    assert (found.verdict, found.cause, found.reason) == (Verdict.PASS, None, "")


def test_an_executor_that_is_refused_says_so() -> None:
    shut = executor("executor-1", missed("EXTERNAL", 1, ("192.0.2.1",), "Connection Refused"))
    cells = merge(CELLS, replace(WHOLE, executors=(shut,)))
    cause = by_key(cells, "executor-1")["EXTERNAL", 1].cause
    assert cause is not None and cause.kind == "refused"


def test_what_the_job_failed_at_is_the_executors_failure_too() -> None:
    problem = RouteProblem(RouteFailure.JOB_FAILED, "expired")
    findings = replace(
        WHOLE, unwritten={("EXTERNAL", 2): problem}, executors=(executor("executor-0"),)
    )
    found = by_key(merge(CELLS, findings), "executor-0")["EXTERNAL", 2]
    assert (found.verdict, found.failed_stage) == (Verdict.FAIL, Stage.PRODUCE)


def test_what_the_driver_could_not_prove_the_executors_cannot_either() -> None:
    rest = tuple(it for it in SHARES if (it.listener, it.broker) != ("EXTERNAL", 2))
    tallies = tuple(it for it in TALLIES if it.share in rest)
    findings = JobResult(rest, tallies, READS, executors=(executor("executor-0"),))
    found = by_key(merge(CELLS, findings), "executor-0")["EXTERNAL", 2]
    assert (found.verdict, found.reason) == (
        Verdict.SKIP,
        "the driver could not prove it, so the job left it out",
    )


def test_what_no_executor_reached_is_not_proven_for_the_driver_either() -> None:
    blind = executor("executor-0", missed("EXTERNAL", 2, (), "not known"))
    rest = [item for item in SHARES if (item.listener, item.broker) != ("EXTERNAL", 2)]
    tallies = tuple(item for item in TALLIES if item.share in rest)
    found = merge(CELLS, JobResult(tuple(rest), tallies, READS, executors=(blind,)))
    driver = by_key(found)["EXTERNAL", 2]
    assert (driver.verdict, driver.reason) == (
        Verdict.INCONCLUSIVE,
        "no Spark executor could reach it, so Spark proved nothing",
    )
    assert combine(item.verdict for item in found) is Verdict.FAIL


STRANGER = RouteProblem(
    RouteFailure.OTHER_CLUSTER, "for Spark, kafka-2.example.com:9092 belongs to cluster D"
)


def test_an_address_where_sparks_driver_meets_another_cluster() -> None:
    findings = replace(WHOLE, unwritten={("INTERNAL", 2): STRANGER})
    found = by_key(merge(CELLS, findings, "C"))
    failed = found["INTERNAL", 2]
    assert failed.failed_stage is Stage.METADATA and failed.cause is not None
    assert (failed.cause.kind, failed.cause.observed) == ("another-cluster", STRANGER.reason)
    assert failed.cause.expected == "cluster C of the contract"
    assert found["INTERNAL", 1].verdict is Verdict.PASS


def meeting(cluster_id: str) -> Vantage:
    at = cell("INTERNAL", 1).address
    seen = ReachedAddress(
        listener="INTERNAL",
        broker=1,
        address=at,
        resolved=("192.0.2.1",),
        reached=True,
        cluster_id=cluster_id,
    )
    return Vantage(name="executor-1", kind="executor", where="worker", reached=(seen,))


@pytest.mark.parametrize(
    ("met", "expected", "kind"),
    [
        ("C", "C", None),
        ("D", "C", "another-cluster"),
        ("D", None, None),  # the contract names none
        ("", "C", None),  # it was not asked
    ],
)
def test_an_executor_at_another_cluster(met: str, expected: str | None, kind: str | None) -> None:
    findings = replace(WHOLE, executors=(meeting(met),))
    found = by_key(merge(CELLS, findings, expected), "executor-1")["INTERNAL", 1]
    assert (found.cause.kind if found.cause else None) == kind
    if found.cause is not None:
        assert found.cause.observed == (
            "for executor-1 on worker, kafka-1.example.com:9092 belongs to cluster D"
        )
    assert other_cluster_keys([meeting(met)], expected) == ({("INTERNAL", 1)} if kind else set())


def test_where_one_executor_meets_another_cluster_nothing_goes() -> None:
    rest = tuple(it for it in SHARES if (it.listener, it.broker) != ("INTERNAL", 1))
    tallies = tuple(it for it in TALLIES if it.share in rest)
    findings = JobResult(rest, tallies, READS, executors=(executor("executor-0"), meeting("D")))
    found = merge(CELLS, findings, "C")
    driver = by_key(found)["INTERNAL", 1]
    assert (driver.verdict, driver.reason) == (
        Verdict.INCONCLUSIVE,
        "an executor reached another cluster there, so Spark proved nothing",
    )
    other = by_key(found, "executor-0")["INTERNAL", 1]
    assert (other.verdict, other.reason) == (
        Verdict.SKIP,
        "another executor reached another cluster there, so the job left it out",
    )
    assert by_key(found, "executor-1")["INTERNAL", 1].verdict is Verdict.FAIL


def test_an_executor_is_not_blamed_for_the_cluster_that_the_driver_met() -> None:
    executors = (executor("executor-0"),)
    findings = replace(WHOLE, unwritten={("INTERNAL", 2): STRANGER}, executors=executors)
    found = merge(CELLS, findings, "C")
    assert by_key(found)["INTERNAL", 2].verdict is Verdict.FAIL
    skipped = by_key(found, "executor-0")["INTERNAL", 2]
    assert (skipped.verdict, skipped.cause, skipped.reason) == (
        Verdict.SKIP,
        None,
        "the driver reached another cluster there, so the job left it out",
    )
