"""Evaluates brokers on EC2 instances of any program, when they are registered and at the end."""

from collections.abc import Collection, Mapping

from earshot_pulumi.gate import GATE_TYPE

from earshot.checks.instance_stack import StackEvaluation, evaluate_stack
from earshot.checks.instances import InstanceRun, disagreements, skipped_rules
from earshot.json_object import Document
from earshot.listeners.model import ClusterPlan
from earshot.names.policy import ResolverPolicy
from earshot.rules import kl011_resolves
from earshot.rules.rule import Finding, FindingState
from earshot.sources.stack_resources import RegisteredStack
from earshot.sources.user_data import (
    READ_PLACES,
    UserDataFile,
    broker_files,
    decode_user_data,
    plain_user_data,
    speaks_of_brokers,
)
from earshot_policies.evaluation import Evaluation

USER_DATA = ("userData", "userDataBase64")
"""Properties of an instance."""
ENCODED = ("userDataBase64",)
"""Those of them in base64."""


def evaluate(
    run: InstanceRun, urn: str, inputs: Document, policy: ResolverPolicy, plan: ClusterPlan | None
) -> Evaluation:
    """The evaluation of the instance ``urn``; empty unless its user data set up a broker.

    ``run`` gets the brokers. ``plan`` is that of the instance's gate, or None without a gate.
    """
    try:
        text = user_data(inputs)
    except ValueError as reason:
        return Evaluation(remarks=(f"user data in base64: {reason}; not checked",))
    behind_gate = _is_behind_gate(urn)
    if text is None:
        return Evaluation(() if behind_gate else (_not_known(),))
    files = broker_files(text)
    findings = run.evaluate(urn, files, policy)
    if behind_gate:  # the gate has reported the advice already
        differences = [disagreements(plan, file) for file in files] if plan is not None else []
        return Evaluation(
            tuple(finding for finding in findings if finding.is_certain_error),
            disagreements=tuple(text for texts in differences for text in texts),
        )
    return Evaluation(findings, tuple(_remarks(text, files)))


def evaluate_run(
    run: InstanceRun, stack: RegisteredStack, policies: Mapping[str, ResolverPolicy]
) -> StackEvaluation:
    """The evaluation of all instances without a gate, with the resources that they use."""
    brokers = [broker for broker in run.brokers if not _is_behind_gate(broker.holder)]
    return evaluate_stack(brokers, stack, policies, run.asked) if brokers else StackEvaluation()


def user_data(inputs: Mapping[str, object], encoded: Collection[str] = ENCODED) -> str | None:
    """The user data; None where they are not known yet. Raises ValueError for invalid base64.

    ``encoded`` are the properties in base64.
    """
    for key in USER_DATA:
        if (value := inputs.get(key, "")) != "":  # an empty text counts as missing
            if not isinstance(value, str):
                return None
            return decode_user_data(value) if key in encoded else plain_user_data(value)
    return ""


def _is_behind_gate(urn: str) -> bool:
    return f"{GATE_TYPE}$" in urn


def _not_known() -> Finding:
    return kl011_resolves.RULE.finding(
        "user data: not known yet, so it is not clear whether a broker runs here",
        "the instance's user data, checked again with their value",
        state=FindingState.UNKNOWN,
        remedy="nothing yet: the update checks it before the instance exists",
    )


def unread(text: str, written: Collection[UserDataFile]) -> list[str]:
    """A remark on user data that set listeners in another way than in the files ``written``."""
    if written or not speaks_of_brokers(text):
        return []
    way = f"advertised.listeners is set in a way that is not read here ({READ_PLACES})"
    return [f"user data: {way}; not checked"]


def _remarks(text: str, written: tuple[UserDataFile, ...]) -> list[str]:
    return unread(text, written) + [
        f"{item.path or 'user data'}: {rule} is not checked: {reason}"
        for item in written
        for rule, reason in skipped_rules(item).items()
    ]
