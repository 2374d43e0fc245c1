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


def report_from(name: str, place: str, **changes: object) -> Report:
    cells = [samples.cell(listener, 1, name) for listener in samples.LISTENERS]
    return samples.report(cells, vantages=[Vantage(name=name, where=place)], **changes)


def merge_reports(*reports: Report) -> Report:
    """The reports as one, from sources a, b and so on."""
    return merge([Source("abc"[index], report) for index, report in enumerate(reports)])


def merged_in_both_orders(first_report: Report, second_report: Report) -> list[Report]:
    return [merge_reports(first_report, second_report), merge_reports(second_report, first_report)]


def test_one_report_is_itself() -> None:
    report = samples.drift().model_copy(update={"notes": ("twice", "twice")})
    assert merge_reports(report) == report
    with pytest.raises(EarshotError, match="there is none"):
        merge([])


def test_the_matrices_of_all_vantages_are_in_one_report() -> None:
    merged_report = merge_reports(
        report_from("host", "laptop", run="a", seconds=1.0),
        report_from("container", "c1", run="b", seconds=2.0),
    )
    assert [matrix.vantage.name for matrix in matrices(merged_report)] == ["host", "container"]
    assert (merged_report.run, merged_report.seconds, merged_report.verdict) == (
        "a+b",
        3.0,
        Verdict.PASS,
    )


@pytest.mark.parametrize("kind", ["doctor", "validation"])
def test_the_earliest_start_counts_and_one_validation_makes_a_validation(kind: str) -> None:
    later_report = report_from("host", "laptop", started=LATER)
    for merged_report in merged_in_both_orders(
        later_report, report_from("container", "c1", kind=kind)
    ):
        assert (merged_report.kind, merged_report.started) == (kind, samples.WHEN)


@pytest.mark.parametrize("key", ["cluster_id", "cluster"])
def test_reports_of_different_clusters_are_refused(key: str) -> None:
    reports = (report_from(name, name, **{key: name}) for name in ("one", "two"))
    with pytest.raises(EarshotError, match="a shows one, b shows two"):
        merge_reports(*reports)


def test_an_unknown_id_is_no_other_cluster() -> None:
    unknown = report_from("host", "laptop", cluster_id="")
    assert merge_reports(unknown, report_from("container", "c1", cluster_id="B")).cluster_id == "B"


def test_a_failure_at_one_vantage_fails_the_whole() -> None:
    assert merge_reports(report_from("container", "c1"), samples.drift()).verdict == Verdict.FAIL


def test_vantages_of_one_name_on_two_machines_get_other_names() -> None:
    merged_report = merge_reports(report_from("host", "laptop"), report_from("host", "server"))
    names = [matrix.vantage.name for matrix in matrices(merged_report)]
    assert names == ["host on laptop", "host on server"]
    assert [vantage.name for vantage in merged_report.vantages] == names


def test_the_later_report_of_a_vantage_counts_and_others_stay() -> None:
    minutes = [samples.WHEN + timedelta(minutes=number) for number in range(3)]
    first_report = report_from("host", "laptop", run="first", started=minutes[0])
    container_report = report_from("container", "c1", run="other", started=minutes[1])
    later_report = report_from("host", "laptop", run="again", started=minutes[2])
    (note,) = merge_reports(first_report, container_report, later_report).notes
    assert (
        note == "a (2025-03-01 12:30:15 UTC) is left out: c is a later report from the same vantage"
    )
    assert merge_reports(first_report, container_report, later_report).run == "other+again"
    merged_report = merge_reports(later_report, first_report)
    assert (merged_report.run, len(merged_report.cells)) == ("again", 2)
    assert "b (2025-03-01 12:30:15 UTC) is left out" in merged_report.notes[0]


def test_a_report_from_the_future_hides_no_other() -> None:
    future = datetime.now(UTC) + timedelta(minutes=7)
    drift_report = samples.drift().model_copy(update={"run": "bad"})
    passed_cells = [samples.cell("INTERNAL", 1, drift_report.cells[0].vantage)]
    first_report, second_report = (
        samples.report(
            passed_cells,
            vantages=drift_report.vantages,
            run=run,
            started=future + timedelta(days=days),
        )
        for run, days in (("first", 0), ("second", 30_000))
    )
    for reports, names in (
        ((drift_report, first_report, second_report), ("a", "a, b")),
        ((second_report, first_report, drift_report), ("c", "c, b")),
    ):
        merged_report = merge_reports(*reports)
        assert merged_report.verdict is Verdict.FAIL
        tiles = [cell for matrix in matrices(merged_report) for cell in matrix.cells.values()]
        assert len(tiles) == len(merged_report.cells) == len(drift_report.cells) + 2
        notes = merged_report.notes[len(drift_report.notes) :]
        assert all("in the future of this machine's clock" in note for note in notes)
        for note, name in zip(notes, names, strict=True):
            assert f"it does not replace {name} from the same vantage" in note


def test_a_start_in_the_future_counts_within_minutes_and_at_another_vantage() -> None:
    old_report = report_from("host", "laptop", run="old")
    future_start = datetime.now(UTC) + timedelta(minutes=4)
    assert (
        merge_reports(
            old_report, report_from("host", "laptop", run="new", started=future_start)
        ).run
        == "new"
    )
    merged_report = merge_reports(
        old_report, report_from("host", "server", started=future_start + timedelta(days=1))
    )
    assert merged_report.notes == ()
    assert [vantage.name for vantage in merged_report.vantages] == [
        "host on laptop",
        "host on server",
    ]


def test_a_copy_of_a_report_from_the_future_counts_once() -> None:
    future_report = report_from("host", "laptop", started=datetime.now(UTC) + timedelta(days=1))
    assert len(merge_reports(future_report, future_report).cells) == len(future_report.cells)
    past_report = report_from("host", "laptop", run="past")
    merged_report = merge_reports(past_report, future_report, future_report)
    assert len(merged_report.cells) == 2 * len(future_report.cells)
    notes = [note for note in merged_report.notes if "does not replace" in note]
    assert len(notes) == 2 and all("replace a from the same vantage" in note for note in notes)


def test_a_later_report_of_one_vantage_leaves_the_others_of_a_report() -> None:
    report_of_both = samples.report(CELLS, vantages=VANTAGES)
    cause = Cause(kind="refused", observed="", expected="", remedy="")
    failed_cell = samples.failed(CELLS[0], Stage.TCP, cause)
    later_report = samples.report([failed_cell], vantages=VANTAGES[:1], started=LATER)
    for merged_report in merged_in_both_orders(report_of_both, later_report):
        verdicts = {cell.vantage: cell.verdict for cell in merged_report.cells}
        assert verdicts == {"internal": Verdict.FAIL, "external": Verdict.PASS}
        assert merged_report.verdict is Verdict.FAIL
        (note,) = merged_report.notes
        assert "(2025-03-01 12:30:15 UTC), vantage internal is left out: " in note


def test_the_worse_result_of_replication_counts_and_an_unknown_one_does_not() -> None:
    failed_report = samples.not_replicated().model_copy(update={"vantages": ()})
    passed_report = report_from("container", "c1", replication=COPIED)
    changes = {"verdict": Verdict.INCONCLUSIVE, "reason": "nothing is known: stopped"}
    undecided_pairs = [pair.model_copy(update=changes) for pair in COPIED]
    unknown_report = report_from("container", "c1", replication=undecided_pairs)
    for first_report, second_report, expected in (
        (failed_report, passed_report, failed_report),
        (samples.all_pass(), unknown_report, samples.all_pass()),
        (samples.not_replicated(), unknown_report, samples.not_replicated()),
        (
            unknown_report,
            report_from("container", "c2", replication=undecided_pairs),
            unknown_report,
        ),
    ):
        for merged_report in merged_in_both_orders(first_report, second_report):
            assert merged_report.replication == expected.replication


BAD = samples.not_replicated().replication
UNKNOWN = tuple(pair.model_copy(update={"verdict": Verdict.INCONCLUSIVE}) for pair in COPIED)


@pytest.mark.parametrize(
    ("later", "expected"),
    [(COPIED, COPIED), (COPIED[:-1], (*COPIED[:-1], BAD[-1])), ((), BAD), (UNKNOWN, BAD)],
)
def test_a_later_report_of_a_vantage_replaces_its_replication(
    later: tuple[Replication, ...], expected: tuple[Replication, ...]
) -> None:
    report_of_both = samples.report(CELLS, vantages=VANTAGES, replication=BAD)
    later_report = samples.report(
        CELLS[:1], vantages=VANTAGES[:1], replication=later, started=LATER
    )
    assert merge_reports(report_of_both, later_report).replication == expected


def test_a_later_report_of_a_vantage_replaces_deliveries_through_its_listeners() -> None:
    deliveries = samples.all_pass().delivery
    ways = {(delivery.written_through, delivery.read_through) for delivery in deliveries}
    assert {("INTERNAL", "EXTERNAL"), ("EXTERNAL", "EXTERNAL")} <= ways
    report_of_both = samples.report(CELLS, vantages=VANTAGES, delivery=deliveries)
    later_report = samples.report(CELLS[:1], vantages=VANTAGES[:1], started=LATER)
    deliveries_left = merge_reports(report_of_both, later_report).delivery
    assert {(delivery.written_through, delivery.read_through) for delivery in deliveries_left} == {
        ("EXTERNAL", "EXTERNAL")
    }


def test_equal_notes_of_several_vantages_are_one() -> None:
    reports = (report_from(name, name, notes=["kept", name]) for name in ("a", "b"))
    assert merge_reports(*reports).notes == ("kept", "a", "b")


def test_a_restart_between_reports_is_noted() -> None:
    first_report = report_from(
        "host", "laptop", incarnations={"broker-1": "1@1", "broker-2": "3@3"}
    )
    second_report = report_from(
        "container", "c1", incarnations={"broker-1": "2@2", "broker-2": "3@3"}
    )
    notes = merge([Source("a", first_report), Source("b", second_report)]).notes
    assert notes == ("broker-1 was restarted or replaced between these reports",)
