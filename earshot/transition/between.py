"""Candidate plans for the steps between two plans; `reach` decides which steps are safe."""

from collections.abc import Collection, Iterator

from earshot.listeners.model import ClusterPlan, Node
from earshot.transition.reach import is_internal, protocols


def candidates(current: ClusterPlan, target: ClusterPlan) -> tuple[ClusterPlan, ...]:
    """The distinct plans that the steps from ``current`` to ``target`` may use, in order.

    The first is ``current``, the last ``target``.
    """
    plans: list[ClusterPlan] = []
    for plan in _between(current, target):
        if plan not in plans:  # compared, as pydantic's hash reads every node each time
            plans.append(plan)
    return tuple(plans)


def _between(current: ClusterPlan, target: ClusterPlan) -> Iterator[ClusterPlan]:
    yield current
    # brokers are removed before listeners change and added after: an old broker has no address in
    # the new plan, and a new one none in the old
    old_plan = with_nodes(current, {node.id for node in target.nodes})
    new_plan = with_nodes(target, {node.id for node in current.nodes})
    yield old_plan
    yield from _listener_steps(old_plan, new_plan)
    yield new_plan
    yield target


def _listener_steps(old_plan: ClusterPlan, new_plan: ClusterPlan) -> Iterator[ClusterPlan]:
    inter_broker, new_inter_broker = old_plan.inter_broker, new_plan.inter_broker
    changed_names = {
        name
        for name in set(old_plan.listener_names) & set(new_plan.listener_names)
        if protocols(old_plan, name) != protocols(new_plan, name)
    }
    if inter_broker != new_inter_broker:
        # the next inter-broker listener gets its new protocol before brokers use it, and the
        # current one stays unchanged until then
        keeping = changed_names - {new_inter_broker}
        if is_internal(old_plan, inter_broker) and not is_internal(new_plan, inter_broker):
            keeping |= {inter_broker}
        plan_with_both = with_listeners_of_both(old_plan, new_plan, keeping)
        yield plan_with_both
        yield plan_with_both.model_copy(update={"inter_broker": new_inter_broker})
    elif inter_broker not in changed_names:
        yield with_listeners_of_both(old_plan, new_plan, changed_names)
    elif bridge := _bridge(old_plan, new_plan, changed_names):
        # a name has one protocol, so brokers use another listener while theirs changes
        for keeping, through in (
            (changed_names, inter_broker),
            (changed_names, bridge),
            (changed_names - {inter_broker}, bridge),
        ):
            plan = with_listeners_of_both(old_plan, new_plan, keeping)
            yield plan.model_copy(update={"inter_broker": through})
        yield with_listeners_of_both(old_plan, new_plan, changed_names - {inter_broker})


def _bridge(
    old_plan: ClusterPlan, new_plan: ClusterPlan, changed_names: Collection[str]
) -> str | None:
    """A listener of scope internal whose protocol stays, if possible one of both plans."""
    stays = [name for name in new_plan.listener_names if name in old_plan.listener_names]
    other_names = [
        name for name in (*new_plan.listener_names, *old_plan.listener_names) if name not in stays
    ]
    for name in (*stays, *other_names):
        if (
            name not in changed_names
            and is_internal(old_plan, name)
            and is_internal(new_plan, name)
        ):
            return name
    return None


def with_listeners_of_both(
    old_plan: ClusterPlan, new_plan: ClusterPlan, keeping: Collection[str]
) -> ClusterPlan:
    """A plan with the listeners of both plans, which have the same nodes, and inter-broker
    listener of ``old_plan``.

    A listener in both plans is that of ``new_plan``, or that of ``old_plan`` if in ``keeping``.
    """
    nodes = tuple(
        _node(old_plan.node(node.id), node, new_plan.controller, keeping) for node in new_plan.nodes
    )
    extra = tuple(sorted((dict(old_plan.extra) | dict(new_plan.extra)).items()))
    return new_plan.model_copy(
        update={"nodes": nodes, "inter_broker": old_plan.inter_broker, "extra": extra}
    )


def _node(old_node: Node, new_node: Node, controller: str, keeping: Collection[str]) -> Node:
    staying = [
        listener
        for listener in old_node.listeners
        if new_node.is_broker or new_node.listener(listener.name)
    ]
    added = [
        listener for listener in new_node.listeners if old_node.listener(listener.name) is None
    ]
    # in the order of the old plan, so that a step back to it restarts no broker only for the order
    listeners = [
        listener if listener.name in keeping else new_node.listener(listener.name) or listener
        for listener in staying
    ] + added
    # the controller's listener stays the last
    listeners.sort(key=lambda listener: listener.name == controller)
    return new_node.model_copy(update={"listeners": tuple(listeners)})


def with_nodes(plan: ClusterPlan, ids: Collection[int]) -> ClusterPlan:
    """``plan`` without nodes that are not in ``ids``."""
    nodes = tuple(node for node in plan.nodes if node.id in ids)
    if len(nodes) == len(plan.nodes) or not nodes:
        return plan
    brokers = max(1, sum(node.is_broker for node in nodes))
    return plan.model_copy(
        update={
            "nodes": nodes,
            "replication_factor": min(plan.replication_factor, brokers),
            "min_insync_replicas": min(plan.min_insync_replicas, brokers),
        }
    )
