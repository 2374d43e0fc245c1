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
PROVIDER_TEXT = re.compile(
    r"[a-z]+-[0-9a-f]{8,}|r?arn:.+|(?:sha256:)?[0-9a-f]{12,}|[0-9a-f]+@[\dTZ:.-]+"
    r"|(?:\d{1,3}\.){3}\d{1,3}(?:/\d+)?|(?:ip|ec2)-[0-9-]+\..+|[0-9a-f:]{17}"
    r"|[A-Za-z0-9_-]{22}|[a-z0-9-]+-[0-9a-f]{7}"
)
"""Texts that a provider assigns: ids, addresses, names of addresses, cluster ids."""


@dataclass(frozen=True)
class FormerState:
    """The state of one placement by 0.1.0, and its cluster in the stack file."""

    cluster: dict[str, Any]
    state: dict[str, Any]

    @classmethod
    def of(cls, placement: str, **texts: str) -> FormerState:
        """``texts`` replace the file's own texts: its folder, its ports."""
        document = json.loads((FOLDER / f"0.1.0-{placement}.json").read_text())
        own_texts = document.pop("texts")
        places = {own_texts[name]: text for name, text in texts.items()}
        return cls(**_with_replacements(document, places))

    def with_live_ids(self, live: Mapping[str, Any]) -> dict[str, Any]:
        """The state with the ids and addresses of ``live``, a current state."""
        live_resources = {_key(resource): resource for resource in live["deployment"]["resources"]}
        places: dict[str, str] = {}
        for resource in self.state["deployment"]["resources"]:
            if (live_resource := live_resources.get(_key(resource))) is not None:
                for name in ("id", "outputs"):
                    pairs = _provider_texts(resource.get(name), live_resource.get(name))
                    places |= dict(pairs)
        carried_state = _with_replacements(self.state, places)
        # of the stack's own passphrase
        carried_state["deployment"]["secrets_providers"] = live["deployment"]["secrets_providers"]
        return carried_state


def _key(resource: Mapping[str, Any]) -> tuple[str, str]:
    """A key that is equal for a resource of 0.1.0 and its current form."""
    kind = re.split("[:/]", resource["type"])[-1]
    return former.KINDS.get(kind, kind), resource["urn"].rpartition("::")[2]


def _provider_texts(former: Any, current: Any) -> Iterator[tuple[str, str]]:
    """The provider's texts in ``former``, each with the text in the same place of ``current``."""
    if isinstance(former, dict) and isinstance(current, dict):
        for key in former.keys() & current.keys():
            is_pid = key == "pid"
            yield from (
                [(str(former[key]), str(current[key]))]
                if is_pid
                else _provider_texts(former[key], current[key])
            )
    elif isinstance(former, list) and isinstance(current, list) and len(former) == len(current):
        for pair in zip(former, current, strict=True):
            yield from _provider_texts(*pair)
    elif isinstance(former, str) and isinstance(current, str) and former != current:
        yield from (
            [(former, current)]
            if PROVIDER_TEXT.fullmatch(former) and PROVIDER_TEXT.fullmatch(current)
            else []
        )


def _with_replacements(document: dict[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    # longer ones first: an address may be the beginning of another
    words = "|".join(re.escape(place) for place in sorted(places, key=len, reverse=True))
    pattern = re.compile(rf"(?<![0-9a-f.])(?:{words})(?![0-9a-f])")
    replaced_text = pattern.sub(lambda match: places[match[0]], json.dumps(document))
    result: dict[str, Any] = json.loads(replaced_text)
    return result
