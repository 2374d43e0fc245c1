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
    old = with_nodes(current, {node.id for node in target.nodes})
    new = with_nodes(target, {node.id for node in current.nodes})
    yield old
    yield from _listener_steps(old, new)
    yield new
    yield target


def _listener_steps(old: ClusterPlan, new: ClusterPlan) -> Iterator[ClusterPlan]:
    used, next_used = old.inter_broker, new.inter_broker
    changed = {
        name
        for name in set(old.listener_names) & set(new.listener_names)
        if protocols(old, name) != protocols(new, name)
    }
    if used != next_used:
        # the next inter-broker listener gets its new protocol before brokers use it, and the
        # current one stays unchanged until then
        keeping = changed - {next_used}
        if is_internal(old, used) and not is_internal(new, used):
            keeping |= {used}
        both = side_by_side(old, new, keeping)
        yield both
        yield both.model_copy(update={"inter_broker": next_used})
    elif used not in changed:
        yield side_by_side(old, new, changed)
    elif bridge := _bridge(old, new, changed):
        # a name has one protocol, so brokers use another listener while theirs changes
        for keeping, through in ((changed, used), (changed, bridge), (changed - {used}, bridge)):
            plan = side_by_side(old, new, keeping)
            yield plan.model_copy(update={"inter_broker": through})
        yield side_by_side(old, new, changed - {used})


def _bridge(old: ClusterPlan, new: ClusterPlan, changed: Collection[str]) -> str | None:
    """A listener of scope internal whose protocol stays, if possible one of both plans."""
    stays = [name for name in new.listener_names if name in old.listener_names]
    others = [name for name in (*new.listener_names, *old.listener_names) if name not in stays]
    for name in (*stays, *others):
        if name not in changed and is_internal(old, name) and is_internal(new, name):
            return name
    return None


def side_by_side(old: ClusterPlan, new: ClusterPlan, keeping: Collection[str]) -> ClusterPlan:
    """A plan with the listeners of both plans, which have the same nodes, and inter-broker
    listener of ``old``.

    Listeners of both plans are those of ``new``, or those of ``old`` if ``keeping`` names them.
    """
    nodes = tuple(_node(old.node(node.id), node, new.controller, keeping) for node in new.nodes)
    extra = tuple(sorted((dict(old.extra) | dict(new.extra)).items()))
    return new.model_copy(update={"nodes": nodes, "inter_broker": old.inter_broker, "extra": extra})


def _node(old: Node, new: Node, controller: str, keeping: Collection[str]) -> Node:
    staying = [
        listener for listener in old.listeners if new.is_broker or new.listener(listener.name)
    ]
    come = [listener for listener in new.listeners if old.listener(listener.name) is None]
    # in the order of the old plan, so that a step back to it restarts no broker only for the order
    listeners = [
        listener if listener.name in keeping else new.listener(listener.name) or listener
        for listener in staying
    ] + come
    # the controller's listener stays the last
    listeners.sort(key=lambda listener: listener.name == controller)
    return new.model_copy(update={"listeners": tuple(listeners)})


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
