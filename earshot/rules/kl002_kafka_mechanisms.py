"""KL002: a security protocol's name where a SASL mechanism belongs (M).

Kafka starts with such a name, because login modules may add mechanisms. Java has no mechanism of
these names, so each login fails: "Failed to create SaslClient with mechanism SASL_SSL"
(`SaslClientAuthenticator.createSaslClient` of apache/kafka). With 4.1.1, brokers with such a name
for connections between them started, and no follower joined its leader. Other unknown names may be
mechanisms of a login module.
"""

from collections.abc import Iterable, Iterator

from earshot.facts.settings import KafkaSettings, Unreadable
from earshot.listeners.placeholders import is_known
from earshot.listeners.terms import Protocol
from earshot.rules.objections import Objection

ENABLED = "sasl.enabled.mechanisms"
BETWEEN_BROKERS = "sasl.mechanism.inter.broker.protocol"
TO_CONTROLLERS = "sasl.mechanism.controller.protocol"
EXPECTED = "a SASL mechanism, such as PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI"
NOT_A_MECHANISM = "is a security protocol and not a SASL mechanism"


def is_protocol(mechanism: str) -> bool:
    """Whether a security protocol has this name, in any case."""
    return mechanism.strip().upper() in list(Protocol)


def mechanisms(view: KafkaSettings) -> Iterator[Objection]:
    """M1: the mechanism that the node itself uses. M2, without M1: those that it accepts."""
    objections = [*_used(view)]
    yield from objections or _accepted(view)


def _used(view: KafkaSettings) -> Iterator[Objection]:
    for key, target in ((BETWEEN_BROKERS, "another broker"), (TO_CONTROLLERS, "a controller")):
        used = view.values.get(key, "").strip()
        if not is_protocol(used) or not any(_has_sasl(view, name) for name in _called(view, key)):
            continue
        yield Objection(
            "M1",
            key,
            f"{used} {NOT_A_MECHANISM}",
            EXPECTED,
            f"set {key} to a mechanism, and add it to {ENABLED}",
            instead=f"starts, and cannot log in to {target}",
        )


def _called(view: KafkaSettings, key: str) -> Iterable[str]:
    """The listeners at which a node logs in with the mechanism of ``key``."""
    return (view.inter_broker,) if key == BETWEEN_BROKERS else view.controllers[:1]


def _accepted(view: KafkaSettings) -> Iterator[Objection]:
    """An error if a listener accepts no other mechanism, else a warning; one for each setting."""
    by_key: dict[str, tuple[list[str], bool, str]] = {}
    for name in view.listeners:
        key = view.key_of(name, ENABLED)
        text = view.values.get(key, "")
        entries = [entry.strip() for entry in text.split(",") if entry.strip()]
        wrong = [entry for entry in entries if is_protocol(entry)]
        if wrong and is_known(text) and _has_sasl(view, name):
            by_key.setdefault(key, (wrong, len(wrong) == len(entries), name))
    for key, (wrong, is_only, name) in by_key.items():
        yield Objection(
            "M2",
            key,
            f"{wrong[0]} {NOT_A_MECHANISM}",
            EXPECTED,
            f"replace {wrong[0]} with the mechanism that clients use"
            if is_only
            else f"remove {wrong[0]}",
            name,
            instead=f"starts, and no client can log in {'' if is_only else 'with it '}at {name}",
            is_error=is_only,
        )


def _has_sasl(view: KafkaSettings, name: str) -> bool:
    try:
        protocol = view.protocols.get(name)
    except Unreadable:
        return False
    return protocol is not None and protocol.sasl
