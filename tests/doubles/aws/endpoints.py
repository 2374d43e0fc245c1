"""Doubles of aws:ec2 VpcEndpoint (gateway and interface) and VpcEndpointService."""

import json
from collections.abc import Iterator
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import Ec2Kind, constant, given, shape
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

_LISTS = {"routeTableIds": "RouteTableIds", "subnetIds": "SubnetIds",
          "securityGroupIds": "SecurityGroupIds"}  # fmt: skip
ANY_PRINCIPAL = "*"


class VpcEndpoint(Ec2Kind):
    """An interface endpoint of a service that requires acceptance waits for it; moto accepts all,
    for all accounts and zones."""

    kind_of_arn = "vpc-endpoint"
    shape = shape(
        "vpcId", "serviceName", "vpcEndpointType", "policy", "privateDnsEnabled", *_LISTS, "tags",
        "region",
    )  # fmt: skip
    defaults = constant(vpcEndpointType="Gateway")
    in_place = frozenset({"policy", "privateDnsEnabled", *_LISTS})
    unordered = frozenset(_LISTS)
    settled_later = frozenset({"policy", "privateDnsEnabled", "region", *_LISTS})
    outputs = frozenset(
        {"arn", "ownerId", "tagsAll", "state", "prefixListId", "cidrBlocks", "dnsEntries",
         "networkInterfaceIds", "requesterManaged"}
    )  # fmt: skip

    def objections(self, inputs: Plain) -> Iterator[tuple[str, str]]:
        if inputs.get("vpcEndpointType", "Gateway") not in ("Gateway", "Interface"):
            yield (
                "vpcEndpointType",
                "this test double of the AWS provider knows only Gateway and Interface",
            )

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2, kind = cloud.client("ec2", inputs), inputs.get("vpcEndpointType", "Gateway")
        if kind == "Interface":
            _check_service(cloud, inputs)
        arguments = given(inputs, VpcId="vpcId", ServiceName="serviceName", PolicyDocument="policy")
        lists = {argument: inputs.get(name, []) for name, argument in _LISTS.items()}
        own_names = {"PrivateDnsEnabled": bool(inputs.get("privateDnsEnabled"))}
        made = ec2.create_vpc_endpoint(VpcEndpointType=kind, **arguments, **lists, **own_names)
        return str(made["VpcEndpoint"]["VpcEndpointId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        ec2 = cloud.client("ec2", state)
        found = ec2.describe_vpc_endpoints(VpcEndpointIds=[id])["VpcEndpoints"][0]
        if found["State"] == "deleted":
            return None
        named = [{"Name": "prefix-list-name", "Values": [found["ServiceName"]]}]
        lists = ec2.describe_managed_prefix_lists(Filters=named)["PrefixLists"]
        service = _service(cloud, found["ServiceName"], state)
        waits = service is not None and service["AcceptanceRequired"]
        return self.common(cloud, id, state, found) | {
            "vpcId": found["VpcId"],
            "serviceName": found["ServiceName"],
            "vpcEndpointType": found["VpcEndpointType"],
            "routeTableIds": found.get("RouteTableIds", []),
            "subnetIds": found.get("SubnetIds") or [],
            "securityGroupIds": [it["GroupId"] for it in found.get("Groups", [])],
            "privateDnsEnabled": bool(state.get("privateDnsEnabled")),
            "policy": same_document(state.get("policy"), found.get("PolicyDocument")),
            "state": "pendingAcceptance" if waits else found["State"],
            "prefixListId": lists[0]["PrefixListId"] if lists else None,
            "cidrBlocks": [],
            "dnsEntries": [
                {"dnsName": it["DnsName"], "hostedZoneId": it["HostedZoneId"]}
                for it in found.get("DnsEntries", [])
            ],
            "networkInterfaceIds": found.get("NetworkInterfaceIds", []),
            "requesterManaged": False,
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        change: dict[str, Any] = {}
        for name, argument in _LISTS.items():
            wanted, there = set(inputs.get(name, [])), set(found[name])
            change |= {f"Add{argument}": sorted(wanted - there)} if wanted - there else {}
            change |= {f"Remove{argument}": sorted(there - wanted)} if there - wanted else {}
        if "policy" in inputs and found["policy"] != inputs["policy"]:
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
    settled_later = frozenset({"allowedPrincipals", "privateDnsName", "region"})
    outputs = frozenset(
        {"arn", "availabilityZones", "baseEndpointDnsNames", "managesVpcEndpoints",
         "privateDnsNameConfigurations", "serviceName", "serviceType", "state", "tagsAll"}
    )  # fmt: skip

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        arguments = given(
            inputs,
            AcceptanceRequired="acceptanceRequired",
            NetworkLoadBalancerArns="networkLoadBalancerArns",
            PrivateDnsName="privateDnsName",
        )
        ec2 = cloud.client("ec2", inputs)
        made = ec2.create_vpc_endpoint_service_configuration(**arguments)
        return str(made["ServiceConfiguration"]["ServiceId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        ec2 = cloud.client("ec2", state)
        (found,) = ec2.describe_vpc_endpoint_service_configurations(ServiceIds=[id])[
            "ServiceConfigurations"
        ]
        allowed = ec2.describe_vpc_endpoint_service_permissions(ServiceId=id)["AllowedPrincipals"]
        shown = found.get("PrivateDnsNameConfiguration") or {}
        keys = {"name": "Name", "state": "State", "type": "Type", "value": "Value"}
        configuration = {key: shown[name] for key, name in keys.items() if name in shown}
        known = self.common(cloud, id, state, found) | {
            "acceptanceRequired": found["AcceptanceRequired"],
            "allowedPrincipals": sorted(item["Principal"] for item in allowed),
            "networkLoadBalancerArns": found["NetworkLoadBalancerArns"],
            "availabilityZones": found["AvailabilityZones"],
            "baseEndpointDnsNames": found["BaseEndpointDnsNames"],
            "managesVpcEndpoints": found["ManagesVpcEndpoints"],
            "privateDnsNameConfigurations": [configuration] if configuration else [],
            "serviceName": found["ServiceName"],
            "serviceType": found["ServiceType"][0]["ServiceType"],
            "state": found["ServiceState"],
        }
        if found.get("PrivateDnsName"):
            known["privateDnsName"] = found["PrivateDnsName"]
        return known

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        ec2 = cloud.client("ec2", inputs)
        wanted, there = set(inputs.get("allowedPrincipals", [])), set(found["allowedPrincipals"])
        if wanted != there:
            ec2.modify_vpc_endpoint_service_permissions(
                ServiceId=id,
                AddAllowedPrincipals=sorted(wanted - there),
                RemoveAllowedPrincipals=sorted(there - wanted),
            )
        change = {}
        if found["acceptanceRequired"] != inputs["acceptanceRequired"]:
            change["AcceptanceRequired"] = inputs["acceptanceRequired"]
        if inputs.get("privateDnsName") not in (None, found.get("privateDnsName")):
            change["PrivateDnsName"] = inputs["privateDnsName"]
        if change:
            ec2.modify_vpc_endpoint_service_configuration(ServiceId=id, **change)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        ec2 = cloud.client("ec2", state)
        of_service = {"ServiceName": state["serviceName"], "State": "available"}
        for found in ec2.describe_vpc_endpoints()["VpcEndpoints"]:
            if of_service.items() <= found.items():
                raise ProviderError(
                    "DeleteVpcEndpointServiceConfigurations: ExistingVpcEndpointConnections: "
                    f"{id} has the connection of {found['VpcEndpointId']}"
                )
        ec2.delete_vpc_endpoint_service_configurations(ServiceIds=[id])


def _service(cloud: Cloud, name: str, inputs: Plain) -> Plain | None:
    """The endpoint service called ``name``; None for those of AWS itself."""
    ec2 = cloud.client("ec2", inputs)
    listed = ec2.describe_vpc_endpoint_service_configurations()["ServiceConfigurations"]
    return next((it for it in listed if it["ServiceName"] == name), None)


def _check_service(cloud: Cloud, inputs: Plain) -> None:
    """Raises ProviderError for a service that is not there for this account or these zones."""
    ec2, name = cloud.client("ec2", inputs), inputs["serviceName"]
    service = _service(cloud, name, inputs)
    allowed: set[str] = set()
    if service is not None:
        permissions = ec2.describe_vpc_endpoint_service_permissions(ServiceId=service["ServiceId"])
        allowed = {item["Principal"] for item in permissions["AllowedPrincipals"]}
    own = f"arn:aws:iam::{cloud.account()}:"
    if service is None or not any(it == ANY_PRINCIPAL or it.startswith(own) for it in allowed):
        raise ProviderError(
            f"CreateVpcEndpoint: InvalidServiceName: The Vpc Endpoint Service '{name}' does not "
            "exist"
        )
    for item in ec2.describe_subnets(SubnetIds=inputs["subnetIds"])["Subnets"]:
        if item["AvailabilityZone"] not in service["AvailabilityZones"]:
            raise ProviderError(
                f"CreateVpcEndpoint: InvalidParameter: The VPC endpoint service {name} does not "
                f"support the availability zone of the subnet: {item['SubnetId']}."
            )


def same_document(known: str | None, found: str | None) -> str | None:
    """``known`` where both say the same as JSON, else ``found``: spaces and order mean nothing."""
    if known and found and json.loads(known) == json.loads(found):
        return known
    return found
