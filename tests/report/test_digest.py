"""What belongs together in a report."""

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
from earshot.validation.result import Cause, Delivery
from earshot.validation.terms import Stage, Verdict
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
    assert [item.verdict for item in found] == [Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.SKIP]


def test_what_was_not_copied_for_one_cause_is_one_shortcoming() -> None:
    report = samples.not_replicated()
    (found,) = shortcomings(report)
    assert found.title == "replication from broker 3 to brokers 1, 2, through INTERNAL"
    assert dict(found.facts)["stage"] == "replication"
    assert [item.way for item in copies(report)] == [
        "broker 1 -> 2, 3",
        "broker 2 -> 1, 3",
        "broker 3 -> 1, 2",
    ]
    assert between_brokers(report) == "through INTERNAL"


def test_a_shortcoming_says_who_is_concerned() -> None:
    whole = samples.not_replicated().replication
    late = [
        pair.model_copy(
            update={
                "verdict": Verdict.INCONCLUSIVE,
                "listener": "",
                "reason": "late",
                "cause": None,
            }
        )
        for pair in whole
    ]

    def title(*chosen: int) -> str:
        pairs = [late[index] for index in chosen]
        (found,) = shortcomings(samples.report([], replication=pairs))
        assert found.facts == (("stage", "replication"), ("reason", "late"))
        return found.title

    assert title(*range(6)) == "replication between brokers 1 to 3"
    assert title(0, 2) == "replication between brokers 1, 2"
    assert title(1, 3) == "replication from brokers 1, 2 to broker 3"
    assert title(0) == "replication from broker 1 to broker 2"
    assert between_brokers(samples.report([], replication=late)) == "between brokers"


def test_many_cells_of_one_cause_are_named_by_their_brokers() -> None:
    at = Address("kafka.example.com", 9092)
    cause = Cause(kind="refused", observed="o", expected="e", remedy="r")
    failed = samples.failed(samples.cell("EXTERNAL", 1), Stage.TCP, cause)

    def likewise(last: int) -> str:
        changes = [{"broker": id, "address": at} for id in range(1, last + 1)]
        cells = [failed.model_copy(update=item) for item in changes]
        (found,) = problems(samples.report(cells))
        return dict(found.facts)["likewise"]

    assert likewise(11).count("(") == 10
    assert likewise(100) == (f"broker 2 ({at}), broker 3 ({at}), broker 4 ({at}), brokers 5 to 100")


def test_pairs_that_differ_in_anything_but_their_brokers_stay_apart() -> None:
    (bad,) = [it for it in samples.not_replicated().replication if it.follower == 1 and it.cause]
    assert bad.cause is not None
    others: list[dict[str, object]] = [
        {"verdict": Verdict.INCONCLUSIVE},
        {"reason": "another"},
        {"cause": bad.cause.model_copy(update={"observed": "another"})},
    ]
    for changes in others:
        pairs = [bad, bad.model_copy(update={"follower": 2, **changes})]
        assert len(shortcomings(samples.report([], replication=pairs))) == 2


def test_problems_of_two_vantages_or_verdicts_stay_apart() -> None:
    skipped = samples.inconclusive().cells[0]
    assert skipped.verdict is Verdict.SKIP
    others: list[dict[str, object]] = [
        {"verdict": Verdict.INCONCLUSIVE},
        {"vantage": "elsewhere"},
        {"listener": "OTHER"},
        {"reason": "another"},
    ]
    for changes in others:
        other = skipped.model_copy(update={"broker": 2, **changes})
        assert len(problems(samples.report([skipped, other]))) == 2
    (problem,) = problems(samples.report([skipped, skipped.model_copy(update={"broker": 2})]))
    assert len(problem.cells) == 2


def test_what_only_names_a_host_is_no_other_cause() -> None:
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


def test_a_broker_that_never_said_its_id_is_unknown() -> None:
    assert [broker_name(id) for id in (-1, 0, 1)] == ["unknown broker", "broker 0", "broker 1"]


def test_failed_replication_comes_before_what_is_not_known() -> None:
    replication = samples.not_replicated().replication
    report = samples.inconclusive().model_copy(update={"replication": replication})
    assert [item.verdict for item in shortcomings(report)] == [
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


def test_what_became_of_records_is_counted_over_all_brokers() -> None:
    """What went wrong is listed only where it did; that none was lost is worth a word."""
    way = {"written_through": "A", "read_through": "B", "acknowledged": 10, "read": 9}
    fates = ("unknown", "duplicated", "out_of_order", "corrupt", "misrouted", "foreign")
    odd = {name: number for number, name in enumerate(fates, start=1)}
    parts = tuple(
        Delivery.model_validate(way | odd | {"broker": broker, "lost": broker}) for broker in (1, 2)
    )
    assert Pair("A", "B", parts).counts == {
        "acknowledged": 20,
        "read": 18,
        "lost": 3,
        **{name: 2 * number for name, number in odd.items()},
    }
    well = Delivery.model_validate(way | {"broker": 1})
    assert Pair("A", "B", (well,)).counts == {"acknowledged": 10, "read": 9, "lost": 0}
