"""Several reports as one: the same cluster, seen from several vantages."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain

from pydantic import ValidationError

from earshot.errors import EarshotError
from earshot.listeners.problems import describe
from earshot.report.digest import gravity, grouped, vantages
from earshot.report.wording import aware, moment
from earshot.validation.result import Replication, Report
from earshot.validation.terms import Verdict


@dataclass(frozen=True)
class Source:
    """A report and the file it came from."""

    name: str
    report: Report


def merge(sources: Sequence[Source]) -> Report:
    """The one report that ``sources`` make up, in the order of their files.

    Of two reports with a vantage of the same name on the same machine the later one counts there,
    and a note says so; vantages of one name on different machines are named with the machine.
    Raises EarshotError for reports of different clusters, or where there is none.
    """
    if not sources:
        raise EarshotError("reports", observed="there is none", allowed="at least one")
    if len(sources) == 1:
        return sources[0].report
    _refuse_strangers(sources)
    kept, notes = _latest(sources)
    reports = [_by_machine(report, kept) for report in kept]
    restarts = _restarts(reports)
    parts = {
        "kind": "doctor" if all(item.kind == "doctor" for item in reports) else "validation",
        "run": "+".join(item.run for item in reports if item.run),
        "cluster": reports[0].cluster,
        "cluster_id": next((item.cluster_id for item in reports if item.cluster_id), ""),
        "placement": reports[0].placement,
        "kafka_version": reports[0].kafka_version,
        "started": min(aware(item.started) for item in reports),
        "seconds": sum(item.seconds for item in reports),
        "cells": tuple(chain(*(item.cells for item in reports))),
        "vantages": tuple(chain(*(item.vantages for item in reports))),
        "delivery": tuple(chain(*(item.delivery for item in reports))),
        "replication": _replication(reports),
        "incarnations": {k: v for item in reports for k, v in item.incarnations.items()},
        "notes": tuple(dict.fromkeys([*chain(*(it.notes for it in reports)), *notes, *restarts])),
    }
    try:
        return Report.model_validate(parts)
    except ValidationError as error:
        observed = "together have more parts than one report may: "
        observed += "; ".join(describe(error, Report, {}))
        raise EarshotError("reports", observed=observed) from None


def _refuse_strangers(sources: Sequence[Source]) -> None:
    """Two names are two clusters, and so are two of Kafka's ids; one that is not known is none."""
    for attribute in ("cluster", "cluster_id"):
        source_names = {getattr(source.report, attribute): source.name for source in sources}
        problems = [f"{name} shows {cluster}" for cluster, name in source_names.items() if cluster]
        if len(problems) > 1:
            observed = f"are of different clusters: {', '.join(problems)}"
            raise EarshotError("reports", observed=observed, allowed="reports of one cluster")


def _latest(sources: Sequence[Source]) -> tuple[list[Report], list[str]]:
    kept: list[Source] = []
    notes = []
    for source in sorted(sources, key=lambda item: aware(item.report.started)):
        seen = _standpoints(source.report)
        for older in [item for item in kept if _standpoints(item.report) & seen]:
            again = {name for name, _ in _standpoints(older.report) & seen}
            rest = _without(older.report, again, source.report)
            at = kept.index(older)
            kept[at : at + 1] = [replace(older, report=rest)] if rest.cells else []
            which = f", vantage {', '.join(sorted(again))}" if rest.cells else ""
            notes.append(
                f"{older.name} ({moment(older.report.started)}){which} is left out: "
                f"{source.name} is a later report from the same vantage"
            )
        kept.append(source)
    order = {source.name: i for i, source in enumerate(sources)}
    return [item.report for item in sorted(kept, key=lambda item: order[item.name])], notes


def _without(report: Report, names: Set[str], later: Report) -> Report:
    """``report`` without the vantages called ``names``, as in ``later``.

    A delivery does not say where it was seen from: it stays where another vantage of the report
    looked at its listeners. Replication does not either: it stays where ``later`` shows nothing.
    """
    known = (pair for pair in later.replication if pair.verdict is not Verdict.INCONCLUSIVE)
    shown = {(pair.leader, pair.follower) for pair in known}
    cells = [cell for cell in report.cells if cell.vantage not in names]
    listeners = {cell.listener for cell in cells}
    kept: dict[str, Sequence[object]] = {
        "cells": cells,
        "vantages": [vantage for vantage in report.vantages if vantage.name not in names],
        "delivery": [
            it for it in report.delivery if {it.written_through, it.read_through} <= listeners
        ],
        "replication": [it for it in report.replication if (it.leader, it.follower) not in shown],
    }
    return report.model_copy(update={name: tuple(items) for name, items in kept.items()})


def _standpoints(report: Report) -> set[tuple[str, str]]:
    return {(vantage.name, vantage.where) for vantage in vantages(report)}


def _by_machine(report: Report, all_reports: Sequence[Report]) -> Report:
    taken_names = {
        name for item in all_reports if item is not report for name, _ in _standpoints(item)
    }
    names = {it.name: it.name for it in vantages(report)}
    for vantage in vantages(report):
        if vantage.name in taken_names:
            names[vantage.name] = f"{vantage.name} on {vantage.where or report.run}"
    cells = tuple(cell.model_copy(update={"vantage": names[cell.vantage]}) for cell in report.cells)
    renamed = tuple(it.model_copy(update={"name": names[it.name]}) for it in report.vantages)
    return report.model_copy(update={"cells": cells, "vantages": renamed})


def _replication(reports: Sequence[Report]) -> tuple[Replication, ...]:
    """Of each pair of brokers the gravest that is known: it does not depend on who looked."""
    shown = chain(*(report.replication for report in reports))
    groups = grouped(shown, lambda pair: (pair.leader, pair.follower))
    chosen = []
    for _, looks in sorted(groups.items()):
        # a failure, else a proof; who found out nothing takes neither away
        known = [pair for pair in looks if pair.verdict is not Verdict.INCONCLUSIVE] or looks
        chosen.append(min(known, key=lambda pair: gravity(pair.verdict)))
    return tuple(chosen)


def _restarts(reports: Sequence[Report]) -> list[str]:
    first: dict[str, str] = {}
    changed: dict[str, None] = {}
    for name, incarnation in chain(*(report.incarnations.items() for report in reports)):
        if first.setdefault(name, incarnation) != incarnation:
            changed[f"{name} was restarted or replaced between these reports"] = None
    return list(changed)
