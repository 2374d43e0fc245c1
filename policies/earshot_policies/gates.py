"""Evaluates the gate: the plan of a whole cluster, before any of its brokers changes."""

from typing import Any

from earshot_pulumi.provider.judge import GateInputs

from earshot.errors import EarshotError
from earshot.names.policy import ResolverPolicy
from earshot.rules import kl002_kafka
from earshot.rules.rule import FindingState
from earshot_policies.evaluation import Evaluation, plain, property_of

_NOT_KNOWN = kl002_kafka.RULE.finding(
    "the plan: not known yet",
    "every advertised host, checked again with its value",
    state=FindingState.UNKNOWN,
    remedy="nothing yet: the update checks it",
)
_UNREADABLE = kl002_kafka.RULE.finding(
    "the gate's inputs: other keys or values than this release of the pack reads",
    "the inputs that earshot's components register",
    remedy="run the pack of the release that the program uses",
)


def evaluate_gate(props: Any, policy: ResolverPolicy) -> Evaluation:
    """The evaluation of the gate with the inputs ``props``."""
    if property_of(props, "plan", None) is None:
        return Evaluation((_NOT_KNOWN,))
    try:
        gate = GateInputs.read(plain(props), property_of(props, "containers", None))
    except (EarshotError, ValueError):
        return Evaluation((_UNREADABLE,))  # the reason contains the values, which may be secrets
    result = gate.check(policy)
    return Evaluation(result.findings, result.remarks, plan=gate.plan)
