"""Whether an instance boots with the listeners that were checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from earshot.facts.settings import node_id, readable
from earshot.listeners.grammar import read_listeners
from earshot.listeners.render import settings
from earshot.sources.user_data import UserDataFile

if TYPE_CHECKING:
    from earshot.listeners.model import ClusterPlan

_KEYS = ("listeners", "advertised.listeners")


def disagreements(plan: ClusterPlan, written: UserDataFile) -> Iterator[str]:
    """Where ``written`` gives a node other listeners than ``plan``, one sentence each.

    The order of a list means nothing; a list that cannot be read agrees with no other.
    """
    values = written.settings.values
    id = node_id(values)
    node = next((item for item in plan.nodes if item.id == id), None)
    if node is None:
        listed = ", ".join(str(item.id) for item in plan.nodes)
        yield f"{written.path} sets up node {id}, and the plan that was checked has {listed}"
        return
    planned = settings(plan, node)
    for key in _KEYS:
        there, wanted = values.get(key), planned.get(key)
        if _entries(there) != _entries(wanted):
            yield (
                f"node {id}: {written.path} has {key}={there or '(nothing)'}, and the plan that "
                f"was checked {wanted or '(nothing)'}"
            )


def _entries(text: str | None) -> object:
    found = list(read_listeners(text)) if text else []
    good = dict(readable(found))
    return good if len(good) == len(found) else text
