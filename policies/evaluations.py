"""One evaluation per resource and run: every policy of the pack reports its part of it."""

from __future__ import annotations

from pulumi_policy import ResourceValidationArgs, StackValidationArgs

from components.gate import GATE_TYPE
from earshot.checks.instance_stack import StackEvaluation
from earshot.names.policy import ResolverPolicy
from earshot.sources.stack_resources import INSTANCE
from policies.containers import CONTAINER_TYPE, Containers
from policies.evaluation import Evaluation
from policies.gates import evaluate_gate
from policies.instances import Instances

EVALUATED = frozenset({GATE_TYPE, CONTAINER_TYPE, INSTANCE})
"""Types of resources that the rules evaluate."""


class Evaluations:
    """The evaluations of one run, by the resource's URN; a pack's process serves one run."""

    def __init__(self) -> None:
        self._policies: dict[str, ResolverPolicy] = {}
        self._evaluations: dict[str, Evaluation] = {}
        self._containers = Containers()
        self._instances = Instances()
        self._outcome: StackEvaluation | None = None

    def configure(self, urn: str, policy: ResolverPolicy) -> None:
        """Set the resolvers for the resource ``urn``, before its evaluation."""
        self._policies[urn] = policy

    def evaluation(self, args: ResourceValidationArgs) -> Evaluation:
        """The evaluation of the resource in ``args``, made once; an empty one for other types."""
        self._instances.see(args)
        if args.resource_type not in EVALUATED:
            return Evaluation()
        if args.urn not in self._evaluations:
            self._evaluations[args.urn] = self._evaluate(args)
        return self._evaluations[args.urn]

    def outcome(self, args: StackValidationArgs) -> StackEvaluation:
        """The evaluation of all resources of the stack together, made once at its end."""
        if self._outcome is None:
            self._outcome = self._instances.evaluate_stack(args.resources, self._policies)
        return self._outcome

    def _evaluate(self, args: ResourceValidationArgs) -> Evaluation:
        policy = self._policies.get(args.urn, ResolverPolicy())
        if args.resource_type == GATE_TYPE:
            return evaluate_gate(args.props, policy)
        if args.resource_type == INSTANCE:
            gate = self._evaluations.get(args.opts.parent or "", Evaluation())
            return self._instances.evaluate(args, policy, gate.plan)
        return self._containers.evaluate(args, policy)

    def has_evaluated(self, digest: str) -> bool:
        """Whether a gate whose inputs have this digest was evaluated."""
        return any(item.digest == digest for item in self._evaluations.values())
