"""States that release 0.1.0 wrote, carried over to what a test has deployed.

`states/*.json` were exported from 0.1.0 once, with its own doubles. Their ids and addresses are of
things that are gone; those of what runs now take their places. Types, names, parents, dependencies
and all other properties are still as 0.1.0 wrote them.
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
GIVEN = re.compile(
    r"[a-z]+-[0-9a-f]{8,}|r?arn:.+|(?:sha256:)?[0-9a-f]{12,}|[0-9a-f]+@[\dTZ:.-]+"
    r"|(?:\d{1,3}\.){3}\d{1,3}(?:/\d+)?|(?:ip|ec2)-[0-9-]+\..+|[0-9a-f:]{17}"
    r"|[A-Za-z0-9_-]{22}|[a-z0-9-]+-[0-9a-f]{7}"
)
"""Texts that a provider gives to what it makes: ids, addresses, names of addresses, cluster ids."""


@dataclass(frozen=True)
class FormerState:
    """One placement's state of 0.1.0, and the cluster that it had in the stack file."""

    cluster: dict[str, Any]
    state: dict[str, Any]

    @classmethod
    def of(cls, placement: str, **texts: str) -> FormerState:
        """``texts`` take the places of the file's own: its folder, its ports."""
        found = json.loads((FOLDER / f"0.1.0-{placement}.json").read_text())
        own = found.pop("texts")
        places = {own[what]: text for what, text in texts.items()}
        return cls(**_replaced(found, places))

    def carried(self, live: Mapping[str, Any]) -> dict[str, Any]:
        """The state with the ids and addresses of ``live``, a state of today."""
        known = {_key(resource): resource for resource in live["deployment"]["resources"]}
        places: dict[str, str] = {}
        for item in self.state["deployment"]["resources"]:
            if (same := known.get(_key(item))) is not None:
                places |= dict(_given(item.get("id"), same.get("id")))
                places |= dict(_given(item.get("outputs"), same.get("outputs")))
        made = _replaced(self.state, places)
        # of the stack's own passphrase
        made["deployment"]["secrets_providers"] = live["deployment"]["secrets_providers"]
        return made


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    """The same for a resource of 0.1.0 and for what it is called now."""
    kind = re.split("[:/]", item["type"])[-1]
    return former.KINDS.get(kind, kind), item["urn"].rpartition("::")[2]


def _given(before: Any, now: Any) -> Iterator[tuple[str, str]]:
    """The texts of ``before``, each with the text of ``now`` in its place."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before.keys() & now.keys():
            is_pid = key == "pid"
            yield from (
                [(str(before[key]), str(now[key]))] if is_pid else _given(before[key], now[key])
            )
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for pair in zip(before, now, strict=True):
            yield from _given(*pair)
    elif isinstance(before, str) and isinstance(now, str) and before != now:
        yield from [(before, now)] if GIVEN.fullmatch(before) and GIVEN.fullmatch(now) else []


def _replaced(document: dict[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    # longer ones first: an address may be the beginning of another
    words = "|".join(re.escape(place) for place in sorted(places, key=len, reverse=True))
    pattern = re.compile(rf"(?<![0-9a-f.])(?:{words})(?![0-9a-f])")
    replaced = pattern.sub(lambda found: places[found[0]], json.dumps(document))
    made: dict[str, Any] = json.loads(replaced)
    return made
