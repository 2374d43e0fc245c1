"""Why the names that an instance advertises resolve: EC2's own, a record of the stack, or a
DNS server that is asked."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.model import ClusterPlan, Listener
from earshot.listeners.terms import Scope
from earshot.names.aws import Ec2Name, Interface, declaration, read_name, resolution
from earshot.names.evidence import Declaration, Evidence, EvidenceKey, EvidenceKind, gather
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.names.policy import Asked, ResolverPolicy
from earshot.names.reachability import Expected, outlook, vantage_of
from earshot.sources.hosted_zones import RecordLookup, Zones
from earshot.sources.instance_network import InstanceNetwork


@dataclass
class Named:
    """The evidence for every advertised name, and what is not known that could be some."""

    evidence: dict[EvidenceKey, Evidence] = field(default_factory=dict)
    undecided: dict[EvidenceKey, str] = field(default_factory=dict)
    """By name without evidence, what is not known."""


def names(
    facts: ClusterFacts,
    around: Mapping[int, InstanceNetwork],
    zones: Zones,
    policy: ResolverPolicy,
    asked: Asked | None = None,
) -> Named:
    """The evidence for the names in the plan; ``around`` holds each node's surroundings by its id.

    A name whose record is still to be made is not looked up: the DNS server would cache that it is
    not there.
    """
    if facts.plan is None:
        return Named()
    words: dict[EvidenceKey, RecordLookup] = {}
    for node, listener, scope in facts.advertised():
        host = listener.host
        if isinstance(host, str) and ip_of(host) is None and scope is not Scope.HOST:
            key: EvidenceKey = (listener.name, scope, host)
            if key not in words or words[key].declaration is None:
                words[key] = _word(host, scope, around[node.id], zones)
    declared = {key: word.declaration for key, word in words.items() if word.declaration}
    waiting = {key for key, word in words.items() if word.pending}
    found = gather(_without(facts.plan, waiting), policy, "aws", declared, asked)
    found |= {key: _yet_to_be_made(declared[key]) for key in waiting}
    for key, word in words.items():
        found[key] = _with_record(found[key], word, key[2])
    undecided = {
        key: word.why
        for key, word in words.items()
        if word.undecided and found[key].kind is EvidenceKind.NONE
    }
    return Named(found, undecided)


def never_but_asked(
    facts: ClusterFacts, policy: ResolverPolicy, asked: Asked | None = None
) -> dict[EvidenceKey, Evidence]:
    """The evidence for names that no resource can declare, such as `ip-...` for scope external:
    only a DNS server may know them, as a resolver behind a VPN does."""
    if facts.plan is None:
        return {}
    others = {
        (listener.name, scope, str(listener.host))
        for _, listener, scope in facts.advertised()
        if not is_never(str(listener.host), scope)
    }
    return gather(_without(facts.plan, others), policy, "aws", asked=asked)


def is_never(host: str, scope: Scope) -> bool:
    """Whether a name of this kind resolves for nobody in ``scope``."""
    return outlook(kind_of(host), vantage_of(scope, "aws")).resolves is Expected.NO


def _word(host: str, scope: Scope, around: InstanceNetwork, zones: Zones) -> RecordLookup:
    name = read_name(host)
    if name is not None:
        return _of_ec2(host, name, scope, around)
    if scope is Scope.EXTERNAL:
        found = zones.beyond(host)
    else:
        found = zones.inside(host, around.vpc, around.dns)
    unnamed = "a record or a zone is not known yet, or its VPC is not known here"
    return replace(found, why=unnamed) if found.undecided else found


def _of_ec2(host: str, name: Ec2Name, scope: Scope, around: InstanceNetwork) -> RecordLookup:
    known = [item for item in around.elastic if isinstance(item, str)]
    public = name.kind is NameKind.EC2_PUBLIC
    if around.dns is None:
        return RecordLookup(why="the DNS attributes of its VPC are not known here", undecided=True)
    if around.dns.off:
        off = " and ".join(around.dns.off)
        return RecordLookup(why=f"{off} of the VPC: off, so that AWS gives no such name")
    unknown = public and len(known) < len(around.elastic)
    if around.region is None or around.private is None or unknown:
        return RecordLookup(why="the addresses of its instance are not known yet", undecided=True)
    held = name.address if public and name.address in (*known, *around.addresses) else ""
    interface = Interface(around.region, around.private, held, elastic=held in known)
    found = declaration(host, scope, interface, around.dns)
    if found:
        return RecordLookup(found)
    why = resolution(host, vantage_of(scope, "aws"), interface, around.dns).why
    return RecordLookup(why=why)


def _with_record(evidence: Evidence, word: RecordLookup, host: str) -> Evidence:
    """With what the stack says, where that is more than a lookup shows."""
    if word.declaration is not None or not word.why or word.undecided:
        return evidence
    name = read_name(host)
    lent_by_aws = name is not None and "of the VPC: off" in word.why
    if evidence.kind is EvidenceKind.NONE or lent_by_aws:
        why = word.why if lent_by_aws else f"{evidence.why}; {word.why}"
        return Evidence(EvidenceKind.NONE, None, why)
    return evidence


def _yet_to_be_made(declared: Declaration) -> Evidence:
    why = f"{declared.why}; not looked up: the record is still to be made"
    return Evidence(EvidenceKind.DECLARED, None, why, declared.addresses)


def _without(plan: ClusterPlan, keys: Collection[EvidenceKey]) -> ClusterPlan:
    """The same without the scopes of ``keys``, for nobody else than `gather` to see."""
    if not keys:
        return plan

    def rest(item: Listener) -> Listener:
        scopes = (it for it in item.scopes if (item.name, it, str(item.host)) not in keys)
        return item.model_copy(update={"scopes": tuple(scopes)})

    nodes = (
        node.model_copy(update={"listeners": tuple(map(rest, node.listeners))})
        for node in plan.nodes
    )
    return plan.model_copy(update={"nodes": tuple(nodes)})
