"""Writes the result as GitHub-flavoured Markdown, for the summary page of a CI run."""

from collections.abc import Iterable, Iterator

from earshot.lint.model import FileReport, Mistake, Outcome, observed_text
from earshot.lint.text import open_listeners, unchecked
from earshot.report.markdown import MARKS, escape
from earshot.validation.terms import Verdict

_HEAD = ("line", "", "rule", "subject", "observed", "expected", "fix")
_MARKS = {
    "error": MARKS[Verdict.FAIL],
    "warning": "\N{WARNING SIGN}",
    "note": MARKS[Verdict.INCONCLUSIVE],
}
_VERDICTS = {0: Verdict.PASS, 1: Verdict.FAIL}
"""Verdicts by exit code. Other codes are inconclusive."""


def markdown(outcome: Outcome) -> str:
    """``outcome`` with a table for each file that has mistakes."""
    verdict = _VERDICTS.get(outcome.exit_code, Verdict.INCONCLUSIVE)
    blocks = [[f"# {MARKS[verdict]} earshot lint: {escape(outcome.headline)}"]]
    blocks += [list(_file(file)) for file in outcome.checked if file.mistakes]
    parts = (
        ("Could not be checked", [failure.error.line for failure in outcome.failed]),
        ("Not checked", unchecked(outcome.checked)),
        ("Passed over", unchecked(outcome.passed_over)),
        ("Not judged", unchecked(outcome.not_judged)),
        ("Judged in part", open_listeners(outcome)),
    )
    blocks += [
        [f"## {title}", "", *(f"- {escape(line)}" for line in lines)]
        for title, lines in parts
        if lines
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _file(report: FileReport) -> Iterator[str]:
    yield f"## {escape(report.file)} ({escape(report.kind)})"
    counted_mistakes = [mistake for mistake in report.mistakes if not mistake.ignored]
    if counted_mistakes:
        yield ""
        yield _row(_HEAD)
        yield _row(["---"] * len(_HEAD))
        yield from (_row(_fields(mistake, report.file)) for mistake in counted_mistakes)
    if len(counted_mistakes) < len(report.mistakes):
        yield ""
    for mistake in report.mistakes:
        if mistake.ignored:
            subject = f"{_line(mistake, report.file)} {mistake.finding.rule}"
            yield f"- {subject} ignored: {escape(mistake.ignored)}"


def _fields(mistake: Mistake, file: str) -> tuple[str, ...]:
    finding = mistake.finding
    return (
        _line(mistake, file),
        _MARKS[mistake.level],
        f"[{finding.rule}]({finding.source})",
        *map(escape, (finding.subject, observed_text(mistake), finding.expected, finding.fix)),
    )


def _line(mistake: Mistake, file: str) -> str:
    place = mistake.place
    number = str(place.line or "?")
    return number if place.file == file else escape(f"{place.file}:{number}")


def _row(fields: Iterable[str]) -> str:
    return f"| {' | '.join(fields)} |"
