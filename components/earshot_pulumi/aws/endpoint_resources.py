"""The resources of an endpoint: security group, interface endpoint, private zones, records."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any

import pulumi
import pulumi_aws as aws

from earshot.config.endpoint import EndpointNetwork, EndpointSpec
from earshot.errors import EarshotError
from earshot.facts.security_groups import read_range
from earshot.listeners.problems import read_model
from earshot.names.aws import VpcDns
from earshot.placement.endpoint import EndpointPlan
from earshot_pulumi.aws.tags import TaggedComponent, tags
from earshot_pulumi.outputs import contains_output, once_there, with_run_errors
from earshot_pulumi.provider.kind import Inputs, Outputs, Properties

PENDING = "pendingAcceptance"


class Endpoint(TaggedComponent):
    """The resources of an `AwsEndpoint`."""

    outputs: Outputs

    def __init__(
        self,
        name: str,
        spec: EndpointSpec,
        plan: EndpointPlan,
        network: Inputs,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """``network`` has `service_name`, `vpc_id`, `subnets` and, optionally, `zone_ids`."""
        super().__init__("Endpoint", name, opts)
        self._plan = plan
        self._network = network
        group = self._group(spec)
        # all other resources are made after the group, which is not made for an invalid network
        self._vpc_id = group.vpc_id
        self._endpoint = aws.ec2.VpcEndpoint(
            **self._common_args(),
            vpc_id=self._vpc_id,
            service_name=network["service_name"],
            vpc_endpoint_type="Interface",
            subnet_ids=network["subnets"],
            security_group_ids=[group.id],
            private_dns_enabled=spec.private_dns,
        )
        self._endpoint.state.apply(self._warn)
        records = [
            self._record(zone.zone_id, record)
            for zone_name, names in plan.zones.items()
            for zone in [self._zone(zone_name)]
            for record in names
        ]
        last_resource = records[-1] if records else self._endpoint
        self.outputs = {
            "endpoint_id": self._endpoint.id,
            "state": self._endpoint.state,
            "security_group_id": group.id,
            "bootstrap": once_there(
                last_resource,
                {listener.name: listener.bootstrap for listener in plan.contract.listeners},
            ),
            "contract": once_there(last_resource, plan.contract.model_dump(mode="json")),
        }
        self.register_outputs({"endpoint_id": self._endpoint.id})

    def _group(self, spec: EndpointSpec) -> aws.ec2.SecurityGroup:
        group = aws.ec2.SecurityGroup(
            **self._common_args(),
            description=f"Kafka clients of {self._plan.contract.cluster}",
            vpc_id=self._checked_vpc_id(),
        )
        sources: dict[str, Properties] = {
            label: _range(text) for label, text in spec.clients.items()
        }
        sources |= {
            label: {"referenced_security_group_id": id} for label, id in spec.groups.items()
        }
        for first_port, last_port in self._plan.ports:
            for label, source in sources.items():
                aws.vpc.SecurityGroupIngressRule(
                    **self._args(f"{first_port}-{label}"),
                    security_group_id=group.id,
                    ip_protocol="tcp",
                    from_port=first_port,
                    to_port=last_port,
                    description=f"Kafka clients: {label}",
                    **source,
                )
        return group

    def _zone(self, name: str) -> aws.route53.Zone:
        return aws.route53.Zone(
            **self._args(name),
            name=name,
            comment=f"Kafka of {self._plan.contract.cluster}",
            vpcs=[aws.route53.ZoneVpcArgs(vpc_id=self._vpc_id)],
            tags=tags(self._name, name),
        )

    def _record(self, zone_id: pulumi.Input[str], name: str) -> aws.route53.Record:
        dns_entry = self._endpoint.dns_entries.apply(with_run_errors(_first_entry))
        return aws.route53.Record(
            **self._args(name),
            zone_id=zone_id,
            name=name,
            type="A",  # an alias: the top of a zone cannot have a CNAME
            aliases=[
                aws.route53.RecordAliasArgs(
                    name=dns_entry.apply(lambda values: values[0]),
                    zone_id=dns_entry.apply(lambda values: values[1]),
                    evaluate_target_health=False,
                )
            ],
        )

    def _invoke(self) -> pulumi.InvokeOptions:
        return pulumi.InvokeOptions(parent=self)

    def _checked_vpc_id(self) -> pulumi.Input[str]:
        """The id of the VPC, after a check of the network.

        Raises EarshotError, or its output does, if the endpoint would not work in this network.
        """
        if not contains_output(self._network):
            return self._checked(self._network)
        vpc_id: pulumi.Output[str] = pulumi.Output.all(**self._network).apply(
            with_run_errors(self._checked)
        )
        return vpc_id

    def _checked(self, network: Inputs) -> str:
        """The id of the VPC. Raises EarshotError for a service of another region or other zones,
        and for a VPC in which private zones do not resolve."""
        read_model(EndpointNetwork, network, f"AwsEndpoint {self._name}")
        service, region = network["service_name"], aws.get_region(opts=self._invoke()).region
        parts = service.split(".")  # com.amazonaws.vpce.REGION.vpce-svc-...
        if len(parts) < 5 or parts[-2] != region:
            raise EarshotError(
                f"service_name: {service}",
                observed=f"is not an endpoint service of {region}, the region of the AWS provider",
                allowed=f"a name such as com.amazonaws.vpce.{region}.vpce-svc-0123456789abcdef0",
                remedy="give the component a provider of the service's region",
            )
        id: str = network["vpc_id"]
        vpc = aws.ec2.get_vpc(id=id, opts=self._invoke())
        dns = VpcDns(support=vpc.enable_dns_support, hostnames=vpc.enable_dns_hostnames)
        if dns.off:
            raise EarshotError(
                f"vpc_id: {id}",
                observed=f"{' and '.join(dns.off)} of the VPC: off, so private zones do not "
                "resolve there",
                remedy="set both attributes on the VPC",
            )
        zone_ids = network.get("zone_ids") or []
        for subnet in network["subnets"] if zone_ids else ():
            zone = aws.ec2.get_subnet(id=subnet, opts=self._invoke()).availability_zone_id
            if zone not in zone_ids:
                raise EarshotError(
                    f"subnets: {subnet}",
                    observed=f"is in the zone {zone}, and the endpoint service is not",
                    allowed=f"subnets in {', '.join(zone_ids)}",
                )
        return str(id)

    def _warn(self, state: str) -> None:
        if state == PENDING:
            pulumi.log.warn(
                "the endpoint waits until the owner of the service accepts it: "
                "`aws ec2 accept-vpc-endpoint-connections`",
                self,
            )


def _range(text: str) -> Properties:
    is_v4 = isinstance(read_range(text), IPv4Network)
    return {"cidr_ipv4" if is_v4 else "cidr_ipv6": text}


def _first_entry(entries: Sequence[Any]) -> tuple[str, str]:
    """The name of the endpoint in all its zones, and the hosted zone of AWS that has the name."""
    if not entries:
        raise EarshotError(
            "the endpoint",
            observed="AWS has given it no DNS name yet",
            remedy="let the owner of the service accept it, then run the same command again",
        )
    return str(entries[0].dns_name), str(entries[0].hosted_zone_id)
