"""KL002: the listener over which brokers talk to each other (I)."""

from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings, Unreadable
from earshot.listeners.terms import Protocol
from earshot.rules.kl002_kafka_mechanisms import is_protocol
from earshot.rules.objections import Objection

NAME = "inter.broker.listener.name"
PROTOCOL = "security.inter.broker.protocol"
ENABLED = "sasl.enabled.mechanisms"
MECHANISM = "sasl.mechanism.inter.broker.protocol"


def one_of_both(view: KafkaSettings) -> Iterator[Objection]:
    """I1."""
    if view.has(NAME) and view.has(PROTOCOL):
        observed, expected = f"is set, and so is {PROTOCOL}", f"one of {NAME} and {PROTOCOL}"
        yield Objection("I1", NAME, observed, expected, f"take {PROTOCOL} away")


def known_protocol(view: KafkaSettings) -> Iterator[Objection]:
    """I6: compared with case."""
    if view.inter_broker_protocol not in list(Protocol):
        yield Objection(
            "I6", PROTOCOL, f"is {view.inter_broker_protocol!r}", f"one of {', '.join(Protocol)}"
        )


def mapped(view: KafkaSettings) -> Iterator[Objection]:
    """I2."""
    if view.has(NAME) and view.inter_broker not in view.protocols:
        observed = f"{view.inter_broker} has no entry in listener.security.protocol.map"
        expected = f"one of {', '.join(view.protocols)}"
        remedy = f"add {view.inter_broker}:PROTOCOL to listener.security.protocol.map"
        if view.inter_broker not in view.listeners:
            remedy = f"set {NAME} to the listener that the brokers use"
        yield Objection("I2", NAME, observed, expected, remedy, view.inter_broker)


def advertised(view: KafkaSettings) -> Iterator[Objection]:
    """I3, I4: this broker advertises the inter-broker listener; its default name is the
    protocol."""
    try:
        names = list(view.advertised_to_clients)
    except Unreadable:
        names = list(view.listeners)  # Kafka allows it to advertise no other
    if not view.is_broker or view.inter_broker in names:
        return
    by_default = not view.has(NAME)
    by_protocol = by_default and view.has(PROTOCOL)
    if by_protocol and view.inter_broker_protocol not in list(Protocol):
        return  # I6 reports it
    yield Objection(
        "I4" if by_default else "I3",
        PROTOCOL if by_protocol else NAME,
        f"{view.inter_broker}{' (by default)' if by_default and not by_protocol else ''} "
        "is not advertised",
        f"one of {', '.join(names) or 'the advertised listeners'}",
        remedy=f"name the listener by {NAME} in place of {PROTOCOL}" if by_protocol else "",
        listener=view.inter_broker,
    )


def mechanisms(view: KafkaSettings) -> Iterator[Objection]:
    """I5a: since 4.2 a list has no blank entry."""
    text = view.text(ENABLED, "").strip()
    if text and not all(entry.strip() for entry in text.split(",")):
        instead = "" if view.version >= (4, 2) else "passes it over, and 4.2 does not"
        observed = f"is {text!r}, with a blank entry"
        expected = "mechanisms with one comma between them"
        yield Objection("I5a", ENABLED, observed, expected, instead=instead)


def mechanism(view: KafkaSettings) -> Iterator[Objection]:
    """I5: the mechanism of SASL between brokers is enabled."""
    if view.has(NAME):
        protocol = view.protocols.get(view.inter_broker)
    elif view.inter_broker_protocol in list(Protocol):
        protocol = Protocol(view.inter_broker_protocol)  # Kafka does not read the map
    else:
        protocol = None
    if protocol is None or not protocol.sasl:
        return
    used = view.text(MECHANISM, "GSSAPI").strip()
    key = view.key_of(view.inter_broker, ENABLED)
    text = view.text(key, "GSSAPI")
    enabled = [entry.strip() for entry in text.split(",")] if text.strip() else []
    if used not in enabled:
        remedy = f"add {used or 'the mechanism'} to {key}"
        usable = [entry for entry in enabled if not is_protocol(entry)]
        if usable and (not view.has(MECHANISM) or is_protocol(used)):
            remedy = f"set {MECHANISM} to {usable[0]}"
        yield Objection(
            "I5",
            MECHANISM,
            f"is {used or 'empty'}, and {key} has {text or 'none'}",
            f"a mechanism that {key} has",
            remedy=remedy,
            listener=view.inter_broker,
        )


def only_for_brokers(view: KafkaSettings) -> Iterator[Objection]:
    """C7: a controller has no inter-broker listener."""
    if view.is_broker or not view.has(NAME):
        return
    refused = view.version >= (4, 0) and view.inter_broker in view.controllers
    observed = f"is {view.inter_broker} on a node that is a controller only"
    expected, instead = "no such setting on a controller", "" if refused else "ignores it"
    yield Objection("C7", NAME, observed, expected, "take it away", view.inter_broker, instead)


CHECKS = (one_of_both, known_protocol, mapped, advertised, mechanisms, mechanism, only_for_brokers)
