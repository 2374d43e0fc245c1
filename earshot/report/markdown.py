"""Writes a report as GitHub-flavoured Markdown, for the summary page of a CI run."""

import re
from collections.abc import Iterable, Iterator, Sequence

from earshot.report import digest, wording
from earshot.validation.result import Cell, Report, Vantage
from earshot.validation.terms import Verdict
from earshot.visible import one_line

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
        [f"# {MARKS[report.verdict]} {escape(wording.headline(report))}"],
        [f"{escape(wording.subject(report))}  ", escape(wording.occasion(report))],
    ]
    blocks += [list(_matrix(matrix)) for matrix in digest.matrices(report)]
    blocks += [list(_delivery(digest.pairs(report)))]
    blocks += [list(_replication(report))]
    blocks += [list(_vantages(report.vantages))]
    blocks += [list(_problem(problem)) for problem in digest.shortcomings(report)]
    blocks += [[f"> {escape(note)}"] for note in report.notes]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def escape(text: str) -> str:
    """``text`` on one line, escaped for Markdown and HTML."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _matrix(matrix: digest.Matrix) -> Iterator[str]:
    yield f"## From {escape(wording.standpoint(matrix.vantage))}"
    yield ""
    if len(matrix.brokers) <= 8:
        head = ["listener", "scopes", *map(digest.broker_name, matrix.brokers)]
        rows = [
            [escape(name), escape(" + ".join(matrix.scopes(name)))]
            + [_entry(matrix.cell(name, broker)) for broker in matrix.brokers]
            for name in matrix.listeners
        ]
    else:
        head = ["broker", *map(escape, matrix.listeners)]
        rows = [
            [digest.broker_name(broker)]
            + [_entry(matrix.cell(name, broker)) for name in matrix.listeners]
            for broker in matrix.brokers
        ]
    yield from _table(head, rows)


def _entry(cell: Cell | None) -> str:
    return "not there" if cell is None else f"{MARKS[cell.verdict]} {wording.outcome(cell)}".strip()


def _delivery(pairs: tuple[digest.Pair, ...]) -> Iterator[str]:
    if not pairs:
        return
    yield "## Delivery"
    yield ""
    rows, examples = [], []
    for pair in pairs:
        through = [escape(pair.written_through), escape(pair.read_through)]
        rows.append([*through, f"{MARKS[pair.verdict]} {pair.verdict}", wording.fates(pair)])
        if pair.examples:
            examples += ["", f"{' to '.join(through)}:", ""]
            examples += [f"- {escape(example)}" for example in pair.examples]
    yield from _table(["written through", "read through", "verdict", "records"], rows)
    yield from examples


def _replication(report: Report) -> Iterator[str]:
    copies = digest.copies(report)
    if not copies:
        return
    yield f"## Replication {escape(digest.between_brokers(report))}"
    yield ""
    rows = []
    for copy in copies:
        followers = ", ".join(map(str, copy.followers))
        verdict = f"{MARKS[copy.verdict]} {copy.verdict}"
        rows.append([digest.broker_name(copy.leader), followers, verdict])
    yield from _table(["leader", "followers", "verdict"], rows)


def _vantages(vantages: tuple[Vantage, ...]) -> Iterator[str]:
    shown_vantages = [
        vantage for vantage in vantages if vantage.reached or vantage.verdict != Verdict.PASS
    ]
    if not shown_vantages:
        return
    yield "## Vantages"
    yield ""
    for vantage in shown_vantages:
        reached_text = f", {wording.reached_text(vantage)}" if vantage.reached else ""
        reason = f": {escape(vantage.reason)}" if vantage.reason else ""
        place = escape(wording.standpoint(vantage))
        yield f"- {MARKS[vantage.verdict]} {place}{reached_text}{reason}"
        yield from (f"    - {escape(line)}" for line in wording.unreached(vantage))


def _problem(problem: digest.Problem) -> Iterator[str]:
    yield f"### {MARKS[problem.verdict]} {escape(problem.title)}"
    yield ""
    for label, fact in problem.facts:
        yield f"- **{label}**: {escape(fact)}"
