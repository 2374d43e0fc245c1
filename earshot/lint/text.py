"""The result for a reader: by file, each mistake with its line, and a summary at the end.

Mistakes of several containers that read the same are one block, with a heading for each.
"""

from collections.abc import Iterable, Iterator, Sequence

from earshot.lint.model import FileReport, Mistake, Outcome, counted, observed, where
from earshot.lint.source_lines import excerpt
from earshot.listeners.listed import by_key
from earshot.report.terminal import Terminal
from earshot.report.visible import one_line
from earshot.validation.terms import Verdict

SHOWN = 3
"""So many names of files that are alike are written out."""
_INK = {"error": Verdict.FAIL, "warning": Verdict.INCONCLUSIVE, "note": Verdict.SKIP}
_LABELS = ("observed", "expected", "fix", "source")


def text(outcome: Outcome, terminal: Terminal | None = None) -> str:
    """``outcome`` for a reader; ``terminal`` says what may be used (default: plain ASCII)."""
    ink = terminal or Terminal()
    blocks = [
        block for file in outcome.checked if file.mistakes for block in _file(file, outcome, ink)
    ]
    blocks += [
        [ink.bold(title), *(f"- {one_line(line)}" for line in lines)]
        for title, lines in (
            ("not checked", unchecked(outcome.checked)),
            ("passed over", unchecked(outcome.passed_over)),
            ("not judged", unchecked(outcome.not_judged)),
            ("judged in part", open_listeners(outcome)),
            ("could not be checked", [failure.file for failure in outcome.failed]),
        )
        if lines
    ]
    blocks.append([ink.bold(one_line(outcome.headline))])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def unchecked(linted: Iterable[FileReport]) -> list[str]:
    """One line for each reason, with the files that it holds for."""
    return _by_reason((reason, item.file) for item in linted for reason in item.unchecked)


def open_listeners(outcome: Outcome) -> list[str]:
    """One line for each reason why listeners are not known, with the files that it holds for."""
    files = outcome.judged_in_part
    return _by_reason((reason, item.file) for item in files for reason in item.open_listeners)


def _by_reason(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{reason} ({_names(listed)})" for reason, listed in by_key(pairs).items()]


def _names(files: Sequence[str]) -> str:
    if len(files) > SHOWN:
        return f"{counted(len(files), 'file')}, {files[0]} the first"
    return ", ".join(files)


def _file(linted: FileReport, outcome: Outcome, ink: Terminal) -> Iterator[list[str]]:
    yield [ink.bold(one_line(f"{linted.file} ({linted.kind})"))]
    alike = by_key(
        ((mistake.level, _facts(mistake)), mistake)
        for mistake in linted.mistakes
        if not mistake.ignored
    )
    yield from (list(_block(mistakes, outcome, ink)) for mistakes in alike.values())
    ignored = [mistake for mistake in linted.mistakes if mistake.ignored]
    if ignored:
        yield [
            one_line(f"{where(mistake)}: {mistake.finding.rule} ignored: {mistake.ignored}")
            for mistake in ignored
        ]


def _block(mistakes: Sequence[Mistake], outcome: Outcome, ink: Terminal) -> Iterator[str]:
    first = mistakes[0]
    for mistake in mistakes:
        level = ink.tint(mistake.level, _INK[mistake.level])
        named = f"{mistake.finding.rule}, {one_line(mistake.finding.subject)}"
        yield f"{one_line(where(mistake))}: {level} {named}"
    yield from excerpt(outcome.lines(first.place.file), first.place, ink.width)
    width = max(map(len, _LABELS))
    for label, fact in _facts(first):
        yield ink.field(label, fact, width)


def _facts(mistake: Mistake) -> tuple[tuple[str, str], ...]:
    """What is said of it below its line, each with its label."""
    finding = mistake.finding
    written = [("write" if not i else "", str(line)) for i, line in enumerate(finding.lines)]
    facts = (observed(mistake), finding.expected, finding.remedy, finding.source)
    named = [*zip(_LABELS, facts, strict=True)]
    return (*named[:-1], *written, named[-1])
