"""KL022: nodes verify the host names of the nodes that they connect to with TLS.

An empty `ssl.endpoint.identification.algorithm` disables this. A node uses it as a client of other
brokers and of the quorum (`SslChannelBuilder`), not for its own clients.
"""

from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings
from earshot.rules.objections import Objection
from earshot.rules.rule import AppliedAt, Rule, Severity

KEY = "ssl.endpoint.identification.algorithm"


def objections(view: KafkaSettings) -> Iterator[Objection]:
    """Objections to the listeners that the node itself connects to."""
    brokers = (view.inter_broker,) if view.is_broker else ()
    for name in dict.fromkeys((*brokers, *view.controllers)):
        key, protocol = view.key_of(name, KEY), view.protocols.get(name)
        if key in view.values and protocol is not None and protocol.tls and not view.text(key):
            observed = f"{key} is empty: nodes take any certificate of a trusted authority for "
            observed += "that of the node they want"
            expected = "https, Kafka's default, and certificates for the advertised hosts"
            yield Objection("unverified", key, observed, expected, listener=name)


RULE = Rule(
    id="KL022",
    title="Nodes verify the host names of those they connect to with TLS",
    reason="Without it anyone with a certificate of the same authority can pass for a broker.",
    remedy="leave the setting away, and have certificates issued for the advertised hosts",
    source="https://kafka.apache.org/documentation/#security_confighostname",
    inputs=(KEY, "inter.broker.listener.name", "controller.listener.names"),
    severity=Severity.WARNING,
    needs="settings",
    applied_at=(AppliedAt.PLAN, AppliedAt.FILE, AppliedAt.PODS),
    objections=objections,
    weight=2,
)
