"""A baseline: the mistakes there are when it is written, so that only new ones count.

A mistake is known again by its file, rule, subject and observed text, wherever its line has gone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from earshot.errors import EarshotError, SpecError
from earshot.lint.ignores import Waiver, last_day
from earshot.lint.model import FileReport, Mistake, relative
from earshot.reading import read_bytes

IN_BASELINE = "in the baseline"
MAX_PROBLEMS = 20
"""Of them, so many are reported."""
_FIELDS = ("file", "rule", "subject", "observed")
_ALLOWED = "a file that --write-baseline wrote"


@dataclass(frozen=True)
class BaselineEntry:
    """One mistake, by what stays the same when lines move."""

    file: str
    """As it is called from the folder that earshot ran in."""
    rule: str
    subject: str
    observed: str
    until: str = field(default="", compare=False)
    """The last day on which it is ignored, as 2027-01-31; none means always."""

    @classmethod
    def of(cls, mistake: Mistake, root: Path) -> BaselineEntry:
        """``mistake``, whose file is called as from ``root``."""
        finding = mistake.finding
        return cls(
            relative(mistake.place.file, root), finding.rule, finding.subject, finding.observed
        )

    @property
    def texts(self) -> dict[str, str]:
        """What it is known by."""
        return {name: getattr(self, name) for name in _FIELDS}

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits, the same for the same four texts."""
        texts = json.dumps([*self.texts.values()])
        return hashlib.sha256(texts.encode()).hexdigest()


def recorded(
    linted: Iterable[FileReport], root: Path, before: Collection[BaselineEntry] = ()
) -> frozenset[BaselineEntry]:
    """Every mistake that is not ignored otherwise; those of ``before`` keep their day."""
    known = {entry: entry for entry in before}
    problems = (
        BaselineEntry.of(mistake, root)
        for report in linted
        for mistake in report.mistakes
        if not mistake.ignored
    )
    return frozenset(known.get(problem, problem) for problem in problems)


def as_text(mistakes: Collection[BaselineEntry]) -> str:
    """``mistakes`` as the JSON that `read_baseline` reads, in an order that stays."""
    rows = [
        mistake.texts | ({"until": mistake.until} if mistake.until else {})
        for mistake in sorted(mistakes, key=lambda item: [*item.texts.values()])
    ]
    return json.dumps({"version": 1, "mistakes": rows}, indent=2) + "\n"


def read_baseline(file: Path) -> frozenset[BaselineEntry]:
    """The mistakes that ``file`` holds. Raises EarshotError."""
    shown = f"--baseline {file}"
    try:
        document = json.loads(read_bytes(file))
    except OSError as reason:
        raise EarshotError(
            shown,
            observed=f"cannot be read ({reason.strerror})",
            remedy=f"earshot lint PATH --write-baseline {file}",
        ) from None
    except (ValueError, RecursionError) as reason:  # no JSON, or no UTF-8 text
        raise EarshotError(
            shown,
            observed=f"is no JSON ({str(reason).partition('; use sys.')[0]})",
            allowed=_ALLOWED,
        ) from None
    if not isinstance(document, Mapping):
        raise EarshotError(shown, observed="holds no JSON object", allowed=_ALLOWED)
    rows = document.get("mistakes")
    problems = [f"{key}: unknown key" for key in document if key not in ("version", "mistakes")]
    if document.get("version") != 1 or isinstance(document.get("version"), bool):
        problems.append("version: 1 is the only one there is")
    if not isinstance(rows, list):
        problems.append("mistakes: no list")
    for number, row in enumerate(rows if isinstance(rows, list) else ()):
        problems += [f"mistakes[{number}]{problem}" for problem in _problems(row)]
    if problems:
        raise SpecError.of(shown, problems[:MAX_PROBLEMS])
    assert isinstance(rows, list)
    for row in rows:
        if "until" in row:
            last_day(row["until"], f"{shown}: {row['rule']}, {row['subject']}")
    return frozenset(BaselineEntry(**row) for row in rows)


def _problems(row: object) -> list[str]:
    if not isinstance(row, Mapping):
        return [": no JSON object"]
    problems = [f".{key}: unknown key" for key in row if key not in (*_FIELDS, "until")]
    problems += [f".{key}: is missing" for key in _FIELDS if key not in row]
    problems += [f".{key}: no text" for key in row if not isinstance(row[key], str)]
    return problems


def with_baseline(
    linted: FileReport, baseline: Collection[BaselineEntry], root: Path, today: date
) -> FileReport:
    """``linted`` with the mistakes of ``baseline`` ignored, until their day where they have one."""
    known = {entry: entry.until for entry in baseline}

    def checked(mistake: Mistake) -> Mistake:
        until = known.get(BaselineEntry.of(mistake, root))
        if mistake.ignored or until is None:
            return mistake
        return Waiver(IN_BASELINE, date.fromisoformat(until) if until else None).on(mistake, today)

    return replace(linted, mistakes=tuple(map(checked, linted.mistakes)))
