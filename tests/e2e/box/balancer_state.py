"""The Network Load Balancers of a moto server: addresses, ports, targets; plain data."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from tests.doubles.aws.server import Moto

Target = tuple[str, int]
"""The private address of a broker, and its port."""
_IDLE = "tcp.idle_timeout.seconds"
_CROSS_ZONE = "load_balancing.cross_zone.enabled"
_PLACES = 16
"""The number of addresses among which a balancer's is chosen, so that two balancers differ."""


@dataclass(frozen=True)
class TargetGroup:
    arn: str
    targets: tuple[Target, ...]
    check_port: int | None
    """The port of the health check; None for the target's own port."""
    interval: float
    """Seconds between two checks of a target."""
    rises: int
    """Checks in a row that make a target healthy."""
    falls: int
    """Checks in a row that make a target unhealthy."""
    cross_zone: bool
    """True if an address of the balancer also forwards to targets of other zones."""


@dataclass(frozen=True)
class Balancer:
    arn: str
    name: str
    """The DNS name that AWS assigns."""
    public: bool
    subnets: tuple[IPv4Network, ...]
    """One in each zone."""
    groups: frozenset[str]
    """Security groups."""

    @property
    def private(self) -> tuple[str, ...]:
        """The balancer's address in each subnet. It is one of the last, which no instance gets."""
        return tuple(str(subnet[-2 - self._place]) for subnet in self.subnets)

    def outside(self, elastic: IPv4Network) -> tuple[str, ...]:
        """Its public address for each subnet, of the last of the pool; none without any."""
        if not self.public:
            return ()
        first_number = 2 + self._place * len(self.subnets)
        return tuple(str(elastic[-first_number - number]) for number in range(len(self.subnets)))

    def addresses(self, elastic: IPv4Network) -> tuple[str, ...]:
        """The addresses to which its name resolves, inside and outside."""
        return self.outside(elastic) or self.private

    @property
    def _place(self) -> int:
        return zlib.crc32(self.arn.encode()) % _PLACES


@dataclass(frozen=True)
class Forwarding:
    """The forwarding rules of a balancer."""

    balancer: Balancer
    ports: Mapping[int, TargetGroup]
    idle_seconds: int
    """The shortest idle time-out of its ports."""


def balancers(server: Moto) -> tuple[Balancer, ...]:
    descriptions = server.client("elbv2").describe_load_balancers()["LoadBalancers"]
    ids = sorted(
        {
            zone["SubnetId"]
            for description in descriptions
            for zone in description["AvailabilityZones"]
        }
    )
    if not ids:
        return ()
    subnets = server.client("ec2").describe_subnets(SubnetIds=ids)["Subnets"]
    ranges = {subnet["SubnetId"]: IPv4Network(subnet["CidrBlock"]) for subnet in subnets}
    return tuple(
        Balancer(
            description["LoadBalancerArn"],
            description["DNSName"],
            description["Scheme"] == "internet-facing",
            tuple(sorted(ranges[zone["SubnetId"]] for zone in description["AvailabilityZones"])),
            frozenset(description.get("SecurityGroups", [])),
        )
        for description in descriptions
    )


def forwardings(server: Moto) -> tuple[Forwarding, ...]:
    elb = server.client("elbv2")
    return tuple(_forwarding(elb, balancer) for balancer in balancers(server))


def _forwarding(elb: Any, balancer: Balancer) -> Forwarding:
    # before the groups: a listener may be made between the two questions
    listeners = elb.describe_listeners(LoadBalancerArn=balancer.arn)["Listeners"]
    groups = {
        target_group["TargetGroupArn"]: _group(elb, target_group)
        for target_group in elb.describe_target_groups(LoadBalancerArn=balancer.arn)["TargetGroups"]
    }
    ports, idle = {}, [6000]
    for listener in listeners:
        group = groups.get(listener["DefaultActions"][0]["TargetGroupArn"])
        if group is None:
            continue  # it has gone since
        ports[int(listener["Port"])] = group
        attributes = elb.describe_listener_attributes(ListenerArn=listener["ListenerArn"])[
            "Attributes"
        ]
        idle += [int(attribute["Value"]) for attribute in attributes if attribute["Key"] == _IDLE]
    return Forwarding(balancer, ports, min(idle))


def _group(elb: Any, description: Any) -> TargetGroup:
    arn, port = description["TargetGroupArn"], description["HealthCheckPort"]
    health = elb.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
    attributes = elb.describe_target_group_attributes(TargetGroupArn=arn)["Attributes"]
    return TargetGroup(
        arn,
        tuple(sorted((target["Target"]["Id"], int(target["Target"]["Port"])) for target in health)),
        None if port == "traffic-port" else int(port),
        float(description["HealthCheckIntervalSeconds"]),
        int(description["HealthyThresholdCount"]),
        int(description["UnhealthyThresholdCount"]),
        any(
            attribute["Key"] == _CROSS_ZONE and attribute["Value"] == "true"
            for attribute in attributes
        ),
    )


def address_rules(
    forwarding: Forwarding, elastic: IPv4Network, healthy: Callable[[TargetGroup, Target], bool]
) -> str:
    """The input of `iptables-restore`: each address and port is forwarded to targets in turn.

    As with a Network Load Balancer, a group without a healthy target uses all of them, and brokers
    see the balancer's address.
    """
    lines = ["*nat"]
    balancer = forwarding.balancer
    public = balancer.outside(elastic)
    for number, subnet in enumerate(balancer.subnets):
        for address in (balancer.private[number], *public[number : number + 1]):
            for port, group in sorted(forwarding.ports.items()):
                targets_in_zone = [
                    target
                    for target in group.targets
                    if group.cross_zone or _within(target, subnet)
                ]
                targets = [
                    target for target in targets_in_zone if healthy(group, target)
                ] or targets_in_zone
                lines += _in_turn(f"-d {address} -p tcp --dport {port}", targets)
    return "\n".join((*lines, "-A POSTROUTING -j MASQUERADE", "COMMIT")) + "\n"


def _within(target: Target, subnet: IPv4Network) -> bool:
    return IPv4Address(target[0]) in subnet


def _in_turn(match: str, targets: list[Target]) -> Iterator[str]:
    for number, (host, port) in enumerate(targets):
        remaining_targets = len(targets) - number
        turn = (
            f" -m statistic --mode nth --every {remaining_targets} --packet 0"
            if remaining_targets > 1
            else ""
        )
        yield f"-A PREROUTING {match}{turn} -j DNAT --to-destination {host}:{port}"
