"""Several reports as one."""

from datetime import timedelta

import pytest

from earshot.errors import EarshotError
from earshot.report.digest import matrices
from earshot.report.merge import Source, merge
from earshot.validation.result import Cause, Report, Vantage
from earshot.validation.terms import Stage, Verdict
from tests.report import samples


def seen_from(name: str, where: str, **changes: object) -> Report:
    cells = [samples.cell(listener, 1, name) for listener in samples.LISTENERS]
    return samples.report(cells, vantages=[Vantage(name=name, where=where)], **changes)


def test_one_report_is_itself() -> None:
    report = samples.drift().model_copy(update={"notes": ("twice", "twice")})
    assert merge([Source("a", report)]) == report


def test_vantages_stand_side_by_side() -> None:
    one = seen_from("host", "laptop", run="a", seconds=1.0)
    two = seen_from("container", "c1", run="b", seconds=2.0, started=samples.WHEN)
    merged = merge([Source("one", one), Source("two", two)])
    assert [matrix.vantage.name for matrix in matrices(merged)] == ["host", "container"]
    assert (merged.run, merged.seconds, merged.verdict) == ("a+b", 3.0, Verdict.PASS)


def test_the_whole_began_with_the_first_and_is_a_validation_where_one_was() -> None:
    later = samples.WHEN + timedelta(hours=1)
    one = seen_from("host", "laptop", started=later)
    for kind in ("doctor", "validation"):
        two = seen_from("container", "c1", kind=kind)
        for order in ((one, two), (two, one)):
            merged = merge([Source(str(at), report) for at, report in enumerate(order)])
            assert (merged.kind, merged.started) == (kind, samples.WHEN)


def test_two_ids_are_two_clusters_of_one_name() -> None:
    one = seen_from("host", "laptop", cluster_id="A")
    two = seen_from("container", "c1", cluster_id="B")
    with pytest.raises(EarshotError, match="one shows A, two shows B"):
        merge([Source("one", one), Source("two", two)])


def test_an_id_that_is_not_known_is_no_other_one() -> None:
    one = seen_from("host", "laptop", cluster_id="")
    two = seen_from("container", "c1", cluster_id="B")
    assert merge([Source("one", one), Source("two", two)]).cluster_id == "B"


def test_a_failure_at_one_vantage_fails_the_whole() -> None:
    fine = seen_from("container", "c1")
    assert merge([Source("a", fine), Source("b", samples.drift())]).verdict == Verdict.FAIL


def test_the_same_name_on_two_machines_is_told_apart() -> None:
    merged = merge(
        [Source("a", seen_from("host", "laptop")), Source("b", seen_from("host", "server"))]
    )
    names = [matrix.vantage.name for matrix in matrices(merged)]
    assert names == ["host on laptop", "host on server"]
    assert [vantage.name for vantage in merged.vantages] == names


def test_the_later_report_of_a_vantage_counts() -> None:
    old = seen_from("host", "laptop", run="old")
    new = seen_from("host", "laptop", run="new", started=samples.WHEN + timedelta(hours=1))
    merged = merge([Source("new.json", new), Source("old.json", old)])
    assert merged.run == "new"
    assert len(merged.cells) == 2
    assert "old.json (2025-03-01 12:30:15 UTC) is left out" in merged.notes[0]


def test_what_was_seen_from_elsewhere_meanwhile_stays() -> None:
    first = seen_from("host", "laptop", run="first")
    other = seen_from("container", "c1", run="other", started=samples.WHEN + timedelta(minutes=1))
    again = seen_from("host", "laptop", run="again", started=samples.WHEN + timedelta(minutes=2))
    merged = merge([Source(it.run, it) for it in (first, other, again)])
    assert merged.run == "other+again"
    (note,) = merged.notes
    assert note == (
        "first (2025-03-01 12:30:15 UTC) is left out: again is a later report from the same vantage"
    )


def test_a_later_report_of_one_vantage_leaves_the_others_of_a_report() -> None:
    cells = [samples.cell("INTERNAL", 1, "internal"), samples.cell("EXTERNAL", 1, "external")]
    places = [Vantage(name="internal", where="vpc"), Vantage(name="external", where="laptop")]
    both = samples.report(cells, vantages=places, run="both")
    later = samples.WHEN + timedelta(hours=1)
    cause = samples.drift().cells[0].cause or Cause(
        kind="refused", observed="", expected="", remedy=""
    )
    bad = samples.failed(cells[0], Stage.TCP, cause)
    again = samples.report([bad], vantages=places[:1], run="again", started=later)
    for order in (("both", both), ("again", again)), (("again", again), ("both", both)):
        merged = merge([Source(name, report) for name, report in order])
        found = {cell.vantage: cell.verdict for cell in merged.cells}
        assert found == {"internal": Verdict.FAIL, "external": Verdict.PASS}
        assert merged.verdict is Verdict.FAIL
        (note,) = merged.notes
        assert "both (2025-03-01 12:30:15 UTC), vantage internal is left out: again" in note


def test_of_two_looks_at_replication_the_graver_counts() -> None:
    bad = samples.not_replicated().model_copy(update={"vantages": ()})
    fine = [samples.copied(*pair) for pair in samples.PAIRS]
    good = seen_from("container", "c1", replication=fine)
    for order in ((bad, good), (good, bad)):
        merged = merge([Source(str(at), report) for at, report in enumerate(order)])
        assert merged.replication == bad.replication


def test_a_look_at_replication_that_showed_nothing_hides_no_other() -> None:
    nothing = [
        samples.copied(*pair).model_copy(
            update={"verdict": Verdict.INCONCLUSIVE, "reason": "nothing is known: stopped"}
        )
        for pair in samples.PAIRS
    ]
    unknown = seen_from("container", "c1", replication=nothing)
    for known in (samples.all_pass(), samples.not_replicated()):
        for order in ((known, unknown), (unknown, known)):
            merged = merge([Source(str(at), report) for at, report in enumerate(order)])
            assert merged.replication == known.replication
    again = seen_from("container", "c2", replication=nothing)
    assert merge([Source("a", unknown), Source("b", again)]).replication == unknown.replication


def test_replication_that_a_later_report_of_the_same_vantage_shows_goes_with_it() -> None:
    cells = [samples.cell("INTERNAL", 1, "internal"), samples.cell("EXTERNAL", 1, "external")]
    places = [Vantage(name="internal", where="vpc"), Vantage(name="external", where="laptop")]
    bad = samples.not_replicated().replication
    both = samples.report(cells, vantages=places, replication=bad)
    fine = tuple(samples.copied(*pair) for pair in samples.PAIRS)
    unknown = tuple(it.model_copy(update={"verdict": Verdict.INCONCLUSIVE}) for it in fine)
    for shown, expected in (
        (fine, fine),
        (fine[:-1], (*fine[:-1], bad[-1])),
        ((), bad),
        (unknown, bad),
    ):
        again = samples.report(
            cells[:1],
            vantages=places[:1],
            replication=shown,
            started=samples.WHEN + timedelta(hours=1),
        )
        merged = merge([Source("both", both), Source("again", again)])
        assert merged.replication == expected


def test_a_note_that_every_vantage_makes_stands_there_once() -> None:
    one, two = (seen_from(name, name, notes=["kept", name]) for name in ("a", "b"))
    assert merge([Source("a", one), Source("b", two)]).notes == ("kept", "a", "b")


def test_reports_of_different_clusters_do_not_mix() -> None:
    other = seen_from("host", "laptop", cluster="prod")
    with pytest.raises(EarshotError, match=r"a shows local, b shows prod"):
        merge([Source("a", samples.drift()), Source("b", other)])


def test_a_restart_between_reports_is_noted() -> None:
    one = seen_from("host", "laptop", incarnations={"broker-1": "1@1", "broker-2": "3@3"})
    two = seen_from("container", "c1", incarnations={"broker-1": "2@2", "broker-2": "3@3"})
    notes = merge([Source("a", one), Source("b", two)]).notes
    assert notes == ("broker-1 was restarted or replaced between these reports",)


def test_nothing_cannot_be_merged() -> None:
    with pytest.raises(EarshotError, match="there is none"):
        merge([])


def test_a_delivery_through_a_listener_that_a_later_report_checks_goes_with_it() -> None:
    cells = [samples.cell("INTERNAL", 1, "internal"), samples.cell("EXTERNAL", 1, "external")]
    places = [Vantage(name="internal", where="vpc"), Vantage(name="external", where="laptop")]
    full = samples.all_pass().delivery
    both = samples.report(cells, vantages=places, run="both").model_copy(
        update={"delivery": tuple(full)}
    )
    pairs = {(item.written_through, item.read_through) for item in full}
    assert {("INTERNAL", "EXTERNAL"), ("EXTERNAL", "EXTERNAL")} <= pairs
    later = samples.WHEN + timedelta(hours=1)
    again = samples.report([cells[0]], vantages=places[:1], run="again", started=later)
    merged = merge([Source("both", both), Source("again", again)])
    left = {(item.written_through, item.read_through) for item in merged.delivery}
    assert left == {("EXTERNAL", "EXTERNAL")}
