"""Merges reports of one cluster, which may be from several vantages."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain

from pydantic import ValidationError

from earshot.errors import EarshotError
from earshot.listeners.problems import describe
from earshot.report.digest import gravity, grouped, vantages
from earshot.report.wording import aware, moment
from earshot.validation.result import Replication, Report
from earshot.validation.terms import Verdict

CLOCK_SKEW = timedelta(minutes=5)
"""A report that starts later than this after the present time has a start that cannot be right."""


@dataclass(frozen=True)
class Source:
    """A report and its file."""

    name: str
    report: Report


def merge(sources: Sequence[Source]) -> Report:
    """Merges ``sources`` into one report, in the order of their files.

    If two reports have a vantage of the same name on the same machine, the later one counts, with a
    note. A report that is dated in the future (by more than `CLOCK_SKEW`) replaces no other, with a
    note: the order of the two is unknown, and both count. Vantages of one name on different
    machines get the machine's name added. Raises EarshotError for reports of different clusters, or
    without a report.
    """
    if not sources:
        raise EarshotError("reports", observed="there is none", allowed="at least one")
    if len(sources) == 1:
        return sources[0].report
    _refuse_strangers(sources)
    kept_reports, notes = _latest(sources)
    reports = [_with_machine_names(report, kept_reports) for report in kept_reports]
    restarts = _restarts(reports)
    fields = {
        "kind": "doctor" if all(report.kind == "doctor" for report in reports) else "validation",
        "run": "+".join(report.run for report in reports if report.run),
        "cluster": reports[0].cluster,
        "cluster_id": next((report.cluster_id for report in reports if report.cluster_id), ""),
        "placement": reports[0].placement,
        "kafka_version": reports[0].kafka_version,
        "started": min(aware(report.started) for report in reports),
        "seconds": sum(report.seconds for report in reports),
        "cells": tuple(chain(*(report.cells for report in reports))),
        "vantages": tuple(chain(*(report.vantages for report in reports))),
        "delivery": tuple(chain(*(report.delivery for report in reports))),
        "replication": _replication(reports),
        "incarnations": {k: v for report in reports for k, v in report.incarnations.items()},
        "notes": tuple(
            dict.fromkeys([*chain(*(report.notes for report in reports)), *notes, *restarts])
        ),
    }
    try:
        return Report.model_validate(fields)
    except ValidationError as error:
        observed = "together have more parts than one report may: "
        observed += "; ".join(describe(error, Report, {}))
        raise EarshotError("reports", observed=observed) from None


def _refuse_strangers(sources: Sequence[Source]) -> None:
    """Raises EarshotError if the reports have two cluster names, or two cluster ids. Unknown ids
    are ignored."""
    for attribute in ("cluster", "cluster_id"):
        source_names = {getattr(source.report, attribute): source.name for source in sources}
        problems = [f"{name} shows {cluster}" for cluster, name in source_names.items() if cluster]
        if len(problems) > 1:
            observed = f"are of different clusters: {', '.join(problems)}"
            raise EarshotError("reports", observed=observed, allowed="reports of one cluster")


def _latest(sources: Sequence[Source]) -> tuple[list[Report], list[str]]:
    kept_sources: list[Source] = []
    notes = []
    now = datetime.now(UTC)
    for source in sorted(sources, key=lambda source: aware(source.report.started)):
        standpoints = _standpoints(source.report)
        same_vantage = [kept for kept in kept_sources if _standpoints(kept.report) & standpoints]
        if aware(source.report.started) - now > CLOCK_SKEW:
            # a copy of the same run has the same results
            copies = [kept for kept in same_vantage if kept.report.run == source.report.run]
            if others := [kept for kept in same_vantage if kept not in copies]:
                notes.append(_future_note(source, others, now))
            same_vantage = copies
        for older in same_vantage:
            repeated_names = {name for name, _ in _standpoints(older.report) & standpoints}
            older_report = _without_vantages(older.report, repeated_names, source.report)
            index = kept_sources.index(older)
            kept_sources[index : index + 1] = (
                [replace(older, report=older_report)] if older_report.cells else []
            )
            vantage_text = (
                f", vantage {', '.join(sorted(repeated_names))}" if older_report.cells else ""
            )
            notes.append(
                f"{older.name} ({moment(older.report.started)}){vantage_text} is left out: "
                f"{source.name} is a later report from the same vantage"
            )
        kept_sources.append(source)
    order = {source.name: i for i, source in enumerate(sources)}
    kept_sources.sort(key=lambda source: order[source.name])
    return [source.report for source in kept_sources], notes


def _future_note(source: Source, others: Sequence[Source], now: datetime) -> str:
    other_names = ", ".join(other.name for other in others)
    return (
        f"{source.name} is dated {moment(source.report.started)}, in the future of this machine's "
        f"clock ({moment(now)}): it does not replace {other_names} from the same vantage, and all "
        "of them count. Correct the clock that is wrong, or leave out the reports that are outdated"
    )


def _without_vantages(report: Report, names: Set[str], later: Report) -> Report:
    """``report`` without the vantages ``names``, which the report ``later`` replaces.

    Deliveries do not name their vantage: one is kept if another vantage of ``report`` has cells of
    its listeners. Replication results do not either: one is kept unless ``later`` has a conclusive
    result for the pair.
    """
    decided_pairs = (pair for pair in later.replication if pair.verdict is not Verdict.INCONCLUSIVE)
    decided_ids = {(pair.leader, pair.follower) for pair in decided_pairs}
    cells = [cell for cell in report.cells if cell.vantage not in names]
    listeners = {cell.listener for cell in cells}
    fields: dict[str, Sequence[object]] = {
        "cells": cells,
        "vantages": [vantage for vantage in report.vantages if vantage.name not in names],
        "delivery": [
            result
            for result in report.delivery
            if {result.written_through, result.read_through} <= listeners
        ],
        "replication": [
            result
            for result in report.replication
            if (result.leader, result.follower) not in decided_ids
        ],
    }
    return report.model_copy(update={name: tuple(items) for name, items in fields.items()})


def _standpoints(report: Report) -> set[tuple[str, str]]:
    return {(vantage.name, vantage.where) for vantage in vantages(report)}


def _with_machine_names(report: Report, all_reports: Sequence[Report]) -> Report:
    """``report`` with the machine in the names of vantages that other reports also have.

    If another report has a vantage of the name on the same machine, the time and the run are added.
    """
    other_reports = [other_report for other_report in all_reports if other_report is not report]
    taken_standpoints = set(chain(*map(_standpoints, other_reports)))
    taken_names = {name for name, _ in taken_standpoints}
    names = {vantage.name: vantage.name for vantage in vantages(report)}
    for vantage in vantages(report):
        if vantage.name in taken_names:
            names[vantage.name] = f"{vantage.name} on {vantage.where or report.run}"
        if (vantage.name, vantage.where) in taken_standpoints:
            names[vantage.name] += f" ({moment(report.started)}, run {report.run})"
    cells = tuple(cell.model_copy(update={"vantage": names[cell.vantage]}) for cell in report.cells)
    renamed = tuple(
        vantage.model_copy(update={"name": names[vantage.name]}) for vantage in report.vantages
    )
    return report.model_copy(update={"cells": cells, "vantages": renamed})


def _replication(reports: Sequence[Report]) -> tuple[Replication, ...]:
    """The worst known result of each pair of brokers, which does not depend on the vantage."""
    all_pairs = chain(*(report.replication for report in reports))
    groups = grouped(all_pairs, lambda pair: (pair.leader, pair.follower))
    worst_pairs = []
    for _, same_pairs in sorted(groups.items()):
        # a failure, else a pass; an inconclusive result overrides neither
        decided_pairs = [
            pair for pair in same_pairs if pair.verdict is not Verdict.INCONCLUSIVE
        ] or same_pairs
        worst_pairs.append(min(decided_pairs, key=lambda pair: gravity(pair.verdict)))
    return tuple(worst_pairs)


def _restarts(reports: Sequence[Report]) -> list[str]:
    first_incarnations: dict[str, str] = {}
    restart_notes: dict[str, None] = {}
    for name, incarnation in chain(*(report.incarnations.items() for report in reports)):
        if first_incarnations.setdefault(name, incarnation) != incarnation:
            restart_notes[f"{name} was restarted or replaced between these reports"] = None
    return list(restart_notes)
