"""The policies of the pack: one per rule, and what they share.

Every policy judges the gate (`AdvertisedListeners`), and any `docker.Container` or
`aws.ec2.Instance` that runs a broker or a controller; its level can be set in the pack's
configuration by the rule's id in lower case: `{"kl011": "advisory"}`. What takes other resources
of a stack on AWS is judged at the end, by policies of the same names with `-stack` behind.
"""

from __future__ import annotations

from collections.abc import Mapping
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

from components.gate import SEAL_TYPE
from earshot.rules import RULES, Finding, Rule, Severity, State, instance_stack
from policies.court import JUDGED, Court
from policies.judgement import read_policy

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
    court = Court()
    return [
        _names(court),
        *(_rule(court, rule) for rule in RULES),
        _as_judged(court),
        _advice(court),
        _not_known_yet(court),
        _seal(court),
        *(_stack_rule(court, rule) for rule in instance_stack.RULES),
        _stack_advice(court),
        _stack_not_known_yet(court),
    ]


def _names(court: Court) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        if args.resource_type not in JUDGED:
            return
        try:
            court.configure(args.urn, read_policy(args.get_config()))
        except ValueError as reason:
            report(f"the pack's configuration of `names`: {reason}", None)

    return ResourceValidationPolicy(
        "names",
        "Names are looked up with the resolvers that the pack's configuration gives.",
        validate,
        EnforcementLevel.MANDATORY,
        NAMES_SCHEMA,
    )


def _rule(court: Court, rule: Rule) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for finding in court.judgement(args).findings:
            if finding.rule == rule.id and _stops(finding):
                report(str(finding), None)

    return ResourceValidationPolicy(
        rule.id.lower(),
        f"{rule.id}: {rule.title}. {rule.reason}",
        validate,
        LEVELS[rule.severity],
        display_name=f"{rule.id} {rule.title}",
        remediation_steps=rule.remedy,
        url=rule.source,
    )


def _as_judged(court: Court) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for text in court.judgement(args).disagreements:
            report(f"{text}\n  to mend it: render the user data from the plan", None)

    return ResourceValidationPolicy(
        "as-judged",
        "An instance behind the gate boots with the listeners that the gate was judged for.",
        validate,
        EnforcementLevel.MANDATORY,
    )


def _advice(court: Court) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for finding in court.judgement(args).findings:
            if _is_mild(finding):
                report(str(finding), None)
        for remark in court.judgement(args).remarks:
            report(remark, None)

    return ResourceValidationPolicy(
        "advice",
        "Accepted, and better known.",
        validate,
        EnforcementLevel.ADVISORY,
    )


def _not_known_yet(court: Court) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for finding in court.judgement(args).findings:
            if finding.state is State.UNKNOWN:
                report(str(finding), None)

    return ResourceValidationPolicy(
        "not-known-yet",
        "A value that is not known yet is judged when it is, and taken for nothing until then.",
        validate,
        EnforcementLevel.ADVISORY,
    )


def _seal(court: Court) -> Policy:
    def remediate(args: ResourceValidationArgs) -> Mapping[str, Any] | None:
        if args.resource_type != SEAL_TYPE or not court.has_judged(args.props["digest"]):
            return None
        return {**args.props, "judged": args.props["digest"]}

    return ResourceValidationPolicy(
        "seal",
        "The gate's seal says that the pack has judged its listeners in this run.",
        remediate=remediate,  # type: ignore[arg-type]
        enforcement_level=EnforcementLevel.REMEDIATE,
    )


def _stack_rule(court: Court, rule: Rule) -> Policy:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        for urn, finding in court.outcome(args).findings:
            if finding.rule == rule.id and _stops(finding):
                report(_of_instance(urn, finding), urn)

    return StackValidationPolicy(
        f"{rule.id.lower()}-stack",
        f"{rule.id}: {rule.title}. {rule.reason}",
        validate,
        LEVELS[rule.severity],
        display_name=f"{rule.id} {rule.title}",
        remediation_steps=rule.remedy,
        url=rule.source,
    )


def _stack_advice(court: Court) -> Policy:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        for urn, finding in court.outcome(args).findings:
            if _is_mild(finding):
                report(_of_instance(urn, finding), urn)
        for urn, remark in court.outcome(args).remarks:
            report(remark, urn)

    return StackValidationPolicy(
        "advice-stack", "Accepted, and better known.", validate, EnforcementLevel.ADVISORY
    )


def _stack_not_known_yet(court: Court) -> Policy:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        for urn, finding in court.outcome(args).findings:
            if finding.state is State.UNKNOWN:
                report(_of_instance(urn, finding), urn)

    return StackValidationPolicy(
        "not-known-yet-stack",
        "A value that is not known is taken for nothing.",
        validate,
        EnforcementLevel.ADVISORY,
    )


def _of_instance(urn: str, finding: Finding) -> str:
    return f"instance {urn.rsplit('::', 1)[-1]}, {finding}"


def _stops(finding: Finding) -> bool:
    return finding.state is State.VIOLATED and finding.severity is _severity_of(finding)


def _is_mild(finding: Finding) -> bool:
    """Milder than its rule."""
    return finding.state is State.VIOLATED and finding.severity is not _severity_of(finding)


def _severity_of(finding: Finding) -> Severity:
    return next(rule for rule in RULES if rule.id == finding.rule).severity
