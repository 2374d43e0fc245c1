"""Writes a report as JSON, and reads it back."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError
from pydantic_core import from_json

from earshot.errors import EarshotError, SpecError
from earshot.listeners.problems import describe, repeated, shown
from earshot.validation.result import Cell, Delivery, Report
from earshot.validation.terms import Verdict
from earshot.visible import json_text


def json(report: Report) -> str:
    """``report`` as the JSON of its model, which `read_report` reads."""
    return json_text(report.model_dump(mode="json"))


def read_report(text: str | bytes, source: str) -> Report:
    """The report in ``text``. Raises EarshotError, with ``source`` as the text's name."""
    subject = f"{source} (a report of version 1)"
    try:
        report = Report.model_validate_json(text)
    except ValidationError as error:
        problems = error.errors()
        if problems[0]["type"] == "json_invalid":
            raise EarshotError(
                source,
                observed=f"is not JSON ({problems[0]['msg']})",
                allowed="a report that `--format json` wrote",
            ) from None
        lines = describe(error, Report, from_json(text))
        raise SpecError.of(subject, lines[:20]) from None
    if contradictions := list(_contradictions(report)):
        raise SpecError.of(subject, contradictions[:20])
    return report


def _contradictions(report: Report) -> Iterator[str]:
    """What no run writes: with it, a failure could be read as a pass."""
    cells = [(cell.vantage, cell.listener, cell.broker, cell.address) for cell in report.cells]
    for (vantage, listener, broker, address), count in repeated(cells):
        name = f"listener {shown(listener)}, broker {broker} ({address}) from {shown(vantage)}"
        yield f"cells: {name}: found {count} times; allowed: once"
    pairs = [(pair.leader, pair.follower, pair.listener) for pair in report.replication]
    for (leader, follower, _), count in repeated(pairs):
        name = f"leader {leader}, follower {follower}"
        yield f"replication: {name}: found {count} times; allowed: once"
    for index, cell in enumerate(report.cells):
        if cell.verdict is Verdict.PASS and (problem := _problem_of_pass(cell)):
            yield f"cells.{index}: found pass, and {problem}"
    for index, delivery in enumerate(report.delivery):
        if negative := [key for key, count in _counts(delivery).items() if count < 0]:
            yield f"delivery.{index}: found negative counts ({', '.join(negative)})"
        elif delivery.acknowledged > delivery.read + delivery.lost:
            yield (
                f"delivery.{index}: found {delivery.acknowledged} acknowledged, {delivery.read} "
                f"read and {delivery.lost} lost; allowed: each acknowledged record is read or lost"
            )


def _problem_of_pass(cell: Cell) -> str:
    """Why the passed ``cell`` cannot have passed; empty if it can."""
    if cell.failed_stage is not None:
        return f"its stage {cell.failed_stage} failed"
    if cell.cause is not None:
        return f"it has the cause of a failure ({shown(cell.cause.kind)})"
    has_passed_stage = any(stage.verdict is Verdict.PASS for stage in cell.stages)
    return "" if has_passed_stage else "none of its stages passed"


def _counts(delivery: Delivery) -> dict[str, int]:
    values = delivery.model_dump()
    return {key: value for key, value in values.items() if isinstance(value, int)}
