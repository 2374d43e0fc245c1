"""Writes the result as one JSON document."""

from dataclasses import asdict

from earshot.lint.model import FileReport, Mistake, Outcome
from earshot.visible import json_text


def json(outcome: Outcome) -> str:
    """``outcome`` with every file: checked, passed over, not judged, or failed. Unknown numbers are
    null."""
    counts = outcome.counts
    document = {
        "version": 1,
        "summary": {
            "checked": len(outcome.checked),
            "errors": counts["error"],
            "warnings": counts["warning"],
            "notes": counts["note"],
            "ignored": counts["ignored"],
            "passed_over": len(outcome.passed_over),
            "not_judged": len(outcome.not_judged),
            "judged_in_part": len(outcome.judged_in_part),
            "failed": len(outcome.failed),
            "exit_code": outcome.exit_code,
            "headline": outcome.headline,
        },
        "files": [_file(file) for file in outcome.checked],
        "passed_over": list(map(_skipped, outcome.passed_over)),
        "not_judged": list(map(_skipped, outcome.not_judged)),
        "failed": [{"file": failure.file, "why": str(failure.error)} for failure in outcome.failed],
    }
    return json_text(document)


def _skipped(report: FileReport) -> dict[str, object]:
    return {"file": report.file, "why": list(report.unchecked)}


def _file(report: FileReport) -> dict[str, object]:
    return {
        "file": report.file,
        "kind": report.kind,
        "mistakes": [_mistake(mistake) for mistake in report.mistakes],
        "not_checked": list(report.unchecked),
        "open_listeners": list(report.open_listeners),
    }


def _mistake(mistake: Mistake) -> dict[str, object]:
    finding, place = mistake.finding, mistake.place
    return {
        "rule": finding.rule,
        "level": mistake.level,
        "state": str(finding.state),
        "ignored": mistake.ignored or None,
        "expired": mistake.expired or None,
        "file": place.file,
        "line": place.line or None,
        "column": place.column or None,
        "subject": finding.subject,
        "container": finding.container or None,
        "node": finding.node,
        "listener": finding.listener,
        "scope": finding.scope and str(finding.scope),
        "observed": finding.observed,
        "expected": finding.expected,
        "remedy": finding.remedy,
        "lines": [asdict(line) for line in finding.lines],
        "source": finding.source,
    }
