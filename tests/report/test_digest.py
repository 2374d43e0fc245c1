"""What belongs together in a report."""

from __future__ import annotations

from earshot.report.digest import matrices, pairs, problems, worst
from earshot.validation.result import Stage, Verdict
from tests.report import samples


def test_one_problem_for_one_cause() -> None:
    (problem,) = problems(samples.executor_fails())
    assert [cell.broker for cell in problem.cells] == [1, 2, 3]
    assert dict(problem.facts)["likewise"] == (
        "broker 2 (localhost:9093), broker 3 (localhost:9094)"
    )


def test_a_listener_called_by_a_brokers_own_address_keeps_that_broker_with_the_others() -> None:
    asked = "localhost:9092"
    cells = []
    for cell in samples.executor_fails().cells:
        if cell.cause is not None:
            observed = f"broker {cell.broker} advertises {cell.address} to clients of {asked}"
            cause = cell.cause.model_copy(update={"observed": observed})
            cell = cell.model_copy(update={"listener": asked, "cause": cause})
        cells.append(cell)
    (problem,) = problems(samples.report(cells))
    assert len(problem.cells) == 3


def test_different_causes_stay_apart() -> None:
    report = samples.executor_fails()
    cells = list(report.cells)
    cells[-1] = samples.failed(
        cells[-1],
        Stage.RESOLVE,
        cells[-1].cause.model_copy(update={"kind": "timeout"}),  # type: ignore[union-attr]
    )
    found = problems(report.model_copy(update={"cells": tuple(cells)}))
    assert [len(problem.cells) for problem in found] == [2, 1]


def test_failures_come_before_what_is_not_known() -> None:
    report = samples.inconclusive()
    cells = (*report.cells, *samples.drift().cells)
    found = problems(report.model_copy(update={"cells": cells}))
    assert [item.verdict for item in found] == [
        Verdict.FAIL,
        Verdict.INCONCLUSIVE,
        Verdict.SKIP,
    ]


def test_a_matrix_without_a_described_vantage_has_its_name() -> None:
    (matrix,) = matrices(samples.report(samples.healthy_cells("laptop"), vantages=[]))
    assert matrix.vantage.name == "laptop"
    assert matrix.brokers == (1, 2, 3)
    assert matrix.cell("EXTERNAL", 9) is None


def test_a_pair_adds_its_brokers_up() -> None:
    found = pairs(samples.all_pass())
    assert len(found) == 4
    assert found[0].counts == {"acknowledged": 1500, "read": 1500, "lost": 0}


def test_oddities_are_listed_where_they_happened() -> None:
    (pair,) = pairs(samples.dead_broker())
    assert pair.counts["unknown"] == 300
    assert "corrupt" not in pair.counts
    assert pair.verdict == Verdict.FAIL


def test_the_worst_of_nothing_is_no_pass() -> None:
    assert worst([]) == Verdict.SKIP
    assert worst([Verdict.PASS, Verdict.SKIP, Verdict.INCONCLUSIVE]) == Verdict.INCONCLUSIVE
