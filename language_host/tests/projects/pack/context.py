"""A rule in its own module: packs import their modules by plain name."""

import json

import pulumi
from pulumi_policy import ReportViolation, ResourceValidationArgs


def tell_context(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report the stack's context as JSON, once: for the root stack resource."""
    if args.resource_type != "pulumi:pulumi:Stack":
        return
    stack_context = {
        "project": pulumi.get_project(),
        "stack": pulumi.get_stack(),
        "organization": pulumi.get_organization(),
        "dry_run": pulumi.runtime.is_dry_run(),
        "colour": pulumi.Config("plain").get("colour"),
    }
    report("told: " + json.dumps(stack_context, sort_keys=True))
