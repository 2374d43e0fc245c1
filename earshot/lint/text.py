"""Writes the result as text: by file, each mistake with its line, and a summary at the end.

Mistakes with the same text in several containers are one block, with a heading for each.
"""

from collections.abc import Iterable, Iterator, Sequence

from earshot.lint.model import FileReport, Mistake, Outcome, count_of, observed_text, where
from earshot.lint.source_lines import excerpt
from earshot.listeners.listed import by_key
from earshot.report.terminal import Terminal
from earshot.rules.rule import LineToWrite
from earshot.validation.terms import Verdict
from earshot.visible import one_line

MAX_FILES_SHOWN = 3
"""The maximum number of file names in a line with one reason."""
_TINTS = {"error": Verdict.FAIL, "warning": Verdict.INCONCLUSIVE, "note": Verdict.SKIP}
_LABELS = ("observed", "expected", "fix", "source")


def text(outcome: Outcome, terminal: Terminal | None = None) -> str:
    """``outcome`` as text. ``terminal`` has the style (default: plain ASCII)."""
    style = terminal or Terminal()
    blocks = [
        block for file in outcome.checked if file.mistakes for block in _file(file, outcome, style)
    ]
    blocks += [
        [style.bold(title), *(f"- {one_line(line)}" for line in lines)]
        for title, lines in (
            ("not checked", unchecked(outcome.checked)),
            ("passed over", unchecked(outcome.passed_over)),
            ("not judged", unchecked(outcome.not_judged)),
            ("judged in part", open_listeners(outcome)),
            ("could not be checked", [failure.file for failure in outcome.failed]),
        )
        if lines
    ]
    blocks.append([style.bold(one_line(outcome.headline))])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def unchecked(reports: Iterable[FileReport]) -> list[str]:
    """One line for each reason, with its files."""
    return _by_reason((reason, report.file) for report in reports for reason in report.unchecked)


def open_listeners(outcome: Outcome) -> list[str]:
    """One line for each reason why listeners are unknown, with its files."""
    files = outcome.judged_in_part
    return _by_reason((reason, report.file) for report in files for reason in report.open_listeners)


def _by_reason(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{reason} ({_names(files)})" for reason, files in by_key(pairs).items()]


def _names(files: Sequence[str]) -> str:
    if len(files) > MAX_FILES_SHOWN:
        return f"{count_of(len(files), 'file')}, {files[0]} the first"
    return ", ".join(files)


def _file(report: FileReport, outcome: Outcome, style: Terminal) -> Iterator[list[str]]:
    yield [style.bold(one_line(f"{report.file} ({report.kind})"))]
    groups = by_key(
        ((mistake.level, _facts(mistake)), mistake)
        for mistake in report.mistakes
        if not mistake.ignored
    )
    shown: dict[tuple[LineToWrite, ...], str] = {}
    yield from (list(_block(mistakes, outcome, style, shown)) for mistakes in groups.values())
    ignored = [mistake for mistake in report.mistakes if mistake.ignored]
    if ignored:
        yield [
            one_line(f"{where(mistake)}: {mistake.finding.rule} ignored: {mistake.ignored}")
            for mistake in ignored
        ]


def _block(
    mistakes: Sequence[Mistake],
    outcome: Outcome,
    style: Terminal,
    shown: dict[tuple[LineToWrite, ...], str],
) -> Iterator[str]:
    """One block; ``shown`` are the lines to write of earlier ones, with their places."""
    first_mistake = mistakes[0]
    place, lines = one_line(where(first_mistake)), first_mistake.finding.lines
    earlier = shown.setdefault(lines, place) if len(lines) > 1 else place
    for mistake in mistakes:
        level = style.tint(mistake.level, _TINTS[mistake.level])
        rule_and_subject = f"{mistake.finding.rule}, {one_line(mistake.finding.subject)}"
        yield f"{one_line(where(mistake))}: {level} {rule_and_subject}"
    yield from excerpt(outcome.lines(first_mistake.place.file), first_mistake.place, style.width)
    width = max(map(len, _LABELS))
    for label, fact in _facts(first_mistake, "" if earlier == place else earlier):
        yield style.field(label, fact, width)


def _facts(mistake: Mistake, earlier: str = "") -> tuple[tuple[str, str], ...]:
    """The facts below a mistake's line, with their labels.

    ``earlier`` is the place of a mistake with the same lines to write, which are not repeated.
    """
    finding = mistake.finding
    texts = [f"the lines for {earlier}, above"] if earlier else map(str, finding.lines)
    lines_to_write = [("write" if not i else "", text) for i, text in enumerate(texts)]
    facts = (observed_text(mistake), finding.expected, finding.remedy, finding.source)
    labelled_facts = [*zip(_LABELS, facts, strict=True)]
    return (*labelled_facts[:-1], *lines_to_write, labelled_facts[-1])
