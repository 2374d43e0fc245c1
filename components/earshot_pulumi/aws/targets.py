"""Targets of a balancer: their health, and which of them get connections."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any

from earshot_pulumi.aws.credentials import asking, client
from earshot_pulumi.aws.reports import Target, Unhealthy
from earshot_pulumi.aws_settings import AwsSettings
from earshot_pulumi.provider.kind import Properties

SERVED = ("initial", "healthy", "unhealthy")
"""States of registered targets; one that leaves is draining, and then unused."""


def health(config: AwsSettings, region: str) -> Unhealthy:
    """A function that asks the balancers of ``region``; it raises EarshotError where AWS does not
    answer."""

    def unhealthy(target: Target) -> str:
        queries = [{"Id": target.address, "Port": target.port}]
        with _named_errors(region, "described", "DescribeTargetHealth"):
            elb = client(config, region, "elbv2")
            response = elb.describe_target_health(TargetGroupArn=target.group, Targets=queries)
        return _reason(target, response["TargetHealthDescriptions"])

    return unhealthy


def deregister(config: AwsSettings, region: str, targets: Iterable[Target]) -> None:
    """Asks the balancers of ``region`` to send no new connections to ``targets``, of which
    `still_served` are those that have not been taken out yet. Raises EarshotError.

    Connections that exist go on until the broker closes them.
    """
    with _named_errors(region, "deregistered", "DeregisterTargets"):
        for group, group_targets in _by_group(targets).items():
            elb = client(config, region, "elbv2")
            for target in group_targets:
                # an interrupted update may have deregistered it
                with suppress(elb.exceptions.InvalidTargetException):
                    elb.deregister_targets(TargetGroupArn=group, Targets=[target])


def still_served(config: AwsSettings, region: str, targets: Iterable[Target]) -> list[str]:
    """Of deregistered ``targets``, those to which the balancer still sends new connections, with
    their state. Raises EarshotError."""
    states = []
    with _named_errors(region, "described", "DescribeTargetHealth"):
        for group, group_targets in _by_group(targets).items():
            elb = client(config, region, "elbv2")
            described = elb.describe_target_health(TargetGroupArn=group, Targets=group_targets)
            for description in described["TargetHealthDescriptions"]:
                state, target = description["TargetHealth"]["State"], description["Target"]
                if state in SERVED:
                    states.append(f"target {target['Id']}:{target['Port']} is {state}")
    return states


def register(config: AwsSettings, region: str, targets: Iterable[Target]) -> None:
    """Lets the balancers of ``region`` send connections to ``targets``; nothing changes for those
    that are registered. Raises EarshotError."""
    with _named_errors(region, "registered", "RegisterTargets"):
        for group, group_targets in _by_group(targets).items():
            elb = client(config, region, "elbv2")
            elb.register_targets(TargetGroupArn=group, Targets=group_targets)


def _by_group(targets: Iterable[Target]) -> dict[str, list[Properties]]:
    by_group: dict[str, list[Properties]] = {}
    for target in targets:
        by_group.setdefault(target.group, []).append({"Id": target.address, "Port": target.port})
    return by_group


def _named_errors(region: str, participle: str, action: str) -> AbstractContextManager[None]:
    """A context in which errors of AWS become EarshotErrors: targets cannot be ``participle``.

    ``action`` is the call that the credentials must allow.
    """
    subject = f"targets of the balancer in {region}"
    return asking(subject, f"cannot be {participle}", f"elasticloadbalancing:{action}")


def _reason(target: Target, descriptions: list[Any]) -> str:
    group = target.group.rpartition(":targetgroup/")[2].partition("/")[0]
    where = f"target {target.address}:{target.port} of target group {group}"
    if not descriptions:
        return f"{where} is not registered"
    state = descriptions[0]["TargetHealth"]
    if state["State"] == "healthy":
        return ""
    details = [text for key in ("Reason", "Description") if (text := state.get(key))]
    return f"{where} is {state['State']}" + (f" ({': '.join(details)})" if details else "")
