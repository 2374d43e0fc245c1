"""The policies of the pack: one per rule that resources can break, and a few more.

Every policy evaluates the gate (`AdvertisedListeners`), and any `docker.Container`,
`aws.ec2.Instance`, `aws.ecs.TaskDefinition` or template of instances that runs a broker or a
controller. The pack's configuration can set a policy's level by the rule's id:
`{"KL011": "advisory"}`. Rules that need other resources of the stack are evaluated at the end, by
policies of the same names with the suffix `-stack`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import pulumi
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

from earshot.json_object import JsonObject
from earshot.listeners.listed import MAX_SHOWN, several
from earshot.names.policy import read_policy
from earshot.rules.evaluate import RULES
from earshot.rules.grouped import grouped
from earshot.rules.rule import AppliedAt, Finding, FindingState, Rule, Severity
from earshot.visible import visible
from earshot_policies import ungated
from earshot_policies.configuration import Configuration
from earshot_policies.evaluation import Evaluation, plain
from earshot_policies.evaluations import EVALUATED, GATES, Evaluations

LEVELS = {Severity.ERROR: EnforcementLevel.MANDATORY, Severity.WARNING: EnforcementLevel.ADVISORY}
_TOGETHER = {AppliedAt.CONTAINERS, AppliedAt.INSTANCES}
_SINGLE = {AppliedAt.PLAN, AppliedAt.CONTAINER, AppliedAt.INSTANCE}
STACK_RULES = tuple(rule for rule in RULES if _TOGETHER & {*rule.applied_at})
"""The rules that are checked at the end of a run."""
SINGLE_RULES = tuple(rule for rule in RULES if _SINGLE & {*rule.applied_at})
"""The rules that a single resource can break."""

NAMES_SCHEMA = PolicyConfigSchema(
    {
        "resolvers": {
            "type": "object",
            "description": "By scope (internal, host, external, controller): DNS servers as ip, "
            "ip:port or [ipv6]:port, or only the word system.",
        },
        "timeout": {"type": "number", "description": "Seconds for all lookups together."},
        "retry": {
            "type": "number",
            "description": "Seconds during which a lookup is repeated until the record has spread.",
        },
        "waived": {
            "type": "object",
            "description": "Names that are accepted without evidence: the reason, or a map of "
            "reason and until, the last day as in 2027-01-31.",
        },
    }
)


def policies() -> list[Policy]:
    """All policies of the pack, in the order in which they must run."""
    evaluations, configuration = Evaluations(), Configuration()
    configuration.install()
    advice, advisory = "Accepted, with a remark.", EnforcementLevel.ADVISORY
    single = partial(_single, evaluations, configuration)
    whole = partial(_whole, evaluations, configuration)
    return [
        _names(evaluations),
        *(
            single(rule.id.lower(), is_reported=_violating(rule), **_described(rule))
            for rule in SINGLE_RULES
        ),
        single(
            "as-approved",
            "An instance behind the gate boots with the listeners that the gate has approved.",
            EnforcementLevel.MANDATORY,
            texts=lambda evaluation: [
                f"{text}\n  fix: render the user data from the plan"
                for text in evaluation.disagreements
            ],
        ),
        single("advice", advice, advisory, _is_mild, texts=lambda evaluation: evaluation.remarks),
        single(
            "not-known-yet",
            "A value that is not known yet is neither right nor wrong. It is checked once it is "
            "known.",
            advisory,
            _is_unknown,
        ),
        *(
            whole(f"{rule.id.lower()}-stack", is_reported=_violating(rule), **_described(rule))
            for rule in STACK_RULES
        ),
        whole("advice-stack", advice, advisory, _is_advice_at_the_end, remarks=True),
        whole(
            "not-known-yet-stack",
            "A value that is not known is neither right nor wrong.",
            advisory,
            _is_unknown,
        ),
        _repeated(evaluations),
        _no_gate(evaluations),
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
        "Names are looked up with the resolvers in the pack's configuration.",
        validate,
        EnforcementLevel.MANDATORY,
        NAMES_SCHEMA,
    )


def _described(rule: Rule) -> JsonObject:
    return {
        "description": f"{rule.id}: {rule.title}. {rule.reason}",
        "level": LEVELS[rule.severity],
        "display_name": f"{rule.id} {rule.title}",
        "remediation_steps": rule.remedy,
        "url": rule.source,
    }


def _repeated(evaluations: Evaluations) -> Policy:
    def validate(_: StackValidationArgs, report: ReportViolation) -> None:
        report = _safe(report)
        for finding, urns in evaluations.repeated():
            places = _at(evaluations, ((urn, finding) for urn in urns[1:]))
            report(
                f"{finding.subject} [{finding.rule}]: other resources have the same cause{places}",
                urns[0],
            )

    return StackValidationPolicy(
        "repeated",
        "A cause is reported in full once. This policy lists the other resources that have it.",
        validate,
        EnforcementLevel.ADVISORY,
    )


def _no_gate(evaluations: Evaluations) -> Policy:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        if urns := ungated.ungated(evaluations.brokers, args.resources):
            report(ungated.report(urns), urns[0])

    return StackValidationPolicy(
        "no-gate",
        "A gate refuses a bad name in every run, also without this pack.",
        validate,
        EnforcementLevel.ADVISORY,
    )


def _single(
    evaluations: Evaluations,
    configuration: Configuration,
    name: str,
    description: str,
    level: EnforcementLevel,
    is_reported: Callable[[Finding], bool] = lambda _: False,
    texts: Callable[[Evaluation], Sequence[str]] = lambda _: (),
    **description_args: Any,
) -> Policy:
    """A policy on a resource: its findings that ``is_reported`` accepts, by group, then ``texts``.

    A finding of an earlier resource is not reported again, but stops this resource in an update.
    """

    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        report, evaluation = _safe(report), evaluations.evaluation(args)
        stops = configuration.level(name, level) is EnforcementLevel.MANDATORY
        # the inputs of a gate are computed, so its findings have no path
        has_paths = args.resource_type not in GATES
        for group in grouped(filter(is_reported, evaluation.findings)):
            for finding in group.findings:
                configuration.files.add(args.urn, finding, stops=stops)
            first_urn = evaluations.first_urn(args.urn, group.first) if has_paths else args.urn
            places = [(args.urn, finding) for finding in group.findings if has_paths]
            if first_urn == args.urn:
                report(f"{group}{_at(evaluations, places)}", None)
            elif stops and not pulumi.runtime.is_dry_run():
                report(f"{group.subject} [{group.first.rule}]: the same as at {first_urn}", None)
        for text in texts(evaluation):
            report(text, None)

    return ResourceValidationPolicy(name, description, validate, level, **description_args)


def _whole(
    evaluations: Evaluations,
    configuration: Configuration,
    name: str,
    description: str,
    level: EnforcementLevel,
    is_reported: Callable[[Finding], bool],
    *,
    remarks: bool = False,
    **description_args: Any,
) -> Policy:
    """A policy on the stack: each group of findings that ``is_reported`` accepts, once.

    The report has the URN of the first resource.
    """

    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        report, outcome = _safe(report), evaluations.outcome(args)
        stops = configuration.level(name, level) is EnforcementLevel.MANDATORY
        urns_by_finding: dict[Finding, list[str]] = {}
        for urn, finding in outcome.findings:
            urns_by_finding.setdefault(finding, []).append(urn)
        for group in grouped(filter(is_reported, urns_by_finding)):
            places = [
                (urn, finding) for finding in group.findings for urn in urns_by_finding[finding]
            ]
            for urn, finding in places:
                configuration.files.add(urn, finding, stops=stops)
            urns = list(dict.fromkeys(urn for urn, _ in places))
            names = several("instance", [urn.rsplit("::", 1)[-1] for urn in urns])
            subject = "" if group.first.container else f"{names}, "
            report(f"{subject}{group}{_at(evaluations, places)}", urns[0])
        for urn, remark in outcome.remarks if remarks else ():
            report(remark, urn)

    return StackValidationPolicy(name, description, validate, level, **description_args)


def _safe(report: ReportViolation) -> ReportViolation:
    """``report`` for texts with names of others, which Pulumi prints as they are."""
    return lambda text, urn: report(visible(text), urn)


def _at(evaluations: Evaluations, places: Iterable[tuple[str, Finding]]) -> str:
    """The lines with the places of findings: the resource's URN, and the path in it."""
    texts = [
        ", ".join(filter(None, (urn, evaluations.place(urn, finding)))) for urn, finding in places
    ]
    unique_texts = list(dict.fromkeys(texts))
    lines = [f"  at: {text}" for text in unique_texts[:MAX_SHOWN]]
    if len(unique_texts) > MAX_SHOWN:
        lines.append(f"  at: {len(unique_texts) - MAX_SHOWN} more")
    return "".join(f"\n{line}" for line in lines)


def _violating(rule: Rule) -> Callable[[Finding], bool]:
    return lambda finding: finding.rule == rule.id and _stops(finding)


def _stops(finding: Finding) -> bool:
    return finding.state is FindingState.VIOLATED and finding.severity is _severity_of(finding)


def _is_unknown(finding: Finding) -> bool:
    return finding.state is FindingState.UNKNOWN


def _is_mild(finding: Finding) -> bool:
    """True for a violation that is less severe than its rule."""
    return finding.state is FindingState.VIOLATED and finding.severity is not _severity_of(finding)


def _is_advice_at_the_end(finding: Finding) -> bool:
    """True for a mild finding, and for a warning of a rule without a policy on the whole stack."""
    rules = [rule.id for rule in STACK_RULES]
    return _is_mild(finding) or (_stops(finding) and finding.rule not in rules)


def _severity_of(finding: Finding) -> Severity:
    return next(rule for rule in RULES if rule.id == finding.rule).severity
