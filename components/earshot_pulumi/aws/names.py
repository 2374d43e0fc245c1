"""The names of nodes: interfaces, Elastic IPs and DNS records, created before the instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from earshot.config.aws import AwsSpec
from earshot.facts.security_groups import BROKERS, CONTROLLERS
from earshot.listeners.terms import UnknownHost
from earshot.placement.aws import HostOrMarker, ProvisionedNames, unknown_names
from earshot_pulumi.aws.network import NetworkFacts
from earshot_pulumi.aws.tags import TaggedComponent, tags
from earshot_pulumi.outputs import known_or


class Names(TaggedComponent):
    """The resources with the names of all nodes. They remain when an instance is replaced."""

    provisioned: pulumi.Output[dict[int, ProvisionedNames]]
    """The names by node id. In a preview, markers replace values that are not known yet."""
    settled: pulumi.Output[dict[int, ProvisionedNames]]
    """The names by node id, without markers. Unknown until all values are known."""

    def __init__(
        self,
        name: str,
        spec: AwsSpec,
        network: NetworkFacts,
        groups: Mapping[str, pulumi.Input[str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``groups`` are the ids of the security groups by name."""
        super().__init__("Names", name, opts)
        self._spec, self._network, self._groups = spec, network, groups
        self.interfaces = {id: self._interface(id) for id in spec.node_ids}
        self.addresses = {
            id: aws.ec2.Eip(
                **self._common_args(spec.name_of(id), protect=spec.deletion_protection or None),
                domain="vpc",
            )
            for id in spec.node_ids
            if spec.is_public(id)
        }
        self.associations = {
            id: aws.ec2.EipAssociation(
                **self._args(spec.name_of(id)),
                allocation_id=address.allocation_id,
                network_interface_id=self.interfaces[id].id,
            )
            for id, address in self.addresses.items()
        }
        self.private_zone: aws.route53.Zone | None = None
        private = {id: interface.private_dns_name for id, interface in self.interfaces.items()}
        public = {id: address.public_dns for id, address in self.addresses.items()}
        if spec.naming == "zone":
            private, public = self._records()
        self.provisioned = _provisioned(self, spec, private, public, marked)
        self.settled = _provisioned(self, spec, private, public, lambda value, _: value)
        self.register_outputs({"interfaces": {str(id): i.id for id, i in self.interfaces.items()}})

    def _interface(self, id: int) -> aws.ec2.NetworkInterface:
        spec, name = self._spec, self._spec.name_of(id)
        roles = [BROKERS] if id in spec.ids else []
        roles += [CONTROLLERS] if id in spec.controller_ids else []
        return aws.ec2.NetworkInterface(
            # so the instance waits, too: at its boot it needs routes
            **self._common_args(
                name, protect=spec.deletion_protection or None, depends_on=[*self._network.routes]
            ),
            subnet_id=self._network.subnets[spec.zone_of[id], spec.is_public(id)],
            security_groups=[self._groups[role] for role in roles],
            description=f"{name} of {self._name}",
        )

    def _records(self) -> tuple[dict[int, pulumi.Output[str]], dict[int, pulumi.Output[str]]]:
        """By node id, the names in the private and in the public zone."""
        zone = self._spec.zone
        assert zone is not None  # the spec requires a zone for naming zone
        self.private_zone = aws.route53.Zone(
            **self._args(
                protect=self._spec.deletion_protection or None,
                # `ZoneAssociation` adds others
                ignore_changes=["vpcs"] if self._spec.connected else None,
            ),
            name=zone.name,
            comment=f"Kafka of {self._name}",
            vpcs=[
                aws.route53.ZoneVpcArgs(vpc_id=self._network.vpc_id, vpc_region=self._spec.region)
            ],
            tags=tags(self._name, zone.name),
        )
        for name, vpc in self._spec.connected.items():
            if vpc.associate:
                aws.route53.ZoneAssociation(
                    **self._args(name),
                    zone_id=self.private_zone.zone_id,
                    vpc_id=vpc.id,
                    vpc_region=vpc.region or self._spec.region,
                )

        def record(
            id: int, kind: str, zone_id: pulumi.Input[str], address: pulumi.Input[str]
        ) -> pulumi.Output[str]:
            return aws.route53.Record(
                **self._args(f"{self._spec.name_of(id)}-{kind}"),
                zone_id=zone_id,
                name=zone.broker(id) if id in self._spec.ids else zone.controller(id),
                type="A",
                ttl=zone.ttl,
                records=[address],
            ).fqdn

        private, public = {}, {}
        for id, interface in self.interfaces.items():
            private[id] = record(id, "private", self.private_zone.zone_id, interface.private_ip)
            if id in self.addresses and zone.public_zone_id is not None:
                address = self.addresses[id].public_ip
                public[id] = record(id, "public", zone.public_zone_id, address)
        return private, public


Read = Callable[[pulumi.Output[str], UnknownHost], pulumi.Output[Any]]


def _provisioned(
    names: Names,
    spec: AwsSpec,
    private: Mapping[int, pulumi.Output[str]],
    public: Mapping[int, pulumi.Output[str]],
    read: Read,
) -> pulumi.Output[dict[int, ProvisionedNames]]:
    """The provisioned names of all nodes. ``read`` gets each value and its marker."""
    outputs: dict[str, dict[str, pulumi.Output[Any]]] = {}
    for id, markers in unknown_names(spec).items():
        values = {
            "private_name": private[id],
            "private_address": names.interfaces[id].private_ip,
            "public_name": public.get(id),
            "public_address": names.addresses[id].public_ip if id in names.addresses else None,
        }
        outputs[str(id)] = {
            key: read(value, getattr(markers, key))
            for key, value in values.items()
            if value is not None
        }
    return pulumi.Output.all(**outputs).apply(
        lambda nodes: {
            int(id): ProvisionedNames(**{key: value or "" for key, value in values.items()})
            for id, values in nodes.items()
        }
    )


def marked(value: pulumi.Output[str], marker: UnknownHost) -> pulumi.Output[HostOrMarker]:
    """``value``, or ``marker`` in a preview that does not know it."""
    host_output: pulumi.Output[HostOrMarker] = value.apply(lambda host: host)
    return known_or(host_output, marker)
