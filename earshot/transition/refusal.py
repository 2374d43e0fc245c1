"""Error messages for changes of listeners that cannot be made while brokers run."""

from __future__ import annotations

from collections.abc import Iterator

from earshot.errors import EarshotError
from earshot.listeners.listed import listed
from earshot.listeners.model import ClusterPlan, SecurityPlan
from earshot.listeners.security import is_computed
from earshot.listeners.terms import Protocol
from earshot.transition.reach import of_brokers, protocols, takeovers

STOP_FIRST = "stop the cluster first (`pulumi destroy`; with `data: keep` it keeps the data)"
MAX_SHOWN = 3
"""The maximum number of nodes in a message."""


def check(current: ClusterPlan, target: ClusterPlan) -> None:
    """Raises EarshotError for a change that a rolling restart cannot make, in any steps."""
    for obstacle in _obstacles(current, target):
        raise obstacle


def check_issuer(begun: ClusterPlan, target: ClusterPlan) -> None:
    """Raises EarshotError if nodes of an interrupted step, whose plan is ``begun``, and nodes of
    ``target`` would refuse each other's certificates."""
    if obstacle := _new_issuer(begun, target):
        raise obstacle


def no_order(current: ClusterPlan, target: ClusterPlan) -> EarshotError:
    """The error for a change without a safe order of steps."""
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
            f"port {where}{more} would change from {first.old} to {first.new} in one step, and "
            f"clients of {first.old} would get the addresses of {first.new}",
            f"give {first.new} a port that no listener has now; a later change can give it port "
            f"{first.port}, once {first.old} does not use it",
        )
    name = target.inter_broker
    old, new = (", ".join(sorted(protocols(plan, name))) for plan in (current, target))
    if name == current.inter_broker and old != new:
        return _refused(
            f"{name}, through which brokers reach each other, would change from {old} to {new}: a "
            "listener has one protocol, and the brokers restarted first would not reach the others",
            f"keep {name}, add a listener of scope internal with {new}, another name and another "
            "port, and set `inter_broker` to it",
        )
    return _refused(
        f"brokers would reach each other through {name} instead of {current.inter_broker}, and in "
        "every order of restarts a broker would use a listener that another one lacks",
        f"change one listener at a time; or {STOP_FIRST}",
    )


def _obstacles(current: ClusterPlan, target: ClusterPlan) -> Iterator[EarshotError]:
    old_voters, new_voters = _voters(current), _voters(target)
    if old_voters.keys() != new_voters.keys():
        yield _refused(
            f"the quorum has the voters {listed(old_voters)} and would get {listed(new_voters)}: a "
            "static quorum cannot change them",
            "keep `controllers.mode` and `controllers.count`; other voters need a new "
            "cluster with new data",
        )
    elif old_voters != new_voters:
        yield _refused(
            f"the controllers would move from {listed(dict.fromkeys(old_voters.values()))} to "
            f"{listed(dict.fromkeys(new_voters.values()))} while they run: during a rolling "
            "restart no majority could connect to each other",
            f"keep the controllers' addresses; or {STOP_FIRST}",
        )
    links = [f"{plan.controller} ({plan.controller_protocol})" for plan in (current, target)]
    if links[0] != links[1]:
        yield _refused(
            f"the controllers' listener would change from {links[0]} to {links[1]} while they "
            "run: the node restarted first would not reach the others",
            f"keep the controllers' listener (`name: {current.controller}`, `protocol: "
            f"{current.controller_protocol}`); or {STOP_FIRST}",
        )
    if current.security is not None and target.security is None:
        yield _refused(
            "`security` would be removed while brokers run: those restarted first would have no "
            "certificates, which the others require",
            STOP_FIRST,
        )
    elif current.security is None and target.security is not None:
        if user_keys := _own_security(current):
            yield _refused(
                f"`security` would be added while brokers run with the user's {listed(user_keys)}: "
                "those restarted first would not know which authorities the others trust",
                STOP_FIRST,
            )
    elif current.security and target.security and _changes_source(current, target):
        yield _refused(
            "nodes would get certificates from another source while brokers run: the others "
            "would not trust those restarted first",
            STOP_FIRST,
        )
    elif obstacle := _new_issuer(current, target):
        yield obstacle
    elif subjects := _other_subjects(current, target):
        yield _refused(
            f"nodes would get certificates for {listed(subjects)} while brokers run: Kafka "
            "authorizes nodes by these subjects, and nodes restarted later do not have them in "
            "their settings",
            f"have the certificates issued for the same subjects as before; or {STOP_FIRST}",
        )
    for old, new, address in _other_ids(current, target):
        yield _refused(
            f"broker {old} would become broker {new} at {address}: a broker's id is part of its "
            "data, and clients with this address would reach another broker",
            f"keep the id {old}; or first remove broker {old}, then add broker {new}",
        )


def _own_security(plan: ClusterPlan) -> list[str]:
    """The TLS listeners and security settings of a plan without `security`."""
    security = {
        f"{listener.name} ({listener.protocol})"
        for listener in of_brokers(plan)
        if listener.protocol is not Protocol.PLAINTEXT
    }
    return [*sorted(security), *(key for key, _ in plan.extra if is_computed(key))]


def _changes_source(current: ClusterPlan, target: ClusterPlan) -> bool:
    sources = {bool(plan.security.principals) for plan in (current, target) if plan.security}
    return len(sources) > 1


def _new_issuer(current: ClusterPlan, target: ClusterPlan) -> EarshotError | None:
    """The error if ``target`` has another issuer of certificates, which ``current`` does not trust,
    or whose certificates ``target`` refuses."""
    if not current.security or not target.security:
        return None
    if not _is_new_issuer(current.security, target.security):
        return None
    old, new = current.security.authorities[0], target.security.authorities[0]
    return _refused(
        f"authority {new} would replace authority {old} in one step: nodes and clients that "
        "trust only one of them would refuse certificates of the other",
        f"set `security.tls.authorities` to [{old}, {new}] first, and give clients new files "
        f"(`earshot client`); then set [{new}, {old}], then [{new}], an update each; "
        f"or {STOP_FIRST}",
    )


def _is_new_issuer(current: SecurityPlan, target: SecurityPlan) -> bool:
    """True if nodes or clients would not trust the certificates of the old or new issuer."""
    return not set(current.authorities) & set(target.authorities) >= {
        current.authorities[0],
        target.authorities[0],
    }


def _other_subjects(current: ClusterPlan, target: ClusterPlan) -> list[str]:
    """The new subjects of certificates, if the same nodes have other subjects than before."""
    if current.security is None or target.security is None or len(current.nodes) < 2:
        return []
    ids = ({node.id for node in plan.nodes} for plan in (current, target))
    old_subjects, new_subjects = (
        set(plan.security.principals) for plan in (current, target) if plan.security
    )
    is_unchanged = old_subjects == new_subjects or len(set(map(frozenset, ids))) > 1
    return [] if is_unchanged else sorted(new_subjects - old_subjects) or sorted(new_subjects)


def _other_ids(current: ClusterPlan, target: ClusterPlan) -> Iterator[tuple[int, int, str]]:
    """Removed and added brokers with the same address: (old id, new id, address)."""
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
    """The controllers' addresses by node id; only the port if the host is unknown."""
    listeners = ((node.id, node.listener(plan.controller)) for node in plan.controllers)
    return {
        id: str(listener.advertised) if listener.known else f"port {listener.port}"
        for id, listener in listeners
        if listener is not None
    }


def _refused(reason: str, remedy: str) -> EarshotError:
    return EarshotError(
        "nothing was changed: running brokers cannot make this change",
        observed=reason,
        remedy=remedy,
    )
