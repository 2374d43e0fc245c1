"""An endpoint service: clients in other VPCs and accounts reach the balancer by PrivateLink."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_aws as aws

from earshot.config.aws import AwsSpec
from earshot.config.balancer import BalancerSpec
from earshot.listeners.model import ClusterPlan
from earshot_pulumi.aws.balancer import Balancer
from earshot_pulumi.aws.tags import TaggedComponent
from earshot_pulumi.provider.kind import Properties


class EndpointService(TaggedComponent):
    """The endpoint service of a cluster's balancer."""

    facts: pulumi.Output[Properties]
    """The cluster's output `endpoint_service`, for a stack with an endpoint."""

    def __init__(
        self,
        name: str,
        spec: AwsSpec,
        expose: BalancerSpec,
        plan: ClusterPlan,
        balancer: Balancer,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``plan`` needs only ports."""
        super().__init__("EndpointService", name, opts)
        consumers_name = expose.consumers_name(spec.zone)
        service = aws.ec2.VpcEndpointService(
            **self._common_args(protect=spec.deletion_protection or None),
            acceptance_required=expose.acceptance == "required",
            allowed_principals=[*expose.principals.values()] or [self._own_account()],
            network_load_balancer_arns=[balancer.arn],
            private_dns_name=consumers_name if expose.private_dns else None,
        )
        zones = aws.get_availability_zones(
            filters=[
                aws.GetAvailabilityZonesFilterArgs(name="zone-name", values=[*spec.vpc.zones])
            ],
            opts=pulumi.InvokeOptions(parent=self),
        )
        facts = {
            "name": consumers_name,
            "acceptance": expose.acceptance,
            "zone_ids": list(zones.zone_ids),
            "ports": ports(plan, spec.balanced),
        }
        service_outputs: dict[str, pulumi.Output[Any]] = {"service_name": service.service_name}
        if expose.private_dns:
            service_outputs["verification"] = service.private_dns_name_configurations.apply(
                _verification
            )
        self.facts = pulumi.Output.all(**service_outputs).apply(
            lambda outputs: {**outputs, **facts}
        )
        self.register_outputs({"service_name": service.service_name})

    def _own_account(self) -> str:
        opts = pulumi.InvokeOptions(parent=self)
        partition = aws.get_partition(opts=opts).partition
        return f"arn:{partition}:iam::{aws.get_caller_identity(opts=opts).account_id}:root"


def ports(plan: ClusterPlan, listeners: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """By listener, the balancer's port of each broker and of the bootstrap."""
    ports_by_listener: dict[str, dict[str, int]] = {}
    for name in listeners:
        listeners_by_id = {
            node.id: listener for node in plan.brokers if (listener := node.listener(name))
        }
        ports_by_listener[name] = {
            str(id): listener.port for id, listener in listeners_by_id.items()
        }
        for listener in listeners_by_id.values():
            if listener.front is not None and listener.front.bootstrap is not None:
                ports_by_listener[name]["bootstrap"] = listener.front.bootstrap.port
    return ports_by_listener


def _verification(configurations: Any) -> list[dict[str, str]]:
    """The TXT records that prove the ownership of the private DNS name."""
    return [
        {"name": record.name, "type": record.type, "value": record.value}
        for record in configurations or ()
    ]
