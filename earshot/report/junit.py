"""Writes a report as JUnit XML: a case per cell, delivery pair and replication, and cases for
vantages that reached addresses or did not pass.

There is no official JUnit schema. The format is the common part that Ant's JUnit task introduced
and that GitLab, Jenkins and the usual GitHub actions document: `testsuites` > `testsuite` >
`testcase` with at most one of `failure`, `error`, `skipped`.

A fail is a `failure`. An inconclusive result is an `error`, because CI services treat skipped cases
as harmless. A skip is `skipped`, with its reason.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence

from earshot.report import digest, wording
from earshot.validation.result import Cell, Replication, Report, Vantage
from earshot.validation.terms import Verdict
from earshot.visible import one_line, visible

_TAGS = {Verdict.FAIL: "failure", Verdict.INCONCLUSIVE: "error", Verdict.SKIP: "skipped"}


def junit(report: Report) -> str:
    """``report`` as one XML document, with times in seconds, and timestamps in UTC without zone."""
    root = ET.Element("testsuites", name=f"earshot {report.kind}")
    for matrix in digest.matrices(report):
        _suite(root, report, matrix.vantage.name, matrix.vantage.where, list(_cells(matrix)))
    other_vantages = [
        vantage for vantage in report.vantages if vantage.verdict != Verdict.PASS or vantage.reached
    ]
    if other_vantages:
        _suite(root, report, "vantages", "", [_vantage(vantage) for vantage in other_vantages])
    if report.delivery:
        _suite(root, report, "delivery", "", [_delivery(pair) for pair in digest.pairs(report)])
    if report.replication:
        cases = [_replication(pair) for pair in report.replication]
        _suite(root, report, f"replication {digest.between_brokers(report)}", "", cases)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{report.seconds:.3f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _suite(
    root: ET.Element, report: Report, name: str, where: str, cases: list[ET.Element]
) -> None:
    suite = ET.SubElement(
        root,
        "testsuite",
        name=visible(f"{report.cluster} {name}"),
        tests=str(len(cases)),
        failures=_number(cases, "failure"),
        errors=_number(cases, "error"),
        skipped=_number(cases, "skipped"),
        time=f"{sum(float(case.get('time', '0')) for case in cases):.3f}",
        timestamp=wording.aware(report.started).strftime("%Y-%m-%dT%H:%M:%S"),
    )
    if where:
        suite.set("hostname", visible(where))
    properties = ET.SubElement(suite, "properties")
    about = {
        "subject": wording.subject(report),
        "occasion": wording.occasion(report),
        "verdict": report.verdict,
    }
    for key, value in about.items():
        ET.SubElement(properties, "property", name=f"earshot.{key}", value=visible(value))
    suite.extend(cases)


def _cells(matrix: digest.Matrix) -> Iterator[ET.Element]:
    for listener in matrix.listeners:
        for broker in matrix.brokers:
            cell = matrix.cell(listener, broker)
            if cell is not None:
                yield _cell(cell)


def _cell(cell: Cell) -> ET.Element:
    spent = sum(stage.seconds or 0 for stage in cell.stages)
    return _case_of_result(f"{cell.vantage}.{cell.listener}", digest.cell_name(cell), cell, spent)


def _delivery(pair: digest.Pair) -> ET.Element:
    name, fates = f"{pair.written_through} to {pair.read_through}", wording.fates(pair)
    details = (fates, *pair.examples)
    return _case("delivery", name, pair.verdict, "delivery", fates, details)


def _replication(pair: Replication) -> ET.Element:
    names = f"{digest.broker_name(pair.leader)} to {digest.broker_name(pair.follower)}"
    return _case_of_result("replication", names, pair)


def _case_of_result(
    classname: str, name: str, result: Cell | Replication, seconds: float = 0
) -> ET.Element:
    facts = digest.facts(result)
    kind, message = str(result.verdict), result.reason
    if result.cause is not None:
        kind = result.cause.kind
        message = f"{dict(facts).get('stage', 'cell')}: {result.cause.observed}"
    details = [f"{label}: {text}" for label, text in facts]
    return _case(classname, name, result.verdict, kind, message, details, seconds)


def _vantage(vantage: Vantage) -> ET.Element:
    missed = wording.unreached(vantage)
    message = vantage.reason or "; ".join(missed) or f"the vantage is {vantage.verdict}"
    name = wording.standpoint(vantage)
    return _case("vantages", name, vantage.verdict, vantage.kind, message, missed)


def _case(
    classname: str,
    name: str,
    verdict: Verdict,
    kind: str,
    message: str,
    details: Sequence[str],
    seconds: float = 0,
) -> ET.Element:
    case = ET.Element(
        "testcase", classname=visible(classname), name=visible(name), time=f"{seconds:.3f}"
    )
    if verdict != Verdict.PASS:
        element = ET.SubElement(case, _TAGS[verdict], message=visible(message).replace("\n", " "))
        if verdict != Verdict.SKIP:
            element.set("type", visible(kind))
            element.text = "\n".join(map(one_line, details)) or None
    return case


def _number(cases: list[ET.Element], tag: str) -> str:
    return str(sum(case.find(tag) is not None for case in cases))
