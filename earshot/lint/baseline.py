"""A baseline: mistakes that were there when somebody began, so that new ones alone count.

A mistake is known again by its file, rule, subject and observed text, wherever its line has gone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from earshot.errors import EarshotError, SpecError
from earshot.lint.files import relative
from earshot.lint.model import Linted, Mistake
from earshot.listeners.problems import describe

IN_BASELINE = "in the baseline"


class Recorded(BaseModel):
    """One mistake, by what stays the same when lines move."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    """As it is called from the folder that earshot ran in."""
    rule: str
    subject: str
    observed: str

    @classmethod
    def of(cls, mistake: Mistake, root: Path) -> Recorded:
        """``mistake``, whose file is called as from ``root``."""
        said = mistake.finding
        return cls(
            file=relative(mistake.place.file, root),
            rule=said.rule,
            subject=said.subject,
            observed=said.observed,
        )

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits, the same for the same four texts."""
        texts = json.dumps([self.file, self.rule, self.subject, self.observed])
        return hashlib.sha256(texts.encode()).hexdigest()


class _Baseline(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1]
    mistakes: tuple[Recorded, ...]


def recorded(linted: Iterable[Linted], root: Path) -> frozenset[Recorded]:
    """Every mistake that nobody has ignored otherwise."""
    return frozenset(
        Recorded.of(mistake, root)
        for item in linted
        for mistake in item.mistakes
        if not mistake.ignored
    )


def as_text(mistakes: Collection[Recorded]) -> str:
    """``mistakes`` as the JSON that `read_baseline` reads, in an order that stays."""
    rows = sorted((item.model_dump() for item in mistakes), key=lambda row: [*row.values()])
    return json.dumps({"version": 1, "mistakes": rows}, indent=2) + "\n"


def read_baseline(file: Path) -> frozenset[Recorded]:
    """The mistakes that ``file`` holds. Raises EarshotError."""
    try:
        content = file.read_bytes()
    except OSError as reason:
        raise EarshotError(
            f"--baseline {file}",
            observed=f"cannot be read ({reason.strerror})",
            remedy=f"earshot lint PATH --write-baseline {file}",
        ) from None
    try:
        return frozenset(_Baseline.model_validate_json(content).mistakes)
    except ValidationError as error:
        problems = error.errors()
        if problems[0]["type"] == "json_invalid":
            raise EarshotError(
                f"--baseline {file}",
                observed=f"is no JSON ({problems[0]['ctx']['error']})",
                allowed="a file that --write-baseline wrote",
            ) from None
        lines = describe(error, _Baseline, from_json(content))
        raise SpecError.of(f"--baseline {file}", lines[:20]) from None


def with_baseline(linted: Linted, baseline: Collection[Recorded], root: Path) -> Linted:
    """``linted`` with the mistakes of ``baseline`` ignored."""

    def judged(mistake: Mistake) -> Mistake:
        if mistake.ignored or Recorded.of(mistake, root) not in baseline:
            return mistake
        return replace(mistake, ignored=IN_BASELINE)

    return replace(linted, mistakes=tuple(map(judged, linted.mistakes)))
