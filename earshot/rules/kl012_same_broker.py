"""KL012: an advertised name leads to the broker that advertises it."""

from collections.abc import Iterator
from functools import lru_cache

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import bracketed
from earshot.listeners.listed import briefly
from earshot.names.evidence import Evidence
from earshot.names.kinds import Ip, NameKind, ip_of, kind_of
from earshot.rules.kl003_kind_of_address import NEVER
from earshot.rules.rule import AppliedAt, Finding, FindingState, Rule, label

_LEFT_TO_KL003 = (*NEVER, NameKind.LOOPBACK_ADDRESS)  # every machine has the loopback addresses
_REMEDY = "give the node's own addresses (`addresses` of a node of `Listeners`)"


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Every address in the evidence is one of the node's own.

    KL011 reports missing evidence. A node with unknown addresses gives a finding of state unknown.
    """
    owners = _owners(facts)
    for node, listener, scope in facts.advertised():
        evidence = facts.evidence_for(listener, scope)
        host = str(listener.host)
        if evidence is None or facts.waiver_reason(host) or listener.forwarded:
            continue  # the addresses are the forwarder's: KL024
        addresses = [text for text in evidence.addresses if kind_of(text) not in _LEFT_TO_KL003]
        node_ips = facts.addresses.get(node.id, ())
        strangers = [text for text in addresses if ip_of(text) not in _numbers(node_ips)]
        if not strangers:
            continue
        name, owners_text = bracketed(host), f", which {_owner_text(host, owners)}"
        if ip_of(host) is None:
            descriptions = [
                f"{_with_servers(text, evidence)} {_owner_text(text, owners)}" for text in strangers
            ]
            name = f"{host}, which resolves to {briefly(addresses)}"
            owners_text = f": {briefly(descriptions)}"
        if not node_ips:
            owners_text = f"; the addresses of {label(node)} are not known"
        yield RULE.finding(
            f"advertises {name}{owners_text}",
            f"addresses of {label(node)} itself{': ' if node_ips else ''}{', '.join(node_ips)}",
            node=node,
            listener=listener,
            scope=scope,
            evidence=evidence,
            state=FindingState.VIOLATED if node_ips else FindingState.UNKNOWN,
            remedy="" if node_ips else _REMEDY,
        )


def _owners(facts: ClusterFacts) -> dict[Ip | None, str]:
    return {
        ip_of(text): label(node)
        for node in reversed(facts.nodes)  # of several nodes the first one counts
        for text in facts.addresses.get(node.id, ())
    }


def _owner_text(stranger: str, owners: dict[Ip | None, str]) -> str:
    owner = owners.get(ip_of(stranger))
    return f"belongs to {owner}" if owner else "is not its own"


def _with_servers(address: str, evidence: Evidence) -> str:
    """``address``, with the DNS servers that returned it if others returned others."""
    servers = evidence.lookup.servers_with(address) if evidence.lookup is not None else ()
    return f"{address} (from {', '.join(servers)})" if servers else address


@lru_cache(maxsize=4096)
def _numbers(addresses: tuple[str, ...]) -> frozenset[Ip | None]:
    return frozenset(map(ip_of, addresses))


RULE = Rule(
    id="KL012",
    title="An advertised name leads to the broker that advertises it",
    reason="A name that leads to another machine sends requests to a broker that does not lead the "
    "partition, or to no broker at all.",
    remedy="point the record at the broker's own address, or advertise the broker's own name",
    source="https://kafka.apache.org/protocol#protocol_partitioning",
    check=check,
    inputs=("advertised.listeners", "evidence", "addresses of the nodes"),
    applied_at=(AppliedAt.PLAN, AppliedAt.CONTAINER, AppliedAt.INSTANCES),
    reads_hosts=True,
    compares_names=True,
)
