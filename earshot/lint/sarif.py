"""Writes the result as SARIF 2.1.0 (OASIS), for code scanning services.

File names are relative to the folder in which earshot ran, usually the root of a checkout. Section
numbers are those of the standard.
"""

from urllib.parse import quote

from earshot import __version__
from earshot.json_object import JsonObject
from earshot.lint.baseline import IN_BASELINE, BaselineEntry
from earshot.lint.model import Mistake, Outcome, summary_line
from earshot.rules.evaluate import RULES
from earshot.rules.rule import Rule
from earshot.visible import json_text, visible

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
FINGERPRINT = "earshot/v1"
_INDEX = {rule.id: index for index, rule in enumerate(RULES)}


def sarif(outcome: Outcome) -> str:
    """``outcome`` as one run with every rule. Ignored mistakes are suppressed results."""
    notes = [("error", str(failure.error), failure.file) for failure in outcome.failed]
    notes += [("note", text, file.file) for file in outcome.checked for text in file.unchecked]
    notes += [
        ("error" if file.is_named else "note", f"judged in part: {text}", file.file)
        for file in outcome.judged_in_part
        for text in file.open_listeners
    ]
    notes += [
        (level, f"{state}: {text}", report.file)
        for level, state, reports in (
            ("error", "not judged", outcome.not_judged),
            ("note", "passed over", outcome.passed_over),
        )
        for report in reports
        for text in report.unchecked
    ]
    run = {
        "tool": {
            "driver": {
                "name": "earshot",
                "semanticVersion": __version__,
                "rules": [_rule(rule) for rule in RULES],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not (outcome.failed or outcome.incomplete),
                "exitCode": outcome.exit_code,
                "exitCodeDescription": visible(outcome.headline),
                "toolExecutionNotifications": [_notification(*note, outcome) for note in notes],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [_result(mistake, outcome) for mistake in outcome.mistakes],
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.id,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.reason},
        "help": {
            "text": f"Fix: {rule.remedy}.\nSource: {rule.source}",
            "markdown": f"{rule.reason}\n\n**Fix**: {rule.remedy}.\n\n[Source]({rule.source})",
        },
        "helpUri": rule.source,
        "defaultConfiguration": {"level": str(rule.severity)},
        "properties": {"tags": ["kafka"]},
    }


def _result(mistake: Mistake, outcome: Outcome) -> JsonObject:
    finding = mistake.finding
    index = {"ruleIndex": _INDEX[finding.rule]} if finding.rule in _INDEX else {}
    text = f"{summary_line(mistake)}\nexpected: {finding.expected}\nfix: {finding.fix}"
    place = mistake.place
    return {
        "ruleId": finding.rule,
        **index,
        "level": mistake.level,
        "message": {"text": visible(text)},
        "locations": [_location(outcome, place.file, place.line, place.column)],
        "partialFingerprints": {FINGERPRINT: BaselineEntry.of(mistake, outcome.root).fingerprint},
        # 3.27.23: either all results have it, or none; an empty list means not suppressed
        "suppressions": [_suppression(mistake.ignored)] if mistake.ignored else [],
    }


def _suppression(reason: str) -> dict[str, str]:
    kind = "external" if reason == IN_BASELINE else "inSource"
    return {"kind": kind, "justification": visible(reason)}


def _notification(level: str, text: str, file: str, outcome: Outcome) -> dict[str, object]:
    return {
        "level": level,
        "message": {"text": visible(text)},
        "locations": [_location(outcome, file)],
    }


def _location(outcome: Outcome, file: str, line: int = 0, column: int = 0) -> dict[str, object]:
    name = outcome.relative(file)
    # names that are not UTF-8 are encoded by their bytes
    uri = quote(name, errors="surrogateescape")
    artifact = (
        {"uri": f"file://{uri}"}
        if name.startswith("/")
        else {"uri": uri, "uriBaseId": "%SRCROOT%"}  # 3.14.14: the reader knows the root
    )
    region = {"startLine": line} | ({"startColumn": column} if column else {})
    physical = {"artifactLocation": artifact} | ({"region": region} if line else {})
    return {"physicalLocation": physical}
