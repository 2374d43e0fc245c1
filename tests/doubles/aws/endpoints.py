"""Doubles of aws:ec2 VpcEndpoint (gateway and interface) and VpcEndpointService."""

import json
from collections.abc import Iterator
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import (
    Ec2Kind,
    arguments,
    aws_name,
    constant,
    outputs_of,
    shape,
)
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

_LISTS = ("routeTableIds", "subnetIds", "securityGroupIds")
ANY_PRINCIPAL = "*"


class VpcEndpoint(Ec2Kind):
    """An interface endpoint waits for acceptance if its service requires it. moto accepts every
    endpoint, of every account and zone."""

    kind_of_arn = "vpc-endpoint"
    shape = shape(
        "vpcId", "serviceName", "vpcEndpointType", "policy", "privateDnsEnabled", *_LISTS, "tags",
        "region",
    )  # fmt: skip
    defaults = constant(vpcEndpointType="Gateway")
    in_place = frozenset({"policy", "privateDnsEnabled", *_LISTS})
    unordered = frozenset(_LISTS)
    computed_later = in_place
    outputs = frozenset({"arn", "state", "dnsEntries"})

    def objections(self, inputs: Plain) -> Iterator[tuple[str, str]]:
        if inputs.get("vpcEndpointType", "Gateway") not in ("Gateway", "Interface"):
            yield (
                "vpcEndpointType",
                "this test double of the AWS provider knows only Gateway and Interface",
            )

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        type = inputs.get("vpcEndpointType", "Gateway")
        if type == "Interface":
            _check_service(cloud, inputs)
        answer = cloud.client("ec2", inputs).create_vpc_endpoint(
            VpcEndpointType=type,
            PrivateDnsEnabled=bool(inputs.get("privateDnsEnabled")),
            **arguments(inputs, "vpcId", "serviceName", PolicyDocument="policy"),
            **{aws_name(name): inputs.get(name, []) for name in _LISTS},
        )
        return str(answer["VpcEndpoint"]["VpcEndpointId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        ec2 = cloud.client("ec2", state)
        endpoint = ec2.describe_vpc_endpoints(VpcEndpointIds=[id])["VpcEndpoints"][0]
        if endpoint["State"] == "deleted":
            return None
        service = _service(cloud, endpoint["ServiceName"], state)
        waits = service is not None and service["AcceptanceRequired"]
        return self.common(cloud, id, state, endpoint) | {
            **outputs_of(endpoint, "vpcId", "serviceName", "vpcEndpointType"),
            "routeTableIds": endpoint.get("RouteTableIds", []),
            "subnetIds": endpoint.get("SubnetIds") or [],
            "securityGroupIds": [group["GroupId"] for group in endpoint.get("Groups", [])],
            "privateDnsEnabled": bool(state.get("privateDnsEnabled")),
            "policy": same_document(state.get("policy"), endpoint.get("PolicyDocument")),
            "state": "pendingAcceptance" if waits else endpoint["State"],
            "dnsEntries": [
                outputs_of(dns_entry, "dnsName", "hostedZoneId")
                for dns_entry in endpoint.get("DnsEntries", [])
            ],
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        change: dict[str, Any] = {}
        for name in _LISTS:
            added_ids, removed_ids = _differences(inputs.get(name, []), current[name])
            change |= {f"Add{aws_name(name)}": added_ids} if added_ids else {}
            change |= {f"Remove{aws_name(name)}": removed_ids} if removed_ids else {}
        if "policy" in inputs and current["policy"] != inputs["policy"]:
            change["PolicyDocument"] = inputs["policy"]
        if change:
            cloud.client("ec2", inputs).modify_vpc_endpoint(VpcEndpointId=id, **change)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_vpc_endpoints(VpcEndpointIds=[id])


class VpcEndpointService(Ec2Kind):
    """An endpoint service of Network Load Balancers. moto verifies private DNS names at once."""

    kind_of_arn = "vpc-endpoint-service"
    shape = shape(
        "acceptanceRequired", "allowedPrincipals", "networkLoadBalancerArns", "privateDnsName",
        "tags", "region",
    )  # fmt: skip
    in_place = frozenset({"acceptanceRequired", "allowedPrincipals", "privateDnsName"})
    unordered = frozenset({"allowedPrincipals", "networkLoadBalancerArns"})
    computed_later = frozenset({"allowedPrincipals", "privateDnsName"})
    outputs = frozenset({"arn", "privateDnsNameConfigurations", "serviceName"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client("ec2", inputs).create_vpc_endpoint_service_configuration(
            **arguments(inputs, "acceptanceRequired", "networkLoadBalancerArns", "privateDnsName")
        )
        return str(answer["ServiceConfiguration"]["ServiceId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        ec2 = cloud.client("ec2", state)
        answer = ec2.describe_vpc_endpoint_service_configurations(ServiceIds=[id])
        (service,) = answer["ServiceConfigurations"]
        answer = ec2.describe_vpc_endpoint_service_permissions(ServiceId=id)
        verification = arguments(
            service.get("PrivateDnsNameConfiguration") or {},
            name="Name", state="State", type="Type", value="Value",
        )  # fmt: skip
        return self.common(cloud, id, state, service) | {
            **outputs_of(service, "acceptanceRequired", "networkLoadBalancerArns", "serviceName"),
            **arguments(service, privateDnsName="PrivateDnsName"),
            "allowedPrincipals": sorted(
                permission["Principal"] for permission in answer["AllowedPrincipals"]
            ),
            "privateDnsNameConfigurations": [verification] if verification else [],
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        ec2 = cloud.client("ec2", inputs)
        added_principals, removed_principals = _differences(
            inputs.get("allowedPrincipals", []), current["allowedPrincipals"]
        )
        if added_principals or removed_principals:
            ec2.modify_vpc_endpoint_service_permissions(
                ServiceId=id,
                AddAllowedPrincipals=added_principals,
                RemoveAllowedPrincipals=removed_principals,
            )
        names = ("acceptanceRequired", "privateDnsName")
        change = {name: inputs[name] for name in names if inputs.get(name) is not None}
        if any(current.get(name) != value for name, value in change.items()):
            ec2.modify_vpc_endpoint_service_configuration(ServiceId=id, **arguments(change, *names))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        ec2 = cloud.client("ec2", state)
        of_service = {"ServiceName": state["serviceName"], "State": "available"}
        for endpoint in ec2.describe_vpc_endpoints()["VpcEndpoints"]:
            if of_service.items() <= endpoint.items():
                raise ProviderError(
                    "DeleteVpcEndpointServiceConfigurations: ExistingVpcEndpointConnections: "
                    f"{id} has the connection of {endpoint['VpcEndpointId']}"
                )
        ec2.delete_vpc_endpoint_service_configurations(ServiceIds=[id])


def _differences(wanted_ids: list[str], current_ids: list[str]) -> tuple[list[str], list[str]]:
    """Elements to add, and elements to remove."""
    wanted_set, current = set(wanted_ids), set(current_ids)
    return sorted(wanted_set - current), sorted(current - wanted_set)


def _service(cloud: Cloud, name: str, inputs: Plain) -> Plain | None:
    """The endpoint service called ``name``; None for those of AWS itself."""
    answer = cloud.client("ec2", inputs).describe_vpc_endpoint_service_configurations()
    services = answer["ServiceConfigurations"]
    return next((service for service in services if service["ServiceName"] == name), None)


def _check_service(cloud: Cloud, inputs: Plain) -> None:
    """Raises ProviderError for a service that this account or these zones cannot use."""
    ec2, name = cloud.client("ec2", inputs), inputs["serviceName"]
    service = _service(cloud, name, inputs)
    principals: set[str] = set()
    if service is not None:
        answer = ec2.describe_vpc_endpoint_service_permissions(ServiceId=service["ServiceId"])
        principals = {permission["Principal"] for permission in answer["AllowedPrincipals"]}
    account = f"arn:aws:iam::{cloud.account()}:"
    if service is None or not any(
        principal == ANY_PRINCIPAL or principal.startswith(account) for principal in principals
    ):
        raise ProviderError(
            f"CreateVpcEndpoint: InvalidServiceName: The Vpc Endpoint Service '{name}' does not "
            "exist"
        )
    for subnet in ec2.describe_subnets(SubnetIds=inputs["subnetIds"])["Subnets"]:
        if subnet["AvailabilityZone"] not in service["AvailabilityZones"]:
            raise ProviderError(
                f"CreateVpcEndpoint: InvalidParameter: The VPC endpoint service {name} does not "
                f"support the availability zone of the subnet: {subnet['SubnetId']}."
            )


def same_document(text: str | None, current: str | None) -> str | None:
    """``text`` if it is the same JSON as ``current``, in whatever spaces and order; else that."""
    if text and current and json.loads(text) == json.loads(current):
        return text
    return current
