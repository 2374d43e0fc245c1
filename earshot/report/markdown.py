"""The report as GitHub-flavoured Markdown, for the summary page of a CI run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from earshot.report.digest import (
    FailedGroup,
    Matrix,
    Pair,
    Uncopied,
    between_brokers,
    broker_name,
    copies,
    matrices,
    pairs,
    shortcomings,
)
from earshot.report.visible import visible
from earshot.report.wording import (
    fates,
    headline,
    occasion,
    outcome,
    standpoint,
    subject,
    unreached,
)
from earshot.validation.result import Cell, Report, Vantage
from earshot.validation.terms import Verdict

MARKS = {
    Verdict.PASS: "\N{WHITE HEAVY CHECK MARK}",
    Verdict.FAIL: "\N{CROSS MARK}",
    Verdict.SKIP: "\N{WHITE CIRCLE}",
    Verdict.INCONCLUSIVE: "\N{BLACK QUESTION MARK ORNAMENT}",
}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$@])")


def markdown(report: Report) -> str:
    """``report`` with one table per vantage and one list per problem."""
    blocks: list[list[str]] = [
        [f"# {MARKS[report.verdict]} {escape(headline(report))}"],
        [f"{escape(subject(report))}  ", escape(occasion(report))],
    ]
    blocks += [list(_matrix(matrix)) for matrix in matrices(report)]
    blocks += [list(_delivery(pairs(report)))]
    blocks += [list(_replication(report))]
    blocks += [list(_vantages(report.vantages))]
    blocks += [list(_problem(problem)) for problem in shortcomings(report)]
    blocks += [[f"> {escape(note)}"] for note in report.notes]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def escape(text: str) -> str:
    """``text`` on one line, with nothing in it that Markdown or HTML would act upon."""
    return _SPECIAL.sub(r"\\\1", visible(" ".join(text.split())))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _matrix(matrix: Matrix) -> Iterator[str]:
    yield f"## From {escape(standpoint(matrix.vantage))}"
    yield ""
    if len(matrix.brokers) <= 8:
        head = ["listener", "scopes", *map(broker_name, matrix.brokers)]
        rows = [
            [escape(name), escape(" + ".join(matrix.scopes(name)))]
            + [_entry(matrix.cell(name, broker)) for broker in matrix.brokers]
            for name in matrix.listeners
        ]
    else:
        head = ["broker", *map(escape, matrix.listeners)]
        rows = [
            [broker_name(broker)] + [_entry(matrix.cell(name, broker)) for name in matrix.listeners]
            for broker in matrix.brokers
        ]
    yield from _table(head, rows)


def _entry(cell: Cell | None) -> str:
    return "not there" if cell is None else f"{MARKS[cell.verdict]} {outcome(cell)}".strip()


def _delivery(found: tuple[Pair, ...]) -> Iterator[str]:
    if not found:
        return
    yield "## Delivery"
    yield ""
    yield from _table(
        ["written through", "read through", "verdict", "records"],
        (
            [
                escape(pair.written_through),
                escape(pair.read_through),
                f"{MARKS[pair.verdict]} {pair.verdict}",
                fates(pair),
            ]
            for pair in found
        ),
    )
    for pair in found:
        if pair.examples:
            yield ""
            yield f"{escape(pair.written_through)} to {escape(pair.read_through)}:"
            yield ""
            yield from (f"- {escape(example)}" for example in pair.examples)


def _replication(report: Report) -> Iterator[str]:
    found = copies(report)
    if not found:
        return
    yield f"## Replication {escape(between_brokers(report))}"
    yield ""
    yield from _table(
        ["leader", "followers", "verdict"],
        (
            [
                broker_name(item.leader),
                ", ".join(map(str, item.followers)),
                f"{MARKS[item.verdict]} {item.verdict}",
            ]
            for item in found
        ),
    )


def _vantages(vantages: tuple[Vantage, ...]) -> Iterator[str]:
    spoken = [item for item in vantages if item.reached or item.verdict != Verdict.PASS]
    if not spoken:
        return
    yield "## Vantages"
    yield ""
    for vantage in spoken:
        missed = unreached(vantage)
        reached = f"{len(vantage.reached) - len(missed)} of {len(vantage.reached)}"
        connected = f", {reached} addresses reached" if vantage.reached else ""
        reason = f": {escape(vantage.reason)}" if vantage.reason else ""
        yield f"- {MARKS[vantage.verdict]} {escape(standpoint(vantage))}{connected}{reason}"
        yield from (f"    - {escape(line)}" for line in missed)


def _problem(problem: FailedGroup | Uncopied) -> Iterator[str]:
    yield f"### {MARKS[problem.verdict]} {escape(problem.title)}"
    yield ""
    for label, fact in problem.facts:
        yield f"- **{label}**: {escape(fact)}"
