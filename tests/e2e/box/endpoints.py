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
from tests.e2e.box.state import Held, endpoint_addresses
from tests.e2e.docker_engine import Engine
from tests.e2e.images.load import client_image

if TYPE_CHECKING:
    from tests.e2e.box.other_vpc import OtherVpc


@dataclass(frozen=True)
class Endpoint:
    id: str
    addresses: tuple[str, ...]
    """Of its network interfaces."""
    groups: frozenset[str]
    target: str
    """An address of the balancer; empty while there is none."""
    ports: tuple[int, ...]
    """The balancer's."""


def endpoints(server: Moto, vpc: str, held: Held) -> tuple[Endpoint, ...]:
    """The interface endpoints in the VPC with the id ``vpc``."""
    ec2 = server.client("ec2")
    of_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    listed = ec2.describe_vpc_endpoints(Filters=of_vpc)["VpcEndpoints"]
    services = {
        configuration["ServiceName"]: configuration["NetworkLoadBalancerArns"]
        for configuration in ec2.describe_vpc_endpoint_service_configurations()[
            "ServiceConfigurations"
        ]
    }
    found = []
    for item in listed:
        if item["VpcEndpointType"] != "Interface" or item["State"] == "deleted":
            continue
        behind = [
            balancer
            for balancer in held.balancers
            if balancer.balancer.arn in services.get(item["ServiceName"], ())
        ]
        found.append(
            Endpoint(
                item["VpcEndpointId"],
                endpoint_addresses(ec2, item),
                frozenset(group["GroupId"] for group in item["Groups"]),
                behind[0].balancer.private[0] if behind else "",
                tuple(sorted(port for it in behind for port in it.ports)),
            )
        )
    return tuple(found)


@dataclass
class Played:
    container: str
    pid: int
    rules: str = ""


@dataclass
class Endpoints:
    """The endpoints in one other VPC."""

    engine: Engine
    server: Moto
    vpc: OtherVpc
    _played: dict[str, Played] = field(default_factory=dict)

    def follow(self, held: Held) -> None:
        """Do all that it takes to be as moto and ``held`` have it."""
        wanted = {endpoint.id: endpoint for endpoint in endpoints(self.server, self.vpc.id, held)}
        for id in self._played.keys() - wanted.keys():
            self._remove(id)
        for id, item in wanted.items():
            if id not in self._played:
                self._played[id] = self._made(item)
            self._ruled(self._played[id], item, held)

    def close(self) -> None:
        """Leave nothing."""
        for id in list(self._played):
            self._remove(id)

    def _remove(self, id: str) -> None:
        self.engine.run("rm", "--force", "--volumes", self._played.pop(id).container)

    def _made(self, item: Endpoint) -> Played:
        box, wire = self.vpc.box, self.vpc.wire
        name = f"earshot-box-{box.mark}-{item.id}"
        first, *others = item.addresses
        options = (f"--name={name}", f"--network={wire.name}", f"--ip={first}")
        image = client_image(self.engine)
        self.engine.run("run", "--detach", "--sysctl=net.ipv4.ip_forward=1", *options, image)
        pid = int(self.engine.run("inspect", "--format={{.State.Pid}}", name))
        length = wire.range.prefixlen
        inside(pid, *(f"ip address add {it}/{length} dev eth0" for it in others))
        wanted = box.ground.vpc.name
        self.engine.run("network", "connect", wanted, name)
        shown = f'{{{{(index .NetworkSettings.Networks "{wanted}").IPAddress}}}}'
        box.balancers.linked.add(self.engine.run("inspect", f"--format={shown}", name).strip())
        return Played(name, pid)

    def _ruled(self, played: Played, item: Endpoint, held: Held) -> None:
        groups = [held.groups[id] for id in sorted(item.groups)]
        guard = firewall.packet_rules(groups, held.members, self.vpc.wire.gateway)
        # its groups are about the consumer's side alone
        apart = ["-A PREROUTING ! -i eth0 -j ACCEPT", "-A POSTROUTING -j ACCEPT"]
        lines = ["*nat"]
        for address in item.addresses if item.target else ():
            for port in item.ports:
                match = f"-d {address} -p tcp --dport {port}"
                lines.append(f"-A PREROUTING {match} -j DNAT --to-destination {item.target}:{port}")
        lines += ["-A POSTROUTING -o eth1 -j MASQUERADE", "COMMIT"]
        rules = firewall.before_routing(guard, apart) + "\n".join(lines) + "\n"
        if rules != played.rules:
            firewall.apply(rules, played.pid)
            played.rules = rules
