"""KL002: listeners with TLS and no key, and with SASL and no login.

Kafka starts without a key, and each TLS handshake fails with alert 40 (tried with 4.1.1). Without a
login (JAAS) it exits. Sources: `SslFactory` and `JaasContext.loadServerContext` of apache/kafka.
"""

from collections.abc import Iterator
from itertools import islice

from earshot.facts.settings import BrokerSettings, KafkaSettings
from earshot.listeners.images import Family
from earshot.listeners.placeholders import is_known
from earshot.rules.kl002_kafka_mechanisms import (
    ENABLED,
    EXPECTED,
    NOT_A_MECHANISM,
    is_protocol,
)
from earshot.rules.objections import Objection, known_objections
from earshot.topology.container import Container

OF_NO_LISTENER = "is of no listener"
_PREFIX = "listener.name."
_JAAS = "sasl.jaas.config"
_LOGIN = "java.security.auth.login.config"
_KEYS = ("ssl.keystore.", "ssl.engine.factory.class")


def without_key(view: KafkaSettings) -> Iterator[Objection]:
    """K1. Raises Unreadable if another source may set the key."""
    for name in view.listeners:
        protocol = view.protocols.get(name)
        if protocol is None or not protocol.tls or view.has("ssl.keystore.location"):
            continue
        prefix = f"{_PREFIX}{name.lower()}."
        if any(key.removeprefix(prefix).startswith(_KEYS) for key in view.values):
            continue
        names = {
            f"{_PREFIX}{listener.lower()}" for listener in (*view.listeners, *view.controllers)
        }
        store_keys = [key for key in view.values if key.startswith(_PREFIX) and ".ssl.k" in key]
        lost = [key for key in store_keys if key.partition(".ssl.")[0] not in names]
        passed = f" ({lost[0]} {OF_NO_LISTENER})" if lost else ""
        yield Objection(
            "K1",
            "listeners",
            f"{name} is {protocol}, and no key store or PEM certificate is set for it{passed}",
            f"ssl.keystore.location, or {prefix}ssl.keystore.location",
            "set the key store, or another protocol for this listener",
            name,
            instead="starts, and ends every TLS handshake",
        )


def without_login(container: Container, settings: BrokerSettings) -> Iterator[Objection]:
    """K2: SASL listeners without a login for a mechanism, in images that add none."""
    if container.family not in (Family.APACHE, Family.CONFLUENT):
        return
    if any(_LOGIN in text or _hides_options(name, text) for name, text in container.env.items()):
        return
    yield from islice(known_objections(_without_login, settings.read()), 1)


def _without_login(view: KafkaSettings) -> Iterator[Objection]:
    view.has(_JAAS)
    for name in view.listeners:
        protocol = view.protocols.get(name)
        if protocol is None or not protocol.sasl:
            continue
        prefix = f"{_PREFIX}{name.lower()}."
        enabled = view.values.get(f"{prefix}{ENABLED}") or view.text(ENABLED, "GSSAPI")
        for mechanism in filter(None, map(str.strip, enabled.split(","))):
            key = f"{prefix}{mechanism.lower()}.{_JAAS}"
            if key in view.values:
                continue
            if is_protocol(mechanism):
                observed = f"{mechanism} {NOT_A_MECHANISM}, and {name} has no login for it"
                remedy = f"replace {mechanism} with the mechanism that clients use"
                yield Objection("K2", ENABLED, observed, EXPECTED, remedy, name)
            else:
                observed = f"{name} is {protocol} with {mechanism}, and no login is set for it"
                expected = f"{key}, or a file by -D{_LOGIN} in KAFKA_OPTS"
                yield Objection("K2", "listeners", observed, expected, f"set {key}", name)


def _hides_options(name: str, text: str) -> bool:
    """Whether a variable for JVM options is unknown."""
    return ("OPT" in name or "ARGS" in name) and not is_known(text)
