"""Another VPC of a box: a network with its own resolver, for clients in other VPCs.

    with other_vpc(box, "jobs") as jobs:       # in moto, with a subnet in each of two zones
        jobs.peer()                            # a peering connection, and the route to the brokers
        with jobs.place() as client: ...

A packet passes between its network and that of the brokers only where the route table of the
network it comes from has a route for a peering connection: a double of peering and of Transit
Gateways by packet rules on this machine, which is the router of both networks. Each VPC has one
route table for all its subnets here. Endpoints in it are played by `endpoints.py`.
"""

from __future__ import annotations

import contextlib
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

from tests.doubles.aws.server import REGION, Moto
from tests.doubles.dns_server import dns_server
from tests.e2e.box.endpoints import Endpoints
from tests.e2e.box.ground import Wire, network
from tests.e2e.box.horizons import BoxDns, SideTable
from tests.e2e.box.place import Place, place
from tests.e2e.box.state import MotoState
from tests.e2e.images.load import client_image

if TYPE_CHECKING:
    from tests.e2e.box.cloud_box import CloudBox

ZONES = ("a", "b")


@dataclass(frozen=True)
class OtherVpc:
    box: CloudBox
    wire: Wire
    id: str
    subnets: tuple[str, ...]
    table: str
    """The id of its route table."""

    def peer(self) -> str:
        """Connects it with the brokers' VPC, with a route to it. Returns the connection's id.

        The brokers' VPC may not exist yet, and its routes are those of the stack.
        """
        ec2 = self.box.server.client("ec2")
        answer = ec2.create_vpc_peering_connection(VpcId=self.id, PeerVpcId=self.id)
        id = str(answer["VpcPeeringConnection"]["VpcPeeringConnectionId"])
        self.restore(id)
        return id

    def cut(self) -> None:
        """Removes the route from here to the brokers."""
        self.box.server.client("ec2").delete_route(**self._route)

    def restore(self, peering: str) -> None:
        """Adds the route again."""
        self.box.server.client("ec2").create_route(**self._route, VpcPeeringConnectionId=peering)

    def routes_back(self) -> list[str]:
        """The route tables with a route to this VPC."""
        tables = self.box.server.client("ec2").describe_route_tables()["RouteTables"]
        return [
            table["RouteTableId"]
            for table in tables
            for route in table["Routes"]
            if route.get("DestinationCidrBlock") == str(self.wire.range)
            and table["RouteTableId"] != self.table
        ]

    @property
    def _route(self) -> dict[str, str]:
        brokers = str(self.box.ground.vpc.range)
        return {"RouteTableId": self.table, "DestinationCidrBlock": brokers}

    def place(self) -> contextlib.AbstractContextManager[Place]:
        """A place for clients, with the network and the resolver of this VPC."""
        box = self.box
        name = f"earshot-box-{box.mark}-client-{secrets.token_hex(4)}"
        image = client_image(box.engine)
        return place(box.engine, image, box.folder, self.wire.name, self.wire.gateway, name, "")


@contextlib.contextmanager
def other_vpc(box: CloudBox, name: str) -> Iterator[OtherVpc]:
    """A VPC of moto with a network, gone at the end; endpoints in it must be gone before."""
    with contextlib.ExitStack() as cleanup:
        wire = network(box.engine, f"earshot-box-{box.mark}-{name}")
        cleanup.callback(box.engine.run, "network", "rm", wire.name)
        vpc = _create_vpc(box, wire)
        box_dns = BoxDns(box.server, wire.range, box.ground.elastic)
        cleanup.enter_context(dns_server(SideTable(box_dns, "inside"), wire.gateway, 53))
        cleanup.enter_context(routed(box, vpc))
        endpoint_containers = Endpoints(box.engine, box.server, vpc)
        cleanup.callback(endpoint_containers.close)
        box.watch.followers.append(endpoint_containers)
        cleanup.callback(box.watch.followers.remove, endpoint_containers)
        yield vpc


def _create_vpc(box: CloudBox, wire: Wire) -> OtherVpc:
    ec2 = box.server.client("ec2")
    id = ec2.create_vpc(CidrBlock=str(wire.range))["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=id, EnableDnsHostnames={"Value": True})
    subnets = tuple(
        ec2.create_subnet(
            VpcId=id, CidrBlock=str(cidr), AvailabilityZone=f"{REGION}{zone}"
        )["Subnet"]["SubnetId"]
        for zone, cidr in zip(ZONES, list(wire.range.subnets(new_prefix=24))[1:], strict=False)
    )  # fmt: skip
    (table,) = _tables(box.server, id)
    return OtherVpc(box, wire, id, subnets, table["RouteTableId"])


def _tables(server: Moto, vpc: str) -> list[Any]:
    of_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    tables: list[Any] = server.client("ec2").describe_route_tables(Filters=of_vpc)["RouteTables"]
    return tables


def peered_routes(server: Moto, vpc: IPv4Network) -> set[IPv4Network]:
    """The ranges to which a route table of the VPC with the range ``vpc`` has a route through a
    peering connection or a Transit Gateway."""
    of_range = [{"Name": "cidr", "Values": [str(vpc)]}]
    vpcs = server.client("ec2").describe_vpcs(Filters=of_range)["Vpcs"]
    return {
        IPv4Network(route["DestinationCidrBlock"])
        for description in vpcs
        for table in _tables(server, description["VpcId"])
        for route in table["Routes"]
        if route.get("VpcPeeringConnectionId") or route.get("TransitGatewayId")
    }


@dataclass
class Routes:
    """The packet rules of one other VPC, in its own chain."""

    server: Moto
    chain: str
    own_range: IPv4Network
    brokers: IPv4Network
    applied_routes: tuple[tuple[IPv4Network, IPv4Network], ...] = ()

    def follow(self, moto_state: MotoState) -> None:
        """Forwards packets according to the route tables of both VPCs."""
        ways = [(self.own_range, self.brokers), (self.brokers, self.own_range)]
        open_ways = tuple(way for way in ways if way[1] in peered_routes(self.server, way[0]))
        if open_ways == self.applied_routes:
            return
        _iptables("--flush", self.chain)
        for source, target in open_ways:
            _iptables("-A", self.chain, f"-s {source} -d {target} -j ACCEPT")
        self.applied_routes = open_ways


@contextlib.contextmanager
def routed(box: CloudBox, vpc: OtherVpc) -> Iterator[None]:
    """The VPC's packet rules, which the box keeps equal to the routes."""
    brokers, own_range = box.ground.vpc.range, vpc.wire.range
    chain = f"BOX-{secrets.token_hex(4)}"
    jump = ("DOCKER-USER", f"-j {chain}")
    # no address is translated between them, as the engine does for all that leaves a network
    accepted_traffic = [("POSTROUTING", f"-s {source} -d {target} -j ACCEPT")
             for source, target in ((own_range, brokers), (brokers, own_range))]  # fmt: skip
    routes = Routes(box.server, chain, own_range, brokers)
    with contextlib.ExitStack() as cleanup:
        _iptables("--new-chain", chain)
        cleanup.callback(_iptables, "--delete-chain", chain)
        cleanup.callback(_iptables, "--flush", chain)
        _iptables("-I", *jump)
        cleanup.callback(_iptables, "-D", *jump)
        for rule in accepted_traffic:
            _iptables("-t nat -I", *rule)
            cleanup.callback(_iptables, "-t nat -D", *rule)
        box.watch.followers.append(routes)
        cleanup.callback(box.watch.followers.remove, routes)
        yield


def _iptables(*words: str) -> None:
    command = ["iptables", "--wait", *" ".join(words).split()]
    completed = subprocess.run(command, capture_output=True, text=True)
    assert completed.returncode == 0, f"{' '.join(command)}: {completed.stderr.strip()}"
