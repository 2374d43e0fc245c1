"""Brokers on EC2 instances of any program: judged as they are registered, and at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pulumi_policy import PolicyResource, ResourceValidationArgs

from components.gate import GATE_TYPE
from earshot.aws.registered import TYPES, Registered, Stack
from earshot.listeners.model import ClusterPlan
from earshot.names.policy import ResolverPolicy
from earshot.rules import Finding, Severity, State, kl011_resolves
from earshot.rules.instance_plan import disagreements
from earshot.rules.instance_run import InstanceRun, left_out
from earshot.rules.instance_stack import Outcome, judge_stack
from earshot.user_data.written import Written, broker_files, decoded, speaks_of_brokers
from policies.judgement import Judgement, plain


class Instances:
    """The instances of one run, and the inputs of what may surround them."""

    def __init__(self) -> None:
        self._run = InstanceRun()
        self._inputs: dict[str, dict[str, Any]] = {}

    def see(self, args: ResourceValidationArgs) -> None:
        """Keep the inputs of a resource that may say how an instance is reached."""
        if args.resource_type in TYPES and args.urn not in self._inputs:
            self._inputs[args.urn] = plain(args.props, None)

    def judge(
        self,
        args: ResourceValidationArgs,
        policy: ResolverPolicy,
        plan: ClusterPlan | None = None,
    ) -> Judgement:
        """The instance that ``args`` register, where its user data set up a broker.

        ``plan`` is that of the gate which the instance is a child of.
        """
        self.see(args)
        try:
            text = _user_data(self._inputs[args.urn])
        except ValueError as reason:
            return Judgement(remarks=(f"user data in base64: {reason}; not judged",))
        behind_gate = _is_behind_gate(args.urn)
        if text is None:
            return Judgement(() if behind_gate else (_not_known(),))
        written = broker_files(text)
        found = self._run.judge(args.urn, written, policy)
        if behind_gate:  # all that is mere advice the gate before it has had
            others = [disagreements(plan, item) for item in written] if plan is not None else []
            return Judgement(
                tuple(item for item in found if _is_grave(item)),
                disagreements=tuple(text for listed in others for text in listed),
            )
        return Judgement(found, tuple(_remarks(text, written)))

    def judge_stack(
        self, resources: Iterable[PolicyResource], policies: Mapping[str, ResolverPolicy]
    ) -> Outcome:
        """All instances that no gate stands before, by what is around them."""
        brokers = [item for item in self._run.brokers if not _is_behind_gate(item.holder)]
        if not brokers:
            return Outcome()
        listed = [self._registered(item) for item in resources if item.resource_type in TYPES]
        return judge_stack(brokers, Stack(listed), policies)

    def _registered(self, resource: PolicyResource) -> Registered:
        return Registered(
            type=resource.resource_type,
            urn=resource.urn,
            props=plain(resource.props, None),
            inputs=self._inputs.get(resource.urn),
            depends={
                key: tuple(item.urn for item in listed)
                for key, listed in resource.property_dependencies.items()
            },
        )


def _user_data(inputs: Mapping[str, Any]) -> str | None:
    """None where it is not known yet. Raises ValueError for what is no text in base64."""
    for key in ("userData", "userDataBase64"):
        if key in inputs:
            value = inputs[key]
            return value if value is None or key == "userData" else decoded(str(value))
    return ""


def _is_behind_gate(urn: str) -> bool:
    return f"{GATE_TYPE}$" in urn


def _is_grave(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR and finding.state is State.VIOLATED


def _not_known() -> Finding:
    return kl011_resolves.RULE.finding(
        "user data: not known yet, so that it cannot be told whether a broker runs here",
        "the instance's user data, judged again with their value",
        state=State.UNKNOWN,
        remedy="nothing yet: the update judges it before the instance exists",
    )


def _remarks(text: str, written: tuple[Written, ...]) -> list[str]:
    if not written and speaks_of_brokers(text):
        unread = "advertised.listeners is set in a way that is not read here (read are files"
        return [f"user data: {unread} in a cloud-config, here-documents in a script); not judged"]
    return [
        f"{item.path or 'user data'}: {rule} is not judged: {reason}"
        for item in written
        for rule, reason in left_out(item).items()
    ]
