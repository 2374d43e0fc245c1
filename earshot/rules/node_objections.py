"""What a rule has against each node's properties, as findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import Memo, StrictSettings, Unreadable
from earshot.listeners.terms import DEFAULT_KAFKA
from earshot.rules.finding import Finding
from earshot.rules.kl002_kafka_objection import Objection
from earshot.rules.registry import Rule

Check = Callable[[StrictSettings], Iterator[Objection]]


def of_every_node(rule: Rule, check: Check, facts: ClusterFacts) -> Iterator[Finding]:
    """What ``check`` objects to, node by node, as findings of ``rule``."""
    for id, settings in facts.settings.items():
        view = strict_settings(settings.values, facts.kafka_version or DEFAULT_KAFKA)
        for item in readable(check, view):
            yield item.finding(rule, id, settings.role)


def strict_settings(
    values: Mapping[str, str], version: str, memo: Memo | None = None
) -> StrictSettings:
    """One node's properties as Kafka ``version`` ("4.1.1", "4.2.0-rc1") reads them."""
    numbers = re.findall(r"[0-9]+", version)[:3]
    return StrictSettings(values, tuple(map(int, numbers)), memo)


def readable(check: Check, view: StrictSettings) -> Iterator[Objection]:
    """What ``check`` objects to until it asks for a setting that is not known."""
    try:
        yield from check(view)
    except Unreadable:
        return


def tls_listeners(view: StrictSettings) -> tuple[str, ...]:
    """Names of the node's listeners with TLS. Raises Unreadable."""
    return tuple(
        name for name in view.listeners if name in view.protocols and view.protocols[name].tls
    )


def with_prefixes(view: StrictSettings, key: str) -> Iterator[tuple[str, str | None]]:
    """Each property that sets ``key``, with the listener that it is for; None: for all."""
    names = {name.lower(): name for name in view.listeners}
    for held in view.values:
        prefix, _, _ = held.rpartition(key)
        if held == key:
            yield held, None
        elif held == f"{prefix}{key}" and prefix.startswith("listener.name."):
            name = names.get(prefix.removeprefix("listener.name.").removesuffix("."))
            if name is not None:
                yield held, name
