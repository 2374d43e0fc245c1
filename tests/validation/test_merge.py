from __future__ import annotations

from earshot.listeners.model import Scope
from earshot.validation.attempts import Problem, Trouble
from earshot.validation.merge import blame, merge, without_spark
from earshot.validation.result import (
    Cell,
    Delivery,
    Reached,
    Stage,
    StageResult,
    Vantage,
    Verdict,
    combine,
)
from earshot.validation.spark_job import Findings
from earshot.validation.verdict import Share, Tally

LISTENERS = ("INTERNAL", "EXTERNAL")


def cell(listener: str, broker: int, verdict: Verdict = Verdict.PASS) -> Cell:
    return Cell(
        vantage="host",
        listener=listener,
        broker=broker,
        scopes=(Scope.HOST,),
        address=f"kafka-{broker}.example.com:9092",
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
WHOLE = Findings(SHARES, TALLIES, READS)


def by_key(cells: tuple[Cell, ...], vantage: str = "host") -> dict[tuple[str, int], Cell]:
    return {(it.listener, it.broker): it for it in cells if it.vantage == vantage}


def verdicts(cells: tuple[Cell, ...], vantage: str = "host") -> dict[tuple[str, int], Verdict]:
    return {key: item.verdict for key, item in by_key(cells, vantage).items()}


def test_what_both_proved_passes_and_says_how() -> None:
    cells = merge(CELLS, WHOLE)
    assert set(verdicts(cells).values()) == {Verdict.PASS}
    details = {stage.stage: stage.detail for stage in cells[0].stages}
    assert details[Stage.PRODUCE] == "seen; Spark: 10 records acknowledged"
    assert "EXTERNAL, INTERNAL" in details[Stage.CONSUME]
    assert details[Stage.TCP] == "seen"
    assert cells[0].latency_ms == 1.5


def test_a_cell_that_the_doctor_failed_stays_as_it_is() -> None:
    failed = cell("INTERNAL", 3, Verdict.FAIL)
    assert merge([failed], WHOLE) == (failed,)


def test_what_was_not_acknowledged_fails_at_produce() -> None:
    problem = Problem(Trouble.FAILED, "TimeoutException: expired")
    findings = Findings(SHARES, TALLIES, READS, unwritten={("EXTERNAL", 2): problem})
    found = by_key(merge(CELLS, findings))["EXTERNAL", 2]
    assert (found.verdict, found.failed_stage) == (Verdict.FAIL, Stage.PRODUCE)
    assert found.cause is not None and "TimeoutException: expired" in found.cause.observed
    assert [item.verdict for item in found.stages] == [
        *[Verdict.PASS] * 5,
        Verdict.FAIL,
        Verdict.SKIP,
    ]


def test_what_could_not_be_read_fails_its_reader_only() -> None:
    problem = Problem(Trouble.FAILED, "TimeoutException: no position")
    findings = Findings(SHARES, TALLIES, READS, unread={("INTERNAL", 1): problem})
    found = merge(CELLS, findings)
    assert verdicts(found) == {
        ("INTERNAL", 1): Verdict.FAIL,
        ("INTERNAL", 2): Verdict.PASS,
        ("EXTERNAL", 1): Verdict.PASS,
        ("EXTERNAL", 2): Verdict.PASS,
    }
    assert by_key(found)["INTERNAL", 1].failed_stage is Stage.CONSUME


def test_a_broker_that_died_meanwhile_fails_where_it_stopped_to_answer() -> None:
    gone = Problem(Trouble.REFUSED, "accepted connections, but no more while the job ran")
    findings = Findings(SHARES, TALLIES, READS, unwritten={("INTERNAL", 1): gone})
    found = by_key(merge(CELLS, findings))["INTERNAL", 1]
    assert found.failed_stage is Stage.TCP
    assert found.cause is not None and found.cause.kind == "refused"


def test_what_was_not_done_in_time_is_inconclusive() -> None:
    late = Problem(Trouble.LATE, "not done when the deadline of 9 s passed")
    findings = Findings((), (), frozenset(), unwritten={("INTERNAL", 1): late})
    found = by_key(merge(CELLS[:1], findings))["INTERNAL", 1]
    assert found.verdict is Verdict.INCONCLUSIVE and "deadline of 9 s" in found.reason


def test_without_spark_nothing_that_passed_is_proven() -> None:
    failed = cell("INTERNAL", 3, Verdict.FAIL)
    cells = without_spark([CELLS[0], failed], "no topic")
    assert [item.verdict for item in cells] == [Verdict.INCONCLUSIVE, Verdict.FAIL]
    assert cells[0].reason == "no topic"


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
    found = blame(
        [delivery("INTERNAL", "INTERNAL", 3), delivery("INTERNAL", "EXTERNAL", 3)],
    )
    assert set(found) == {("INTERNAL", 1)}


def test_lost_records_fail_the_cell_with_their_numbers() -> None:
    short = tuple(
        Tally(it.read_through, it.share, it.partition, 7, distinct=7, missing=(1, 2, 3))
        if it.share == SHARES[0]
        else it
        for it in TALLIES
    )
    found = by_key(merge(CELLS, Findings(SHARES, short, READS)))["INTERNAL", 1]
    assert found.failed_stage is Stage.CONSUME
    assert found.cause is not None and found.cause.kind == "lost"
    assert "of 10 records written through INTERNAL, 3 never came back" in found.cause.observed


def executor(name: str, *failures: Reached) -> Vantage:
    failed = {(item.listener, item.broker): item for item in failures}
    seen = tuple(
        failed.get(
            (item.listener, item.broker),
            Reached(
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


def missed(listener: str, broker: int, resolved: tuple[str, ...], error: str) -> Reached:
    address = f"kafka-{broker}.example.com:9092"
    return Reached(
        listener=listener,
        broker=broker,
        address=address,
        resolved=resolved,
        reached=False,
        error=error,
    )


def test_an_executor_that_cannot_resolve_fails_its_cell_and_not_the_drivers() -> None:
    blind = executor("executor-1", missed("EXTERNAL", 2, (), "kafka-2.example.com: not known"))
    far = executor("executor-2", missed("EXTERNAL", 1, ("192.0.2.1",), "timed out"))
    findings = Findings(SHARES, TALLIES, READS, executors=(executor("executor-0"), blind, far))
    cells = merge(CELLS, findings)
    assert set(verdicts(cells).values()) == {Verdict.PASS}
    assert set(verdicts(cells, "executor-0").values()) == {Verdict.PASS}
    unresolved = by_key(cells, "executor-1")["EXTERNAL", 2]
    assert (unresolved.verdict, unresolved.failed_stage) == (Verdict.FAIL, Stage.RESOLVE)
    assert unresolved.cause is not None and "executor-1 on worker" in unresolved.cause.observed
    unreached = by_key(cells, "executor-2")["EXTERNAL", 1]
    assert unreached.failed_stage is Stage.TCP
    assert unreached.cause is not None and unreached.cause.kind == "timeout"
    failed = [it for it in cells if it.verdict is Verdict.FAIL]
    assert len(failed) == 2 and all(it.latency_ms is None for it in failed)


def test_what_no_executor_reached_is_not_proven_for_the_driver_either() -> None:
    blind = executor("executor-0", missed("EXTERNAL", 2, (), "not known"))
    rest = [item for item in SHARES if (item.listener, item.broker) != ("EXTERNAL", 2)]
    tallies = tuple(item for item in TALLIES if item.share in rest)
    findings = Findings(tuple(rest), tallies, READS, executors=(blind,))
    found = merge(CELLS, findings)
    driver = by_key(found)["EXTERNAL", 2]
    assert driver.verdict is Verdict.INCONCLUSIVE and "no Spark executor" in driver.reason
    assert combine(item.verdict for item in found) is Verdict.FAIL
