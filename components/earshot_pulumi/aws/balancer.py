"""A Network Load Balancer in front of the brokers, and its endpoint service.

It has a listener and a target group per broker. Clients in other VPCs and accounts reach it by
PrivateLink through the endpoint service.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from earshot.config.aws import AwsSpec
from earshot.config.balancer import BalancerSpec
from earshot.facts.security_groups import BALANCER
from earshot.listeners.model import ClusterPlan
from earshot.placement.aws import HostOrMarker, unknown_balancer
from earshot_pulumi.aws.names import Names, marked
from earshot_pulumi.aws.network import NetworkFacts
from earshot_pulumi.aws.tags import TaggedComponent
from earshot_pulumi.provider.kind import Properties

_CHECK_SECONDS = 10
_CHECKS = 2
"""Health checks that make a target healthy, or unhealthy."""


class Balancer(TaggedComponent):
    """The balancer of a cluster, its targets and its name."""

    name_or_marker: pulumi.Output[HostOrMarker]
    """The balancer's name, or a marker in a preview that cannot know it."""
    settled: pulumi.Output[str]
    """The balancer's name. Unknown until AWS or the record has it."""
    targets: dict[int, list[Properties]]
    """By broker, the fields of each `Target`."""
    shared_targets: dict[int, list[Properties]]
    """The targets in groups with other brokers, too: the groups of bootstraps."""

    def __init__(
        self,
        name: str,
        spec: AwsSpec,
        expose: BalancerSpec,
        plan: ClusterPlan,
        network: NetworkFacts,
        groups: Mapping[str, pulumi.Input[str]],
        names: Names,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``plan`` needs only ports. ``groups`` are the ids of the security groups by name."""
        super().__init__("Balancer", name, opts)
        self._spec, self._expose, self._names = spec, expose, names
        self._vpc_id = network.vpc_id
        self.targets = {id: [] for id in spec.ids}
        self.shared_targets = {id: [] for id in spec.ids}
        self._balancer = aws.lb.LoadBalancer(
            **self._common_args(protect=spec.deletion_protection or None),
            name_prefix="kafka-",
            load_balancer_type="network",
            internal=not expose.public,
            subnets=[network.subnets[zone, expose.public] for zone in spec.vpc.zones],
            # without a group at its creation, a balancer can never have one
            security_groups=[groups[BALANCER]],
            # a broker is in one zone, and clients connect to the balancer's address in any
            enable_cross_zone_load_balancing=True,
            enable_deletion_protection=spec.deletion_protection,
            # otherwise the group would need addresses of consumers' VPCs, which may overlap
            enforce_security_group_inbound_rules_on_private_link_traffic=(
                "off" if expose.private_link else None
            ),
        )
        for listener in spec.balanced:
            self._forward(plan, listener)
        self.arn: pulumi.Output[str] = self._balancer.arn
        self.settled = self._advertised_name()
        self.name_or_marker = marked(self.settled, unknown_balancer(spec))
        self.register_outputs({"name": self.settled})

    def _forward(self, plan: ClusterPlan, name: str) -> None:
        """The listeners of the balancer for the brokers' listener ``name``."""
        listeners = {
            node.id: listener for node in plan.brokers if (listener := node.listener(name))
        }
        label = name.lower().replace("_", "-")
        for id, listener in listeners.items():
            suffix = f"{label}-{self._spec.name_of(id)}"
            self._listener(suffix, listener.port, listener.bind_port, [id])
        listener = next(iter(listeners.values()))
        if listener.front is not None and listener.front.bootstrap is not None:
            port = listener.front.bootstrap.port
            self._listener(f"{label}-bootstrap", port, listener.bind_port, list(listeners))

    def _listener(self, suffix: str, port: int, bind_port: int, ids: list[int]) -> None:
        """Forwards ``port`` of the balancer to ``bind_port`` of the brokers ``ids``."""
        group = aws.lb.TargetGroup(
            **self._common_args(suffix),
            name_prefix="kafka-",
            vpc_id=self._vpc_id,
            protocol="TCP",
            port=bind_port,
            target_type="ip",  # of the interface, which outlives the instance
            preserve_client_ip=str(self._expose.keeps_client_address).lower(),
            deregistration_delay=self._expose.drain_seconds,
            load_balancing_cross_zone_enabled="true",
            health_check=aws.lb.TargetGroupHealthCheckArgs(
                protocol="TCP",
                port=str(bind_port),
                interval=_CHECK_SECONDS,
                healthy_threshold=_CHECKS,
                unhealthy_threshold=_CHECKS,
            ),
        )
        for id in ids:
            aws.lb.TargetGroupAttachment(
                **self._args(f"{suffix}-{id}"),
                target_group_arn=group.arn,
                target_id=self._names.interfaces[id].private_ip,
                port=bind_port,
            )
            address = self._names.interfaces[id].private_ip
            target = {"group": group.arn, "address": address, "port": bind_port}
            self.targets[id].append(target)
            if len(ids) > 1:
                self.shared_targets[id].append(target)
        aws.lb.Listener(
            **self._common_args(suffix),
            load_balancer_arn=self._balancer.arn,
            protocol="TCP",
            port=port,
            tcp_idle_timeout_seconds=self._expose.idle_seconds,
            default_actions=[
                aws.lb.ListenerDefaultActionArgs(type="forward", target_group_arn=group.arn)
            ],
        )

    def _advertised_name(self) -> pulumi.Output[str]:
        record = self._record() if self._spec.naming == "zone" else None
        if name := self._expose.consumers_name(self._spec.zone):
            return pulumi.Output.from_input(name)
        return self._balancer.dns_name if record is None else record

    def _record(self) -> pulumi.Output[str]:
        """The balancer's name in the zones of the stack."""
        zone, private = self._spec.zone, self._names.private_zone
        assert zone is not None and private is not None  # naming zone has both
        # outside the VPC, the private zones of consumers have the name of an endpoint service
        public = None if self._expose.private_link else zone.public_zone_id
        zones = {"private": private.zone_id, "public": public}
        records = [
            aws.route53.Record(
                **self._args(f"balancer-{kind}"),
                zone_id=zone_id,
                name=f"{self._expose.record}.{zone.name}",
                type="CNAME",
                ttl=zone.ttl,
                records=[self._balancer.dns_name],
            )
            for kind, zone_id in zones.items()
            if zone_id is not None
        ]
        return records[0].fqdn


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
