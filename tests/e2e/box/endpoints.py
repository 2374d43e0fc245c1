"""Interface endpoints of other VPCs of a box: containers whose kernels forward connections
to the balancer behind the endpoint service.

As with PrivateLink, its addresses are those of its network interfaces in the consumer's VPC, its
security groups admit clients there, each port of the balancer is forwarded, and the balancer sees
no client's address. The balancer's own security group lets all of them in, as
`enforceSecurityGroupInboundRulesOnPrivateLinkTraffic: off` does; moto forgets that setting. Not
played: acceptance, which moto does at once, and zones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.doubles.aws.server import Moto
from tests.e2e.box import firewall
from tests.e2e.box.balancers import inside
from tests.e2e.box.state import MotoState, endpoint_addresses
from tests.e2e.docker_engine import Engine
from tests.e2e.images.load import client_image

if TYPE_CHECKING:
    from tests.e2e.box.other_vpc import OtherVpc


@dataclass(frozen=True)
class Endpoint:
    id: str
    addresses: tuple[str, ...]
    """The addresses of its network interfaces."""
    groups: frozenset[str]
    target: str
    """An address of the balancer; empty without one."""
    ports: tuple[int, ...]
    """The ports of the balancer."""


def endpoints(server: Moto, vpc: str, moto_state: MotoState) -> tuple[Endpoint, ...]:
    """The interface endpoints in the VPC with the id ``vpc``."""
    ec2 = server.client("ec2")
    of_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    descriptions = ec2.describe_vpc_endpoints(Filters=of_vpc)["VpcEndpoints"]
    services = {
        configuration["ServiceName"]: configuration["NetworkLoadBalancerArns"]
        for configuration in ec2.describe_vpc_endpoint_service_configurations()[
            "ServiceConfigurations"
        ]
    }
    found_endpoints = []
    for description in descriptions:
        if description["VpcEndpointType"] != "Interface" or description["State"] == "deleted":
            continue
        targets = [
            balancer
            for balancer in moto_state.balancers
            if balancer.balancer.arn in services.get(description["ServiceName"], ())
        ]
        found_endpoints.append(
            Endpoint(
                description["VpcEndpointId"],
                endpoint_addresses(ec2, description),
                frozenset(group["GroupId"] for group in description["Groups"]),
                targets[0].balancer.private[0] if targets else "",
                tuple(sorted(port for balancer in targets for port in balancer.ports)),
            )
        )
    return tuple(found_endpoints)


@dataclass
class EndpointContainer:
    container: str
    pid: int
    rules: str = ""


@dataclass
class Endpoints:
    """The endpoints in one other VPC."""

    engine: Engine
    server: Moto
    vpc: OtherVpc
    _containers: dict[str, EndpointContainer] = field(default_factory=dict)

    def follow(self, moto_state: MotoState) -> None:
        """Makes the containers match moto and ``moto_state``."""
        wanted_endpoints = {
            endpoint.id: endpoint for endpoint in endpoints(self.server, self.vpc.id, moto_state)
        }
        for id in self._containers.keys() - wanted_endpoints.keys():
            self._remove(id)
        for id, endpoint in wanted_endpoints.items():
            if id not in self._containers:
                self._containers[id] = self._create_container(endpoint)
            self._apply_rules(self._containers[id], endpoint, moto_state)

    def close(self) -> None:
        """Remove all containers."""
        for id in list(self._containers):
            self._remove(id)

    def _remove(self, id: str) -> None:
        self.engine.run("rm", "--force", "--volumes", self._containers.pop(id).container)

    def _create_container(self, endpoint: Endpoint) -> EndpointContainer:
        box, wire = self.vpc.box, self.vpc.wire
        name = f"earshot-box-{box.mark}-{endpoint.id}"
        first_address, *other_addresses = endpoint.addresses
        options = (f"--name={name}", f"--network={wire.name}", f"--ip={first_address}")
        image = client_image(self.engine)
        self.engine.run("run", "--detach", "--sysctl=net.ipv4.ip_forward=1", *options, image)
        pid = int(self.engine.run("inspect", "--format={{.State.Pid}}", name))
        length = wire.range.prefixlen
        inside(pid, *(f"ip address add {address}/{length} dev eth0" for address in other_addresses))
        vpc_network = box.ground.vpc.name
        self.engine.run("network", "connect", vpc_network, name)
        address_format = f'{{{{(index .NetworkSettings.Networks "{vpc_network}").IPAddress}}}}'
        box.balancers.linked.add(
            self.engine.run("inspect", f"--format={address_format}", name).strip()
        )
        return EndpointContainer(name, pid)

    def _apply_rules(
        self, container: EndpointContainer, endpoint: Endpoint, moto_state: MotoState
    ) -> None:
        groups = [moto_state.groups[id] for id in sorted(endpoint.groups)]
        guard = firewall.packet_rules(groups, moto_state.members, self.vpc.wire.gateway)
        # its groups are about the consumer's side alone
        apart = ["-A PREROUTING ! -i eth0 -j ACCEPT", "-A POSTROUTING -j ACCEPT"]
        lines = ["*nat"]
        for address in endpoint.addresses if endpoint.target else ():
            for port in endpoint.ports:
                match = f"-d {address} -p tcp --dport {port}"
                lines.append(
                    f"-A PREROUTING {match} -j DNAT --to-destination {endpoint.target}:{port}"
                )
        lines += ["-A POSTROUTING -o eth1 -j MASQUERADE", "COMMIT"]
        rules = firewall.before_routing(guard, apart) + "\n".join(lines) + "\n"
        if rules != container.rules:
            firewall.apply(rules, container.pid)
            container.rules = rules
