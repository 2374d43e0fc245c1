"""The gate: a whole cluster's plan, evaluated before any of its brokers is touched."""

from typing import Any

from earshot_pulumi.judge import check_inputs

from earshot.listeners.model import ClusterPlan
from earshot.names.policy import ResolverPolicy
from earshot_policies.evaluation import Evaluation, part, plain


def evaluate_gate(props: Any, policy: ResolverPolicy) -> Evaluation:
    """The gate with the inputs ``props``."""
    document = plain(props)
    checked = check_inputs(document, part(props, "containers", None), policy)
    plan = ClusterPlan.model_validate(document["plan"])
    return Evaluation(checked.findings, checked.remarks, plan=plan)
