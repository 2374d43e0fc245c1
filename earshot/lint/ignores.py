"""Ignores mistakes: by a comment in the file, or by an option for one run."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from earshot.errors import EarshotError
from earshot.lint.model import FileReport, Lines, Mistake, Place

NO_REASON = "no reason given"
_IDS = re.compile(r"\s*,\s*")
_COMMENT = re.compile(
    r"(?:^|\s)#\s*earshot:\s*ignore=\s*(?P<ids>[^\s,]+(?:\s*,\s*[^\s,]+)*)(?:\s+until=(?P<until>\S*))?"
    r"(?:\s+(?P<reason>.*))?$"
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NAME = re.compile(r"(KL\d+)\b")


def rules_named(texts: Collection[str], where: str) -> frozenset[str]:
    """The rule ids in ``texts``, such as `KL006,KL014`. ``where`` is their place, for messages.

    Raises EarshotError for an unknown id.
    """
    if not texts:
        return frozenset()
    from earshot.rules.evaluate import RULES  # all rules: slow to import

    known_ids = [rule.id for rule in RULES]
    rule_ids = [rule_id for text in texts for rule_id in _IDS.split(text.strip().upper())]
    unknown_ids = sorted({rule_id for rule_id in rule_ids if rule_id not in known_ids})
    if unknown_ids:
        names = ", ".join(rule_id or repr(rule_id) for rule_id in unknown_ids)
        raise EarshotError(
            where,
            observed=f"there is no rule {names}",
            allowed=", ".join(known_ids),
        )
    return frozenset(rule_ids)


def with_rules(report: FileReport, select: Collection[str], ignore: Collection[str]) -> FileReport:
    """``report`` with the mistakes of the rules ``select`` (all if empty), without ``ignore``."""

    def counts(rule: str) -> bool:
        return (not select or rule in select) and rule not in ignore

    return replace(
        report,
        mistakes=tuple(mistake for mistake in report.mistakes if counts(mistake.finding.rule)),
        unchecked=tuple(
            text
            for text in report.unchecked
            if (rule_name := _NAME.match(text)) is None or counts(rule_name[1])
        ),
    )


@dataclass(frozen=True)
class Waiver:
    """Why a mistake is ignored, and the last day on which it is; None for always."""

    reason: str
    until: date | None = None

    def apply(self, mistake: Mistake, today: date) -> Mistake:
        """``mistake`` as ignored, or with a note that the waiver has expired."""
        if self.until is not None and self.until < today:
            return replace(mistake, expired=f"was ignored until {self.until}: {self.reason}")
        last_day = "" if self.until is None else f" (until {self.until})"
        return replace(mistake, ignored=f"{self.reason}{last_day}")


def last_day(text: str, where: str) -> date:
    """The day in `until=2027-01-31`. Raises EarshotError, with ``where`` as the place."""
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise EarshotError(
        where, observed=f"until={text} is not a day", allowed="a day such as until=2027-01-31"
    )


def with_comments(report: FileReport, lines: Lines, today: date) -> FileReport:
    """``report`` with comments `# earshot: ignore=KL006 reason` applied. A comment is on the line
    of the mistake, or on its own line directly above.

    A comment with an `until=` before ``today`` has expired. Raises EarshotError for a comment with
    an unknown rule or an invalid day.
    """
    files = dict.fromkeys([report.file, *(mistake.place.file for mistake in report.mistakes)])
    waivers_by_file = {file: _waivers_by_line(file, lines(file)) for file in files}

    def with_waiver(mistake: Mistake) -> Mistake:
        waivers = waivers_by_file[mistake.place.file].get(mistake.place.line, {})
        waiver = waivers.get(mistake.finding.rule)
        return mistake if waiver is None or mistake.ignored else waiver.apply(mistake, today)

    return replace(report, mistakes=tuple(map(with_waiver, report.mistakes)))


def _waivers_by_line(file: str, lines: Sequence[str]) -> Mapping[int, Mapping[str, Waiver]]:
    """The waivers by line number and rule id."""
    if not any("earshot:" in line for line in lines):
        return {}
    waivers: dict[int, dict[str, Waiver]] = {}
    pending_waivers: dict[str, Waiver] = {}
    for number, line in enumerate(lines, start=1):
        reasons = dict(_waivers_in(Place(file, number), line))
        if line.lstrip().startswith("#"):
            pending_waivers |= reasons
            waivers[number] = reasons
        else:
            # in properties a `#` after a value is part of the value
            waivers[number] = pending_waivers | ({} if file.endswith(".properties") else reasons)
            pending_waivers = {}
    return waivers


def _waivers_in(place: Place, line: str) -> Iterator[tuple[str, Waiver]]:
    match = _COMMENT.search(line)
    if match is not None:
        reason = (match["reason"] or "").strip() or NO_REASON
        where = f"{place.file}, line {place.line}, # earshot: ignore={match['ids']}"
        until = None if match["until"] is None else last_day(match["until"], where)
        for rule in rules_named([match["ids"]], where):
            yield rule, Waiver(reason, until)
