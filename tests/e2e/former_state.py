"""States that release 0.1.0 wrote, carried over to what a test has deployed.

`states/*.json` were exported from 0.1.0 once, with its own doubles. Their ids and addresses are of
things that are gone; those of what runs now take their places. Types, names, parents, dependencies and
all other properties are still as 0.1.0 wrote them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earshot_pulumi.provider import former

FOLDER = Path(__file__).parent / "states"
GONE = ("GateSeal",)
"""What the first update deletes."""
GIVEN = re.compile(
    r"[a-z]+-(?:attach|assoc)?-?[0-9a-f]{8,}|r?arn:.+|[0-9a-f]{12,}|(?:\d{1,3}\.){3}\d{1,3}(?:/\d+)?"
    r"|(?:ip|ec2)-[0-9-]+\..+|[0-9a-f:]{17}|[A-Za-z0-9_-]{22}"
)
"""Texts that a provider gives to what it makes: ids, addresses, names of addresses, cluster ids."""


@dataclass(frozen=True)
class FormerState:
    """One placement's state of 0.1.0, and the cluster that it had in the stack file."""

    cluster: dict[str, Any]
    state: dict[str, Any]
    texts: dict[str, str]
    """Names and folders in the state by what they are."""

    @classmethod
    def of(cls, placement: str) -> FormerState:
        return cls(**json.loads((FOLDER / f"0.1.0-{placement}.json").read_text()))

    def carried(self, live: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
        """The state with the ids of ``live`` and with ``texts`` in the places of its own."""
        known = {_key(item): item for item in live["deployment"]["resources"]}
        places = {self.texts[what]: text for what, text in texts.items()}
        for item in self.state["deployment"]["resources"]:
            if (same := known.get(_key(item))) is not None:
                places |= dict(_given(item, same))
        # longer ones first: an address may be the beginning of another
        words = sorted(places, key=len, reverse=True)
        pattern = re.compile("|".join(rf"(?<![0-9a-f.]){re.escape(it)}(?![0-9a-f])" for it in words))
        text = pattern.sub(lambda found: places[found[0]], json.dumps(self.state))
        carried: dict[str, Any] = json.loads(text)
        return carried


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    """The same for a resource of 0.1.0 and for what it is called now."""
    kind = re.split("[:/]", item["type"])[-1]
    return former.KINDS.get(kind, kind), item["urn"].rpartition("::")[2]


def _given(item: Mapping[str, Any], same: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _pairs(item.get("id"), same.get("id"))
    yield from _pairs(item.get("outputs"), same.get("outputs"))


def _pairs(before: Any, now: Any) -> Iterator[tuple[str, str]]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before.keys() & now.keys():
            yield from _pairs(before[key], now[key])
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for pair in zip(before, now, strict=True):
            yield from _pairs(*pair)
    elif isinstance(before, str) and isinstance(now, str) and before != now:
        if GIVEN.fullmatch(before) and GIVEN.fullmatch(now):
            yield before, now
