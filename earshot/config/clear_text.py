"""Checks that each listener of scope external without TLS has a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from earshot.config.listener import ListenerSpec
from earshot.listeners.terms import Protocol, Scope

_TLS = ", ".join(protocol for protocol in Protocol if protocol.tls)


def clear_text_problems(
    listeners: Iterable[ListenerSpec], waived: Mapping[str, str]
) -> Iterator[str]:
    """One text per external listener without TLS and waiver, and per waiver without a reason.

    ``waived`` maps listener names to reasons. Without TLS anyone on the network path can read and
    change packets, credentials included (RFC 8446, section 1).
    """
    all_listeners = list(listeners)
    exposed = {
        pair.name: pair
        for pair in all_listeners
        if Scope.EXTERNAL in pair.scopes and not pair.protocol.tls
    }
    for name, listener in exposed.items():
        if name not in waived:
            yield (
                f"listeners.{name}.protocol: found {listener.protocol} for scope {Scope.EXTERNAL}, "
                "so that anyone on the network path can read and change what is sent; allowed: "
                f"{_TLS}, or a reason under clear_text.{name}"
            )
    for name, reason in waived.items():
        if name not in exposed:
            allowed = ", ".join(exposed) or "no listener needs one"
            yield f"clear_text.{name}: found a waiver that nothing needs; allowed: {allowed}"
        elif not reason.strip():
            yield f"clear_text.{name}: found no reason; allowed: a sentence that says why"
