"""The policies of the pack: one per rule that resources can break, and what they share.

Every policy evaluates the gate (`AdvertisedListeners`), and any `docker.Container` or
`aws.ec2.Instance` that runs a broker or a controller. The pack's configuration can set a policy's
level, by the rule's id in lower case: `{"kl011": "advisory"}`. Rules that need other resources of a
stack on AWS are evaluated at the end, by policies of the same names with the suffix `-stack`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)

from components.gate import APPROVAL_TYPE
from earshot.checks import instance_stack
from earshot.names.policy import read_policy
from earshot.rules.catalogue import RULES
from earshot.rules.finding import Finding, FindingState, Severity
from earshot.rules.grouped import grouped, several
from earshot.rules.registry import Rule
from policies.evaluation import part, plain
from policies.evaluations import EVALUATED, Evaluations

LEVELS = {Severity.ERROR: EnforcementLevel.MANDATORY, Severity.WARNING: EnforcementLevel.ADVISORY}

NAMES_SCHEMA = PolicyConfigSchema(
    {
        "resolvers": {
            "type": "object",
            "description": "By scope (internal, host, external, controller): DNS servers as ip, "
            "ip:port or [ipv6]:port, or the one word system.",
        },
        "timeout": {"type": "number", "description": "Seconds for all lookups together."},
        "retry": {
            "type": "number",
            "description": "Seconds for which a name is asked again while its record spreads.",
        },
        "waived": {
            "type": "object",
            "description": "Names that are accepted without evidence, each with its reason.",
        },
    }
)


def policies() -> list[Policy]:
    """All policies of the pack, in the order in which they must run."""
    evaluations = Evaluations()
    return [
        _names(evaluations),
        *(_rule(evaluations, rule) for rule in RULES if not rule.is_of_files),
        _same_listeners(evaluations),
        _advice(evaluations),
        _not_known_yet(evaluations),
        _approval(evaluations),
        *(_stack_rule(evaluations, rule) for rule in instance_stack.RULES),
        _stack_advice(evaluations),
        _stack_not_known_yet(evaluations),
    ]


def _names(evaluations: Evaluations) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        if args.resource_type not in EVALUATED:
            return
        try:
            evaluations.configure(args.urn, read_policy(plain(args.get_config())))
        except ValueError as reason:
            report(f"the pack's configuration of `names`: {reason}", None)

    return ResourceValidationPolicy(
        "names",
        "Names are looked up with the resolvers that the pack's configuration gives.",
        validate,
        EnforcementLevel.MANDATORY,
        NAMES_SCHEMA,
    )


def _rule(evaluations: Evaluations, rule: Rule) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        found = evaluations.evaluation(args).findings
        for group in grouped(it for it in found if it.rule == rule.id and _stops(it)):
            report(str(group), None)

    return ResourceValidationPolicy(
        rule.id.lower(),
        f"{rule.id}: {rule.title}. {rule.reason}",
        validate,
        LEVELS[rule.severity],
        display_name=f"{rule.id} {rule.title}",
        remediation_steps=rule.remedy,
        url=rule.source,
    )


def _same_listeners(evaluations: Evaluations) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for text in evaluations.evaluation(args).disagreements:
            report(f"{text}\n  fix: render the user data from the plan", None)

    return ResourceValidationPolicy(
        "as-judged",
        "An instance behind the gate boots with the listeners that the gate was judged for.",
        validate,
        EnforcementLevel.MANDATORY,
    )


def _advice(evaluations: Evaluations) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for group in grouped(filter(_is_mild, evaluations.evaluation(args).findings)):
            report(str(group), None)
        for remark in evaluations.evaluation(args).remarks:
            report(remark, None)

    return ResourceValidationPolicy(
        "advice",
        "Accepted, and better known.",
        validate,
        EnforcementLevel.ADVISORY,
    )


def _not_known_yet(evaluations: Evaluations) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for group in grouped(filter(_is_unknown, evaluations.evaluation(args).findings)):
            report(str(group), None)

    return ResourceValidationPolicy(
        "not-known-yet",
        "A value that is not known yet is judged when it is, and taken for nothing until then.",
        validate,
        EnforcementLevel.ADVISORY,
    )


def _approval(evaluations: Evaluations) -> Policy:
    def remediate(args: ResourceValidationArgs) -> Mapping[str, Any] | None:
        if args.resource_type != APPROVAL_TYPE:
            return None
        wanted = part(args.props, "digest", None)
        if not isinstance(wanted, str) or not evaluations.has_evaluated(wanted):
            return None
        return {**args.props, "judged": wanted}

    return ResourceValidationPolicy(
        "approval",
        "The gate's approval says that the pack has judged its listeners in this run.",
        remediate=remediate,  # type: ignore[arg-type]
        enforcement_level=EnforcementLevel.REMEDIATE,
    )


def _stack_rule(evaluations: Evaluations, rule: Rule) -> Policy:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        _report_of_instances(
            evaluations.outcome(args), report, lambda it: it.rule == rule.id and _stops(it)
        )

    return StackValidationPolicy(
        f"{rule.id.lower()}-stack",
        f"{rule.id}: {rule.title}. {rule.reason}",
        validate,
        LEVELS[rule.severity],
        display_name=f"{rule.id} {rule.title}",
        remediation_steps=rule.remedy,
        url=rule.source,
    )


def _stack_advice(evaluations: Evaluations) -> Policy:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        _report_of_instances(evaluations.outcome(args), report, _is_mild)
        for urn, remark in evaluations.outcome(args).remarks:
            report(remark, urn)

    return StackValidationPolicy(
        "advice-stack", "Accepted, and better known.", validate, EnforcementLevel.ADVISORY
    )


def _stack_not_known_yet(evaluations: Evaluations) -> Policy:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        _report_of_instances(evaluations.outcome(args), report, _is_unknown)

    return StackValidationPolicy(
        "not-known-yet-stack",
        "A value that is not known is taken for nothing.",
        validate,
        EnforcementLevel.ADVISORY,
    )


def _report_of_instances(
    outcome: instance_stack.StackEvaluation,
    report: ReportViolation,
    wanted: Callable[[Finding], bool],
) -> None:
    """One report for each group of findings, on the first of its instances."""
    holders: dict[Finding, list[str]] = {}
    for urn, finding in outcome.findings:
        holders.setdefault(finding, []).append(urn)
    for group in grouped(filter(wanted, holders)):
        urns = list(dict.fromkeys(urn for item in group.findings for urn in holders[item]))
        names = [urn.rsplit("::", 1)[-1] for urn in urns]
        report(f"{several('instance', names)}, {group}", urns[0])


def _stops(finding: Finding) -> bool:
    return finding.state is FindingState.VIOLATED and finding.severity is _severity_of(finding)


def _is_unknown(finding: Finding) -> bool:
    return finding.state is FindingState.UNKNOWN


def _is_mild(finding: Finding) -> bool:
    """Whether it is a violation less severe than its rule's."""
    return finding.state is FindingState.VIOLATED and finding.severity is not _severity_of(finding)


def _severity_of(finding: Finding) -> Severity:
    return next(rule for rule in RULES if rule.id == finding.rule).severity
