"""The verdict of a run: what was not looked at has not passed."""

import json

import pytest

from earshot.report import Format, render
from earshot.report.json import read_report
from earshot.validation.result import MAX_TEXT, Delivery, StageResult, combine
from earshot.validation.terms import Stage, Verdict
from tests.report import samples

PASS, FAIL, SKIP = Verdict.PASS, Verdict.FAIL, Verdict.SKIP


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([PASS, PASS], PASS),
        ([PASS, SKIP], Verdict.INCONCLUSIVE),
        ([PASS, Verdict.INCONCLUSIVE, FAIL], FAIL),
        ([], Verdict.INCONCLUSIVE),
    ],
)
def test_combine(verdicts: list[Verdict], expected: Verdict) -> None:
    assert combine(verdicts) is expected


@pytest.mark.parametrize(
    ("fate", "expected"),
    [
        ("lost", FAIL),
        ("out_of_order", FAIL),
        ("corrupt", FAIL),
        ("misrouted", FAIL),
        ("unknown", PASS),
        ("duplicated", PASS),
        ("foreign", PASS),
    ],
)
def test_a_delivery_fails_for_acknowledged_records(fate: str, expected: Verdict) -> None:
    good = Delivery(written_through="L", read_through="L", broker=1, acknowledged=5, read=5)
    assert good.verdict is PASS
    assert good.model_copy(update={fate: 1}).verdict is expected


@pytest.mark.parametrize(
    ("part", "verdict", "expected", "code"),
    [
        ("cells", FAIL, FAIL, 1),
        ("cells", SKIP, Verdict.INCONCLUSIVE, 3),
        ("vantages", FAIL, FAIL, 1),
        ("replication", Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, 3),
    ],
)
def test_each_part_of_a_report(part: str, verdict: Verdict, expected: Verdict, code: int) -> None:
    report = samples.all_pass()
    assert (report.verdict, report.exit_code) == (PASS, 0)
    first, *rest = getattr(report, part)
    changed = (first.model_copy(update={"verdict": verdict}), *rest)
    found = report.model_copy(update={part: changed})
    assert (found.verdict, found.exit_code) == (expected, code)
    lost = report.delivery[0].model_copy(update={"lost": 1})
    assert report.model_copy(update={"delivery": (lost,)}).exit_code == 1


def test_without_a_cell_records_alone_prove_nothing() -> None:
    delivered = Delivery(written_through="L", read_through="L", broker=1, acknowledged=5, read=5)
    report = samples.drift().model_copy(
        update={"cells": (), "vantages": (), "delivery": (delivered,)}
    )
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.exit_code == 3


def test_brokers_that_do_not_copy_fail_the_run_though_every_cell_passed() -> None:
    report = samples.not_replicated()
    assert {cell.verdict for cell in report.cells} == {PASS}
    assert (report.verdict, report.exit_code) == (FAIL, 1)


def test_a_report_without_replication_is_still_read() -> None:
    old = json.loads(render(samples.drift(), Format.JSON))
    del old["replication"]
    assert read_report(json.dumps(old), "an old report") == samples.drift()


def test_a_text_of_a_peer_is_shortened_once() -> None:
    """A saved report reads as it was written."""
    stage = StageResult(stage=Stage.TCP, verdict=Verdict.FAIL, detail="x" * 30_000)
    assert len(stage.detail) == MAX_TEXT and stage.detail.endswith("... (30,000 characters)")
    assert StageResult.model_validate_json(stage.model_dump_json()) == stage
