"""What `earshot lint` says of the files it was given.

All formats are made from an `Outcome`: every file with what became of it, its name and its lines.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from earshot.errors import EarshotError
from earshot.listeners.listed import by_key, shortened
from earshot.rules.registry import Finding, Severity


@dataclass(frozen=True)
class Place:
    """The place of a mistake: a file, and line and column in it, both from 1; 0 if not known."""

    file: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Mistake:
    """One finding at its place; ``ignored`` holds the reason where it is ignored, and
    ``expired`` says that it was ignored until a day that has passed."""

    finding: Finding
    place: Place
    ignored: str = ""
    expired: str = ""

    @property
    def is_error(self) -> bool:
        """Counts for the exit code: certain, an error, and not ignored."""
        return self.finding.is_certain_error and not self.ignored

    @property
    def level(self) -> str:
        """`error` or `warning`; `note` where a value is not known."""
        if self.finding.is_certain_error:
            return "error"
        return "warning" if self.finding.severity is Severity.WARNING else "note"


@dataclass(frozen=True)
class FileReport:
    """One file: what it was taken for, what is wrong in it, and what could not be checked.

    ``kind`` is such as "Compose file" or "properties file"; where it is empty the file was passed
    over, and ``unchecked`` says why. ``open_listeners`` says why listeners of its brokers are not
    known: then it is judged in part. ``is_named`` is true for a file that the user named: to pass
    it over in silence would be a false pass.
    """

    file: str
    kind: str
    mistakes: tuple[Mistake, ...] = ()
    unchecked: tuple[str, ...] = ()
    is_named: bool = False
    open_listeners: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileOptions:
    """What the user states of the files beyond their content.

    ``release`` is Kafka's (major, minor) where a file shows none; of ``profiles`` those services
    run that Compose would start, all of them where none is named.
    """

    release: tuple[int, int] | None = None
    profiles: Sequence[str] = ()


NO_OPTIONS = FileOptions()
Lines = Callable[[str], Sequence[str]]
"""The lines of a file by its name, without their ends; none where it cannot be read."""


def relative(file: str, root: Path) -> str:
    """``file`` as it is called from ``root``, with slashes; whole where it is not below that."""
    path = Path(os.path.normpath(root / file))
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


@dataclass(frozen=True)
class FailedFile:
    """A file that could not be checked, and why."""

    file: str
    error: EarshotError


@dataclass(frozen=True)
class Outcome:
    """The result of one run over ``linted``, those that were passed over among them.

    ``lines`` gives the lines of a file by its name; ``root`` is the folder that names begin in.
    """

    linted: Sequence[FileReport]
    failed: Sequence[FailedFile]
    root: Path
    lines: Lines

    @property
    def checked(self) -> tuple[FileReport, ...]:
        return tuple(item for item in self.linted if item.kind)

    @property
    def passed_over(self) -> tuple[FileReport, ...]:
        """Files and folders that were found in a folder, and not checked."""
        return tuple(item for item in self.linted if not (item.kind or item.is_named))

    @property
    def not_judged(self) -> tuple[FileReport, ...]:
        """Files that the user named, and that were not checked."""
        return tuple(item for item in self.linted if item.is_named and not item.kind)

    @property
    def judged_in_part(self) -> tuple[FileReport, ...]:
        """Files with a broker whose listeners are not known."""
        return tuple(item for item in self.checked if item.open_listeners)

    @property
    def incomplete(self) -> tuple[tuple[FileReport, str, tuple[str, ...]], ...]:
        """The files that the user named and that end a run with 3: what each is, and why."""
        none = [(item, "not judged", item.unchecked) for item in self.not_judged]
        part = [
            (item, "judged in part", item.open_listeners)
            for item in self.judged_in_part
            if item.is_named
        ]
        return (*none, *part)

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """Those of all files, the ignored ones included."""
        return tuple(mistake for item in self.linted for mistake in item.mistakes)

    @property
    def exit_code(self) -> int:
        """2 for a file that could not be read, else 1 for an error that counts, else 3 for a named
        file that was not judged, or in part only, else 0."""
        if self.failed:
            return 2
        if any(mistake.is_error for mistake in self.mistakes):
            return 1
        return 3 if self.incomplete else 0

    @property
    def counts(self) -> Counter[str]:
        """How many there are of `error`, `warning`, `note`, and apart from these of `ignored`."""
        return Counter("ignored" if mistake.ignored else mistake.level for mistake in self.mistakes)

    @property
    def headline(self) -> str:
        """`3 files checked: 2 errors, 0 warnings; 12 passed over; 1 not judged: FILE (WHY)`."""
        counts = self.counts
        parts = [counted(counts[level], level) for level in ("error", "warning")]
        parts += [counted(counts["note"], "note")] if counts["note"] else []
        parts += [f"{counts['ignored']} ignored"] if counts["ignored"] else []
        checked = f"{counted(len(self.checked), 'file')} checked: {', '.join(parts)}"
        texts = [checked if self.checked else "nothing to check"]
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
        """The named files of one ``kind``, by the reason."""
        pairs = ((shortened(why), file.file) for file, it, why in self.incomplete if it == kind)
        return ", ".join(f"{shortened(files)} ({why})" for why, files in by_key(pairs).items())

    def relative(self, file: str) -> str:
        """``file`` as it is called from the folder that earshot runs in, with slashes."""
        return relative(file, self.root)


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def where(mistake: Mistake) -> str:
    """`compose.yml:14:7`, as far as it is known."""
    place = mistake.place
    numbers = (place.line, place.column) if place.line else ()
    return ":".join([place.file, *(str(number) for number in numbers if number)])


def said(mistake: Mistake) -> str:
    """The subject, and what was observed: `broker 1, listener EXTERNAL: advertises localhost`."""
    return f"{mistake.finding.subject}: {observed(mistake)}"


def observed(mistake: Mistake) -> str:
    """What was observed, and that it was ignored for a time, where it was."""
    expired = f" ({mistake.expired})" if mistake.expired else ""
    return f"{mistake.finding.observed}{expired}"
