"""KL002: `listeners` (P), the protocol map (M), `advertised.listeners` (A), and a controller's
advertised address (C10)."""

from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings
from earshot.listeners.listed import by_key
from earshot.listeners.terms import ANY_IPV4
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.rules.objections import Objection

KEY = "advertised.listeners"


def ports(view: KafkaSettings) -> Iterator[Objection]:
    """P2, P3: one listener per port, or one IPv4 and one IPv6 address (KIP-797)."""
    fixed = ((at.port, name) for name, at in view.listeners.items() if at.port)  # 0: any free one
    for port, names in by_key(fixed).items():
        hosts = [view.listeners[name].host for name in names]
        paired = sorted(_family(host) for host in hosts) == [4, 6]
        allowed = paired and view.version >= (3, 6)
        if len(names) == 1 or (allowed and not all(map(_is_wildcard, hosts))):
            continue
        yield Objection(
            "P3" if allowed else "P2",
            "listeners",
            f"port {port} is bound by {' and '.join(f'{n}://{view.listeners[n]}' for n in names)}",
            "a port of its own for each listener, or exactly one IPv4 and one IPv6 address on it",
            remedy=f"move {names[-1]} to another port",
            listener=names[-1],
            instead="lets both bind every interface, and one of them may fail" if allowed else "",
        )


def _family(host: str) -> int:
    """The IP version (4 or 6) of an address, from its text; 0 for a name or an empty host."""
    return 0 if ip_of(host) is None else 6 if ":" in host else 4


def _is_wildcard(host: str) -> bool:
    """Whether ``host`` binds every interface; no client can connect to it."""
    return not host or kind_of(host) is NameKind.ANY_ADDRESS


def mapped(view: KafkaSettings) -> Iterator[Objection]:
    """M4, M5, M6: every listener has a protocol."""
    by_default = not view.has("listener.security.protocol.map")
    check = "M4" if by_default else "M5"
    expected = "an entry in listener.security.protocol.map for every listener"
    map_text = "is not set" if by_default else f"has {', '.join(view.protocols)}"
    for key, name in _names(view):
        if name not in view.protocols:
            observed = f"{name} has no protocol: listener.security.protocol.map {map_text}"
            remedy = f"add {name}:PROTOCOL to listener.security.protocol.map"
            yield Objection(check, key, observed, expected, remedy, name)


def _names(view: KafkaSettings) -> Iterator[tuple[str, str]]:
    """The names of all listeners, each with its property; first those that are known."""
    yield from (("listeners", name) for name in view.listeners)
    if view.has(KEY):
        yield from ((KEY, name) for name in view.advertised)


def not_empty(view: KafkaSettings) -> Iterator[Objection]:
    """A2."""
    if view.is_broker and not view.advertised_to_clients:
        names = ", ".join(view.advertised)
        observed = f"holds nothing for clients: {names} belong to the controller"
        expected = "at least one listener that is not in controller.listener.names"
        yield Objection("A2", KEY, observed if names else "is empty", expected)


def listened(view: KafkaSettings) -> Iterator[Objection]:
    """A1: every advertised listener is also a listener."""
    if not view.is_broker:
        return
    for name in view.advertised_to_clients:
        if name not in view.listeners:
            observed = f"{name} is advertised and not in listeners"
            remedy = f"add {name} to listeners, or advertise it no more"
            expected = f"some of {', '.join(view.listeners)}"
            yield Objection("A1", KEY, observed, expected, remedy, name)


def routable(view: KafkaSettings) -> Iterator[Objection]:
    """A3, A4: Kafka refuses the host 0.0.0.0; KL003 checks other hosts."""
    inherited = not view.has(KEY)
    remedy = "advertise the host that was provisioned for these clients"
    for name, address in view.advertised_to_clients.items() if view.is_broker else ():
        if address.host == ANY_IPV4:
            observed = f"{name} advertises {address}"
            observed += ", taken from listeners" if inherited else ""
            expected = "an address that clients can connect to"
            yield Objection("A4" if inherited else "A3", KEY, observed, expected, remedy, name)
        elif inherited and not address.host:
            observed = f"is not set, and {name} listens on every interface"
            expected = "an advertised host for every listener"
            instead = "hands out the machine's own name"
            yield Objection("A4a", KEY, observed, expected, remedy, name, instead)


def own_roles(view: KafkaSettings) -> Iterator[Objection]:
    """A5a, A5b, A5c: a node advertises only listeners of its roles."""
    if not view.has(KEY):
        return
    early = view.version < (3, 9)
    text = view.text(KEY)  # an unset variable may leave it empty
    if early and not view.is_broker:
        if not text.strip() and view.version < (3, 3):
            return
        observed = (
            "is set on a node that is a controller only: before Kafka 3.9 it advertises nothing"
        )
        yield Objection("A5b", KEY, observed, f"no {KEY}", "take it away")
        return
    for name, address in view.advertised.items():
        is_quorum = name not in view.advertised_to_clients
        remedy = f"take {name} away"
        if early and is_quorum:
            observed = f"{name} is the controllers', which Kafka before 3.9 does not advertise"
            yield Objection("A5a", KEY, observed, "the brokers' listeners alone", remedy, name)
        elif not (view.is_controller if is_quorum else view.is_broker):
            role = "broker" if is_quorum else "controller"
            observed = f"{name} is advertised by a node that is a {role} only"
            expected = "listeners of the node's own roles"
            is_refused = not is_quorum and address.host == ANY_IPV4
            instead = "" if is_refused else "ignores it"
            yield Objection("A5c", KEY, observed, expected, remedy, name, instead)


def quorum(view: KafkaSettings) -> Iterator[Objection]:
    """A3 and C10: controllers advertise explicitly, as wildcards differ between versions."""
    if not view.is_controller:
        return
    for name, address in view.quorum_addresses.items():
        explicit = view.has(KEY) and name in view.advertised
        if explicit and address.host == ANY_IPV4:
            observed, expected = f"{name} advertises {address}", "the host that the voters name"
            yield Objection("A3", KEY, observed, expected, listener=name)
        elif not explicit and _is_wildcard(address.host):
            yield _unstated(view, name, refused=view.version[:3] == (3, 9, 0))
        elif not explicit and view.has(KEY):
            yield Objection(
                "C10",
                KEY,
                f"lacks {name}",
                "every listener of the controller, advertised",
                remedy=f"add {name}://{address}",
                listener=name,
                instead="takes it from listeners",
                is_error=False,
            )


def _unstated(view: KafkaSettings, name: str, refused: bool) -> Objection:
    """C10: the address of this controller is not stated.

    The voters of a static quorum connect to the addresses in `controller.quorum.voters`, so that
    it forms and elects all the same (run with 4.1.1). What the leader then calls itself is its
    machine's own name, since 4.2.1 its entry of the voters (KAFKA-18281, KAFKA-20380): a name
    that its Docker network knows, and other hosts do not. A dynamic quorum has nothing else.
    """
    refused = refused and view.listeners[name].host == ANY_IPV4
    static = view.id in view.voters
    entry = f"{name}://{view.voters[view.id]}" if static else name
    remedy = f"advertise {entry}, or in an image that refuses it bind that"
    if view.is_broker:
        remedy = f"advertise {entry}, which Kafka 3.9 and later allow"
    if refused:
        port = view.listeners[name].port
        remedy = f"write {name}://:{port} into listeners, or use a release after 3.9.0"
    return Objection(
        "C10",
        KEY,
        f"lacks {name}, which listens on {ANY_IPV4}, and Kafka 3.9.0 advertises that"
        if refused
        else f"lacks {name}, which listens on every interface",
        "the controller's own entry of the voters, advertised",
        remedy=remedy,
        listener=name,
        instead="" if refused else "hands out a name that depends on its version",
        is_error=refused or not static,
    )


CHECKS = (ports, mapped, not_empty, listened, routable, own_roles, quorum)
