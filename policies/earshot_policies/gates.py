"""The gate: a whole cluster's plan, evaluated before any of its brokers is touched."""

from typing import Any

from earshot_pulumi.judge import check_inputs

from earshot.listeners.model import ClusterPlan
from earshot.names.policy import ResolverPolicy
from earshot.rules import kl001_grammar
from earshot.rules.registry import FindingState
from earshot_policies.evaluation import Evaluation, part, plain

_NOT_KNOWN = kl001_grammar.RULE.finding(
    "the plan: not known yet",
    "every advertised host, checked again with its value",
    state=FindingState.UNKNOWN,
    remedy="nothing yet: the update checks it",
)


def evaluate_gate(props: Any, policy: ResolverPolicy) -> Evaluation:
    """The gate with the inputs ``props``."""
    if part(props, "plan", None) is None:
        return Evaluation((_NOT_KNOWN,))
    document = plain(props)
    checked = check_inputs(document, part(props, "containers", None), policy)
    plan = ClusterPlan.model_validate(document["plan"])
    return Evaluation(checked.findings, checked.remarks, plan=plan)
