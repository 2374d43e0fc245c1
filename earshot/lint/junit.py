"""Writes the result as JUnit XML: a suite per file, a case per mistake, or one case if it has none.

The format is that of `earshot.report.junit`. Only an error fails its case, as for the exit code. A
warning or note passes, with its text as output. An ignored mistake is skipped, with its reason. A
file that could not be checked is an error. So is a named file that was not judged or judged in
part, because CI services treat skipped cases as harmless. Files that were passed over are one
suite, with a case per reason.
"""

import xml.etree.ElementTree as ET

from earshot.lint.model import Mistake, Outcome, summary_line
from earshot.lint.text import unchecked
from earshot.visible import visible

_NUMBERS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit(outcome: Outcome) -> str:
    """``outcome`` as one XML document."""
    root = ET.Element("testsuites", name="earshot lint")
    for file in outcome.checked:
        clean_case = _case(file.file, f"{file.kind}: no mistake")
        _suite(root, file.file, [_mistake(mistake) for mistake in file.mistakes] or [clean_case])
    for failed_file in outcome.failed:
        _suite(
            root, failed_file.file, [_error(failed_file.file, failed_file.error.line, "unreadable")]
        )
    for file, kind, reasons in outcome.incomplete:
        _suite(root, file.file, [_error(file.file, ", ".join(reasons), kind)])
    if outcome.passed_over:
        _suite(root, "passed over", [_skipped(reason) for reason in unchecked(outcome.passed_over)])
    for name in ("tests", *_NUMBERS):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", "0.000")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _suite(root: ET.Element, name: str, cases: list[ET.Element]) -> None:
    suite = ET.SubElement(root, "testsuite", name=visible(name), tests=str(len(cases)))
    for key, tag in _NUMBERS.items():
        suite.set(key, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", "0.000")
    suite.extend(cases)


def _mistake(mistake: Mistake) -> ET.Element:
    finding, place = mistake.finding, mistake.place
    line = f" line {place.line}" if place.line else ""
    case = _case(place.file, f"{finding.rule}{line} {finding.subject}")
    message = " ".join(visible(summary_line(mistake)).split())
    if mistake.ignored:
        ET.SubElement(case, "skipped", message=visible(mistake.ignored))
    elif mistake.is_error:
        ET.SubElement(case, "failure", message=message, type=finding.rule).text = _details(mistake)
    else:
        ET.SubElement(case, "system-out").text = f"{mistake.level}: {message}\n{_details(mistake)}"
    return case


def _details(mistake: Mistake) -> str:
    finding = mistake.finding
    facts = {"expected": finding.expected, "fix": finding.fix, "source": finding.source}
    return visible("\n".join(f"{label}: {fact}" for label, fact in facts.items()))


def _error(file: str, reason: str, type: str) -> ET.Element:
    case = _case(file, "can be checked")
    ET.SubElement(case, "error", message=visible(reason), type=type)
    return case


def _skipped(reason: str) -> ET.Element:
    case = _case("passed over", reason)
    ET.SubElement(case, "skipped", message=visible(reason))
    return case


def _case(file: str, name: str) -> ET.Element:
    return ET.Element("testcase", classname=visible(file), name=visible(name), time="0.000")
