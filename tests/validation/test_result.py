"""The verdict of a run: what was not looked at has not passed."""

from __future__ import annotations

import pytest

from earshot.validation.result import Delivery, Verdict, combine
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


def test_without_a_cell_records_alone_prove_nothing() -> None:
    delivered = Delivery(written_through="L", read_through="L", broker=1, acknowledged=5, read=5)
    report = samples.drift().model_copy(
        update={"cells": (), "vantages": (), "delivery": (delivered,)}
    )
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.exit_code == 3
