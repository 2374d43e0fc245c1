"""`transition`: the steps from the plan that every broker runs to the one that is wanted.

Pure. Where one rolling restart is not safe, the way is: what is new beside what is there, then what
brokers use among themselves, then away with what is not wanted. From any state in between the same
function goes on, or returns where the old plan is wanted again.
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
    """One rolling restart, safe in every mixture of the plan before it and its own."""

    plan: ClusterPlan
    text: str
    """What it does, in one sentence without a full stop."""
    restarts: tuple[int, ...]
    """The ids of the nodes that are there before and get other settings."""


def transition(
    current: ClusterPlan, wanted: ClusterPlan, begun: Sequence[ClusterPlan] = ()
) -> tuple[Step, ...]:
    """The steps from ``current``, which every node runs, to ``wanted``; empty where it runs.

    ``begun`` are steps that were begun since then and not finished: some nodes may run them. Raises
    EarshotError, which says why and what to do instead, where no order of steps is safe.
    """
    running = (current, *(plan for plan in begun if plan != current))
    if running == (wanted,):
        return ()
    check(current, wanted)
    between = candidates(current, wanted)
    way = _shortest(running, between)
    if way is None and len(running) > 1:
        back = _shortest((current,), between)
        way = None if back is None else (current, *back)
    if way is None:
        raise no_order(current, wanted)
    return tuple(
        Step(plan, description(before, plan, wanted), _restarts(before, plan))
        for before, plan in zip((running, *((it,) for it in way)), way, strict=False)
    )


def leaving(plan: ClusterPlan, wanted: ClusterPlan) -> frozenset[str]:
    """The client listeners of ``plan`` that ``wanted`` lacks, or has with another protocol."""
    return frozenset(
        name for name in plan.listener_names if protocols(plan, name) != protocols(wanted, name)
    )


def _shortest(
    running: Sequence[ClusterPlan], between: Sequence[ClusterPlan]
) -> tuple[ClusterPlan, ...] | None:
    """The fewest plans to roll to, the last of ``between`` at the end; None where none is safe."""
    ways: list[tuple[tuple[ClusterPlan, ...], Sequence[ClusterPlan]]] = [((), between)]
    while ways:
        longer = []
        for way, rest in ways:
            before = (way[-1],) if way else running
            # the later one first: of two ways of one length, the one that changes more at once
            for plan in reversed(rest):
                if not rolls(before, plan):
                    continue
                if plan == between[-1]:
                    return (*way, plan)
                longer.append(((*way, plan), between[between.index(plan) + 1 :]))
        ways = longer
    return None


def _restarts(before: Sequence[ClusterPlan], after: ClusterPlan) -> tuple[int, ...]:
    """Nodes whose settings or certificates differ from those in any of the plans ``before``."""
    wanted = {node.id: (settings(after, node), after.security) for node in after.nodes}
    nodes = [
        (node.id, (settings(plan, node), plan.security)) for plan in before for node in plan.nodes
    ]
    changed = {id for id, own in nodes if id in wanted and wanted[id] != own}
    return tuple(id for id in wanted if id in changed)


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
        elif (own := _listeners(before, name, after)) != (
            others := _listeners(after, name, before)
        ):
            same = [_unfronted(item) for item in own] == [_unfronted(item) for item in others]
            yield f"{name} behind another forwarder" if same else f"{name} at other addresses"
    if before.inter_broker != after.inter_broker:
        yield f"brokers reach each other through {after.inter_broker}"
    if taken := [name for name in old if name not in new]:
        yield f"{_and(taken)} taken away"
    if text := _new_trust(before, after):
        yield text
    ids, new_ids = ([str(node.id) for node in plan.brokers] for plan in (before, after))
    if gone := [id for id in ids if id not in new_ids]:
        yield f"without broker {_and(gone)}"
    if come := [id for id in new_ids if id not in ids]:
        yield f"with broker {_and(come)}"


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


def _unfronted(listener: Listener | None) -> Listener | None:
    """``listener`` without its forwarder, which is no setting of a broker."""
    return listener and listener.model_copy(update={"front": None})


def _and(names: Collection[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
