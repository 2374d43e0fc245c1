"""Mistakes that the user ignores: by a comment in the file, or by an option for one run."""

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
    """The ids in ``texts``, such as `KL006,KL014`; ``where`` names their place in messages.

    Raises EarshotError for an id that no rule has.
    """
    if not texts:
        return frozenset()
    from earshot.rules.evaluate import RULES  # all rules: slow to import

    known = [rule.id for rule in RULES]
    wanted = [rule_id for text in texts for rule_id in _IDS.split(text.strip().upper())]
    unknown = sorted({rule_id for rule_id in wanted if rule_id not in known})
    if unknown:
        names = ", ".join(rule_id or repr(rule_id) for rule_id in unknown)
        raise EarshotError(
            where,
            observed=f"there is no rule {names}",
            allowed=", ".join(known),
        )
    return frozenset(wanted)


def of_rules(linted: FileReport, select: Collection[str], ignore: Collection[str]) -> FileReport:
    """``linted`` with the rules of ``select`` alone, where that names any, less those of
    ``ignore``."""

    def counts(rule: str) -> bool:
        return (not select or rule in select) and rule not in ignore

    return replace(
        linted,
        mistakes=tuple(mistake for mistake in linted.mistakes if counts(mistake.finding.rule)),
        unchecked=tuple(
            text
            for text in linted.unchecked
            if (begin := _NAME.match(text)) is None or counts(begin[1])
        ),
    )


@dataclass(frozen=True)
class Waiver:
    """Why a mistake is ignored, and the last day on which it is; none means always."""

    reason: str
    until: date | None = None

    def on(self, mistake: Mistake, today: date) -> Mistake:
        """``mistake`` ignored, or with word of a waiver whose day has passed."""
        if self.until is not None and self.until < today:
            return replace(mistake, expired=f"was ignored until {self.until}: {self.reason}")
        return replace(mistake, ignored=self.reason)


def last_day(text: str, where: str) -> date:
    """The day that `until=2027-01-31` names. Raises EarshotError, which names ``where``."""
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise EarshotError(
        where, observed=f"until={text} is no day", allowed="a day such as until=2027-01-31"
    )


def with_comments(linted: FileReport, lines: Lines, today: date) -> FileReport:
    """``linted`` with the reasons of comments `# earshot: ignore=KL006 reason`, each on the line of
    the mistake or, alone on its line, right above it.

    One with `until=` and a day before ``today`` ignores nothing any more. Raises EarshotError for a
    comment that names a rule that there is not, or no day.
    """
    files = dict.fromkeys([linted.file, *(mistake.place.file for mistake in linted.mistakes)])
    ignored = {file: _comments(file, lines(file)) for file in files}

    def checked(mistake: Mistake) -> Mistake:
        comments = ignored[mistake.place.file].get(mistake.place.line, {})
        waiver = comments.get(mistake.finding.rule)
        return mistake if waiver is None or mistake.ignored else waiver.on(mistake, today)

    return replace(linted, mistakes=tuple(map(checked, linted.mistakes)))


def _comments(file: str, lines: Sequence[str]) -> Mapping[int, Mapping[str, Waiver]]:
    """By line of a file: the rules that are ignored there, each with the reason."""
    waivers: dict[int, dict[str, Waiver]] = {}
    waiting: dict[str, Waiver] = {}
    for number, line in enumerate(lines, start=1):
        reasons = dict(_reasons(Place(file, number), line))
        if line.lstrip().startswith("#"):
            waiting |= reasons
            waivers[number] = reasons
        else:
            # in properties a value goes on to the end of its line
            waivers[number] = waiting | ({} if file.endswith(".properties") else reasons)
            waiting = {}
    return waivers


def _reasons(place: Place, line: str) -> Iterator[tuple[str, Waiver]]:
    match = _COMMENT.search(line)
    if match is not None:
        reason = (match["reason"] or "").strip() or NO_REASON
        where = f"{place.file}, line {place.line}, # earshot: ignore={match['ids']}"
        until = None if match["until"] is None else last_day(match["until"], where)
        for rule in rules_named([match["ids"]], where):
            yield rule, Waiver(reason, until)
