"""Lookups of internal listeners' names for clients in connected VPCs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from earshot.facts.connected import ConnectedVpc
from earshot.listeners.model import ClusterPlan
from earshot.listeners.terms import Scope
from earshot.names.policy import ResolverPolicy, SystemResolvers


def with_lookups(
    plan: ClusterPlan,
    connected: Sequence[ConnectedVpc],
    policy: ResolverPolicy,
    asked: SystemResolvers | None = None,
) -> tuple[ConnectedVpc, ...]:
    """``connected`` with the answers of those VPCs that have resolvers.

    All lookups together take up to ``policy.timeout`` seconds. ``asked`` provides the resolvers
    (default: the system's and those of the policy).
    """
    hosts = {
        host
        for node in plan.brokers
        for listener in node.listeners
        if Scope.INTERNAL in listener.scopes
        for host in listener.hosts
        if isinstance(host, str) and not policy.waiver(host)
    }
    asked = asked or SystemResolvers()
    resolvers = {vpc.name: asked.dns(vpc.resolver) for vpc in connected if vpc.resolver}
    questions = [(host, resolver) for resolver in resolvers.values() for host in sorted(hosts)]
    answers = asked.look_up(questions, policy) if questions else {}
    lookups = {
        name: {host.lower(): answers[host.lower(), resolver.label] for host in hosts}
        for name, resolver in resolvers.items()
    }
    return tuple(replace(vpc, lookups=lookups.get(vpc.name, {})) for vpc in connected)
