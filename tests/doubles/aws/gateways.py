"""Doubles of aws:ec2 NatGateway and FlowLog."""

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import Ec2Kind, arguments, outputs_of, shape
from tests.doubles.aws.network import needs_gateway
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain


class NatGateway(Ec2Kind):
    """Removes the gateway's interface, too. AWS does that; moto does not."""

    kind_of_arn = "natgateway"
    shape = shape("allocationId", "subnetId", "tags", "region")
    outputs = frozenset({"associationId", "networkInterfaceId", "publicIp"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2 = cloud.client("ec2", inputs)
        subnet = ec2.describe_subnets(SubnetIds=[inputs["subnetId"]])["Subnets"][0]
        needs_gateway(cloud, subnet["VpcId"], inputs, "CreateNatGateway")
        answer = ec2.create_nat_gateway(**arguments(inputs, "allocationId", "subnetId"))
        return str(answer["NatGateway"]["NatGatewayId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        ec2 = cloud.client("ec2", state)
        for gateway in ec2.describe_nat_gateways(NatGatewayIds=[id])["NatGateways"]:
            if gateway["State"] == "deleted":
                return None
            address = outputs_of(
                gateway["NatGatewayAddresses"][0],
                "allocationId", "associationId", "networkInterfaceId", "publicIp",
            )  # fmt: skip
            return self.common(cloud, id, state, gateway) | {
                "subnetId": gateway["SubnetId"],
                **address,
            }
        return None

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        current = self.find(cloud, id, state)
        if current is None:
            return
        ec2 = cloud.client("ec2", state)
        ec2.delete_nat_gateway(NatGatewayId=id)
        if current["associationId"]:
            ec2.disassociate_address(AssociationId=current["associationId"])
        ec2.delete_network_interface(NetworkInterfaceId=current["networkInterfaceId"])


class FlowLog(Ec2Kind):
    kind_of_arn = "vpc-flow-log"
    shape = shape("vpcId", "trafficType", "logDestinationType", "logDestination", "tags", "region")
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client("ec2", inputs).create_flow_logs(
            ResourceIds=[inputs["vpcId"]],
            ResourceType="VPC",
            **arguments(inputs, "trafficType", "logDestinationType", "logDestination"),
        )
        for failure in answer["Unsuccessful"]:
            error = failure["Error"]
            raise ProviderError(f"CreateFlowLogs: {error['Code']}: {error['Message']}")
        return str(answer["FlowLogIds"][0])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        for log in cloud.client("ec2", state).describe_flow_logs(FlowLogIds=[id])["FlowLogs"]:
            return self.common(cloud, id, state, log) | outputs_of(
                log, "trafficType", "logDestinationType", "logDestination"
            )
        return None

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_flow_logs(FlowLogIds=[id])
