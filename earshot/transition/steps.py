"""`transition`: the steps from the plan that every broker runs to the target plan.

If one rolling restart is not safe, there are several steps, at most three for listeners alone: add
the new listeners, move the connections between brokers to another listener, remove the old ones.
After an interrupted step, `transition` returns the remaining steps. If the target is the old plan,
it returns the steps back.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from earshot.listeners.model import ClusterPlan, Listener
from earshot.listeners.render import settings
from earshot.transition.between import candidates
from earshot.transition.reach import protocols, rolls
from earshot.transition.refusal import check, no_order


@dataclass(frozen=True)
class Step:
    """One rolling restart. It is safe while some nodes run the old plan and some the new one."""

    plan: ClusterPlan
    text: str
    """What it does, in one sentence without a full stop."""
    restarts: tuple[int, ...]
    """Ids of existing nodes whose settings change."""


def transition(
    current: ClusterPlan, target: ClusterPlan, begun: Sequence[ClusterPlan] = ()
) -> tuple[Step, ...]:
    """The steps from ``current``, which every node runs, to ``target``; empty if it runs already.

    ``begun`` are the plans of interrupted steps; some nodes may run them. If no order of steps is
    safe, raises EarshotError, which says why and what to do instead.
    """
    running = (current, *(plan for plan in begun if plan != current))
    if running == (target,):
        return ()
    check(current, target)
    plans = candidates(current, target)
    path = _shortest_path(running, plans)
    if path is None and len(running) > 1:
        rest = _shortest_path((current,), plans)
        path = None if rest is None else (current, *rest)
    if path is None:
        raise no_order(current, target)
    return tuple(
        Step(plan, description(before, plan, target), _restarts(before, plan))
        for before, plan in zip(
            (running, *((step_plan,) for step_plan in path)), path, strict=False
        )
    )


def leaving(plan: ClusterPlan, target: ClusterPlan) -> frozenset[str]:
    """The client listeners of ``plan`` that ``target`` lacks, or has with another protocol."""
    return frozenset(
        name for name in plan.listener_names if protocols(plan, name) != protocols(target, name)
    )


def _shortest_path(
    running: Sequence[ClusterPlan], plans: Sequence[ClusterPlan]
) -> tuple[ClusterPlan, ...] | None:
    """The shortest safe sequence of ``plans`` that ends with the last; None if there is none."""
    paths: list[tuple[tuple[ClusterPlan, ...], Sequence[ClusterPlan]]] = [((), plans)]
    while paths:
        longer = []
        for path, rest in paths:
            before = (path[-1],) if path else running
            # later plans first: of two paths of one length, the one whose first step is larger wins
            for plan in reversed(rest):
                if not rolls(before, plan):
                    continue
                if plan == plans[-1]:
                    return (*path, plan)
                longer.append(((*path, plan), plans[plans.index(plan) + 1 :]))
        paths = longer
    return None


def _restarts(before: Sequence[ClusterPlan], after: ClusterPlan) -> tuple[int, ...]:
    """Nodes whose settings or certificates differ from those in any of the plans ``before``."""
    new = {node.id: (settings(after, node), after.security) for node in after.nodes}
    old = [
        (node.id, (settings(plan, node), plan.security)) for plan in before for node in plan.nodes
    ]
    changed = {id for id, values in old if id in new and new[id] != values}
    return tuple(id for id in new if id in changed)


def description(before: Sequence[ClusterPlan], after: ClusterPlan, target: ClusterPlan) -> str:
    """What the step to ``after`` does, in one sentence without a full stop."""
    if len(before) > 1 and after == before[0]:
        return "back to the listeners before the step that was interrupted"
    return "; ".join(_changes(before[0], after, target)) or "other settings"


def _changes(before: ClusterPlan, after: ClusterPlan, target: ClusterPlan) -> Iterator[str]:
    old, new = before.listener_names, after.listener_names
    added = [name for name in new if name not in old]
    going = [name for name in old if name in new and name not in target.listener_names]
    if added and going:
        yield f"{_and(added)} added next to {_and(going)}"
    elif added:
        yield f"{_and(added)} added"
    for name in (name for name in new if name in old):
        old_protocols, new_protocols = (
            ", ".join(sorted(protocols(plan, name))) for plan in (before, after)
        )
        old_listeners, new_listeners = (
            _listeners(before, name, after),
            _listeners(after, name, before),
        )
        if old_protocols != new_protocols:
            yield f"{name} from {old_protocols} to {new_protocols}"
        elif old_listeners != new_listeners:
            is_same = [*map(_without_forwarder, old_listeners)] == [
                *map(_without_forwarder, new_listeners)
            ]
            yield f"{name} behind another forwarder" if is_same else f"{name} at other addresses"
    if before.inter_broker != after.inter_broker:
        yield f"brokers reach each other through {after.inter_broker}"
    if removed := [name for name in old if name not in new]:
        yield f"{_and(removed)} removed"
    if text := _new_trust(before, after):
        yield text
    ids, new_ids = ([str(node.id) for node in plan.brokers] for plan in (before, after))
    if removed_ids := [id for id in ids if id not in new_ids]:
        yield f"without broker {_and(removed_ids)}"
    if new_brokers := [id for id in new_ids if id not in ids]:
        yield f"with broker {_and(new_brokers)}"


def _new_trust(before: ClusterPlan, after: ClusterPlan) -> str:
    """New certificates of nodes, or newly trusted authorities; empty if neither changes."""
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


def _without_forwarder(listener: Listener | None) -> Listener | None:
    """``listener`` without its forwarder, which is no setting of a broker."""
    return listener and listener.model_copy(update={"front": None})


def _and(names: Collection[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
