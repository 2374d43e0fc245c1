"""The report as one HTML file: nothing to fetch, no script, light and dark."""

from __future__ import annotations

from functools import cache

import jinja2

from earshot.listeners.address import Address
from earshot.report import topology as geometry
from earshot.report import wording
from earshot.report.digest import (
    between_brokers,
    broker_name,
    copies,
    matrices,
    pairs,
    shortcomings,
)
from earshot.report.visible import visible
from earshot.validation.result import Cell, Report
from earshot.validation.terms import Verdict

MARKS = {
    Verdict.PASS: "\N{CHECK MARK}",
    Verdict.FAIL: "\N{BALLOT X}",
    Verdict.SKIP: "\N{EN DASH}",
    Verdict.INCONCLUSIVE: "?",
}
WIDE = 8
"""With more brokers than this they stand one below the other."""


def html(report: Report) -> str:
    """``report`` as a page of its own; every text in it is escaped."""
    return _template().render(
        report=report,
        topology=geometry.topology(report),
        matrices=matrices(report),
        problems=shortcomings(report),
        pairs=pairs(report),
        copies=copies(report),
        between_brokers=between_brokers(report),
        facts=_facts(report),
    )


def _facts(report: Report) -> list[tuple[str, str]]:
    facts = [("run", report.run), ("kind", str(report.kind))]
    facts += [(f"incarnation of {name}", text) for name, text in report.incarnations.items()]
    return facts


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:.1f} ms"


def _finalize(value: object) -> object:
    # what a macro returns is markup already, and its own values came by here
    if isinstance(value, Address) or (isinstance(value, str) and not _is_markup(value)):
        return visible(str(value))
    return value


def _is_markup(value: object) -> bool:
    return hasattr(value, "__html__")


def _cell_id(cell: Cell) -> str:
    return f"{cell.vantage}/{cell.listener}/{cell.broker}"


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("earshot.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(geometry=geometry, wide=WIDE, words=wording.WORDS)
    environment.filters.update(
        broker_name=broker_name,
        mark=MARKS.__getitem__,
        headline=wording.headline,
        subject=wording.subject,
        occasion=wording.occasion,
        moment=wording.moment,
        tally=wording.tally,
        outcome=wording.outcome,
        standpoint=wording.standpoint,
        fates=wording.fates,
        milliseconds=_milliseconds,
        cell_id=_cell_id,
    )
    return environment.get_template("report.html.j2")
