"""The geometry of the topology picture: vantages, listeners and brokers, connected by lines.

Three columns of boxes (vantages, listeners, brokers) and the lines between them, each with the
worst verdict of the cells it represents. Units are those of the picture's own `viewBox`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from earshot.report.digest import broker_name, vantages, worst
from earshot.report.wording import WORDS, counted
from earshot.validation.result import Cell, Report, Vantage
from earshot.validation.terms import Verdict

T = TypeVar("T")

WIDTH = 960
BOX_WIDTH = 220
BOX_HEIGHT = 46
STEP = 62
TOP = 34
COLUMNS = (10, (WIDTH - BOX_WIDTH) // 2, WIDTH - BOX_WIDTH - 10)
TITLES = ("vantages", "listeners", "brokers")
LETTERS = 26
"""The maximum number of characters in a box."""
MAX_BOXES = 16
"""With more brokers than this, those that passed share one box."""

Group = tuple[int, ...]
"""The brokers of one box."""
Links = dict[tuple[str, Group], list[Verdict]]
"""The verdicts on connections from a listener to a box of brokers."""


@dataclass(frozen=True)
class Box:
    """One node. `full` is its text before it was shortened."""

    x: int
    y: int
    label: str
    note: str
    full: str
    verdict: Verdict

    @property
    def left(self) -> tuple[int, int]:
        return self.x, self.y + BOX_HEIGHT // 2

    @property
    def right(self) -> tuple[int, int]:
        return self.x + BOX_WIDTH, self.y + BOX_HEIGHT // 2


@dataclass(frozen=True)
class DrawnLine:
    """A line from the right edge of one box to the left edge of another."""

    start: tuple[int, int]
    end: tuple[int, int]
    verdict: Verdict
    full: str

    @property
    def path(self) -> str:
        (x1, y1), (x2, y2) = self.start, self.end
        middle = (x1 + x2) // 2
        return f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"


@dataclass(frozen=True)
class Topology:
    """The content of the picture. An empty report has no boxes."""

    boxes: tuple[Box, ...]
    lines: tuple[DrawnLine, ...]
    height: int


def topology(report: Report) -> Topology:
    """The picture of ``report``."""
    report_vantages = vantages(report)
    listeners = list(dict.fromkeys(cell.listener for cell in report.cells))
    groups = _broker_groups(report.cells)
    tallest = max(len(report_vantages), len(listeners), len(groups), 1)
    middle = TOP + tallest * STEP // 2

    verdicts_by_vantage = {
        vantage.name: _worst_verdicts(vantage, report.cells) for vantage in report_vantages
    }
    vantage_boxes = {
        vantage.name: _box(
            0,
            y,
            vantage.name,
            vantage.where,
            [vantage.verdict, *verdicts_by_vantage[vantage.name].values()],
        )
        for vantage, y in _spread(report_vantages, middle)
    }
    links = _links(report.cells, groups)
    scopes = {cell.listener: " + ".join(cell.scopes) for cell in reversed(report.cells)}
    listener_boxes = {
        name: _box(1, y, name, scopes[name], _ends(links, 0, name))
        for name, y in _spread(listeners, middle)
    }
    broker_boxes = {
        group: _box(2, y, _group_name(group), "", _ends(links, 1, group))
        for group, y in _spread(groups, middle)
    }
    lines = [
        DrawnLine(
            vantage_boxes[name].right,
            listener_boxes[listener].left,
            verdict,
            f"{name} to {listener}",
        )
        for name, verdicts in verdicts_by_vantage.items()
        for listener, verdict in verdicts.items()
        if listener in listener_boxes
    ]
    for (listener, group), cell_verdicts in links.items():
        name = f"{listener} to {_group_name(group)}: {counted('cell', cell_verdicts)}"
        ends = listener_boxes[listener].right, broker_boxes[group].left
        lines.append(DrawnLine(*ends, worst(cell_verdicts), name))
    lines.sort(key=lambda line: line.verdict == Verdict.FAIL)  # faults are drawn last, on top
    boxes = (*vantage_boxes.values(), *listener_boxes.values(), *broker_boxes.values())
    return Topology(boxes, tuple(lines), TOP + tallest * STEP)


def _worst_verdicts(vantage: Vantage, cells: Iterable[Cell]) -> dict[str, Verdict]:
    """The worst verdict per listener, of the cells and the connections of ``vantage``."""
    by_listener: dict[str, list[Verdict]] = defaultdict(list)
    for cell in cells:
        if cell.vantage == vantage.name:
            by_listener[cell.listener].append(cell.verdict)
    for target in vantage.reached:
        by_listener[target.listener].append(Verdict.PASS if target.reached else Verdict.FAIL)
    return {listener: worst(verdicts) for listener, verdicts in by_listener.items()}


def _broker_groups(cells: Sequence[Cell]) -> list[Group]:
    brokers = {cell.broker for cell in cells}
    if len(brokers) <= MAX_BOXES:
        return [(broker,) for broker in sorted(brokers)]
    faulty_brokers = {cell.broker for cell in cells if cell.verdict != Verdict.PASS}
    passed_brokers = tuple(sorted(brokers - faulty_brokers))
    groups: list[Group] = [(broker,) for broker in sorted(faulty_brokers)]
    return [*groups, passed_brokers] if passed_brokers else groups


def _group_name(ids: Group) -> str:
    return broker_name(ids[0]) if len(ids) == 1 else f"{len(ids)} brokers"


def _links(cells: Iterable[Cell], groups: Iterable[Group]) -> Links:
    group_of = {broker: group for group in groups for broker in group}
    links: Links = {}
    for cell in cells:
        links.setdefault((cell.listener, group_of[cell.broker]), []).append(cell.verdict)
    return links


def _ends(links: Links, end: int, name: str | Group) -> list[Verdict]:
    return [
        verdict for link, verdicts in links.items() if link[end] == name for verdict in verdicts
    ]


def _spread(items: Sequence[T], middle: int) -> list[tuple[T, int]]:
    top = middle - len(items) * STEP // 2
    return [(entry, top + i * STEP + (STEP - BOX_HEIGHT) // 2) for i, entry in enumerate(items)]


def _box(column: int, y: int, label: str, note: str, verdicts: Sequence[Verdict]) -> Box:
    verdict = worst(verdicts)
    passed_count = sum(verdict == Verdict.PASS for verdict in verdicts)
    share = (
        f"{passed_count} of {len(verdicts)}" if 0 < passed_count < len(verdicts) and column else ""
    )
    text = ", ".join(filter(None, (note, share))) or WORDS[verdict]
    full = f"{label} ({note}): {WORDS[verdict]}" if note else f"{label}: {WORDS[verdict]}"
    return Box(COLUMNS[column], y, _cut(label), _cut(text), full, verdict)


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
