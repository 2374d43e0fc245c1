"""Doubles of aws:ec2 NatGateway and FlowLog."""

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import Ec2Kind, given, shape
from tests.doubles.aws.network import needs_gateway
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain


class NatGateway(Ec2Kind):
    """moto leaves the gateway's interface behind; it is taken away with it here, as AWS does."""

    kind_of_arn = "natgateway"
    shape = shape("allocationId", "subnetId", "tags", "region")
    settled_later = frozenset({"region"})
    outputs = frozenset({"associationId", "networkInterfaceId", "publicIp", "tagsAll"})
    absent = frozenset(
        {"autoProvisionZones", "autoScalingIps", "regionalNatGatewayAddresses",
         "regionalNatGatewayAutoMode", "routeTableId"}
    )  # fmt: skip

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        arguments = given(inputs, AllocationId="allocationId", SubnetId="subnetId")
        ec2 = cloud.client("ec2", inputs)
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


class FlowLog(Ec2Kind):
    kind_of_arn = "vpc-flow-log"
    shape = shape("vpcId", "trafficType", "logDestinationType", "logDestination", "tags", "region")
    settled_later = frozenset({"region"})
    outputs = frozenset({"arn", "tagsAll"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        arguments = given(
            inputs,
            TrafficType="trafficType",
            LogDestinationType="logDestinationType",
            LogDestination="logDestination",
        )
        made = cloud.client("ec2", inputs).create_flow_logs(
            ResourceIds=[inputs["vpcId"]], ResourceType="VPC", **arguments
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
        }

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_flow_logs(FlowLogIds=[id])
