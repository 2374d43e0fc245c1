"""Evaluates brokers on EC2 instances of any program, when they are registered and at the end."""

from collections.abc import Mapping

from earshot_pulumi.gate import GATE_TYPE

from earshot.checks.instance_stack import StackEvaluation, evaluate_stack
from earshot.checks.instances import InstanceRun, disagreements, skipped_rules
from earshot.json_object import Document
from earshot.listeners.model import ClusterPlan
from earshot.names.policy import ResolverPolicy
from earshot.rules import kl011_resolves
from earshot.rules.registry import Finding, FindingState
from earshot.sources.stack_resources import RegisteredStack
from earshot.sources.user_data import (
    UserDataFile,
    broker_files,
    decode_user_data,
    speaks_of_brokers,
)
from earshot_policies.evaluation import Evaluation

USER_DATA = ("userData", "userDataBase64")
"""The properties of an instance with its user data."""


class Instances:
    """The instances of one run."""

    def __init__(self) -> None:
        self._run = InstanceRun()

    def evaluate(
        self,
        urn: str,
        inputs: Document,
        policy: ResolverPolicy,
        plan: ClusterPlan | None,
    ) -> Evaluation:
        """The evaluation of the instance ``urn``; empty unless its user data set up a broker.

        ``plan`` is that of the instance's gate, or None without a gate.
        """
        try:
            text = _user_data(inputs)
        except ValueError as reason:
            return Evaluation(remarks=(f"user data in base64: {reason}; not checked",))
        behind_gate = _is_behind_gate(urn)
        if text is None:
            return Evaluation(() if behind_gate else (_not_known(),))
        files = broker_files(text)
        findings = self._run.evaluate(urn, files, policy)
        if behind_gate:  # the gate has reported the advice already
            differences = [disagreements(plan, file) for file in files] if plan is not None else []
            return Evaluation(
                tuple(finding for finding in findings if finding.is_certain_error),
                disagreements=tuple(text for texts in differences for text in texts),
            )
        return Evaluation(findings, tuple(_remarks(text, files)))

    @property
    def brokers(self) -> tuple[str, ...]:
        """The URNs of the instances whose user data sets up a broker or a controller."""
        return tuple(dict.fromkeys(broker.holder for broker in self._run.brokers))

    def evaluate_stack(
        self, stack: RegisteredStack, policies: Mapping[str, ResolverPolicy]
    ) -> StackEvaluation:
        """The evaluation of all instances without a gate, with the resources that they use."""
        brokers = [broker for broker in self._run.brokers if not _is_behind_gate(broker.holder)]
        if not brokers:
            return StackEvaluation()
        return evaluate_stack(brokers, stack, policies, self._run.asked)


def _user_data(inputs: Mapping[str, object]) -> str | None:
    """The user data; None if it is not known yet. Raises ValueError for invalid base64."""
    for key in USER_DATA:
        if key in inputs:
            value = inputs[key]
            if not isinstance(value, str):
                return None
            return value if key == "userData" else decode_user_data(value)
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


def _remarks(text: str, files: tuple[UserDataFile, ...]) -> list[str]:
    if not files and speaks_of_brokers(text):
        unread = "advertised.listeners is set in a way that is not read here (read are files"
        return [f"user data: {unread} in a cloud-config, here-documents in a script); not checked"]
    return [
        f"{file.path or 'user data'}: {rule} is not checked: {reason}"
        for file in files
        for rule, reason in skipped_rules(file).items()
    ]
