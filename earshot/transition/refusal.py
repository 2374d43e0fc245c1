"""Error messages for changes of listeners that cannot be made while brokers run."""

from __future__ import annotations

from collections.abc import Iterator

from earshot.errors import EarshotError
from earshot.listeners.listed import listed
from earshot.listeners.model import ClusterPlan, SecurityPlan
from earshot.listeners.security import is_computed
from earshot.listeners.terms import Protocol
from earshot.transition.reach import of_brokers, protocols, takeovers

STOP = "stop the cluster first (`pulumi destroy`; data is kept)"
MAX_SHOWN = 3
"""Nodes that one message names."""


def check(current: ClusterPlan, target: ClusterPlan) -> None:
    """Raises EarshotError for a change that no brokers can make while others run as before."""
    for obstacle in _obstacles(current, target):
        raise obstacle


def no_order(current: ClusterPlan, target: ClusterPlan) -> EarshotError:
    """The error if in every order of steps a client would get an address that does not work."""
    lost = list(takeovers(current, target))
    if lost:
        first = lost[0]
        where = ", ".join(
            f"{takeover.port} of node {takeover.node}"
            for takeover in lost[:MAX_SHOWN]
            if takeover.old == first.old
        )
        more = " and more" if len(lost) > MAX_SHOWN else ""
        return _refused(
            f"port {where}{more} would go from {first.old} to {first.new} in one go, and clients "
            f"that still use it as {first.old} would get the addresses of {first.new}",
            f"give {first.new} a port that no listener has now; it can get port {first.port} by a "
            f"change of its own, once {first.old} has left it",
        )
    name = target.inter_broker
    old, new = (", ".join(sorted(protocols(plan, name))) for plan in (current, target))
    if name == current.inter_broker and old != new:
        return _refused(
            f"{name}, through which brokers reach each other, would change from {old} to {new}: a "
            "broker offers one protocol by one name, and those restarted first would not reach "
            "the rest",
            f"leave {name} as it is, add a listener of scope internal with {new} by another name "
            "and port, and let `inter_broker` name that one",
        )
    return _refused(
        f"brokers reach each other through {current.inter_broker} and would through {name}, and in "
        "every order of restarts one is sent to a listener that another lacks",
        f"change one listener at a time; or {STOP}",
    )


def _obstacles(current: ClusterPlan, target: ClusterPlan) -> Iterator[EarshotError]:
    old_voters, new_voters = _voters(current), _voters(target)
    if old_voters.keys() != new_voters.keys():
        yield _refused(
            f"the quorum has the voters {listed(old_voters)} and would get {listed(new_voters)}: a "
            "static quorum cannot change them",
            "keep `controllers.mode` and `controllers.count`; other voters need a cluster of "
            "its own, with new data",
        )
    elif old_voters != new_voters:
        yield _refused(
            f"the controllers would move from {listed(dict.fromkeys(old_voters.values()))} to "
            f"{listed(dict.fromkeys(new_voters.values()))} while they run: no majority would find "
            "each other during a rolling change",
            f"keep the controllers' addresses; or {STOP}",
        )
    links = [f"{plan.controller} ({plan.controller_protocol})" for plan in (current, target)]
    if links[0] != links[1]:
        yield _refused(
            f"the controllers' listener would change from {links[0]} to {links[1]} while they "
            "run: the node that is restarted first would reach no other one",
            f"keep the controllers' listener (`name: {current.controller}`, `protocol: "
            f"{current.controller_protocol}`); or {STOP}",
        )
    if current.security is not None and target.security is None:
        yield _refused(
            "`security` would go while brokers run: those restarted first would show no "
            "certificates where the others ask for them",
            STOP,
        )
    elif current.security is None and target.security is not None:
        if user_keys := _own_security(current):
            yield _refused(
                f"`security` would come while brokers run with {listed(user_keys)} of their own: "
                "those restarted first would not know which authorities the others trust",
                STOP,
            )
    elif current.security and target.security and _changes_source(current, target):
        yield _refused(
            "nodes would have certificates of another source while brokers run: those "
            "restarted first would show what the others do not trust",
            STOP,
        )
    elif current.security and target.security and _is_new_issuer(current.security, target.security):
        old, new = current.security.authorities[0], target.security.authorities[0]
        yield _refused(
            f"certificates would be issued by authority {new} in place of {old} in one go: "
            "nodes and clients that know one of them alone would not trust the others",
            f"let `security.tls.authorities` be [{old}, {new}] first, and give clients new "
            f"files (`earshot client`); then [{new}, {old}], and then [{new}], an update each; "
            f"or {STOP}",
        )
    elif subjects := _other_subjects(current, target):
        yield _refused(
            f"nodes would show certificates for {listed(subjects)} while brokers run: Kafka "
            "permits nodes what they do by these subjects, and those that are restarted later "
            "do not know them",
            f"have the certificates issued for the same subjects as before; or {STOP}",
        )
    for old, new, address in _other_ids(current, target):
        yield _refused(
            f"broker {old} would be broker {new} at {address}: a broker's id is written into "
            "its data, and clients that know the address would be answered by another broker",
            f"keep the id {old}; or take broker {old} away first, and add broker {new} after that",
        )


def _own_security(plan: ClusterPlan) -> list[str]:
    """What a plan without `security` has of TLS, logins and permissions, as far as it shows."""
    security = {
        f"{listener.name} ({listener.protocol})"
        for listener in of_brokers(plan)
        if listener.protocol is not Protocol.PLAINTEXT
    }
    return [*sorted(security), *(key for key, _ in plan.extra if is_computed(key))]


def _changes_source(current: ClusterPlan, target: ClusterPlan) -> bool:
    sources = {bool(plan.security.principals) for plan in (current, target) if plan.security}
    return len(sources) > 1


def _is_new_issuer(current: SecurityPlan, target: SecurityPlan) -> bool:
    """Whether what one authority issues would meet nodes or clients that do not trust it."""
    return not set(current.authorities) & set(target.authorities) >= {
        current.authorities[0],
        target.authorities[0],
    }


def _other_subjects(current: ClusterPlan, target: ClusterPlan) -> list[str]:
    """Those of the certificates of the same nodes, where they are not the ones before."""
    if current.security is None or target.security is None or len(current.nodes) < 2:
        return []
    ids = ({node.id for node in plan.nodes} for plan in (current, target))
    old_subjects, new_subjects = (
        set(plan.security.principals) for plan in (current, target) if plan.security
    )
    is_unchanged = old_subjects == new_subjects or len(set(map(frozenset, ids))) > 1
    return [] if is_unchanged else sorted(new_subjects - old_subjects) or sorted(new_subjects)


def _other_ids(current: ClusterPlan, target: ClusterPlan) -> Iterator[tuple[int, int, str]]:
    """Brokers that go and ones that come, where both have the same address."""
    ids = ({node.id for node in plan.brokers} for plan in (current, target))
    old_ids, new_ids = ids
    id_by_address = {
        str(listener.advertised): node.id
        for node in current.brokers
        if node.id not in new_ids
        for listener in node.listeners
        if listener.known
    }
    for node in target.brokers:
        for listener in node.listeners if node.id not in old_ids else ():
            if (
                listener.known
                and (old_id := id_by_address.get(str(listener.advertised))) is not None
            ):
                yield old_id, node.id, str(listener.advertised)


def _voters(plan: ClusterPlan) -> dict[int, str]:
    """By id, where the controllers listen; of a name that is not known yet, the port alone."""
    listeners = ((node.id, node.listener(plan.controller)) for node in plan.controllers)
    return {
        id: str(listener.advertised) if listener.known else f"port {listener.port}"
        for id, listener in listeners
        if listener is not None
    }


def _refused(reason: str, remedy: str) -> EarshotError:
    return EarshotError(
        "nothing was touched, for brokers that run cannot make this change",
        observed=reason,
        remedy=remedy,
    )
