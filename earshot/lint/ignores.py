"""What somebody has ignored: by a comment in the file, or by an option for one run."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from earshot.errors import EarshotError
from earshot.lint.model import Linted, Mistake, Place
from earshot.rules.catalogue import RULES

Lines = Callable[[str], Sequence[str]]
"""The lines of a file by its name, without their ends; none where it cannot be read."""

NO_REASON = "no reason given"
_IDS = re.compile(r"\s*,\s*")
_COMMENT = re.compile(
    r"(?:^|\s)#\s*earshot:\s*ignore=\s*(?P<ids>[^\s,]+(?:\s*,\s*[^\s,]+)*)(?:\s+(?P<reason>.*))?$"
)
_NAME = re.compile(r"(KL\d+)\b")


def rules_named(texts: Collection[str], where: str) -> frozenset[str]:
    """The ids in ``texts``, such as `KL006,KL014`; ``where`` names their place in messages.

    Raises EarshotError for an id that no rule has.
    """
    known = [rule.id for rule in RULES]
    wanted = [item for text in texts for item in _IDS.split(text.strip().upper())]
    unknown = sorted({item for item in wanted if item not in known})
    if unknown:
        raise EarshotError(
            where,
            observed=f"there is no rule {', '.join(item or repr(item) for item in unknown)}",
            allowed=", ".join(known),
        )
    return frozenset(wanted)


def of_rules(linted: Linted, select: Collection[str], ignore: Collection[str]) -> Linted:
    """``linted`` with the rules of ``select`` alone, where that names any, less those of
    ``ignore``."""

    def counts(rule: str) -> bool:
        return (not select or rule in select) and rule not in ignore

    return replace(
        linted,
        mistakes=tuple(item for item in linted.mistakes if counts(item.finding.rule)),
        unjudged=tuple(
            text
            for text in linted.unjudged
            if (begin := _NAME.match(text)) is None or counts(begin[1])
        ),
    )


def with_comments(linted: Linted, lines: Lines) -> Linted:
    """``linted`` with the reasons of comments `# earshot: ignore=KL006 reason`, each on the line of
    the mistake or, alone on its line, right above it.

    Raises EarshotError for a comment that names a rule that there is not.
    """
    files = dict.fromkeys([linted.file, *(item.place.file for item in linted.mistakes)])
    ignored = {file: _comments(file, lines(file)) for file in files}
    return replace(
        linted,
        mistakes=tuple(_with_reason(item, ignored[item.place.file]) for item in linted.mistakes),
    )


def _comments(file: str, lines: Sequence[str]) -> Mapping[int, Mapping[str, str]]:
    """By line of a file: the rules that are ignored there, each with the reason."""
    found: dict[int, dict[str, str]] = {}
    waiting: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        said = dict(_reasons(Place(file, number), line))
        if line.lstrip().startswith("#"):
            waiting |= said
            found[number] = said
        else:
            # in properties a value goes on to the end of its line
            found[number] = waiting | ({} if file.endswith(".properties") else said)
            waiting = {}
    return found


def _reasons(place: Place, line: str) -> Iterator[tuple[str, str]]:
    match = _COMMENT.search(line)
    if match is not None:
        reason = (match["reason"] or "").strip() or NO_REASON
        where = f"{place.file}, line {place.line}, # earshot: ignore={match['ids']}"
        for rule in rules_named([match["ids"]], where):
            yield rule, reason


def _with_reason(mistake: Mistake, comments: Mapping[int, Mapping[str, str]]) -> Mistake:
    reason = comments.get(mistake.place.line, {}).get(mistake.finding.rule, "")
    return replace(mistake, ignored=reason) if reason and not mistake.ignored else mistake
