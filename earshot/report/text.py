"""Writes a report as text for a terminal or a log: a matrix per vantage, then each problem."""

from collections.abc import Iterator

from earshot.report import digest, wording
from earshot.report.terminal import Terminal, column_widths
from earshot.validation.result import Cell, Report, Vantage
from earshot.validation.terms import Verdict
from earshot.visible import one_line

LABELS = len("observed")
EXAMPLES = 3
"""The maximum number of examples per delivery. The other formats contain all."""

Entry = tuple[str, Verdict | None]
"""One field of a matrix and the verdict that colours it."""


def text(report: Report, terminal: Terminal | None = None) -> str:
    """``report`` as text for ``terminal`` (default: plain ASCII, 100 columns)."""
    terminal = terminal or Terminal()
    head = terminal.lines(one_line(wording.headline(report)))
    about = (wording.subject(report), wording.occasion(report))
    blocks = [
        [terminal.tint(line, report.verdict) for line in head]
        + [line for text in about for line in terminal.lines(one_line(text))]
    ]
    blocks += [list(_matrix(matrix, terminal)) for matrix in digest.matrices(report)]
    blocks += [_delivery(digest.pairs(report), terminal)]
    blocks += [list(_replication(report, terminal))]
    blocks += [list(_vantage(vantage, terminal)) for vantage in report.vantages]
    blocks += [list(_problem(problem, terminal)) for problem in digest.shortcomings(report)]
    blocks += [[terminal.field("note", note, len("note")) for note in report.notes]]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _matrix(matrix: digest.Matrix, terminal: Terminal) -> Iterator[str]:
    place = one_line(f"from {wording.standpoint(matrix.vantage)}")
    yield from map(terminal.bold, terminal.lines(place))
    for has_broker_rows in (False, True):
        rows = _rows(matrix, terminal, has_broker_rows)
        widths = column_widths([[text for text, _ in row] for row in rows])
        if sum(widths) + 2 * len(widths) <= terminal.width:
            break
    for row in rows:
        inked = [
            (terminal.tint(text, verdict) if verdict else text) + " " * (width - len(text))
            for (text, verdict), width in zip(row, widths, strict=True)
        ]
        yield ("  " + "  ".join(inked)).rstrip()


def _rows(matrix: digest.Matrix, terminal: Terminal, has_broker_rows: bool) -> list[list[Entry]]:
    names: list[Entry] = [(one_line(listener), None) for listener in matrix.listeners]
    scopes: list[Entry] = [
        ("+".join(matrix.scopes(listener)), None) for listener in matrix.listeners
    ]
    brokers: list[Entry] = [(digest.broker_name(broker), None) for broker in matrix.brokers]
    columns = [
        [_entry(matrix.cell(name, broker), terminal) for name in matrix.listeners]
        for broker in matrix.brokers
    ]
    if has_broker_rows:
        return [
            [("", None), *names],
            *([broker, *row] for broker, row in zip(brokers, columns, strict=True)),
        ]
    rows = zip(names, scopes, *columns, strict=True)
    return [[("", None), ("", None), *brokers], *map(list, rows)]


def _entry(cell: Cell | None, terminal: Terminal) -> Entry:
    if cell is None:
        return ("not there", None)
    return (f"{terminal.mark(cell.verdict)} {wording.outcome(cell)}".strip(), cell.verdict)


def _delivery(pairs: tuple[digest.Pair, ...], terminal: Terminal) -> list[str]:
    if not pairs:
        return []
    routes = [one_line(f"{pair.written_through} -> {pair.read_through}") for pair in pairs]
    width = max(map(len, routes))
    lines = [terminal.bold("delivery (written through -> read through)")]
    for pair, route in zip(pairs, routes, strict=True):
        mark = terminal.tint(f"{terminal.mark(pair.verdict):<4}", pair.verdict)
        lines.append(f"  {route:<{width}}  {mark}  {wording.fates(pair)}")
        lines += [f"    {one_line(example)}" for example in pair.examples[:EXAMPLES]]
        if len(pair.examples) > EXAMPLES:
            lines.append(f"    and {len(pair.examples) - EXAMPLES} more, see --format json")
    return lines


def _replication(report: Report, terminal: Terminal) -> Iterator[str]:
    copies = digest.copies(report)
    if not copies:
        return
    width = max(len(copy.way) for copy in copies)
    yield terminal.bold(
        one_line(f"replication (leader -> followers), {digest.between_brokers(report)}")
    )
    for copy in copies:
        mark = terminal.tint(terminal.mark(copy.verdict), copy.verdict)
        yield f"  {copy.way:<{width}}  {mark}"


def _vantage(vantage: Vantage, terminal: Terminal) -> Iterator[str]:
    """The line of a vantage: executors list what they reached, others appear only if broken."""
    if vantage.verdict == Verdict.PASS and not vantage.reached:
        return
    mark = terminal.tint(f"{terminal.mark(vantage.verdict):<4}", vantage.verdict)
    reached_text = f": {wording.reached_text(vantage)}" if vantage.reached else ""
    yield f"{mark}  {one_line('vantage ' + wording.standpoint(vantage))}{reached_text}"
    if vantage.reason:
        yield terminal.field("reason", vantage.reason, LABELS)
    for line in wording.unreached(vantage):
        yield terminal.field("missed", line, LABELS)


def _problem(problem: digest.Problem, terminal: Terminal) -> Iterator[str]:
    mark = terminal.tint(f"{terminal.mark(problem.verdict):<4}", problem.verdict)
    yield f"{mark}  {one_line(problem.title)}"
    for label, fact in problem.facts:
        yield terminal.field(label, fact, LABELS)
