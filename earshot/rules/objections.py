"""Objections to a node's properties, of which rules about single settings make their findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from earshot.facts.settings import Memo, StrictSettings, Unreadable


@dataclass(frozen=True)
class Objection:
    """What Kafka refuses, or takes in another sense than its author."""

    check: str
    """Its id: a letter for the subject, a number, as in the rules' documentation."""
    key: str
    observed: str
    expected: str
    remedy: str = ""
    listener: str | None = None
    instead: str = ""
    """What Kafka does where it does not refuse to start."""
    is_error: bool = True

    @property
    def refused(self) -> bool:
        return not self.instead


Check = Callable[[StrictSettings], Iterator[Objection]]


def strict_settings(
    values: Mapping[str, str], version: str, memo: Memo | None = None
) -> StrictSettings:
    """One node's properties as Kafka ``version`` ("4.1.1", "4.2.0-rc1") reads them."""
    numbers = re.findall(r"[0-9]+", version)[:3]
    return StrictSettings(values, tuple(map(int, numbers)), memo)


def known_objections(check: Check, view: StrictSettings) -> Iterator[Objection]:
    """What ``check`` objects to until it asks for a setting that is not known."""
    try:
        yield from check(view)
    except Unreadable:
        return


def with_prefixes(view: StrictSettings, key: str) -> Iterator[tuple[str, str | None]]:
    """Each property that sets ``key``, with the listener that it is for; None: for all."""
    names = {name.lower(): name for name in view.listeners}
    for set_key in view.values:
        prefix, _, _ = set_key.rpartition(key)
        if set_key == key:
            yield set_key, None
        elif set_key == f"{prefix}{key}" and prefix.startswith("listener.name."):
            name = names.get(prefix.removeprefix("listener.name.").removesuffix("."))
            if name is not None:
                yield set_key, name
