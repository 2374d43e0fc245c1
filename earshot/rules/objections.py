"""Objections to single properties of a node, from which rules make findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from earshot.facts.settings import KafkaSettings, Unreadable
from earshot.listeners import grammar


@dataclass(frozen=True)
class Objection:
    """A property that Kafka refuses, or reads differently than intended."""

    check: str
    """The check's id in the rules' documentation: a letter for the subject and a number."""
    key: str
    observed: str
    expected: str
    remedy: str = ""
    listener: str | None = None
    instead: str = ""
    """Kafka's reaction if it starts; empty if it does not."""
    is_error: bool = True

    @property
    def refused(self) -> bool:
        return not self.instead


Check = Callable[[KafkaSettings], Iterator[Objection]]


def strict_settings(values: Mapping[str, str], version: str) -> KafkaSettings:
    """One node's properties as read by Kafka ``version``, such as "4.1.1" or "4.2.0-rc1"."""
    numbers = re.findall(r"[0-9]+", version)[:3]
    return KafkaSettings(values, tuple(map(int, numbers)), complete=True, grammar=grammar)


def known_objections(check: Check, view: KafkaSettings) -> Iterator[Objection]:
    """The objections of ``check``, up to its first unknown setting."""
    try:
        yield from check(view)
    except Unreadable:
        return


def with_prefixes(view: KafkaSettings, key: str) -> Iterator[tuple[str, str | None]]:
    """Each property that sets ``key``, with its listener; None for all listeners."""
    names = {name.lower(): name for name in view.listeners}
    for set_key in view.values:
        prefix, _, _ = set_key.rpartition(key)
        if set_key == key:
            yield set_key, None
        elif set_key == f"{prefix}{key}" and prefix.startswith("listener.name."):
            name = names.get(prefix.removeprefix("listener.name.").removesuffix("."))
            if name is not None:
                yield set_key, name
