from dataclasses import replace
from typing import Any

import pytest

from earshot.listeners.address import Address
from earshot.listeners.terms import Scope
from earshot.spark.attempts import RouteFailure, RouteProblem
from earshot.spark.cluster import other_cluster_keys
from earshot.spark.job import JobResult
from earshot.spark.merge import blame, merge, without_spark
from earshot.validation.client import Failure
from earshot.validation.refusals import refusal
from earshot.validation.result import (
    Cause,
    Cell,
    Delivery,
    ReachedAddress,
    StageResult,
    Vantage,
    combine,
)
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
    Share(cell.listener, cell.broker, 1, number, 10, True) for number, cell in enumerate(CELLS)
)
TALLIES = tuple(
    Tally(reader, share, share.partition, 10, distinct=10)
    for reader in LISTENERS
    for share in SHARES
)
READS = frozenset((reader, share.partition) for reader in LISTENERS for share in SHARES)
WHOLE = JobResult(SHARES, TALLIES, READS)


def test_a_job_that_delivered_nothing_has_not_delivered_all() -> None:
    """After a timeout; otherwise the classes of an incomplete run would be kept for later runs."""
    lost = replace(TALLIES[0], records=9, distinct=9)
    assert WHOLE.all_delivered and not JobResult().all_delivered
    assert not JobResult(SHARES, (lost, *TALLIES[1:]), READS).all_delivered


Key = tuple[str, int]


def by_key(cells: tuple[Cell, ...], vantage: str = "host") -> dict[Key, Cell]:
    return {(cell.listener, cell.broker): cell for cell in cells if cell.vantage == vantage}


def merged_cells(vantage: str = "host", **findings: Any) -> dict[Key, Cell]:
    """Cells seen from ``vantage``, by key, if the job found ``findings``."""
    return by_key(merge(CELLS, replace(WHOLE, **findings)), vantage)


def cause_of(cell: Cell) -> Cause:
    assert cell.cause is not None
    return cell.cause


def without_share(key: Key, **findings: Any) -> JobResult:
    """The findings of a job that left out the share ``key``."""
    shares = tuple(share for share in SHARES if (share.listener, share.broker) != key)
    tallies = tuple(tally for tally in TALLIES if tally.share in shares)
    return JobResult(shares, tallies, READS, **findings)


def verdicts(cells: tuple[Cell, ...], vantage: str = "host") -> dict[Key, Verdict]:
    return {key: cell.verdict for key, cell in by_key(cells, vantage).items()}


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
    cell = merged_cells(unwritten={("EXTERNAL", 2): problem})["EXTERNAL", 2]
    observed = "Spark's records were not acknowledged: TimeoutException: expired"
    assert (cell.verdict, cell.failed_stage) == (Verdict.FAIL, Stage.PRODUCE)
    assert cause_of(cell).observed == observed
    assert [(stage.verdict, stage.detail) for stage in cell.stages] == [
        *[(Verdict.PASS, "seen")] * 5,
        (Verdict.FAIL, observed),
        (Verdict.SKIP, "produce failed"),
    ]


def test_what_could_not_be_read_fails_its_reader_only() -> None:
    problem = RouteProblem(RouteFailure.JOB_FAILED, "TimeoutException: no position")
    cells = merged_cells(unread={("INTERNAL", 1): problem})
    failed = cells.pop(("INTERNAL", 1))
    assert {cell.verdict for cell in cells.values()} == {Verdict.PASS} and len(cells) == 3
    assert (failed.verdict, failed.failed_stage) == (Verdict.FAIL, Stage.CONSUME)
    assert cause_of(failed).observed == (
        "Spark's records could not be read back: TimeoutException: no position"
    )


def test_a_broker_that_died_meanwhile_fails_at_tcp() -> None:
    problem = RouteProblem(
        RouteFailure.REFUSED, "accepted connections, but no more while the job ran"
    )
    cell = merged_cells(unwritten={("INTERNAL", 1): problem})["INTERNAL", 1]
    assert cell.failed_stage is Stage.TCP
    assert (cause_of(cell).kind, cause_of(cell).observed) == ("refused", problem.reason)


@pytest.mark.parametrize(
    ("failure", "problem", "reason"),
    [
        (RouteFailure.TIMED_OUT, "not done when the deadline of 9 s passed", "Spark: {}"),
        (RouteFailure.RESOURCE_LIMIT, "IOException: No space left", "machine that it runs on: {}"),
    ],
)
def test_problems_of_the_machine(failure: RouteFailure, problem: str, reason: str) -> None:
    late_problems = {("INTERNAL", 1): RouteProblem(failure, problem)}
    for cells in (merged_cells(unwritten=late_problems), merged_cells(unread=late_problems)):
        cell = cells["INTERNAL", 1]
        assert (cell.verdict, cell.cause) == (Verdict.INCONCLUSIVE, None)
        assert cell.reason.endswith(reason.format(problem))


def test_without_spark_nothing_that_passed_is_proven() -> None:
    cells = [CELLS[0], cell("INTERNAL", 3, Verdict.FAIL)]
    passed, failed = without_spark(cells, "no topic")
    assert (passed.verdict, failed.verdict) == (Verdict.INCONCLUSIVE, Verdict.FAIL)
    assert passed.reason == "no topic"
    cause = refusal(Failure("authorization", "Topic authorization failed"))
    assert [cell.cause for cell in without_spark(cells, "no topic", cause)] == [cause, None]


def delivery(writer: str, reader: str, lost: int) -> Delivery:
    way = {"written_through": writer, "read_through": reader, "broker": 1}
    counts = {"acknowledged": 10, "read": 10 - lost, "lost": lost}
    return Delivery.model_validate(way | counts)


@pytest.mark.parametrize(
    ("deliveries", "blamed"),
    [
        (
            [("INTERNAL", 0, "INTERNAL"), ("INTERNAL", 3, "EXTERNAL"),
             ("EXTERNAL", 0, "EXTERNAL"), ("EXTERNAL", 0, "INTERNAL")],
            ("EXTERNAL", 1),
        ),
        ([("INTERNAL", 3, "INTERNAL"), ("INTERNAL", 3, "EXTERNAL")], ("INTERNAL", 1)),
    ],
    ids=["what one reader misses is its failure", "what all miss is the writer's"],
)  # fmt: skip
def test_who_is_blamed(deliveries: list[tuple[str, int, str]], blamed: Key) -> None:
    lost = [delivery(writer, reader, count) for writer, count, reader in deliveries]
    assert set(blame(lost)) == {blamed}


def tallies(**changes: dict[str, object]) -> tuple[Tally, ...]:
    """Tallies in which the first share has ``changes``, by reader."""
    return tuple(
        replace(tally, **changes.get(tally.read_through, {}))  # type: ignore[arg-type]
        if tally.share == SHARES[0]
        else tally
        for tally in TALLIES
    )


def test_lost_records_fail_the_cell_with_their_numbers() -> None:
    lost: dict[str, object] = {"records": 7, "distinct": 7, "missing": (1, 2, 3)}
    cell = merged_cells(tallies=tallies(INTERNAL=lost, EXTERNAL=lost))["INTERNAL", 1]
    assert cell.failed_stage is Stage.CONSUME and cause_of(cell).kind == "lost"
    reported = "of 10 records written through INTERNAL, 3 never came back through"
    assert cause_of(cell).observed == f"{reported} EXTERNAL; {reported} INTERNAL"
    assert cause_of(cell).remedy == (
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
    """The reader's cell fails, because the other listener returned the same records."""
    cells = merged_cells(tallies=tallies(EXTERNAL=changes))
    assert cells["INTERNAL", 1].verdict is Verdict.PASS
    cause = cause_of(cells["EXTERNAL", 1])
    assert (cause.kind, cause.observed) == (kind, f"{OF_TEN}, {reported}")


def reached_address(cell: Cell, **changes: object) -> ReachedAddress:
    address = {"listener": cell.listener, "broker": cell.broker, "address": cell.address}
    reached_state = {"resolved": ("192.0.2.1",), "reached": True}
    return ReachedAddress.model_validate(address | reached_state | changes)


def executor_vantage(name: str, *failures: ReachedAddress) -> Vantage:
    failed = {(failure.listener, failure.broker): failure for failure in failures}
    reached_addresses = tuple(
        failed.get((cell.listener, cell.broker), reached_address(cell)) for cell in CELLS
    )
    return Vantage(name=name, kind="executor", where="worker", reached=reached_addresses)


def missed(listener: str, broker: int, resolved: tuple[str, ...], error: str) -> ReachedAddress:
    return reached_address(cell(listener, broker), resolved=resolved, reached=False, error=error)


def test_an_executor_that_cannot_resolve_fails_its_cell_and_not_the_drivers() -> None:
    blind = executor_vantage(
        "executor-1", missed("EXTERNAL", 2, (), "kafka-2.example.com: not known")
    )
    far = executor_vantage("executor-2", missed("EXTERNAL", 1, ("192.0.2.1",), "timed out"))
    cells = merge(CELLS, replace(WHOLE, executors=(executor_vantage("executor-0"), blind, far)))
    assert set(verdicts(cells).values()) == {Verdict.PASS}
    assert set(verdicts(cells, "executor-0").values()) == {Verdict.PASS}
    proven = by_key(cells, "executor-0")["EXTERNAL", 2]
    assert [(stage.stage, stage.verdict, stage.detail) for stage in proven.stages] == [
        (Stage.RESOLVE, Verdict.PASS, "192.0.2.1"),
        (Stage.TCP, Verdict.PASS, ""),
        (Stage.PRODUCE, Verdict.PASS, "by the executors together"),
        (Stage.CONSUME, Verdict.PASS, "by the executors together"),
    ]
    assert (proven.latency_ms, proven.cause, proven.reason) == (None, None, "")
    unresolved = by_key(cells, "executor-1")["EXTERNAL", 2]
    assert (unresolved.verdict, unresolved.failed_stage) == (Verdict.FAIL, Stage.RESOLVE)
    observed = "executor-1 on worker: kafka-2.example.com: not known"
    assert cause_of(unresolved).observed == observed
    assert [(stage.stage, stage.verdict) for stage in unresolved.stages] == [
        (Stage.RESOLVE, Verdict.FAIL),
        *[(stage, Verdict.SKIP) for stage in list(Stage)[3:]],
    ]
    unreached = by_key(cells, "executor-2")["EXTERNAL", 1]
    cause = cause_of(unreached)
    assert (cause.kind, cause.observed) == ("timeout", "executor-2 on worker: timed out")
    assert [(stage.stage, stage.verdict) for stage in unreached.stages[:2]] == [
        (Stage.RESOLVE, Verdict.PASS),
        (Stage.TCP, Verdict.FAIL),
    ]
    assert unreached.failed_stage is Stage.TCP
    failed = [cell for cell in cells if cell.verdict is Verdict.FAIL]
    assert len(failed) == 2 and all(cell.latency_ms is None for cell in failed)


def test_several_findings_are_told_together_and_the_gravest_names_the_cause() -> None:
    counts = tallies(EXTERNAL={"corrupt": 2}, INTERNAL={"distinct": 9, "missing": (4,)})
    cause = cause_of(merged_cells(tallies=counts)["INTERNAL", 1])
    assert cause.kind == "lost"
    assert cause.observed == (
        f"{OF_TEN}, 2 came back changed through EXTERNAL; "
        f"{OF_TEN}, 1 never came back through INTERNAL"
    )


def test_an_executors_cell_has_nothing_of_the_doctors() -> None:
    problem = refusal(Failure("authorization", "denied"))
    changes = {"verdict": Verdict.FAIL, "cause": problem, "reason": "a reason"}
    failed = CELLS[0].model_copy(update=changes)
    findings = replace(WHOLE, executors=(executor_vantage("executor-0"),))
    cell = by_key(merge([failed, *CELLS[1:]], findings), "executor-0")["INTERNAL", 1]
    assert (cell.verdict, cell.cause, cell.reason) == (Verdict.PASS, None, "")


def test_an_executor_that_is_refused_says_so() -> None:
    shut = executor_vantage(
        "executor-1", missed("EXTERNAL", 1, ("192.0.2.1",), "Connection Refused")
    )
    assert cause_of(merged_cells("executor-1", executors=(shut,))["EXTERNAL", 1]).kind == "refused"


def test_what_the_job_failed_at_is_the_executors_failure_too() -> None:
    unwritten = {("EXTERNAL", 2): RouteProblem(RouteFailure.JOB_FAILED, "expired")}
    cells = merged_cells(
        "executor-0", unwritten=unwritten, executors=(executor_vantage("executor-0"),)
    )
    cell = cells["EXTERNAL", 2]
    assert (cell.verdict, cell.failed_stage) == (Verdict.FAIL, Stage.PRODUCE)


def test_what_the_driver_could_not_prove_the_executors_cannot_either() -> None:
    findings = without_share(("EXTERNAL", 2), executors=(executor_vantage("executor-0"),))
    cell = by_key(merge(CELLS, findings), "executor-0")["EXTERNAL", 2]
    reason = "the driver could not prove it, so the job left it out"
    assert (cell.verdict, cell.reason) == (Verdict.SKIP, reason)


def test_what_no_executor_reached_is_not_proven_for_the_driver_either() -> None:
    blind = executor_vantage("executor-0", missed("EXTERNAL", 2, (), "not known"))
    cells = merge(CELLS, without_share(("EXTERNAL", 2), executors=(blind,)))
    driver = by_key(cells)["EXTERNAL", 2]
    reason = "no Spark executor could reach it, so Spark proved nothing"
    assert (driver.verdict, driver.reason) == (Verdict.INCONCLUSIVE, reason)
    assert combine(cell.verdict for cell in cells) is Verdict.FAIL


STRANGER = RouteProblem(
    RouteFailure.OTHER_CLUSTER, "for Spark, kafka-2.example.com:9092 belongs to cluster D"
)


def test_an_address_where_sparks_driver_meets_another_cluster() -> None:
    findings = replace(WHOLE, unwritten={("INTERNAL", 2): STRANGER})
    cells = by_key(merge(CELLS, findings, "C"))
    failed = cells["INTERNAL", 2]
    assert failed.failed_stage is Stage.METADATA
    cause = cause_of(failed)
    assert (cause.kind, cause.observed) == ("another-cluster", STRANGER.reason)
    assert cause.expected == "cluster C of the contract"
    assert cells["INTERNAL", 1].verdict is Verdict.PASS


def executor_at(cluster_id: str) -> Vantage:
    reached = reached_address(cell("INTERNAL", 1), cluster_id=cluster_id)
    return Vantage(name="executor-1", kind="executor", where="worker", reached=(reached,))


@pytest.mark.parametrize(
    ("met_cluster", "expected", "kind"),
    [
        ("C", "C", None),
        ("D", "C", "another-cluster"),
        ("D", None, None),  # the contract names none
        ("", "C", None),  # it was not asked
    ],
)
def test_an_executor_at_another_cluster(
    met_cluster: str, expected: str | None, kind: str | None
) -> None:
    findings = replace(WHOLE, executors=(executor_at(met_cluster),))
    executor_cell = by_key(merge(CELLS, findings, expected), "executor-1")["INTERNAL", 1]
    assert (executor_cell.cause.kind if executor_cell.cause else None) == kind
    if executor_cell.cause is not None:
        assert executor_cell.cause.observed == (
            "for executor-1 on worker, kafka-1.example.com:9092 belongs to cluster D"
        )
    assert other_cluster_keys([executor_at(met_cluster)], expected) == (
        {("INTERNAL", 1)} if kind else set()
    )


def test_where_one_executor_meets_another_cluster_nothing_goes() -> None:
    executors = (executor_vantage("executor-0"), executor_at("D"))
    cells = merge(CELLS, without_share(("INTERNAL", 1), executors=executors), "C")
    driver, other_executor = (by_key(cells, cell)["INTERNAL", 1] for cell in ("host", "executor-0"))
    reason = "an executor reached another cluster there, so Spark proved nothing"
    assert (driver.verdict, driver.reason) == (Verdict.INCONCLUSIVE, reason)
    reason = "another executor reached another cluster there, so the job left it out"
    assert (other_executor.verdict, other_executor.reason) == (Verdict.SKIP, reason)
    assert by_key(cells, "executor-1")["INTERNAL", 1].verdict is Verdict.FAIL


def test_an_executor_is_not_blamed_for_the_cluster_that_the_driver_met() -> None:
    executors = (executor_vantage("executor-0"),)
    findings = replace(WHOLE, unwritten={("INTERNAL", 2): STRANGER}, executors=executors)
    cells = merge(CELLS, findings, "C")
    assert by_key(cells)["INTERNAL", 2].verdict is Verdict.FAIL
    skipped = by_key(cells, "executor-0")["INTERNAL", 2]
    reason = "the driver reached another cluster there, so the job left it out"
    assert (skipped.verdict, skipped.cause, skipped.reason) == (Verdict.SKIP, None, reason)
