"""Several reports as one."""

from datetime import UTC, datetime, timedelta

import pytest

from earshot.errors import EarshotError
from earshot.report.digest import matrices
from earshot.report.merge import Source, merge
from earshot.validation.result import Cause, Replication, Report, Vantage
from earshot.validation.terms import Stage, Verdict
from tests.report import samples

LATER = samples.WHEN + timedelta(hours=1)
CELLS = [samples.cell("INTERNAL", 1, "internal"), samples.cell("EXTERNAL", 1, "external")]
VANTAGES = [Vantage(name="internal", where="vpc"), Vantage(name="external", where="laptop")]
COPIED = tuple(samples.copied(*pair) for pair in samples.PAIRS)


def seen_from(name: str, where: str, **changes: object) -> Report:
    cells = [samples.cell(listener, 1, name) for listener in samples.LISTENERS]
    return samples.report(cells, vantages=[Vantage(name=name, where=where)], **changes)


def merged(*reports: Report) -> Report:
    """The reports as one, from sources a, b and so on."""
    return merge([Source("abc"[index], report) for index, report in enumerate(reports)])


def merged_in_both_orders(first: Report, second: Report) -> list[Report]:
    return [merged(first, second), merged(second, first)]


def test_one_report_is_itself() -> None:
    report = samples.drift().model_copy(update={"notes": ("twice", "twice")})
    assert merged(report) == report
    with pytest.raises(EarshotError, match="there is none"):
        merge([])


def test_the_matrices_of_all_vantages_are_in_one_report() -> None:
    whole = merged(
        seen_from("host", "laptop", run="a", seconds=1.0),
        seen_from("container", "c1", run="b", seconds=2.0),
    )
    assert [matrix.vantage.name for matrix in matrices(whole)] == ["host", "container"]
    assert (whole.run, whole.seconds, whole.verdict) == ("a+b", 3.0, Verdict.PASS)


@pytest.mark.parametrize("kind", ["doctor", "validation"])
def test_the_earliest_start_counts_and_one_validation_makes_a_validation(kind: str) -> None:
    later = seen_from("host", "laptop", started=LATER)
    for whole in merged_in_both_orders(later, seen_from("container", "c1", kind=kind)):
        assert (whole.kind, whole.started) == (kind, samples.WHEN)


@pytest.mark.parametrize("key", ["cluster_id", "cluster"])
def test_reports_of_different_clusters_are_refused(key: str) -> None:
    reports = (seen_from(name, name, **{key: name}) for name in ("one", "two"))
    with pytest.raises(EarshotError, match="a shows one, b shows two"):
        merged(*reports)


def test_an_unknown_id_is_no_other_cluster() -> None:
    unknown = seen_from("host", "laptop", cluster_id="")
    assert merged(unknown, seen_from("container", "c1", cluster_id="B")).cluster_id == "B"


def test_a_failure_at_one_vantage_fails_the_whole() -> None:
    assert merged(seen_from("container", "c1"), samples.drift()).verdict == Verdict.FAIL


def test_vantages_of_one_name_on_two_machines_get_other_names() -> None:
    whole = merged(seen_from("host", "laptop"), seen_from("host", "server"))
    names = [matrix.vantage.name for matrix in matrices(whole)]
    assert names == ["host on laptop", "host on server"]
    assert [vantage.name for vantage in whole.vantages] == names


def test_the_later_report_of_a_vantage_counts_and_others_stay() -> None:
    minutes = [samples.WHEN + timedelta(minutes=number) for number in range(3)]
    first = seen_from("host", "laptop", run="first", started=minutes[0])
    elsewhere = seen_from("container", "c1", run="other", started=minutes[1])
    again = seen_from("host", "laptop", run="again", started=minutes[2])
    (note,) = merged(first, elsewhere, again).notes
    assert (
        note == "a (2025-03-01 12:30:15 UTC) is left out: c is a later report from the same vantage"
    )
    assert merged(first, elsewhere, again).run == "other+again"
    whole = merged(again, first)
    assert (whole.run, len(whole.cells)) == ("again", 2)
    assert "b (2025-03-01 12:30:15 UTC) is left out" in whole.notes[0]


def test_a_report_from_the_future_hides_no_other() -> None:
    future = datetime.now(UTC) + timedelta(minutes=7)
    bad = samples.drift().model_copy(update={"run": "bad"})
    fine = [samples.cell("INTERNAL", 1, bad.cells[0].vantage)]
    first, second = (
        samples.report(fine, vantages=bad.vantages, run=run, started=future + timedelta(days=days))
        for run, days in (("first", 0), ("second", 30_000))
    )
    for reports, names in (
        ((bad, first, second), ("a", "a, b")),
        ((second, first, bad), ("c", "c, b")),
    ):
        whole = merged(*reports)
        assert whole.verdict is Verdict.FAIL
        tiles = [cell for matrix in matrices(whole) for cell in matrix.cells.values()]
        assert len(tiles) == len(whole.cells) == len(bad.cells) + 2
        notes = whole.notes[len(bad.notes) :]
        assert all("in the future of this machine's clock" in note for note in notes)
        for note, name in zip(notes, names, strict=True):
            assert f"it does not replace {name} from the same vantage" in note


def test_a_start_in_the_future_counts_within_minutes_and_at_another_vantage() -> None:
    old = seen_from("host", "laptop", run="old")
    ahead = datetime.now(UTC) + timedelta(minutes=4)
    assert merged(old, seen_from("host", "laptop", run="new", started=ahead)).run == "new"
    whole = merged(old, seen_from("host", "server", started=ahead + timedelta(days=1)))
    assert whole.notes == ()
    assert [vantage.name for vantage in whole.vantages] == ["host on laptop", "host on server"]


def test_a_copy_of_a_report_from_the_future_counts_once() -> None:
    report = seen_from("host", "laptop", started=datetime.now(UTC) + timedelta(days=1))
    assert len(merged(report, report).cells) == len(report.cells)
    past = seen_from("host", "laptop", run="past")
    whole = merged(past, report, report)
    assert len(whole.cells) == 2 * len(report.cells)
    notes = [note for note in whole.notes if "does not replace" in note]
    assert len(notes) == 2 and all("replace a from the same vantage" in note for note in notes)


def test_a_later_report_of_one_vantage_leaves_the_others_of_a_report() -> None:
    both = samples.report(CELLS, vantages=VANTAGES)
    cause = Cause(kind="refused", observed="", expected="", remedy="")
    bad = samples.failed(CELLS[0], Stage.TCP, cause)
    again = samples.report([bad], vantages=VANTAGES[:1], started=LATER)
    for whole in merged_in_both_orders(both, again):
        verdicts = {cell.vantage: cell.verdict for cell in whole.cells}
        assert verdicts == {"internal": Verdict.FAIL, "external": Verdict.PASS}
        assert whole.verdict is Verdict.FAIL
        (note,) = whole.notes
        assert "(2025-03-01 12:30:15 UTC), vantage internal is left out: " in note


def test_the_worse_result_of_replication_counts_and_an_unknown_one_does_not() -> None:
    bad = samples.not_replicated().model_copy(update={"vantages": ()})
    good = seen_from("container", "c1", replication=COPIED)
    changes = {"verdict": Verdict.INCONCLUSIVE, "reason": "nothing is known: stopped"}
    undecided = [pair.model_copy(update=changes) for pair in COPIED]
    unknown = seen_from("container", "c1", replication=undecided)
    for first, second, expected in (
        (bad, good, bad),
        (samples.all_pass(), unknown, samples.all_pass()),
        (samples.not_replicated(), unknown, samples.not_replicated()),
        (unknown, seen_from("container", "c2", replication=undecided), unknown),
    ):
        for whole in merged_in_both_orders(first, second):
            assert whole.replication == expected.replication


BAD = samples.not_replicated().replication
UNKNOWN = tuple(pair.model_copy(update={"verdict": Verdict.INCONCLUSIVE}) for pair in COPIED)


@pytest.mark.parametrize(
    ("later", "expected"),
    [(COPIED, COPIED), (COPIED[:-1], (*COPIED[:-1], BAD[-1])), ((), BAD), (UNKNOWN, BAD)],
)
def test_a_later_report_of_a_vantage_replaces_its_replication(
    later: tuple[Replication, ...], expected: tuple[Replication, ...]
) -> None:
    both = samples.report(CELLS, vantages=VANTAGES, replication=BAD)
    again = samples.report(CELLS[:1], vantages=VANTAGES[:1], replication=later, started=LATER)
    assert merged(both, again).replication == expected


def test_a_later_report_of_a_vantage_replaces_deliveries_through_its_listeners() -> None:
    deliveries = samples.all_pass().delivery
    ways = {(delivery.written_through, delivery.read_through) for delivery in deliveries}
    assert {("INTERNAL", "EXTERNAL"), ("EXTERNAL", "EXTERNAL")} <= ways
    both = samples.report(CELLS, vantages=VANTAGES, delivery=deliveries)
    again = samples.report(CELLS[:1], vantages=VANTAGES[:1], started=LATER)
    deliveries_left = merged(both, again).delivery
    assert {(delivery.written_through, delivery.read_through) for delivery in deliveries_left} == {
        ("EXTERNAL", "EXTERNAL")
    }


def test_equal_notes_of_several_vantages_are_one() -> None:
    reports = (seen_from(name, name, notes=["kept", name]) for name in ("a", "b"))
    assert merged(*reports).notes == ("kept", "a", "b")


def test_a_restart_between_reports_is_noted() -> None:
    one = seen_from("host", "laptop", incarnations={"broker-1": "1@1", "broker-2": "3@3"})
    two = seen_from("container", "c1", incarnations={"broker-1": "2@2", "broker-2": "3@3"})
    notes = merge([Source("a", one), Source("b", two)]).notes
    assert notes == ("broker-1 was restarted or replaced between these reports",)
