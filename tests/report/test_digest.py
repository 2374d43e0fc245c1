"""The problems of a report, grouped by cause."""

import pytest

from earshot.listeners.address import Address
from earshot.report.digest import (
    Pair,
    between_brokers,
    broker_name,
    copies,
    matrices,
    pairs,
    problems,
    shortcomings,
    worst,
)
from earshot.validation.result import Cause, Delivery, Replication
from earshot.validation.terms import Stage, Verdict
from tests.report import samples


def test_cells_of_one_cause_are_one_problem() -> None:
    (problem,) = problems(samples.executor_fails())
    assert [cell.broker for cell in problem.cells] == [1, 2, 3]
    assert dict(problem.facts)["likewise"] == (
        "broker 2 (localhost:9093), broker 3 (localhost:9094)"
    )
    cells = list(samples.executor_fails().cells)
    cause = cells[-1].cause
    assert cause is not None
    other_cause = cause.model_copy(update={"kind": "timeout"})
    cells[-1] = samples.failed(cells[-1], Stage.RESOLVE, other_cause)
    assert [len(problem.cells) for problem in problems(samples.report(cells))] == [2, 1]


def test_brokers_of_a_listener_with_the_name_of_an_address_are_one_problem() -> None:
    bootstrap = "localhost:9092"
    cells = []
    for cell in samples.executor_fails().cells:
        if cell.cause is not None:
            observed = f"broker {cell.broker} advertises {cell.address} to clients of {bootstrap}"
            cause = cell.cause.model_copy(update={"observed": observed})
            cell = cell.model_copy(update={"listener": bootstrap, "cause": cause})
        cells.append(cell)
    (problem,) = problems(samples.report(cells))
    assert len(problem.cells) == 3


def test_failures_come_before_unknowns() -> None:
    order = [Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.SKIP]
    report = samples.inconclusive()
    cells = report.model_copy(update={"cells": (*report.cells, *samples.drift().cells)})
    assert [problem.verdict for problem in problems(cells)] == order
    replication = samples.not_replicated().replication
    copied = report.model_copy(update={"replication": replication})
    assert [shortcoming.verdict for shortcoming in shortcomings(copied)] == order


def test_pairs_that_failed_for_one_cause_are_one_shortcoming() -> None:
    report = samples.not_replicated()
    (shortcoming,) = shortcomings(report)
    assert shortcoming.title == "replication from broker 3 to brokers 1, 2, through INTERNAL"
    assert dict(shortcoming.facts)["stage"] == "replication"
    ways = [row.way for row in copies(report)]
    assert ways == ["broker 1 -> 2, 3", "broker 2 -> 1, 3", "broker 3 -> 1, 2"]
    assert between_brokers(report) == "through INTERNAL"


LATE = [
    Replication(leader=leader, follower=follower, verdict=Verdict.INCONCLUSIVE, reason="late")
    for leader, follower in samples.PAIRS
]


@pytest.mark.parametrize(
    ("pairs", "title"),
    [
        (LATE, "replication between brokers 1 to 3"),
        ([LATE[0], LATE[2]], "replication between brokers 1, 2"),
        ([LATE[1], LATE[3]], "replication from brokers 1, 2 to broker 3"),
        (LATE[:1], "replication from broker 1 to broker 2"),
    ],
)
def test_the_title_of_a_shortcoming_has_its_brokers(pairs: list[Replication], title: str) -> None:
    report = samples.report([], replication=pairs)
    (shortcoming,) = shortcomings(report)
    assert shortcoming.title == title
    assert shortcoming.facts == (("stage", "replication"), ("reason", "late"))
    assert between_brokers(report) == "between brokers"


def test_many_cells_of_one_cause_are_named_by_their_brokers() -> None:
    at = Address("kafka.example.com", 9092)
    cause = Cause(kind="refused", observed="o", expected="e", remedy="r")
    failed = samples.failed(samples.cell("EXTERNAL", 1), Stage.TCP, cause)

    def likewise(last_id: int) -> str:
        changes = [{"broker": id, "address": at} for id in range(1, last_id + 1)]
        cells = [failed.model_copy(update=change) for change in changes]
        (problem,) = problems(samples.report(cells))
        return dict(problem.facts)["likewise"]

    assert likewise(11).count("(") == 10
    assert likewise(100) == (f"broker 2 ({at}), broker 3 ({at}), broker 4 ({at}), brokers 5 to 100")


FAILED_PAIR = next(pair for pair in samples.not_replicated().replication if pair.cause)
assert FAILED_PAIR.cause is not None
OTHER_CAUSE = FAILED_PAIR.cause.model_copy(update={"observed": "another"})


@pytest.mark.parametrize(
    "changes", [{"verdict": Verdict.INCONCLUSIVE}, {"reason": "another"}, {"cause": OTHER_CAUSE}]
)
def test_pairs_that_differ_in_more_than_brokers_are_different_shortcomings(
    changes: dict[str, object],
) -> None:
    pairs = [FAILED_PAIR, FAILED_PAIR.model_copy(update={"follower": 2, **changes})]
    assert len(shortcomings(samples.report([], replication=pairs))) == 2


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 1),
        ({"verdict": Verdict.INCONCLUSIVE}, 2),
        ({"vantage": "elsewhere"}, 2),
        ({"listener": "OTHER"}, 2),
        ({"reason": "another"}, 2),
    ],
)
def test_cells_that_differ_in_more_than_brokers_are_different_problems(
    changes: dict[str, object], count: int
) -> None:
    skipped = samples.inconclusive().cells[0]
    changed = skipped.model_copy(update={"broker": 2, **changes})
    assert skipped.verdict is Verdict.SKIP
    assert len(problems(samples.report([skipped, changed]))) == count


def test_the_host_in_a_cause_is_ignored() -> None:
    cells = []
    for broker in (1, 2):
        good = samples.cell("EXTERNAL", broker)
        host = f"kafka-{broker}.example.com"
        cause = Cause(kind="k", observed=f"{host} does not exist", expected="", remedy="")
        bad = samples.failed(good, Stage.RESOLVE, cause)
        cells.append(bad.model_copy(update={"address": Address(host, 9092)}))
    (problem,) = problems(samples.report(cells))
    assert problem.title == "EXTERNAL, broker 1 (kafka-1.example.com:9092), from host"
    assert dict(problem.facts)["likewise"] == "broker 2 (kafka-2.example.com:9092)"


def test_a_broker_without_an_id_is_unknown() -> None:
    assert [broker_name(id) for id in (-1, 0, 1)] == ["unknown broker", "broker 0", "broker 1"]


def test_a_matrix_without_a_described_vantage_has_its_name() -> None:
    (matrix,) = matrices(samples.report(samples.healthy_cells("laptop"), vantages=[]))
    assert matrix.vantage.name == "laptop"
    assert matrix.brokers == (1, 2, 3)
    assert matrix.cell("EXTERNAL", 9) is None


def test_the_counts_of_a_pair_are_sums_over_its_brokers() -> None:
    deliveries = pairs(samples.all_pass())
    assert len(deliveries) == 4
    assert deliveries[0].counts == {"acknowledged": 1500, "read": 1500, "lost": 0}
    (pair,) = pairs(samples.dead_broker())
    assert pair.counts["unknown"] == 300
    assert "corrupt" not in pair.counts
    assert pair.verdict == Verdict.FAIL


def test_the_worst_of_nothing_is_no_pass() -> None:
    assert worst([]) == Verdict.SKIP
    assert worst([Verdict.PASS, Verdict.SKIP, Verdict.INCONCLUSIVE]) == Verdict.INCONCLUSIVE


def test_the_fates_of_records_are_counted_over_all_brokers() -> None:
    """Only faults that happened are listed, and always the number of lost records."""
    way = {"written_through": "A", "read_through": "B", "acknowledged": 10, "read": 9}
    fates = ("unknown", "duplicated", "out_of_order", "corrupt", "misrouted", "foreign")
    faults = {name: number for number, name in enumerate(fates, start=1)}
    parts = tuple(
        Delivery.model_validate(way | faults | {"broker": broker, "lost": broker})
        for broker in (1, 2)
    )
    assert Pair("A", "B", parts).counts == {
        "acknowledged": 20,
        "read": 18,
        "lost": 3,
        **{name: 2 * number for name, number in faults.items()},
    }
    faultless = Delivery.model_validate(way | {"broker": 1})
    assert Pair("A", "B", (faultless,)).counts == {"acknowledged": 10, "read": 9, "lost": 0}
