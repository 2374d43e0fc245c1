"""Doubles of aws:ec2 RouteTable, Route and RouteTableAssociation."""

from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import AwsKind, Ec2Kind, given, shape
from tests.doubles.plugin.values import Plain

# Where a route may lead, as Pulumi names it and as EC2 does.
TARGETS = {
    "gatewayId": "GatewayId",
    "natGatewayId": "NatGatewayId",
    "networkInterfaceId": "NetworkInterfaceId",
    "vpcPeeringConnectionId": "VpcPeeringConnectionId",
    "transitGatewayId": "TransitGatewayId",
}


class RouteTable(Ec2Kind):
    """Routes given here are the table's only ones; without them it keeps what others add."""

    kind_of_arn = "route-table"
    shape = shape("vpcId", "tags", "region", routes=shape("cidrBlock", *TARGETS))
    in_place = frozenset({"routes"})
    settled_later = frozenset({"routes", "region"})
    outputs = frozenset({"arn", "ownerId", "tagsAll"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        made = cloud.client("ec2", inputs).create_route_table(VpcId=inputs["vpcId"])
        return str(made["RouteTable"]["RouteTableId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        found = _table(cloud, id, state)
        routes = [_route(item) for item in found["Routes"] if _is_ours(item)]
        known = state.get("routes", [])
        same = sorted(routes, key=_destination) == sorted(known, key=_destination)
        return self.common(cloud, id, state, found) | {
            "vpcId": found["VpcId"],
            "routes": known if same else routes,
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        if "routes" not in inputs:
            return
        ec2 = cloud.client("ec2", inputs)
        wanted = {_destination(item): item for item in inputs["routes"]}
        there = {_destination(item): item for item in found["routes"]}
        for destination in there.keys() - wanted.keys():
            ec2.delete_route(RouteTableId=id, DestinationCidrBlock=destination)
        for destination, item in wanted.items():
            if there.get(destination) != item:
                lead = ec2.replace_route if destination in there else ec2.create_route
                lead(RouteTableId=id, DestinationCidrBlock=destination, **_target(item))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_route_table(RouteTableId=id)


class Route(AwsKind):
    shape = shape("routeTableId", "destinationCidrBlock", *TARGETS, "region")
    in_place = frozenset(TARGETS)
    settled_later = frozenset({"region"})
    outputs = frozenset({"origin", "state"})
    absent = frozenset({"instanceId", "instanceOwnerId"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        cloud.client("ec2", inputs).create_route(**self._of(inputs), **_target(inputs))
        return f"r-{inputs['routeTableId']}-{inputs['destinationCidrBlock']}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        for item in _table(cloud, state["routeTableId"], state)["Routes"]:
            if item.get("DestinationCidrBlock") == state["destinationCidrBlock"]:
                targets = dict.fromkeys(TARGETS) | _route(item)
                del targets["cidrBlock"]
                return targets | {"state": item["State"], "origin": item["Origin"]}
        return None

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        if any(found[name] != inputs.get(name) for name in TARGETS):
            cloud.client("ec2", inputs).replace_route(**self._of(inputs), **_target(inputs))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_route(**self._of(state))

    def _of(self, values: Plain) -> dict[str, str]:
        return given(
            values, RouteTableId="routeTableId", DestinationCidrBlock="destinationCidrBlock"
        )


class RouteTableAssociation(AwsKind):
    """Its id changes with the table: a replacement, where the official plugin updates."""

    shape = shape("subnetId", "routeTableId", "region")
    settled_later = frozenset({"region"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        made = cloud.client("ec2", inputs).associate_route_table(
            SubnetId=inputs["subnetId"], RouteTableId=inputs["routeTableId"]
        )
        return str(made["AssociationId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        of_this = [{"Name": "association.route-table-association-id", "Values": [id]}]
        for table in cloud.client("ec2", state).describe_route_tables(Filters=of_this)[
            "RouteTables"
        ]:
            for item in table["Associations"]:
                if item["RouteTableAssociationId"] == id:
                    return {"routeTableId": table["RouteTableId"], "subnetId": item["SubnetId"]}
        return None

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).disassociate_route_table(AssociationId=id)

    def goes_first(self, state: Plain, inputs: Plain) -> bool:
        """A subnet has one table."""
        return bool(state["subnetId"] == inputs["subnetId"])


def _table(cloud: Cloud, id: str, state: Plain) -> Plain:
    found: Plain = cloud.client("ec2", state).describe_route_tables(RouteTableIds=[id])
    table: Plain = found["RouteTables"][0]
    return table


def _is_ours(item: Plain) -> bool:
    """Not the VPC's own route, nor one that a gateway endpoint keeps."""
    return item.get("GatewayId") != "local" and "DestinationCidrBlock" in item


def _route(item: Plain) -> Plain:
    targets = {name: item.get(target) for name, target in TARGETS.items()}
    targets = {name: target for name, target in targets.items() if target}
    return {"cidrBlock": item["DestinationCidrBlock"], **targets}


def _target(values: Plain) -> dict[str, Any]:
    return given(values, **{target: name for name, target in TARGETS.items()})


def _destination(route: Plain) -> str:
    return str(route["cidrBlock"])
