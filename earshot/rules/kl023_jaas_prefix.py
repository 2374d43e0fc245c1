"""KL023: a JAAS line belongs to an existing listener, and to a mechanism that it enables.

Kafka only reads `listener.name.LISTENER.MECHANISM.sasl.jaas.config` with listener and mechanism in
lower case (`ListenerName.configPrefix`, `JaasContext.loadServerContext`), for the mechanisms that
the listener enables and the node itself logs in with (`ChannelBuilders.create`).
"""

from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings
from earshot.rules.kl002_kafka_mechanisms import BETWEEN_BROKERS, ENABLED, TO_CONTROLLERS
from earshot.rules.objections import Objection
from earshot.rules.rule import AppliedAt, Rule, Severity

_PREFIX, _SUFFIX = "listener.name.", ".sasl.jaas.config"


def objections(view: KafkaSettings) -> Iterator[Objection]:
    """Objections to JAAS lines without a listener of this node or of its protocol map, or of a
    mechanism that is not used there."""
    lines = [key for key in view.values if key.startswith(_PREFIX) and key.endswith(_SUFFIX)]
    if not lines:
        return
    mapped = view.protocols if view.has("listener.security.protocol.map") else ()
    names = dict.fromkeys((*view.listeners, *view.controllers, *mapped))
    for key in lines:
        owners = [name for name in names if key.startswith(f"{_PREFIX}{name.lower()}.")]
        if owners:
            yield from _unused_mechanism(view, key, max(owners, key=len))
            continue
        observed = f"{key} is of no listener, and Kafka does not read it"
        names_text = ", ".join(name.lower() for name in names)
        yield Objection(
            "prefix", key, observed, f"{_PREFIX} and one of {names_text}, in lower case"
        )


def _unused_mechanism(view: KafkaSettings, key: str, listener: str) -> Iterator[Objection]:
    prefix = f"{_PREFIX}{listener.lower()}."
    enabled = view.text(view.key_of(listener, ENABLED), "GSSAPI")
    own = [view.text(setting, "GSSAPI") for setting in (BETWEEN_BROKERS, TO_CONTROLLERS)]
    mechanisms = [text.strip().lower() for text in enabled.split(",")]
    mechanism = key.removeprefix(prefix).removesuffix(_SUFFIX.removeprefix("."))
    if mechanism.removesuffix(".") in (*mechanisms, *(text.strip().lower() for text in own)):
        return
    named = f"names the mechanism {mechanism[:-1]}" if mechanism else "names no mechanism"
    observed = f"{key} {named}, and {listener} enables {enabled}: Kafka does not read it"
    expected = f"{prefix}MECHANISM{_SUFFIX} with one of {', '.join(mechanisms)}"
    remedy = f"write such a name, or add the mechanism to {ENABLED}"
    yield Objection("mechanism", key, observed, expected, remedy)


RULE = Rule(
    id="KL023",
    title="A JAAS line belongs to a listener that exists, and to a mechanism that it enables",
    reason="Kafka does not read a line of another listener or mechanism, so users cannot log in.",
    remedy="write the listener's name in lower case; in a variable's name _ means a dot, and "
    "__ for an underscore of the listener",
    source="https://kafka.apache.org/documentation/#security_jaas_broker",
    inputs=("listener.name.*.sasl.jaas.config", "listeners", "listener.security.protocol.map"),
    severity=Severity.WARNING,
    needs="settings",
    applied_at=(AppliedAt.PLAN, AppliedAt.FILE, AppliedAt.PODS),
    objections=objections,
    weight=3,
)
