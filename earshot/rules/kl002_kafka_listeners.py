"""KL002: ports of `listeners` (P) and the protocol map (M)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from earshot.facts.settings import StrictSettings
from earshot.rules.kl002_kafka_objection import Objection, family, is_wildcard


def ports(view: StrictSettings) -> Iterator[Objection]:
    """P2, P3: one port, one listener; an IPv4 and an IPv6 address may share it (KIP-797)."""
    holders: dict[int, list[str]] = defaultdict(list)
    for name, address in view.listeners.items():
        if address.port:  # 0 stands for whichever is free
            holders[address.port].append(name)
    for port, names in holders.items():
        hosts = [view.listeners[name].host for name in names]
        paired = sorted(family(host) or 0 for host in hosts) == [4, 6]
        allowed = paired and view.version >= (3, 6)
        if len(names) == 1 or (allowed and not all(map(is_wildcard, hosts))):
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


def mapped(view: StrictSettings) -> Iterator[Objection]:
    """M4, M5, M6: every listener has a protocol."""
    by_default = not view.has("listener.security.protocol.map")
    check = "M4" if by_default else "M5"
    expected = "an entry in listener.security.protocol.map for every listener"
    held = "is not set" if by_default else f"has {', '.join(view.protocols)}"
    for key, names in (
        ("listeners", view.listeners),
        ("advertised.listeners", view.advertised if view.has("advertised.listeners") else {}),
    ):
        for name in names:
            if name not in view.protocols:
                observed = f"{name} has no protocol: listener.security.protocol.map {held}"
                remedy = f"add {name}:PROTOCOL to listener.security.protocol.map"
                yield Objection(check, key, observed, expected, remedy, name)


CHECKS = (ports, mapped)
