"""Several reports as one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from earshot.errors import EarshotError
from earshot.report.digest import matrices
from earshot.report.merge import Source, merge
from earshot.validation.result import Cause, Report, Stage, Vantage, Verdict
from tests.report import samples


def seen_from(name: str, where: str, **changes: object) -> Report:
    cells = [samples.cell(listener, 1, name) for listener in samples.LISTENERS]
    return samples.report(cells, vantages=[Vantage(name=name, where=where)], **changes)


def test_one_report_is_itself() -> None:
    report = samples.drift()
    assert merge([Source("a", report)]) == report


def test_vantages_stand_side_by_side() -> None:
    one = seen_from("host", "laptop", run="a", seconds=1.0)
    two = seen_from("container", "c1", run="b", seconds=2.0, started=samples.WHEN)
    merged = merge([Source("one", one), Source("two", two)])
    assert [matrix.vantage.name for matrix in matrices(merged)] == ["host", "container"]
    assert (merged.run, merged.seconds, merged.verdict) == ("a+b", 3.0, Verdict.PASS)


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


def test_reports_of_different_clusters_do_not_mix() -> None:
    other = seen_from("host", "laptop", cluster="prod")
    with pytest.raises(EarshotError, match=r"a shows local, b shows prod"):
        merge([Source("a", samples.drift()), Source("b", other)])


def test_a_restart_between_reports_is_noted() -> None:
    one = seen_from("host", "laptop", incarnations={"broker-1": "1@1"})
    two = seen_from("container", "c1", incarnations={"broker-1": "2@2"})
    notes = merge([Source("a", one), Source("b", two)]).notes
    assert notes == ("broker-1 was restarted or replaced between these reports",)


def test_nothing_cannot_be_merged() -> None:
    with pytest.raises(EarshotError, match="there is none"):
        merge([])
