"""Targets of a balancer, and what the balancer's health checks say of them."""

from __future__ import annotations

from typing import Any

from earshot_pulumi.aws.credentials import asking, client
from earshot_pulumi.aws.reports import Target, Unhealthy


def health(config: Any, region: str) -> Unhealthy:
    """A function that asks the balancers of ``region``; it raises EarshotError where AWS does not
    answer."""

    def unhealthy(target: Target) -> str:
        asked = [{"Id": target.address, "Port": target.port}]
        subject, call = f"targets of the balancer in {region}", "DescribeTargetHealth"
        with asking(subject, "cannot be described", f"elasticloadbalancing:{call}"):
            elb = client(config, region, "elbv2")
            found = elb.describe_target_health(TargetGroupArn=target.group, Targets=asked)
        return _reason(target, found["TargetHealthDescriptions"])

    return unhealthy


def _reason(target: Target, found: list[Any]) -> str:
    group = target.group.rpartition(":targetgroup/")[2].partition("/")[0]
    where = f"target {target.address}:{target.port} of target group {group}"
    if not found:
        return f"{where} is not registered"
    state = found[0]["TargetHealth"]
    if state["State"] == "healthy":
        return ""
    details = [text for key in ("Reason", "Description") if (text := state.get(key))]
    return f"{where} is {state['State']}" + (f" ({': '.join(details)})" if details else "")
