"""KL010: every node's certificate is valid for the hosts that the node advertises with TLS.

The checks are those of clients: subject alternative names (`earshot.certificates.names`), validity
period, chain to a trusted authority, key usage, and other refusals of OpenSSL and Java
(`earshot.certificates.verified`). Sources: RFC 5280, sections 4.2.1.12 and 6.1; RFC 6125, section
6.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.rules.rule import Finding, FindingState, Rule, Severity, label

if TYPE_CHECKING:
    from earshot.certificates.shown import ShownCertificate
    from earshot.listeners.model import Listener, Node

NOTICE = timedelta(days=30)
"""Time before the expiry from which a certificate is reported."""
_DAY = "%Y-%m-%d %H:%M UTC"


def check(facts: ClusterFacts) -> Iterator[Finding]:
    for node in facts.nodes:
        listeners = [listener for listener in node.listeners if listener.protocol.tls]
        certificate = facts.certificates.get(node.id)
        if not listeners:
            continue
        if certificate is None:
            yield RULE.finding(
                "has TLS, and its certificate is not known",
                "a certificate for every host that it advertises",
                node=node,
                state=FindingState.UNKNOWN,
                remedy="let `earshot doctor` or `Proof` connect: they check the certificate that "
                "the node shows",
            )
            continue
        yield from _names(node, listeners, certificate)
        yield from _times(facts, node, certificate)
        yield from _uses(node, certificate)
    yield from _shared(facts)


def _names(node: Node, listeners: list[Listener], cert: ShownCertificate) -> Iterator[Finding]:
    reported: set[str] = set()
    for listener in listeners:
        for host in listener.hosts:
            if not isinstance(host, str) or host in reported or cert.names.covers(host):
                continue
            reported.add(host)
            verb = "advertises" if host == listener.host else "is reached first at"
            yield RULE.finding(
                f"{verb} {host}, and its certificate is for {cert.names}",
                f"{host} among its alternative names; a common name counts for nothing",
                node=node,
                listener=listener,
            )


def _times(facts: ClusterFacts, node: Node, cert: ShownCertificate) -> Iterator[Finding]:
    now = facts.now
    if now is None:
        return
    if cert.not_before > now:
        yield RULE.finding(
            f"its certificate is valid from {cert.not_before:{_DAY}}, and it is {now:{_DAY}}",
            "a certificate that is valid now",
            node=node,
            remedy="wait for that day, set this machine's clock, or have it issued again",
        )
    elif cert.not_after <= now + NOTICE:
        is_over = cert.not_after <= now
        yield RULE.finding(
            f"its certificate {'ended' if is_over else 'ends'} on {cert.not_after:{_DAY}}",
            f"a certificate that is valid for {NOTICE.days} days",
            node=node,
            remedy="have it, or what ends of its chain, issued again",
            severity=None if is_over else Severity.WARNING,
        )


def _uses(node: Node, cert: ShownCertificate) -> Iterator[Finding]:
    """Checks the chain and the permitted uses."""
    if cert.missing:
        yield RULE.finding(
            f"the certificate of {cert.missing} is neither sent along with its own nor trusted",
            "every certificate up to an authority that clients trust",
            node=node,
            remedy="write it behind the node's own in the same PEM file",
        )
    if (refused := cert.refusal) is not None:
        yield RULE.finding(refused.observed, refused.expected, node=node, remedy=refused.remedy)
    sides = {
        "servers (serverAuth)": cert.for_servers,
        "clients (clientAuth)": cert.for_clients,
    }
    lacking = [side for side, is_good in sides.items() if not is_good]
    if lacking:
        yield RULE.finding(
            f"its certificate is not for {' and '.join(lacking)}",
            "both: nodes show it to clients, and to each other as clients",
            node=node,
            remedy="have it issued with both extended key usages, or with none",
        )


def _shared(facts: ClusterFacts) -> Iterator[Finding]:
    firsts: dict[str, Node] = {}
    for node in facts.nodes:
        cert = facts.certificates.get(node.id)
        if cert is None:
            continue
        first = firsts.setdefault(cert.key, node)
        if first is not node and not any("*" in name for name in cert.names.dns):
            yield RULE.finding(
                f"has the same key as {label(first)}",
                "a key of its own: who gets hold of one can pass for both",
                node=node,
                remedy="have a certificate issued for each, or one with a wildcard if it is "
                "meant to be shared",
                severity=Severity.WARNING,
            )


RULE = Rule(
    id="KL010",
    title="Every node's certificate is good for the hosts that it advertises with TLS",
    reason="A client connects to the advertised host and refuses a certificate that is for others, "
    "over, not yet valid, or of an authority that it cannot find.",
    remedy="have a certificate issued for the advertised hosts, or advertise a host that it has",
    source="https://www.rfc-editor.org/rfc/rfc6125#section-6.4",
    check=check,
    inputs=("advertised.listeners", "listener.security.protocol.map", "certificates"),
    needs="certificates",
    reads_hosts=True,
)
