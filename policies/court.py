"""One judgement per resource and run: every policy of the pack reports its share of it."""

from __future__ import annotations

from pulumi_policy import ResourceValidationArgs

from components.gate import GATE_TYPE
from earshot.names.policy import ResolverPolicy
from policies.containers import CONTAINER_TYPE, Containers
from policies.gates import judge_gate
from policies.judgement import Judgement

JUDGED = frozenset({GATE_TYPE, CONTAINER_TYPE})
"""Types of resources that the rules have something to say about."""


class Court:
    """The judgements of one run, by the resource's URN; a pack's process lives as long."""

    def __init__(self) -> None:
        self._policies: dict[str, ResolverPolicy] = {}
        self._judgements: dict[str, Judgement] = {}
        self._containers = Containers()

    def configure(self, urn: str, policy: ResolverPolicy) -> None:
        """Which resolvers to ask on behalf of the resource ``urn``; before it is judged."""
        self._policies[urn] = policy

    def judgement(self, args: ResourceValidationArgs) -> Judgement:
        """The judgement of what ``args`` register, made once; an empty one for other types."""
        if args.resource_type not in JUDGED:
            return Judgement()
        if args.urn not in self._judgements:
            policy = self._policies.get(args.urn, ResolverPolicy())
            is_gate = args.resource_type == GATE_TYPE
            self._judgements[args.urn] = (
                judge_gate(args.props, policy) if is_gate else self._containers.judge(args, policy)
            )
        return self._judgements[args.urn]

    def has_judged(self, digest: str) -> bool:
        """Whether a gate with the plan of this digest was judged."""
        return any(item.digest == digest for item in self._judgements.values())
