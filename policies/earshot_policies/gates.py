"""The gate: a whole cluster's plan, evaluated before any of its brokers is touched."""

from typing import Any

from earshot_pulumi.judge import GateInputs

from earshot.errors import EarshotError
from earshot.names.policy import ResolverPolicy
from earshot.rules import kl002_kafka
from earshot.rules.registry import FindingState
from earshot_policies.evaluation import Evaluation, part, plain

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
    """The gate with the inputs ``props``."""
    if part(props, "plan", None) is None:
        return Evaluation((_NOT_KNOWN,))
    try:
        gate = GateInputs.read(plain(props), part(props, "containers", None))
    except (EarshotError, ValueError):
        return Evaluation((_UNREADABLE,))  # the reason has the values, secrets among them
    checked = gate.check(policy)
    return Evaluation(checked.findings, checked.remarks, plan=gate.plan)
