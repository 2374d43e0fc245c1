"""Why the names that a container advertises resolve: its own networks, or a DNS server."""

from __future__ import annotations

from collections.abc import Iterable

from earshot.facts.cluster import ClusterFacts
from earshot.facts.container import DEFAULT_BRIDGES
from earshot.facts.settings import readable
from earshot.listeners.grammar import read_voters
from earshot.listeners.terms import Scope
from earshot.names.evidence import Declaration, Evidence, EvidenceKey, EvidenceKind, gather
from earshot.names.lookup import Lookup, Resolver
from earshot.names.policy import Asked, ResolverPolicy

_INSIDE = (Scope.INTERNAL, Scope.CONTROLLER)


def declarations(facts: ClusterFacts) -> dict[EvidenceKey, Declaration]:
    """What the containers' own networks declare about the names in the plan, for `gather`."""
    found: dict[EvidenceKey, Declaration] = {}
    for node, listener, scope in facts.advertised():
        container = facts.containers.get(node.id)
        host = listener.host
        if container is None or not isinstance(host, str) or not container.answers_to(host):
            continue
        is_own = host.lower() == container.hostname.lower()
        if joined := [it.name for it in container.networks if it.name not in DEFAULT_BRIDGES]:
            why = f"container {container.name} has this name on network {', '.join(joined)}"
        elif is_own and _is_lone_voter(facts, node.id, scope):
            why = f"it is the hostname of container {container.name}, the one voter"
        else:
            continue
        addresses = tuple(sorted(container.addresses))
        found[listener.name, scope, host] = Declaration(why, addresses)
    return found


def _is_lone_voter(facts: ClusterFacts, id: int, scope: Scope) -> bool:
    """A container knows its own hostname without any network's help, and nobody else need."""
    if scope is not Scope.CONTROLLER:
        return False
    settings = facts.settings.get(id)
    text = settings.values.get("controller.quorum.voters", "") if settings is not None else ""
    return [voter for voter, _ in readable(read_voters(text))] == [id]


def evidence(
    facts: ClusterFacts, policy: ResolverPolicy, asked: Asked | None = None
) -> dict[EvidenceKey, Evidence]:
    """The evidence for every advertised name of nodes in containers.

    A full name that no network of containers holds, as of another Docker host, is asked where
    names of scope external are: Docker's own resolver hands it on to such servers too.
    """
    if facts.plan is None:
        return {}
    declared = declarations(facts)
    asked = asked or Asked()
    found = gather(facts.plan, policy, facts.placement, declared, asked)
    beyond = [key for key, item in found.items() if _is_beyond(key, item, policy)]
    if beyond:
        again = gather(facts.plan, policy, facts.placement, declared, _Beyond(asked))
        found |= {key: again[key] for key in beyond}
    return found


def _is_beyond(key: EvidenceKey, item: Evidence, policy: ResolverPolicy) -> bool:
    _, scope, host = key
    nobody_asked = item.kind is EvidenceKind.NONE and item.lookup is None
    return scope in _INSIDE and nobody_asked and "." in host and not policy.waiver(host)


class _Beyond(Asked):
    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    def look_up(
        self, questions: Iterable[tuple[str, Resolver]], policy: ResolverPolicy
    ) -> dict[tuple[str, str], Lookup]:
        return self._asked.look_up(questions, policy)

    def search(self) -> tuple[str, ...]:
        return self._asked.search()

    def resolver(self, policy: ResolverPolicy, scope: Scope, placement: str) -> Resolver | None:
        found = self._asked.resolver(policy, scope, placement)
        return found or self._asked.resolver(policy, Scope.EXTERNAL, placement)
