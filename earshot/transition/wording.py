"""A step in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from earshot.listeners.model import ClusterPlan, Listener
from earshot.transition.reach import protocols


def description(before: Sequence[ClusterPlan], after: ClusterPlan, wanted: ClusterPlan) -> str:
    """What the step to ``after`` does, in one sentence without a full stop."""
    if len(before) > 1 and after == before[0]:
        return "back to the listeners before the step that was interrupted"
    return "; ".join(_changes(before[0], after, wanted)) or "other settings"


def _changes(before: ClusterPlan, after: ClusterPlan, wanted: ClusterPlan) -> Iterator[str]:
    old, new = before.listener_names, after.listener_names
    added = [name for name in new if name not in old]
    going = [name for name in old if name in new and name not in wanted.listener_names]
    if added and going:
        yield f"{_and((*going, *added))} side by side"
    elif added:
        yield f"{_and(added)} added"
    for name in (name for name in new if name in old):
        was, is_ = (", ".join(sorted(protocols(plan, name))) for plan in (before, after))
        if was != is_:
            yield f"{name} from {was} to {is_}"
        elif _listeners(before, name, after) != _listeners(after, name, before):
            yield f"{name} at other addresses"
    if before.inter_broker != after.inter_broker:
        yield f"brokers reach each other through {after.inter_broker}"
    if taken := [name for name in old if name not in new]:
        yield f"{_and(taken)} taken away"
    if text := _security(before, after):
        yield text
    ids, new_ids = ([str(node.id) for node in plan.brokers] for plan in (before, after))
    if gone := [id for id in ids if id not in new_ids]:
        yield f"without broker {_and(gone)}"
    if come := [id for id in new_ids if id not in ids]:
        yield f"with broker {_and(come)}"


def _security(before: ClusterPlan, after: ClusterPlan) -> str:
    """That nodes get certificates, or whom they trust from now on; empty where that stays."""
    if after.security is None:
        return ""
    if before.security is None:
        return "nodes get certificates, and clients users"
    numbers = after.security.authorities
    if numbers == before.security.authorities:
        return ""
    if len(numbers) == 1:
        return f"authority {numbers[0]} alone is trusted"
    return (
        f"authorities {_and([*map(str, numbers)])} are trusted, and {numbers[0]} issues "
        "certificates"
    )


def _listeners(plan: ClusterPlan, name: str, other: ClusterPlan) -> list[Listener | None]:
    """The listener ``name`` of the nodes that both plans have."""
    ids = {node.id for node in other.brokers}
    return [node.listener(name) for node in plan.brokers if node.id in ids]


def _and(names: Collection[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
