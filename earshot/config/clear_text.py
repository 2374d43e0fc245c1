"""External listeners without TLS: an error, unless waived with a reason.

On the internet anyone on the network path can read and change packets, credentials included.
Source: RFC 8446, section 1 (what TLS protects against), and Kafka's documentation on listeners,
whose PLAINTEXT and SASL_PLAINTEXT have no TLS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from earshot.config.listener import ListenerSpec
from earshot.listeners.terms import Protocol, Scope

KEY = "clear_text"
"""The key of a cluster's spec that holds the waivers."""
_TLS = ", ".join(item for item in Protocol if item.tls)


def clear_text_problems(
    listeners: Iterable[ListenerSpec], waived: Mapping[str, str]
) -> Iterator[str]:
    """One text per external listener without TLS and waiver, and per waiver that says nothing.

    ``waived`` maps listener names to reasons. For a spec's own check, as its other problems: with
    key, what was found and what is allowed.
    """
    listed = list(listeners)
    exposed = {
        item.name: item
        for item in listed
        if Scope.EXTERNAL in item.scopes and not item.protocol.tls
    }
    for name, item in exposed.items():
        if name not in waived:
            yield (
                f"listeners.{name}.protocol: found {item.protocol} for scope {Scope.EXTERNAL}, "
                "so that anyone on the network path can read and change what is sent; allowed: "
                f"{_TLS}, or a reason under {KEY}.{name}"
            )
    for name, reason in waived.items():
        if name not in exposed:
            allowed = ", ".join(exposed) or "no listener needs one"
            yield f"{KEY}.{name}: found a waiver that nothing needs; allowed: {allowed}"
        elif not reason.strip():
            yield f"{KEY}.{name}: found no reason; allowed: a sentence that says why"
