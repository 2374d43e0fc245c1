"""Targets of a balancer: their health, registration and deregistration."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from earshot_pulumi.aws.credentials import aws_errors, client
from earshot_pulumi.aws_settings import AwsSettings
from earshot_pulumi.provider.kind import Properties

SERVED = ("initial", "healthy", "unhealthy")
"""States of registered targets. A deregistered target is draining, and then unused."""


@dataclass(frozen=True)
class Target:
    """A broker's port in a target group of the balancer."""

    group: str
    """The ARN of the target group."""
    address: str
    port: int


def unhealthy(config: AwsSettings, region: str, target: Target) -> str:
    """Why the balancer in ``region`` sends ``target`` no connections; empty if it sends some.

    Raises EarshotError if AWS does not answer.
    """
    return _reason(target, _described(config, region, [target]))


def deregister(config: AwsSettings, region: str, targets: Iterable[Target]) -> None:
    """Deregisters ``targets`` in ``region``, so that balancers send them no new connections.

    `still_served` returns the targets for which that has not taken effect. Existing connections
    remain until the broker closes them. Raises EarshotError.
    """
    with _named_errors(region, "deregistered", "DeregisterTargets"):
        for group, group_targets in _by_group(targets).items():
            elb = client(config, region, "elbv2")
            for target in group_targets:
                # an interrupted update may have deregistered it
                with suppress(elb.exceptions.InvalidTargetException):
                    elb.deregister_targets(TargetGroupArn=group, Targets=[target])


def still_served(config: AwsSettings, region: str, targets: Iterable[Target]) -> list[str]:
    """A text for each deregistered target to which the balancer still sends new connections.

    Raises EarshotError.
    """
    states = [
        (description["Target"], description["TargetHealth"]["State"])
        for description in _described(config, region, targets)
    ]
    return [
        f"target {target['Id']}:{target['Port']} is {state}"
        for target, state in states
        if state in SERVED
    ]


def register(config: AwsSettings, region: str, targets: Iterable[Target]) -> None:
    """Registers ``targets`` in ``region``, so that balancers send them connections.

    Does nothing for registered targets. Raises EarshotError.
    """
    with _named_errors(region, "registered", "RegisterTargets"):
        for group, group_targets in _by_group(targets).items():
            elb = client(config, region, "elbv2")
            elb.register_targets(TargetGroupArn=group, Targets=group_targets)


def _described(config: AwsSettings, region: str, targets: Iterable[Target]) -> list[Properties]:
    """AWS's descriptions of ``targets`` and of their health."""
    descriptions: list[Properties] = []
    with _named_errors(region, "described", "DescribeTargetHealth"):
        for group, group_targets in _by_group(targets).items():
            elb = client(config, region, "elbv2")
            response = elb.describe_target_health(TargetGroupArn=group, Targets=group_targets)
            descriptions += response["TargetHealthDescriptions"]
    return descriptions


def _by_group(targets: Iterable[Target]) -> dict[str, list[Properties]]:
    descriptions: dict[str, list[Properties]] = {}
    for target in targets:
        description = {"Id": target.address, "Port": target.port}
        descriptions.setdefault(target.group, []).append(description)
    return descriptions


def _named_errors(region: str, participle: str, action: str) -> AbstractContextManager[None]:
    """A context that turns errors of AWS into EarshotErrors: targets cannot be ``participle``.

    ``action`` is the call that the credentials must allow.
    """
    subject = f"targets of the balancer in {region}"
    return aws_errors(subject, f"cannot be {participle}", f"elasticloadbalancing:{action}")


def _reason(target: Target, descriptions: list[Properties]) -> str:
    group = target.group.rpartition(":targetgroup/")[2].partition("/")[0]
    subject = f"target {target.address}:{target.port} of target group {group}"
    if not descriptions:
        return f"{subject} is not registered"
    state = descriptions[0]["TargetHealth"]
    if state["State"] == "healthy":
        return ""
    details = [text for key in ("Reason", "Description") if (text := state.get(key))]
    return f"{subject} is {state['State']}" + (f" ({': '.join(details)})" if details else "")
