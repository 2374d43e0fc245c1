"""Evidence that a name resolves for the clients of a listener and scope.

The clients of a scope are usually on other machines. Lookups therefore use the DNS servers of the
clients, which `ResolverPolicy` names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from earshot.listeners.listed import briefly
from earshot.listeners.terms import Scope
from earshot.names.lookup import LITERAL, Diagnosis, Lookup, Resolver, literal, look_up

if TYPE_CHECKING:
    from earshot.listeners.model import ClusterPlan
    from earshot.names.policy import ResolverPolicy, SystemResolvers

EvidenceKey = tuple[str, Scope, str]
"""(listener name, scope, advertised host)."""


class EvidenceKind(StrEnum):
    """Where the evidence comes from."""

    LIVE = "live"
    """Looked up just now with that scope's resolver."""
    DECLARED = "declared"
    """A resource of the stack creates the name, and no resolver of the scope answered from here."""
    NONE = "none"


@dataclass(frozen=True)
class Evidence:
    """The evidence for one name, for one listener and scope."""

    kind: EvidenceKind
    lookup: Lookup | None
    why: str
    declared: tuple[str, ...] = ()
    """Addresses that the declaring resource gives the name, if they are known."""
    hint: str = ""
    """A longer name that resolves, if the name does not."""
    note: str = ""
    """Not empty if a waiver of the name has expired."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the name, if the evidence has them."""
        if self.kind is EvidenceKind.LIVE and self.lookup is not None:
            return self.lookup.addresses
        return self.declared if self.kind is EvidenceKind.DECLARED else ()


@dataclass(frozen=True)
class Declaration:
    """A resource of the same stack that creates a name."""

    why: str
    """The resource, as in `record kafka-1.example.com in zone Z1`."""
    addresses: tuple[str, ...] = ()
    """The addresses that the name will have, if the resource says so."""
    elsewhere: bool = False
    """True if the name is for networks whose resolvers cannot be asked from here, such as another
    VPC's. Answers of other resolvers do not count then."""


def gather(
    plan: ClusterPlan,
    policy: ResolverPolicy,
    placement: str,
    declared: Mapping[EvidenceKey, Declaration] | None = None,
    asked: SystemResolvers | None = None,
    *,
    skipped: Collection[EvidenceKey] = (),
    otherwise: Scope | None = None,
) -> dict[EvidenceKey, Evidence]:
    """The evidence for every advertised name of ``plan`` that is known, controllers' included.

    All names are looked up together, once per resolver, within ``policy.timeout`` seconds. If
    ``policy.retry`` is set, lookups are repeated for up to that many seconds. Names without dots
    are then looked up with this machine's search domains, within ``policy.timeout`` once more.
    ``asked`` provides the resolvers (default: the real ones). It remembers those that did not
    answer, and does not use them again. A name without an answer and without a declaration gets
    evidence of kind none, with the reason. ``skipped`` names are left out; scopes without a
    resolver use that of ``otherwise``.
    """
    declared = declared or {}
    if asked is None:
        from earshot.names.policy import SystemResolvers  # slow to import

        asked = SystemResolvers()
    resolvers = {scope: asked.resolver(policy, scope, placement) for scope in Scope}
    if otherwise is not None:
        resolvers = {scope: own or resolvers[otherwise] for scope, own in resolvers.items()}
    keys = [key for key in dict.fromkeys(_keys(plan)) if key not in skipped]
    elsewhere = {key for key, declaration in declared.items() if declaration.elsewhere}
    questions = [
        (host, resolver)
        for _, scope, host in (key for key in keys if key not in elsewhere)
        if (resolver := resolvers[scope]) is not None and not policy.waiver(host)
    ]
    lookups = asked.look_up(questions, policy)
    answering = [(key, lookup) for key, lookup in lookups.items() if lookup.answered]
    alive = {label for (_, label), lookup in answering if lookup.resolver != LITERAL}
    evidence = {
        key: _evidence_of(key, resolvers[key[1]], lookups, alive, declared.get(key), policy)
        for key in keys
    }
    evidence = {
        key: replace(name_evidence, note=policy.expired(key[2]))
        for key, name_evidence in evidence.items()
    }
    if Scope.EXTERNAL not in policy.resolvers:
        evidence |= _with_search(evidence, resolvers[Scope.EXTERNAL], asked, policy.timeout)
    return evidence


def _with_search(
    evidence: Mapping[EvidenceKey, Evidence],
    resolver: Resolver | None,
    asked: SystemResolvers,
    seconds: float,
) -> dict[EvidenceKey, Evidence]:
    """The evidence of names without dots that resolve only with a search domain of this machine.

    For clients here `getaddrinfo` decides, and appends them itself; clients elsewhere
    append their own.
    """
    short_keys = [
        key
        for key, name_evidence in evidence.items()
        if key[1] is Scope.EXTERNAL
        and "." not in key[2]
        and name_evidence.kind is EvidenceKind.NONE
        and name_evidence.lookup is not None
        and name_evidence.lookup.diagnosis in (Diagnosis.NXDOMAIN, Diagnosis.NO_ANSWER)
    ]
    domains = asked.search() if short_keys and resolver is not None else ()
    if resolver is None or not domains:
        return {}
    full_names = [(key, domain, f"{key[2]}.{domain}") for key in short_keys for domain in domains]
    doubted = asked.doubted(resolver)
    lookups = look_up([(name, doubted) for _, _, name in full_names], seconds)
    hinted: dict[EvidenceKey, Evidence] = {}
    for key, domain, name in full_names:
        if lookups[name.lower(), resolver.label].ok:
            hint = f"{name} does resolve, but only this machine is known to append {domain}"
            hinted.setdefault(key, replace(evidence[key], hint=hint))
    return hinted


def _keys(plan: ClusterPlan) -> Iterator[EvidenceKey]:
    for listener in (listener for node in plan.nodes for listener in node.listeners):
        for host in listener.hosts:
            if isinstance(host, str):
                yield from ((listener.name, scope, host) for scope in listener.scopes)


def _believed(lookup: Lookup, scope: Scope) -> Lookup:
    """``lookup``, or a denial if a DNS server answers for a name that cannot exist (RFC 6761).

    Some providers' servers answer for every name, with the address of a page of their own.
    """
    below = lookup.name.lower().endswith(".invalid")
    # the hosts file, which counts for clients of this machine, may have such a name
    if not (lookup.ok and below and scope is Scope.EXTERNAL):
        return lookup
    detail = (
        f"no name below .invalid exists, and the server answers {briefly(lookup.addresses)}: it "
        "invents addresses"
    )
    return replace(lookup, diagnosis=Diagnosis.NXDOMAIN, addresses=(), detail=detail, each=())


def _evidence_of(
    key: EvidenceKey,
    resolver: Resolver | None,
    lookups: Mapping[tuple[str, str], Lookup],
    alive: set[str],
    declaration: Declaration | None,
    policy: ResolverPolicy,
) -> Evidence:
    _, scope, host = key
    if address := literal(host):
        return Evidence(EvidenceKind.LIVE, address, "an address needs no lookup")
    if reason := policy.waiver(host):
        return Evidence(EvidenceKind.NONE, None, f"not looked up, waived: {reason}")
    if resolver is None or (declaration is not None and declaration.elsewhere):
        silence = f"no resolver of scope {scope} can be asked from here"
        lookup = None
    else:
        lookup = _believed(lookups[host.lower(), resolver.label], scope)
        if lookup.ok:
            why = f"looked up just now at {resolver.label}"
            if lookup.unresolved_at:
                why += f", not resolved at all of them: {'; '.join(lookup.unresolved_at)}"
            return Evidence(EvidenceKind.LIVE, lookup, why)
        silence = f"{resolver.label} did not answer for any name"
        if resolver.label in alive:
            # its answer counts, even if the name is declared
            return Evidence(EvidenceKind.NONE, lookup, f"{resolver.label} does not resolve it")
    if declaration is None:
        return Evidence(EvidenceKind.NONE, lookup, f"{silence}, and nothing declares the name")
    why = f"{declaration.why}; not looked up: {silence}"
    return Evidence(EvidenceKind.DECLARED, lookup, why, declaration.addresses)
