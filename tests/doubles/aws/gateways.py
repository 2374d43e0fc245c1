"""Doubles of aws:ec2 NatGateway, VpcEndpoint (of the gateway kind) and FlowLog."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import Ec2Kind, constant, given, shape
from tests.doubles.aws.network import needs_gateway
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

LOGGED = {"vpcId": "VPC", "subnetId": "Subnet", "eniId": "NetworkInterface"}


class NatGateway(Ec2Kind):
    """moto leaves the gateway's interface behind; it is taken away with it here, as AWS does."""

    kind_of_arn = "natgateway"
    shape = shape("allocationId", "subnetId", "connectivityType", "tags", "region")
    defaults = constant(connectivityType="public")
    settled_later = frozenset({"region"})
    outputs = frozenset({"associationId", "networkInterfaceId", "publicIp", "tagsAll"})
    absent = frozenset(
        {"autoProvisionZones", "autoScalingIps", "regionalNatGatewayAddresses",
         "regionalNatGatewayAutoMode", "routeTableId"}
    )  # fmt: skip

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        arguments = given(
            inputs,
            AllocationId="allocationId",
            SubnetId="subnetId",
            ConnectivityType="connectivityType",
        )
        ec2 = cloud.client("ec2", inputs)
        if "allocationId" in inputs:
            subnet = ec2.describe_subnets(SubnetIds=[inputs["subnetId"]])["Subnets"][0]
            needs_gateway(cloud, subnet["VpcId"], inputs, "CreateNatGateway")
        made = ec2.create_nat_gateway(**arguments)
        return str(made["NatGateway"]["NatGatewayId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        ec2 = cloud.client("ec2", state)
        found = ec2.describe_nat_gateways(NatGatewayIds=[id])["NatGateways"]
        if not found or found[0]["State"] == "deleted":
            return None
        address = found[0]["NatGatewayAddresses"][0]
        return self.common(cloud, id, state, found[0]) | {
            "subnetId": found[0]["SubnetId"],
            "connectivityType": "public" if "AllocationId" in address else "private",
            "allocationId": address.get("AllocationId"),
            "associationId": address.get("AssociationId"),
            "networkInterfaceId": address["NetworkInterfaceId"],
            "publicIp": address.get("PublicIp"),
        }

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        found = self.find(cloud, id, state)
        if found is None:
            return
        ec2 = cloud.client("ec2", state)
        ec2.delete_nat_gateway(NatGatewayId=id)
        if found["associationId"]:
            ec2.disassociate_address(AssociationId=found["associationId"])
        ec2.delete_network_interface(NetworkInterfaceId=found["networkInterfaceId"])


class VpcEndpoint(Ec2Kind):
    kind_of_arn = "vpc-endpoint"
    shape = shape(
        "vpcId", "serviceName", "vpcEndpointType", "routeTableIds", "policy", "tags", "region"
    )
    defaults = constant(vpcEndpointType="Gateway")
    in_place = frozenset({"routeTableIds", "policy"})
    unordered = frozenset({"routeTableIds"})
    settled_later = frozenset({"policy", "routeTableIds", "region"})
    outputs = frozenset(
        {"arn", "ownerId", "tagsAll", "state", "prefixListId", "cidrBlocks", "dnsEntries",
         "networkInterfaceIds", "requesterManaged"}
    )  # fmt: skip

    def objections(self, inputs: Plain) -> Iterator[tuple[str, str]]:
        if inputs.get("vpcEndpointType", "Gateway") != "Gateway":
            yield "vpcEndpointType", "this test double of the AWS provider knows only Gateway"

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        arguments = given(inputs, VpcId="vpcId", ServiceName="serviceName", PolicyDocument="policy")
        arguments["RouteTableIds"] = inputs.get("routeTableIds", [])
        ec2 = cloud.client("ec2", inputs)
        made = ec2.create_vpc_endpoint(VpcEndpointType="Gateway", **arguments)
        return str(made["VpcEndpoint"]["VpcEndpointId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        ec2 = cloud.client("ec2", state)
        found = ec2.describe_vpc_endpoints(VpcEndpointIds=[id])["VpcEndpoints"][0]
        if found["State"] == "deleted":
            return None
        named = [{"Name": "prefix-list-name", "Values": [found["ServiceName"]]}]
        lists = ec2.describe_managed_prefix_lists(Filters=named)["PrefixLists"]
        return self.common(cloud, id, state, found) | {
            "vpcId": found["VpcId"],
            "serviceName": found["ServiceName"],
            "vpcEndpointType": found["VpcEndpointType"],
            "routeTableIds": found["RouteTableIds"],
            "policy": same_document(state.get("policy"), found.get("PolicyDocument")),
            "state": found["State"],
            "prefixListId": lists[0]["PrefixListId"] if lists else None,
            "cidrBlocks": [],
            "dnsEntries": [],
            "networkInterfaceIds": [],
            "requesterManaged": False,
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        wanted, there = set(inputs.get("routeTableIds", [])), set(found["routeTableIds"])
        change = {
            "AddRouteTableIds": sorted(wanted - there),
            "RemoveRouteTableIds": sorted(there - wanted),
        }
        change = {name: value for name, value in change.items() if value}
        if "policy" in inputs and found["policy"] != inputs["policy"]:
            change["PolicyDocument"] = inputs["policy"]
        if change:
            cloud.client("ec2", inputs).modify_vpc_endpoint(VpcEndpointId=id, **change)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_vpc_endpoints(VpcEndpointIds=[id])


class FlowLog(Ec2Kind):
    kind_of_arn = "vpc-flow-log"
    shape = shape(
        "vpcId", "subnetId", "eniId", "trafficType", "logDestinationType", "logDestination",
        "iamRoleArn", "maxAggregationInterval", "logFormat", "tags", "region",
    )  # fmt: skip
    defaults = constant(logDestinationType="cloud-watch-logs", maxAggregationInterval=600)
    settled_later = frozenset({"logFormat", "region"})
    outputs = frozenset({"arn", "tagsAll"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        (source,) = LOGGED.keys() & inputs.keys()
        arguments = given(
            inputs,
            TrafficType="trafficType",
            LogDestinationType="logDestinationType",
            LogDestination="logDestination",
            DeliverLogsPermissionArn="iamRoleArn",
            MaxAggregationInterval="maxAggregationInterval",
            LogFormat="logFormat",
        )
        made = cloud.client("ec2", inputs).create_flow_logs(
            ResourceIds=[inputs[source]], ResourceType=LOGGED[source], **arguments
        )
        for failure in made["Unsuccessful"]:
            error = failure["Error"]
            raise ProviderError(f"CreateFlowLogs: {error['Code']}: {error['Message']}")
        return str(made["FlowLogIds"][0])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        found = cloud.client("ec2", state).describe_flow_logs(FlowLogIds=[id])["FlowLogs"]
        if not found:
            return None
        return self.common(cloud, id, state, found[0]) | {
            "trafficType": found[0]["TrafficType"],
            "logDestinationType": found[0]["LogDestinationType"],
            "logDestination": found[0].get("LogDestination"),
            "logFormat": found[0]["LogFormat"],
            "maxAggregationInterval": int(found[0]["MaxAggregationInterval"]),
        }

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_flow_logs(FlowLogIds=[id])


def same_document(known: str | None, found: str | None) -> str | None:
    """``known`` where both say the same as JSON, else ``found``: spaces and order mean nothing."""
    if known and found and json.loads(known) == json.loads(found):
        return known
    return found
