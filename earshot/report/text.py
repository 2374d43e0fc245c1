"""The report for a terminal or a log: a matrix one reads at a glance, then each problem."""

from __future__ import annotations

from collections.abc import Iterator

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
from earshot.report.terminal import Terminal, column_widths
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

LABELS = len("observed")
EXAMPLES = 3
"""Examples of a delivery shown here; the other formats hold them all."""

Entry = tuple[str, Verdict | None]
"""One field of a matrix and the verdict that colours it."""


def text(report: Report, terminal: Terminal | None = None) -> str:
    """``report`` for ``terminal``; without one in plain ASCII of 100 columns."""
    terminal = terminal or Terminal()
    blocks = [
        [
            terminal.tint(visible(headline(report)), report.verdict),
            visible(subject(report)),
            visible(occasion(report)),
        ]
    ]
    blocks += [list(_matrix(matrix, terminal)) for matrix in matrices(report)]
    blocks += [_delivery(pairs(report), terminal)]
    blocks += [list(_replication(report, terminal))]
    blocks += [list(_vantage(vantage, terminal)) for vantage in report.vantages]
    blocks += [list(_problem(problem, terminal)) for problem in shortcomings(report)]
    blocks += [[terminal.field("note", note, len("note")) for note in report.notes]]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _matrix(matrix: Matrix, terminal: Terminal) -> Iterator[str]:
    yield terminal.bold(visible(f"from {standpoint(matrix.vantage)}"))
    rows = _listeners_down(matrix, terminal)
    widths = column_widths([[text for text, _ in row] for row in rows])
    if sum(widths) + 2 * len(widths) > terminal.width:
        rows = _brokers_down(matrix, terminal)
        widths = column_widths([[text for text, _ in row] for row in rows])
    for row in rows:
        inked = [
            (terminal.tint(text, verdict) if verdict else text) + " " * (width - len(text))
            for (text, verdict), width in zip(row, widths, strict=True)
        ]
        yield ("  " + "  ".join(inked)).rstrip()


def _listeners_down(matrix: Matrix, terminal: Terminal) -> list[list[Entry]]:
    head: list[Entry] = [("", None), ("", None)]
    rows = [head + [(broker_name(broker), None) for broker in matrix.brokers]]
    for listener in matrix.listeners:
        scopes = "+".join(matrix.scopes(listener))
        row: list[Entry] = [(visible(listener), None), (scopes, None)]
        row += [_entry(matrix.cell(listener, broker), terminal) for broker in matrix.brokers]
        rows.append(row)
    return rows


def _brokers_down(matrix: Matrix, terminal: Terminal) -> list[list[Entry]]:
    head: list[Entry] = [("", None)]
    rows = [head + [(visible(listener), None) for listener in matrix.listeners]]
    for broker in matrix.brokers:
        row: list[Entry] = [(broker_name(broker), None)]
        row += [_entry(matrix.cell(name, broker), terminal) for name in matrix.listeners]
        rows.append(row)
    return rows


def _entry(cell: Cell | None, terminal: Terminal) -> Entry:
    if cell is None:
        return ("not there", None)
    return (f"{terminal.mark(cell.verdict)} {outcome(cell)}".strip(), cell.verdict)


def _delivery(found: tuple[Pair, ...], terminal: Terminal) -> list[str]:
    if not found:
        return []
    width = max(len(_route(pair)) for pair in found)
    lines = [terminal.bold("delivery (written through -> read through)")]
    for pair in found:
        mark = f"{terminal.mark(pair.verdict):<4}"
        lines.append(
            f"  {_route(pair):<{width}}  {terminal.tint(mark, pair.verdict)}  {fates(pair)}"
        )
        lines += [f"    {visible(example)}" for example in pair.examples[:EXAMPLES]]
        if len(pair.examples) > EXAMPLES:
            lines.append(f"    and {len(pair.examples) - EXAMPLES} more, see --format json")
    return lines


def _replication(report: Report, terminal: Terminal) -> Iterator[str]:
    found = copies(report)
    if not found:
        return
    width = max(len(item.way) for item in found)
    yield terminal.bold(visible(f"replication (leader -> followers), {between_brokers(report)}"))
    for item in found:
        mark = terminal.tint(terminal.mark(item.verdict), item.verdict)
        yield f"  {item.way:<{width}}  {mark}"


def _route(pair: Pair) -> str:
    return visible(f"{pair.written_through} -> {pair.read_through}")


def _vantage(vantage: Vantage, terminal: Terminal) -> Iterator[str]:
    """Executors say what they reached; any other vantage speaks up only when it is broken."""
    missed = unreached(vantage)
    if vantage.verdict == Verdict.PASS and not vantage.reached:
        return
    mark = terminal.tint(f"{terminal.mark(vantage.verdict):<4}", vantage.verdict)
    connected = ""
    if vantage.reached:
        total = len(vantage.reached)
        connected = f": {total - len(missed)} of {total} addresses reached"
    yield f"{mark}  {visible('vantage ' + standpoint(vantage))}{connected}"
    if vantage.reason:
        yield terminal.field("reason", vantage.reason, LABELS)
    for line in missed:
        yield terminal.field("missed", line, LABELS)


def _problem(problem: FailedGroup | Uncopied, terminal: Terminal) -> Iterator[str]:
    mark = terminal.tint(f"{terminal.mark(problem.verdict):<4}", problem.verdict)
    yield f"{mark}  {visible(problem.title)}"
    for label, fact in problem.facts:
        yield terminal.field(label, fact, LABELS)
