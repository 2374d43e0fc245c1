"""KL023: a JAAS line belongs to an existing listener.

Kafka only reads `listener.name.LISTENER.MECHANISM.sasl.jaas.config` with listener and mechanism in
lower case (`ListenerName.configPrefix`, `JaasContext.loadServerContext`).
"""

from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings
from earshot.rules.objections import Objection
from earshot.rules.registry import AppliedAt, Rule, Severity

_PREFIX, _SUFFIX = "listener.name.", ".sasl.jaas.config"


def objections(view: KafkaSettings) -> Iterator[Objection]:
    """Objections to JAAS lines without a listener of this node or of its protocol map."""
    lines = [key for key in view.values if key.startswith(_PREFIX) and key.endswith(_SUFFIX)]
    if not lines:
        return
    mapped = view.protocols if view.has("listener.security.protocol.map") else ()
    names = dict.fromkeys((*view.listeners, *view.controllers, *mapped))
    for key in lines:
        if any(key.startswith(f"{_PREFIX}{name.lower()}.") for name in names):
            continue
        observed = f"{key} is of no listener, and Kafka does not read it"
        names_text = ", ".join(name.lower() for name in names)
        yield Objection(
            "prefix", key, observed, f"{_PREFIX} and one of {names_text}, in lower case"
        )


RULE = Rule(
    id="KL023",
    title="A JAAS line belongs to a listener that exists",
    reason="Kafka passes over a line of another listener, and the users in it cannot log in.",
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
