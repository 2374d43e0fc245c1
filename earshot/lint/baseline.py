"""A baseline: a file with the current mistakes, so that only new ones count.

A mistake is identified by its file, rule, subject and observed text, not by its line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from earshot.errors import EarshotError, SpecError
from earshot.files.reading import read_bytes
from earshot.lint.ignores import Waiver, last_day
from earshot.lint.model import FileReport, Mistake, relative

IN_BASELINE = "in the baseline"
MAX_PROBLEMS = 20
"""The maximum number of reported problems of a baseline file."""
_FIELDS = ("file", "rule", "subject", "observed")
_ALLOWED = "a file that --write-baseline wrote"


@dataclass(frozen=True)
class BaselineEntry:
    """One mistake, identified by fields that do not change when lines move."""

    file: str
    """The file's path relative to the folder in which earshot ran."""
    rule: str
    subject: str
    observed: str
    until: str = field(default="", compare=False)
    """The last day on which the mistake is ignored, such as 2027-01-31; empty for always."""

    @classmethod
    def of(cls, mistake: Mistake, root: Path) -> BaselineEntry:
        """The entry of ``mistake``, with its file relative to ``root``."""
        finding = mistake.finding
        return cls(
            relative(mistake.place.file, root), finding.rule, finding.subject, finding.observed
        )

    @property
    def texts(self) -> dict[str, str]:
        """The identifying fields by name."""
        return {name: getattr(self, name) for name in _FIELDS}

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the identifying fields as hex."""
        texts = json.dumps([*self.texts.values()])
        return hashlib.sha256(texts.encode()).hexdigest()


def baseline_entries(
    reports: Iterable[FileReport], root: Path, former_entries: Collection[BaselineEntry] = ()
) -> frozenset[BaselineEntry]:
    """Entries for all mistakes of ``reports`` that are not ignored.

    Mistakes in ``former_entries`` keep their last day. Files are relative to ``root``.
    """
    entries_by_key = {entry: entry for entry in former_entries}
    entries = (
        BaselineEntry.of(mistake, root)
        for report in reports
        for mistake in report.mistakes
        if not mistake.ignored
    )
    return frozenset(entries_by_key.get(entry, entry) for entry in entries)


def as_text(entries: Collection[BaselineEntry]) -> str:
    """``entries`` as JSON for `read_baseline`, sorted."""
    rows = [
        entry.texts | ({"until": entry.until} if entry.until else {})
        for entry in sorted(entries, key=lambda entry: [*entry.texts.values()])
    ]
    return json.dumps({"version": 1, "mistakes": rows}, indent=2) + "\n"


def read_baseline(file: Path) -> frozenset[BaselineEntry]:
    """The entries in ``file``. Raises EarshotError."""
    option = f"--baseline {file}"
    try:
        document = json.loads(read_bytes(file))
    except OSError as reason:
        raise EarshotError(
            option,
            observed=f"cannot be read ({reason.strerror})",
            remedy=f"earshot lint PATH --write-baseline {file}",
        ) from None
    except (ValueError, RecursionError) as reason:  # not JSON, or not UTF-8
        raise EarshotError(
            option,
            observed=f"is not JSON ({str(reason).partition('; use sys.')[0]})",
            allowed=_ALLOWED,
        ) from None
    if not isinstance(document, Mapping):
        raise EarshotError(option, observed="is not a JSON object", allowed=_ALLOWED)
    rows = document.get("mistakes")
    problems = [f"{key}: unknown key" for key in document if key not in ("version", "mistakes")]
    if document.get("version") != 1 or isinstance(document.get("version"), bool):
        problems.append("version: must be 1")
    if not isinstance(rows, list):
        problems.append("mistakes: not a list")
    for number, row in enumerate(rows if isinstance(rows, list) else ()):
        problems += [f"mistakes[{number}]{problem}" for problem in _problems(row)]
    if problems:
        raise SpecError.of(option, problems[:MAX_PROBLEMS])
    assert isinstance(rows, list)
    for row in rows:
        if "until" in row:
            last_day(row["until"], f"{option}: {row['rule']}, {row['subject']}")
    return frozenset(BaselineEntry(**row) for row in rows)


def _problems(row: object) -> list[str]:
    if not isinstance(row, Mapping):
        return [": not a JSON object"]
    problems = [f".{key}: unknown key" for key in row if key not in (*_FIELDS, "until")]
    problems += [f".{key}: is missing" for key in _FIELDS if key not in row]
    problems += [f".{key}: not text" for key in row if not isinstance(row[key], str)]
    return problems


def with_baseline(
    report: FileReport, baseline: Collection[BaselineEntry], root: Path, today: date
) -> FileReport:
    """``report`` with the mistakes in ``baseline`` ignored, until their last day if they have one.

    Files in ``baseline`` are relative to ``root``.
    """
    last_days = {entry: entry.until for entry in baseline}

    def with_waiver(mistake: Mistake) -> Mistake:
        until = last_days.get(BaselineEntry.of(mistake, root))
        if mistake.ignored or until is None:
            return mistake
        return Waiver(IN_BASELINE, date.fromisoformat(until) if until else None).apply(
            mistake, today
        )

    return replace(report, mistakes=tuple(map(with_waiver, report.mistakes)))
