"""One judgement per resource and run: every policy of the pack reports its share of it."""

from __future__ import annotations

from pulumi_policy import ResourceValidationArgs, StackValidationArgs

from components.gate import GATE_TYPE
from earshot.aws.registered import INSTANCE
from earshot.names.policy import ResolverPolicy
from earshot.rules.instance_stack import Outcome
from policies.containers import CONTAINER_TYPE, Containers
from policies.gates import judge_gate
from policies.instances import Instances
from policies.judgement import Judgement

JUDGED = frozenset({GATE_TYPE, CONTAINER_TYPE, INSTANCE})
"""Types of resources that the rules have something to say about."""


class Court:
    """The judgements of one run, by the resource's URN; a pack's process lives as long."""

    def __init__(self) -> None:
        self._policies: dict[str, ResolverPolicy] = {}
        self._judgements: dict[str, Judgement] = {}
        self._containers = Containers()
        self._instances = Instances()
        self._outcome: Outcome | None = None

    def configure(self, urn: str, policy: ResolverPolicy) -> None:
        """Which resolvers to ask on behalf of the resource ``urn``; before it is judged."""
        self._policies[urn] = policy

    def judgement(self, args: ResourceValidationArgs) -> Judgement:
        """The judgement of what ``args`` register, made once; an empty one for other types."""
        self._instances.see(args)
        if args.resource_type not in JUDGED:
            return Judgement()
        if args.urn not in self._judgements:
            self._judgements[args.urn] = self._judge(args)
        return self._judgements[args.urn]

    def outcome(self, args: StackValidationArgs) -> Outcome:
        """What all resources of the stack show, judged once when they are there."""
        if self._outcome is None:
            self._outcome = self._instances.judge_stack(args.resources, self._policies)
        return self._outcome

    def _judge(self, args: ResourceValidationArgs) -> Judgement:
        policy = self._policies.get(args.urn, ResolverPolicy())
        if args.resource_type == GATE_TYPE:
            return judge_gate(args.props, policy)
        if args.resource_type == INSTANCE:
            gate = self._judgements.get(args.opts.parent or "", Judgement())
            return self._instances.judge(args, policy, gate.plan)
        return self._containers.judge(args, policy)

    def has_judged(self, digest: str) -> bool:
        """Whether a gate with the plan of this digest was judged."""
        return any(item.digest == digest for item in self._judgements.values())
