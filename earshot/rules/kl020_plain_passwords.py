"""KL020: the mechanism PLAIN is used only over TLS."""

from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings
from earshot.rules.kl019_clear_text import clear_text_listeners, enables_plain
from earshot.rules.objections import Objection
from earshot.rules.rule import AppliedAt, Rule, Severity


def objections(view: KafkaSettings) -> Iterator[Objection]:
    """Objections to listeners with PLAIN and no TLS that other machines connect to."""
    for name, protocol, address in clear_text_listeners(view):
        if protocol.sasl and enables_plain(view, name):
            observed = f"is {protocol} with the mechanism PLAIN, and advertises {address}: "
            observed += "each password is sent as it is"
            expected = "SASL_SSL, or a mechanism that sends no password, such as SCRAM-SHA-512"
            key = "sasl.enabled.mechanisms"
            yield Objection("plain", key, observed, expected, listener=name)


RULE = Rule(
    id="KL020",
    title="The mechanism PLAIN is used only over TLS",
    reason="PLAIN sends user and password as they are: anyone on the network path can read them.",
    remedy="give the listener the protocol SASL_SSL, or enable SCRAM in place of PLAIN",
    source="https://kafka.apache.org/documentation/#security_sasl_plain_production",
    inputs=("advertised.listeners", "listener.security.protocol.map", "sasl.enabled.mechanisms"),
    severity=Severity.WARNING,
    needs="settings",
    applied_at=(AppliedAt.PLAN, AppliedAt.FILE, AppliedAt.PODS),
    objections=objections,
    weight=5,
)
