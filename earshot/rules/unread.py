"""Listeners that a node may well have, in an entry that cannot be read: KL001 names the entry.

That such a listener is missing would be a second finding for the same cause.
"""

from __future__ import annotations

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.grammar import Bad, read_listeners

KEYS = ("listeners", "advertised.listeners")


def may_have(facts: ClusterFacts, id: int, name: str) -> bool:
    """Whether an entry of node ``id`` that the grammar refuses may be the listener ``name``."""
    settings = facts.settings.get(id)
    if settings is None:
        return False
    return any(
        isinstance(entry, Bad) and entry.name in ("", name)
        for key in KEYS
        for entry in read_listeners(settings.values.get(key) or "")
    )
