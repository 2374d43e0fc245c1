"""Doubles of aws:ec2 RouteTable, Route and RouteTableAssociation."""

from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import AwsKind, Ec2Kind, arguments, filters, outputs_of, shape
from tests.doubles.plugin.values import Plain

TARGETS = (
    "gatewayId", "natGatewayId", "networkInterfaceId", "vpcPeeringConnectionId", "transitGatewayId",
)  # fmt: skip


class RouteTable(Ec2Kind):
    """Routes in the inputs are the table's only ones; without them the table keeps other routes."""

    kind_of_arn = "route-table"
    shape = shape("vpcId", "tags", "region", routes=shape("cidrBlock", *TARGETS))
    in_place = frozenset({"routes"})
    computed_later = frozenset({"routes"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client("ec2", inputs).create_route_table(VpcId=inputs["vpcId"])
        return str(answer["RouteTable"]["RouteTableId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        table = _table(cloud, id, state)
        routes = [_route(route) for route in table["Routes"] if _is_ours(route)]
        state_routes = state.get("routes", [])
        is_same = sorted(routes, key=_destination) == sorted(state_routes, key=_destination)
        return self.common(cloud, id, state, table) | {
            "vpcId": table["VpcId"],
            "routes": state_routes if is_same else routes,
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        if "routes" not in inputs:
            return
        ec2 = cloud.client("ec2", inputs)
        wanted_routes = {_destination(route): route for route in inputs["routes"]}
        routes = {_destination(route): route for route in current["routes"]}
        for destination in routes.keys() - wanted_routes.keys():
            ec2.delete_route(RouteTableId=id, DestinationCidrBlock=destination)
        for destination, route in wanted_routes.items():
            if routes.get(destination) != route:
                set_route = ec2.replace_route if destination in routes else ec2.create_route
                target = arguments(route, *TARGETS)
                set_route(RouteTableId=id, DestinationCidrBlock=destination, **target)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_route_table(RouteTableId=id)


class Route(AwsKind):
    key = ("routeTableId", "destinationCidrBlock")
    shape = shape(*key, *TARGETS, "region")
    in_place = frozenset(TARGETS)

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        cloud.client("ec2", inputs).create_route(**arguments(inputs, *self.key, *TARGETS))
        return f"r-{inputs['routeTableId']}-{inputs['destinationCidrBlock']}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        for route in _table(cloud, state["routeTableId"], state)["Routes"]:
            if route.get("DestinationCidrBlock") == state["destinationCidrBlock"]:
                return {name: target or None for name, target in _targets(route).items()}
        return None

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        if any(current[name] != inputs.get(name) for name in TARGETS):
            cloud.client("ec2", inputs).replace_route(**arguments(inputs, *self.key, *TARGETS))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_route(**arguments(state, *self.key))


class RouteTableAssociation(AwsKind):
    """The id changes with the table. So a change is a replacement; the official plugin updates."""

    shape = shape("subnetId", "routeTableId", "region")

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client("ec2", inputs).associate_route_table(
            **arguments(inputs, "subnetId", "routeTableId")
        )
        return str(answer["AssociationId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        by_id = filters({"association.route-table-association-id": id})
        answer = cloud.client("ec2", state).describe_route_tables(Filters=by_id)
        for table in answer["RouteTables"]:
            for association in table["Associations"]:
                if association["RouteTableAssociationId"] == id:
                    return outputs_of(association, "routeTableId", "subnetId")
        return None

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).disassociate_route_table(AssociationId=id)

    def deletes_first(self, state: Plain, inputs: Plain) -> bool:
        """A subnet has one table."""
        return bool(state["subnetId"] == inputs["subnetId"])


def _table(cloud: Cloud, id: str, state: Plain) -> Plain:
    answer = cloud.client("ec2", state).describe_route_tables(RouteTableIds=[id])
    table: Plain = answer["RouteTables"][0]
    return table


def _is_ours(route: Plain) -> bool:
    """False for the VPC's own route, and for the routes of a gateway endpoint."""
    return route.get("GatewayId") != "local" and "DestinationCidrBlock" in route


def _route(route: Plain) -> Plain:
    targets = {name: target for name, target in _targets(route).items() if target}
    return {"cidrBlock": route["DestinationCidrBlock"], **targets}


def _targets(route: Plain) -> dict[str, Any]:
    return outputs_of(route, *TARGETS)


def _destination(route: Plain) -> str:
    return str(route["cidrBlock"])
