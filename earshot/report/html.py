"""Writes a report as one HTML file: without external resources or scripts, light and dark."""

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
from earshot.validation.result import Report
from earshot.validation.terms import Verdict
from earshot.visible import one_line

MARKS = {
    Verdict.PASS: "\N{CHECK MARK}",
    Verdict.FAIL: "\N{BALLOT X}",
    Verdict.SKIP: "\N{EN DASH}",
    Verdict.INCONCLUSIVE: "?",
}
WORDED = ("headline", "subject", "occasion", "moment", "tally", "outcome", "standpoint", "fates")
"""The functions of `wording` that the template uses as filters."""
WIDE = 8
"""With more brokers than this, a matrix has a row per broker instead of a column."""


def html(report: Report) -> str:
    """``report`` as an HTML page. All texts are escaped."""
    return _template().render(
        report=report,
        topology=geometry.topology(report),
        matrices=matrices(report),
        problems=shortcomings(report),
        pairs=pairs(report),
        copies=copies(report),
        between_brokers=between_brokers(report),
        facts=[
            ("run", report.run),
            ("kind", str(report.kind)),
            *((f"incarnation of {name}", text) for name, text in report.incarnations.items()),
        ],
    )


def _finalize(value: object) -> object:
    # a macro returns markup, whose values have been finalized before
    if isinstance(value, (Address, str)) and not hasattr(value, "__html__"):
        return one_line(str(value))
    return value


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
    environment.filters.update({name: getattr(wording, name) for name in WORDED})
    environment.filters.update(
        broker_name=broker_name,
        mark=MARKS.__getitem__,
        milliseconds=lambda seconds: "" if seconds is None else f"{seconds * 1000:.1f} ms",
        cell_id=lambda cell: f"{cell.vantage}/{cell.listener}/{cell.broker}",
    )
    return environment.get_template("report.html.j2")
