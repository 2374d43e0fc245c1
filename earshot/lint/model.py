"""The result of `earshot lint`, from which all report formats are made."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from earshot.errors import EarshotError
from earshot.listeners.listed import by_key, shortened
from earshot.rules.rule import Finding, Severity


@dataclass(frozen=True)
class Place:
    """The place of a mistake: a file, line and column. Both count from 1; 0 if unknown."""

    file: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Mistake:
    """A finding at its place.

    ``ignored`` is the reason if it is ignored. ``expired`` is a note if it was ignored until a day
    that has passed.
    """

    finding: Finding
    place: Place
    ignored: str = ""
    expired: str = ""

    @property
    def is_error(self) -> bool:
        """True if it counts for the exit code: a certain error that is not ignored."""
        return self.finding.is_certain_error and not self.ignored

    @property
    def level(self) -> str:
        """`error`, `warning`, or `note` if a value is unknown."""
        if self.finding.is_certain_error:
            return "error"
        return "warning" if self.finding.severity is Severity.WARNING else "note"


@dataclass(frozen=True)
class FileReport:
    """The result for one file.

    ``kind`` is, for example, "Compose file"; it is empty if the file was not checked, and
    ``unchecked`` has the reasons. ``open_listeners`` has the reasons why listeners of its brokers
    are unknown; then the file is judged in part. ``is_named`` is True for a file that the user
    named: it must not be passed over silently.
    """

    file: str
    kind: str
    mistakes: tuple[Mistake, ...] = ()
    unchecked: tuple[str, ...] = ()
    is_named: bool = False
    open_listeners: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileOptions:
    """Options that describe the files.

    ``release`` is Kafka's (major, minor) for files that do not show it. ``profiles`` are the active
    Compose profiles; without any, the services of all profiles count as started.
    """

    release: tuple[int, int] | None = None
    profiles: Sequence[str] = ()


NO_OPTIONS = FileOptions()
Lines = Callable[[str], Sequence[str]]
"""Returns the lines of a file by its name, without line ends; none if it cannot be read."""


def relative(file: str, root: Path) -> str:
    """``file`` relative to ``root``, with slashes; absolute if it is not below ``root``."""
    path = Path(os.path.normpath(root / file))
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def together(reports: Sequence[FileReport], kind: str) -> FileReport:
    """The ``reports`` on parts of one file as one, of ``kind``."""
    return replace(
        reports[0],
        kind=kind,
        mistakes=tuple(mistake for report in reports for mistake in report.mistakes),
        unchecked=tuple(reason for report in reports for reason in report.unchecked),
        open_listeners=tuple(reason for report in reports for reason in report.open_listeners),
    )


def without_repeats(reports: Sequence[FileReport], root: Path) -> list[FileReport]:
    """``reports`` without mistakes of earlier ones: a file may be checked alone, and with another
    that names it. Names of files are relative to ``root``."""
    earlier: set[tuple[object, ...]] = set()
    new_reports = []
    for report in reports:
        keys = [_key(mistake, root) for mistake in report.mistakes]
        mistakes = zip(keys, report.mistakes, strict=True)
        new_mistakes = tuple(mistake for key, mistake in mistakes if key not in earlier)
        new_reports.append(replace(report, mistakes=new_mistakes))
        earlier.update(keys)
    return new_reports


def _key(mistake: Mistake, root: Path) -> tuple[object, ...]:
    """Equal for mistakes of two reports that are the same."""
    place, finding = mistake.place, mistake.finding
    return relative(place.file, root), place.line, place.column, finding.line


@dataclass(frozen=True)
class FailedFile:
    """A file that could not be checked, with the error."""

    file: str
    error: EarshotError


@dataclass(frozen=True)
class Outcome:
    """The result of one run.

    ``reports`` include files that were passed over. ``lines`` returns the lines of a file by its
    name. Names are relative to ``root``.
    """

    reports: Sequence[FileReport]
    failed: Sequence[FailedFile]
    root: Path
    lines: Lines

    @property
    def checked(self) -> tuple[FileReport, ...]:
        return tuple(report for report in self.reports if report.kind)

    @property
    def passed_over(self) -> tuple[FileReport, ...]:
        """Files and folders below a named folder that were not checked."""
        return tuple(report for report in self.reports if not (report.kind or report.is_named))

    @property
    def not_judged(self) -> tuple[FileReport, ...]:
        """Files that the user named and that were not checked."""
        return tuple(report for report in self.reports if report.is_named and not report.kind)

    @property
    def judged_in_part(self) -> tuple[FileReport, ...]:
        """Files with a broker whose listeners are unknown."""
        return tuple(report for report in self.checked if report.open_listeners)

    @property
    def incomplete(self) -> tuple[tuple[FileReport, str, tuple[str, ...]], ...]:
        """The named files that cause exit code 3, each with its state and the reasons."""
        not_judged = [(report, "not judged", report.unchecked) for report in self.not_judged]
        in_part = [
            (report, "judged in part", report.open_listeners)
            for report in self.judged_in_part
            if report.is_named
        ]
        return (*not_judged, *in_part)

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The mistakes of all files, including ignored ones."""
        return tuple(mistake for report in self.reports for mistake in report.mistakes)

    @property
    def exit_code(self) -> int:
        """2 if a file could not be checked, else 1 if there is an error that is not ignored, else 3
        if a named file was not judged or only in part, else 0."""
        if self.failed:
            return 2
        if any(mistake.is_error for mistake in self.mistakes):
            return 1
        return 3 if self.incomplete else 0

    @property
    def counts(self) -> Counter[str]:
        """The number of mistakes by level (`error`, `warning`, `note`), and of `ignored` ones."""
        return Counter("ignored" if mistake.ignored else mistake.level for mistake in self.mistakes)

    @property
    def headline(self) -> str:
        """`3 files checked: 2 errors, 0 warnings; 12 passed over; 1 not judged: FILE (WHY)`."""
        counts = self.counts
        parts = [count_of(counts[level], level) for level in ("error", "warning")]
        parts += [count_of(counts["note"], "note")] if counts["note"] else []
        parts += [f"{counts['ignored']} ignored"] if counts["ignored"] else []
        checked_text = f"{count_of(len(self.checked), 'file')} checked: {', '.join(parts)}"
        texts = [checked_text if self.checked else "nothing to check"]
        if self.passed_over:
            texts.append(f"{len(self.passed_over)} passed over")
        if self.failed:
            texts.append(f"{len(self.failed)} could not be checked")
        if self.not_judged:
            texts.append(f"{len(self.not_judged)} not judged: {self._reasons('not judged')}")
        if self.judged_in_part:
            reasons = self._reasons("judged in part")
            texts.append(f"{len(self.judged_in_part)} judged in part{reasons and f': {reasons}'}")
        return "; ".join(texts)

    def _reasons(self, kind: str) -> str:
        """The named files of one ``kind`` (`not judged`, `judged in part`), by reason."""
        pairs = (
            (shortened(reasons), file.file)
            for file, kind_of_report, reasons in self.incomplete
            if kind_of_report == kind
        )
        return ", ".join(
            f"{shortened(files)} ({reasons})" for reasons, files in by_key(pairs).items()
        )

    def relative(self, file: str) -> str:
        """``file`` relative to `root`, with slashes."""
        return relative(file, self.root)


def count_of(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def where(mistake: Mistake) -> str:
    """`compose.yml:14:7`, without unknown numbers."""
    place = mistake.place
    numbers = (place.line, place.column) if place.line else ()
    return ":".join([place.file, *(str(number) for number in numbers if number)])


def summary_line(mistake: Mistake) -> str:
    """The subject and the observed value: `broker 1, listener EXTERNAL: advertises localhost`."""
    return f"{mistake.finding.subject}: {observed_text(mistake)}"


def observed_text(mistake: Mistake) -> str:
    """The observed value, with a note if a waiver has expired."""
    expired = f" ({mistake.expired})" if mistake.expired else ""
    return f"{mistake.finding.observed}{expired}"
