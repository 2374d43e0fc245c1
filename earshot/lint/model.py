"""What `earshot lint` says of the files it was given."""

from collections.abc import Sequence
from dataclasses import dataclass

from earshot.rules.registry import Finding, Severity


@dataclass(frozen=True)
class Place:
    """Where a mistake stands: a file, and line and column in it, both from 1; 0 is not known."""

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
class Linted:
    """One file: what it was taken for, what is wrong in it, and what could not be checked.

    ``kind`` is such as "Compose file" or "properties file"; where it is empty the file was passed
    over, and ``unchecked`` says why.
    """

    file: str
    kind: str
    mistakes: tuple[Mistake, ...] = ()
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Said:
    """What the user states of the files beyond their content.

    ``release`` is Kafka's (major, minor) where a file shows none; of ``profiles`` those services
    run that Compose would start, all of them where none is named.
    """

    release: tuple[int, int] | None = None
    profiles: Sequence[str] = ()


NOTHING_SAID = Said()
