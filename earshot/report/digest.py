"""Groups the content of a report for all formats: matrices, deliveries, replication, problems."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from earshot.listeners.listed import MAX_SHOWN, numbered
from earshot.listeners.terms import Scope
from earshot.validation.result import (
    Cell,
    Delivery,
    Replication,
    Report,
    StageResult,
    Vantage,
    combine,
)
from earshot.validation.terms import Verdict

T = TypeVar("T")
K = TypeVar("K")

gravity = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.SKIP, Verdict.PASS).index
"""The rank of a verdict; the worst has the lowest number."""
MAX_ADDRESSES = 10
"""The maximum number of further cells of a problem that are listed with their address. Beyond it
only the first ones are."""


@dataclass(frozen=True)
class Matrix:
    """The cells of one vantage, by listener and broker."""

    vantage: Vantage
    listeners: tuple[str, ...]
    brokers: tuple[int, ...]
    cells: Mapping[tuple[str, int], Cell]

    def cell(self, listener: str, broker: int) -> Cell | None:
        """The cell of ``broker`` through ``listener``; None if it was not checked."""
        return self.cells.get((listener, broker))

    def scopes(self, listener: str) -> tuple[Scope, ...]:
        return next(cell.scopes for (name, _), cell in self.cells.items() if name == listener)


Facts = tuple[tuple[str, str], ...]
"""Labels and texts that explain why a result did not pass, in reading order."""


@dataclass(frozen=True)
class Problem:
    """Cells of a vantage and listener, or pairs of brokers, that share a cause and did not pass."""

    verdict: Verdict
    title: str
    facts: Facts
    stages: tuple[StageResult, ...] = ()
    cells: tuple[Cell, ...] = ()
    """Title, facts and stages are those of the first cell: the others differ only in broker and
    address."""


def _problem_of_cells(cells: list[Cell]) -> Problem:
    first_cell, *other_cells = cells
    # `EXTERNAL, broker 2 (host:9093), from host`
    title = f"{first_cell.listener}, {cell_name(first_cell)}, from {first_cell.vantage}"
    shown_cells = other_cells if len(other_cells) <= MAX_ADDRESSES else other_cells[:MAX_SHOWN]
    likewise = [cell_name(cell) for cell in shown_cells]
    if other_ids := [cell.broker for cell in other_cells[len(shown_cells) :]]:
        likewise.append(numbered("broker", other_ids))
    all_facts = (*facts(first_cell), *([("likewise", ", ".join(likewise))] if other_cells else []))
    return Problem(first_cell.verdict, title, all_facts, first_cell.stages, tuple(cells))


def _problem_of_pairs(pairs: list[Replication]) -> Problem:
    first_pair = pairs[0]
    leaders = {pair.leader for pair in pairs}
    followers = {pair.follower for pair in pairs}
    # `replication from broker 3 to brokers 1, 2, through INTERNAL`
    title = f"replication from {numbered('broker', leaders)} to {numbered('broker', followers)}"
    if len(leaders) > 1 and len(followers) > 1:
        title = f"replication between {numbered('broker', leaders | followers)}"
    title += f", through {first_pair.listener}" if first_pair.listener else ""
    return Problem(first_pair.verdict, title, facts(first_pair))


def facts(result: Cell | Replication) -> Facts:
    """Why ``result`` did not pass."""
    stage = str(result.failed_stage or "") if isinstance(result, Cell) else "replication"
    labelled = [("stage", stage)]
    if cause := result.cause:
        labelled += [("cause", cause.kind), ("observed", cause.observed)]
        labelled += [("expected", cause.expected), ("fix", cause.remedy)]
    labelled.append(("reason", result.reason))
    return tuple((label, text) for label, text in labelled if text)


def broker_name(id: int) -> str:
    """`broker 2`, or `unknown broker` for a negative id, which an address without an answer has."""
    return f"broker {id}" if id >= 0 else "unknown broker"


def cell_name(cell: Cell) -> str:
    """`broker 2 (host:9093)`."""
    return f"{broker_name(cell.broker)} ({cell.address})"


@dataclass(frozen=True)
class Pair:
    """The deliveries from one listener to another, for all brokers."""

    written_through: str
    read_through: str
    deliveries: tuple[Delivery, ...]

    @property
    def verdict(self) -> Verdict:
        return combine(delivery.verdict for delivery in self.deliveries)

    @property
    def counts(self) -> dict[str, int]:
        """The number of records by outcome, without the `ODDITIES` that are 0."""
        sums = {
            name: sum(getattr(delivery, name) for delivery in self.deliveries)
            for name in ("acknowledged", "read", "lost", *ODDITIES)
        }
        return {name: n for name, n in sums.items() if n or name not in ODDITIES}

    @property
    def examples(self) -> tuple[str, ...]:
        return tuple(text for delivery in self.deliveries for text in delivery.examples)


@dataclass(frozen=True)
class Copies:
    """The followers of one leader whose replication has the same verdict."""

    leader: int
    followers: tuple[int, ...]
    verdict: Verdict

    @property
    def way(self) -> str:
        """`broker 1 -> 2, 3`."""
        return f"broker {self.leader} -> {', '.join(map(str, self.followers))}"


ODDITIES = ("unknown", "duplicated", "out_of_order", "corrupt", "misrouted", "foreign")


def matrices(report: Report) -> tuple[Matrix, ...]:
    """One matrix per vantage that has cells, in the order of their first cell."""
    by_name = {vantage.name: vantage for vantage in vantages(report)}
    return tuple(
        Matrix(
            vantage=by_name[name],
            listeners=tuple(dict.fromkeys(cell.listener for cell in cells)),
            brokers=tuple(sorted({cell.broker for cell in cells})),
            cells={(cell.listener, cell.broker): cell for cell in cells},
        )
        for name, cells in grouped(report.cells, lambda cell: cell.vantage).items()
    )


def vantages(report: Report) -> tuple[Vantage, ...]:
    """The vantages that the report describes, then those that only its cells name."""
    by_name = {vantage.name: vantage for vantage in report.vantages}
    for cell in report.cells:
        by_name.setdefault(cell.vantage, Vantage(name=cell.vantage))
    return tuple(by_name.values())


def problems(report: Report) -> tuple[Problem, ...]:
    """Problems for all cells that did not pass, one per cause, the worst first."""
    cells_not_passed = (cell for cell in report.cells if cell.verdict != Verdict.PASS)
    return _gravest_first(map(_problem_of_cells, grouped(cells_not_passed, _cause_key).values()))


def shortcomings(report: Report) -> tuple[Problem, ...]:
    """Problems for all cells and replication results that did not pass, the worst first."""
    pairs_not_passed = (pair for pair in report.replication if pair.verdict != Verdict.PASS)
    groups = grouped(pairs_not_passed, lambda pair: (pair.verdict, pair.cause, pair.reason))
    return _gravest_first([*problems(report), *map(_problem_of_pairs, groups.values())])


def _gravest_first(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: gravity(problem.verdict)))


def _cause_key(cell: Cell) -> tuple[str, ...]:
    """Equal for cells with the same cause: contains their facts without the names of listener,
    address, host, port and broker."""
    text = "\n".join(text for _, text in facts(cell))
    host, port = cell.address
    # a listener without a name has its bootstrap address as name, which may be a broker's own
    for own_text in filter(None, (cell.listener, str(cell.address), host)):
        text = text.replace(own_text, "{address}")
    text = re.sub(rf"\b({broker_name(cell.broker)}|{port})\b", "{own}", text)
    return cell.verdict, cell.vantage, cell.listener, text


def pairs(report: Report) -> tuple[Pair, ...]:
    """The deliveries, grouped by the listeners that they were written and read through."""
    groups = grouped(
        report.delivery, lambda delivery: (delivery.written_through, delivery.read_through)
    )
    return tuple(
        Pair(writer, reader, tuple(deliveries)) for (writer, reader), deliveries in groups.items()
    )


def copies(report: Report) -> tuple[Copies, ...]:
    """The followers of each leader, by verdict."""
    groups = grouped(report.replication, lambda pair: (pair.leader, pair.verdict))
    return tuple(
        Copies(leader, tuple(sorted(pair.follower for pair in pairs)), verdict)
        for (leader, verdict), pairs in groups.items()
    )


def between_brokers(report: Report) -> str:
    """`through INTERNAL`, or `between brokers` if the listener's name is unknown."""
    listener = next((pair.listener for pair in report.replication), "")
    return f"through {listener}" if listener else "between brokers"


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """``items`` grouped by ``key``, in their order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of ``verdicts``; skip if there is none."""
    return min(verdicts, key=gravity, default=Verdict.SKIP)
