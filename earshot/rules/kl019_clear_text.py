"""KL019: traffic that leaves the machine is encrypted.

Without TLS anyone on the network path can read and change it (RFC 8446, section 1). In settings
without a plan only addresses of other machines are certain; a plan shows full names of scope
external.
"""

from collections.abc import Iterator

from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import KafkaSettings
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol, Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.placement_registry import has_reasons
from earshot.rules.objections import Objection
from earshot.rules.rule import AppliedAt, Finding, Rule, Severity

KEY = "listener.security.protocol.map"
_PUBLIC = frozenset({NameKind.PUBLIC_ADDRESS, NameKind.EC2_PUBLIC})
_ELSEWHERE = _PUBLIC | {
    NameKind.PRIVATE_ADDRESS,
    NameKind.SHARED_ADDRESS,
    NameKind.EC2_PRIVATE,
    NameKind.EC2_RESOURCE,
    NameKind.FQDN,
}
"""Kinds of addresses that connections from other machines use."""
_IN_CLEAR = ": anyone on the network path can read and change what is sent"
_EXPECTED = "SSL or SASL_SSL for clients on other machines"


def leaves_machine(protocol: Protocol, host: str) -> bool:
    """Whether connections to ``host`` certainly pass other machines in clear text."""
    if protocol.tls:
        return False
    return kind_of(host) in (_ELSEWHERE if protocol.sasl else _PUBLIC)


def clear_text_listeners(view: KafkaSettings) -> Iterator[tuple[str, Protocol, Address]]:
    """Listeners without TLS whose advertised addresses other machines use."""
    for name, address in view.advertised_to_clients.items():
        protocol = view.protocols.get(name)
        if protocol is not None and leaves_machine(protocol, address.host):
            yield name, protocol, address


def objections(view: KafkaSettings) -> Iterator[Objection]:
    """Objections to `clear_text_listeners`, without those of KL020."""
    for name, protocol, address in clear_text_listeners(view):
        if not (protocol.sasl and enables_plain(view, name)):
            key = KEY if KEY in view.values else "advertised.listeners"
            observed = f"is {protocol}, and advertises {address}{_IN_CLEAR}"
            yield Objection("clear", key, observed, _EXPECTED, listener=name)


def enables_plain(view: KafkaSettings, listener: str) -> bool:
    """Whether ``listener`` certainly enables the mechanism PLAIN."""
    text = view.values.get(view.key_of(listener, "sasl.enabled.mechanisms"), "")
    return "PLAIN" in [part.strip() for part in text.split(",")]


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Findings about a plan, unless its placement requires a reason for each such listener."""
    for node in facts.nodes if not has_reasons(facts.placement) else ():
        for listener in node.listeners:
            host = str(listener.host)
            is_external = Scope.EXTERNAL in listener.scopes and kind_of(host) is NameKind.FQDN
            is_open = is_external and not listener.protocol.tls
            if listener.known and (is_open or leaves_machine(listener.protocol, host)):
                where = f"advertises {listener.advertised}{_IN_CLEAR}"
                observed = f"is {listener.protocol}, and {where}"
                yield RULE.finding(observed, _EXPECTED, node=node, listener=listener)


RULE = Rule(
    id="KL019",
    title="What leaves the machine is encrypted",
    reason="Without TLS anyone between a client and its broker can read and change records and "
    "credentials.",
    remedy="give the listener the protocol SSL or SASL_SSL, and certificates for what it "
    "advertises; or advertise it to this machine alone",
    source="https://kafka.apache.org/documentation/#security_overview",
    check=check,
    inputs=("advertised.listeners", "listener.security.protocol.map", "scopes"),
    severity=Severity.WARNING,
    applied_at=(AppliedAt.PLAN, AppliedAt.FILE, AppliedAt.PODS),
    objections=objections,
    weight=4,
)
