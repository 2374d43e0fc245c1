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
from earshot.transition.refusal import check, check_issuer, no_order


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
    running_plans = (current, *(plan for plan in begun if plan != current))
    if running_plans == (target,):
        return ()
    check(current, target)
    for plan in running_plans[1:]:
        check_issuer(plan, target)
    plans = candidates(current, target)
    path = _shortest_path(running_plans, plans)
    if path is None and len(running_plans) > 1:
        remaining_path = _shortest_path((current,), plans)
        path = None if remaining_path is None else (current, *remaining_path)
    if path is None:
        raise no_order(current, target)
    return tuple(
        Step(plan, description(plans_before, plan, target), _restarts(plans_before, plan))
        for plans_before, plan in zip(
            (running_plans, *((step_plan,) for step_plan in path)), path, strict=False
        )
    )


def leaving(plan: ClusterPlan, target: ClusterPlan) -> frozenset[str]:
    """The client listeners of ``plan`` that ``target`` lacks, or has with another protocol."""
    return frozenset(
        name for name in plan.listener_names if protocols(plan, name) != protocols(target, name)
    )


def _shortest_path(
    running_plans: Sequence[ClusterPlan], plans: Sequence[ClusterPlan]
) -> tuple[ClusterPlan, ...] | None:
    """The shortest safe sequence of ``plans`` that ends with the last; None if there is none."""
    paths: list[tuple[tuple[ClusterPlan, ...], Sequence[ClusterPlan]]] = [((), plans)]
    while paths:
        longer_paths = []
        for path, later_plans in paths:
            plans_before = (path[-1],) if path else running_plans
            # later plans first: of two paths of one length, the one whose first step is larger wins
            for plan in reversed(later_plans):
                if not rolls(plans_before, plan):
                    continue
                if plan == plans[-1]:
                    return (*path, plan)
                longer_paths.append(((*path, plan), plans[plans.index(plan) + 1 :]))
        paths = longer_paths
    return None


def _restarts(plans_before: Sequence[ClusterPlan], plan_after: ClusterPlan) -> tuple[int, ...]:
    """The ids of nodes whose settings or certificates differ from any of ``plans_before``."""
    new_settings = {
        node.id: (settings(plan_after, node), plan_after.security) for node in plan_after.nodes
    }
    old_settings = [
        (node.id, (settings(plan, node), plan.security))
        for plan in plans_before
        for node in plan.nodes
    ]
    changed_ids = {
        id for id, values in old_settings if id in new_settings and new_settings[id] != values
    }
    return tuple(id for id in new_settings if id in changed_ids)


def description(
    plans_before: Sequence[ClusterPlan], plan_after: ClusterPlan, target: ClusterPlan
) -> str:
    """What the step to ``plan_after`` does, in one sentence without a full stop."""
    if len(plans_before) > 1 and plan_after == plans_before[0]:
        return "back to the listeners before the step that was interrupted"
    return "; ".join(_changes(plans_before[0], plan_after, target)) or "other settings"


def _changes(
    plan_before: ClusterPlan, plan_after: ClusterPlan, target: ClusterPlan
) -> Iterator[str]:
    old_names, new_names = plan_before.listener_names, plan_after.listener_names
    added_names = [name for name in new_names if name not in old_names]
    leaving_names = [
        name for name in old_names if name in new_names and name not in target.listener_names
    ]
    if added_names and leaving_names:
        yield f"{_and(added_names)} added next to {_and(leaving_names)}"
    elif added_names:
        yield f"{_and(added_names)} added"
    for name in (name for name in new_names if name in old_names):
        old_protocols, new_protocols = (
            ", ".join(sorted(protocols(plan, name))) for plan in (plan_before, plan_after)
        )
        old_listeners, new_listeners = (
            _listeners(plan_before, name, plan_after),
            _listeners(plan_after, name, plan_before),
        )
        if old_protocols != new_protocols:
            yield f"{name} from {old_protocols} to {new_protocols}"
        elif old_listeners != new_listeners:
            has_same_bind = [*map(_without_forwarder, old_listeners)] == [
                *map(_without_forwarder, new_listeners)
            ]
            yield (
                f"{name} behind another forwarder"
                if has_same_bind
                else f"{name} at other addresses"
            )
    if plan_before.inter_broker != plan_after.inter_broker:
        yield f"brokers reach each other through {plan_after.inter_broker}"
    if removed_names := [name for name in old_names if name not in new_names]:
        yield f"{_and(removed_names)} removed"
    if text := _new_trust(plan_before, plan_after):
        yield text
    ids, new_ids = ([str(node.id) for node in plan.brokers] for plan in (plan_before, plan_after))
    if removed_ids := [id for id in ids if id not in new_ids]:
        yield f"without broker {_and(removed_ids)}"
    if new_brokers := [id for id in new_ids if id not in ids]:
        yield f"with broker {_and(new_brokers)}"


def _new_trust(plan_before: ClusterPlan, plan_after: ClusterPlan) -> str:
    """New certificates of nodes, or newly trusted authorities; empty if neither changes."""
    if plan_after.security is None:
        return ""
    if plan_before.security is None:
        return "nodes get certificates, and clients users"
    numbers = plan_after.security.authorities
    if numbers == plan_before.security.authorities:
        return ""
    if len(numbers) == 1:
        return f"authority {numbers[0]} alone is trusted"
    return (
        f"authorities {_and([*map(str, numbers)])} are trusted, and {numbers[0]} issues "
        "certificates"
    )


def _listeners(plan: ClusterPlan, name: str, other_plan: ClusterPlan) -> list[Listener | None]:
    """The listener ``name`` of the nodes that both plans have."""
    ids = {node.id for node in other_plan.brokers}
    return [node.listener(name) for node in plan.brokers if node.id in ids]


def _without_forwarder(listener: Listener | None) -> Listener | None:
    """``listener`` without its forwarder, which is no setting of a broker."""
    return listener and listener.model_copy(update={"front": None})


def _and(names: Collection[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
