"""A cloud in a box: what a moto server holds, played with containers on a Docker engine.

    with cloud_box(engine, folder) as box:
        stack = box.stack(folder / "stack")          # the real program, CLI and policy pack
        stack.configure(box.cluster(brokers=3))      # option 2 with AWS's names
        stack.up()                                   # real brokers from real user data
        report = stack.validate(folder)              # both vantages in one report

The VPC is a network with its range, an instance a container at its interface's private address that
boots the user data moto holds, unchanged; an EBS volume is a loop device that lives as long as
moto's; an Elastic IP is the instance's address on a second network; security groups are packet
rules where the instance has its network; a Network Load Balancer is a container whose kernel
forwards connections (`balancers.py`); and DNS answers on each network what that side may know.

What a test can do besides:

    box.instance("test-broker-1")      an `Instance` (run, journal, show) by its tag Name
    box.moto_state()                   moto's state now: machines with addresses and volumes
    box.place("inside")                a client's place (a context): `run(...)` in its container,
    box.place("outside")               `client` (kcat and the doctor), and `command(...)`, which
    box.place("outside", box.stranger) runs a command of this machine with the network and DNS of
                                       that side
    box.stack(folder, place)           the CLI runs in that place, and so does `prove: here`
    box.server                         moto itself; `box.archive` is served on `box.depot.url`
    box.images["…"]                    another image for the instance with that tag Name
    box.engines["…"]                   Docker's options for an instance with its own engine

Skipped: package installation (the image has every command), the metadata service (the seed and a
double around the real `aws` command), roles (moto lets everyone do everything), the way out by
NAT and gateways, IPv6. The way from the VPC to an Elastic IP is closed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earshot.listeners.terms import Scope
from earshot.placement.standpoint import CandidateEngine, Kind, Standpoint
from tests.doubles.aws.server import REGION, MotoServer, moto_server
from tests.doubles.dns_server import dns_server
from tests.e2e.box.balancers import Balancers
from tests.e2e.box.fleet import Fleet
from tests.e2e.box.ground import Ground, Wire, ground
from tests.e2e.box.horizons import BoxDns, Side, SideTable
from tests.e2e.box.place import Place, place
from tests.e2e.box.stack import BoxStack, template
from tests.e2e.box.state import MotoState, read_state
from tests.e2e.box.watch import Watch
from tests.e2e.depot import Depot
from tests.e2e.docker_engine import Engine
from tests.e2e.images.load import base_image, client_image, instance_image
from tests.e2e.instance import Instance
from tests.e2e.kafka_archive import KafkaArchive, kafka_archive
from tests.skips import lacking

SETTLE_SECONDS = 240
DNS_PORT = 53


@dataclass
class CloudBox:
    engine: Engine
    server: MotoServer
    ground: Ground
    depot: Depot
    archive: KafkaArchive
    folder: Path
    mark: str
    """Part of the name of each container and network of this box."""
    fleet: Fleet
    images: dict[str, str]
    engines: dict[str, Sequence[str]]
    watch: Watch
    balancers: Balancers

    def moto_state(self) -> MotoState:
        """moto's current state."""
        return read_state(self.server)

    def instances(self) -> dict[str, Instance]:
        """The instances that were switched on and should run, by their tag Name."""
        instances = (
            (machine.name, self.fleet.instance(machine.id))
            for machine in self.moto_state().machines.values()
            if machine.running
        )
        return {name: instance for name, instance in instances if instance is not None}

    def instance(self, name: str) -> Instance:
        """The instance with that tag Name. Waits until it is switched on."""
        self.settle()
        return self.instances()[name]

    def wire(self, side: Side) -> Wire:
        return self.ground.vpc if side == "inside" else self.ground.outside

    def place(self, side: Side, address: str = "") -> contextlib.AbstractContextManager[Place]:
        """A place for clients; outside in the office, or at an ``address`` such as a stranger's."""
        wire, name = self.wire(side), f"earshot-box-{self.mark}-client-{secrets.token_hex(4)}"
        image = client_image(self.engine)
        return place(self.engine, image, self.folder, wire.name, wire.gateway, name, address)

    @property
    def stranger(self) -> str:
        """An address outside of which no security group has a rule."""
        return str(self.ground.strangers[5])

    def standpoints(self) -> tuple[Standpoint, ...]:
        """The vantages of `earshot validate --vantages`."""
        sides: dict[Scope, Side] = {Scope.INTERNAL: "inside", Scope.EXTERNAL: "outside"}
        return tuple(
            Standpoint(
                name=scope,
                scope=scope,
                kind=Kind.CONTAINER,
                engines=(CandidateEngine(engine=self.engine.address),),
                network=self.wire(side).name,
                base=base_image(self.engine),
                dns=(self.wire(side).gateway,),
            )
            for scope, side in sides.items()
        )

    def policy(self) -> dict[str, Any]:
        """The configuration of the policy pack: the DNS servers of each scope's clients."""
        inside, outside = [self.wire("inside").gateway], [self.wire("outside").gateway]
        resolvers = {"internal": inside, "controller": inside, "external": outside}
        return {"names": {"resolvers": resolvers, "timeout": 10}}

    def cluster(self, brokers: int = 1, **settings: Any) -> dict[str, Any]:
        """The small cluster of the template for trials, with ``settings`` in place of its own."""
        return template() | {
            "brokers": brokers,
            "region": REGION,
            "vpc": {
                "cidr": str(self.ground.vpc.range),
                "zones": [f"{REGION}{letter}" for letter in "abc"],
            },
            "archive": {"url": f"{self.depot.url}/kafka.tgz", "sha512": self.archive.sha512},
            "clients": {"ranges": {"office": str(self.ground.office)}},
            "volume": {"size_gib": 1},
            "heap": "256m",
            "ready_seconds": 600,
            "prove": "later",
            "validation": {"records": 300, "deadline": 240},
            **settings,
        }

    def public_zone(self, name: str) -> str:
        """The id of the public zone ``name``, which does not belong to a stack. It is created if
        missing."""
        route53 = self.server.client("route53")
        for hosted_zone in route53.list_hosted_zones()["HostedZones"]:
            if hosted_zone["Name"] == f"{name}." and not hosted_zone["Config"].get("PrivateZone"):
                return str(hosted_zone["Id"].rpartition("/")[2])
        answer = route53.create_hosted_zone(Name=name, CallerReference=secrets.token_hex(4))
        return str(answer["HostedZone"]["Id"].rpartition("/")[2])

    def stack(self, folder: Path, place: Place | None = None) -> BoxStack:
        """A stack of the project's own program, not configured yet.

        With a ``place``, the CLI and all that it starts run there: `prove: here` is then proved
        from the outside, for example.
        """
        new_stack = BoxStack.with_empty_stack(folder, self)
        if place is not None:
            new_stack.project.wrap = place.command
        return new_stack

    def settle(self) -> None:
        """Waits until the containers match moto's state. Raises an error of the box."""
        self.watch.settle(SETTLE_SECONDS)


@contextlib.contextmanager
def cloud_box(engine: Engine, folder: Path) -> Iterator[CloudBox]:
    """An empty box. It is removed at the end, with all its containers."""
    if os.geteuid() != 0:
        lacking("a cloud in a box needs root: packet rules, loop devices, DNS on port 53")
    mark = secrets.token_hex(3)
    images: dict[str, str] = {}
    engines: dict[str, Sequence[str]] = {}
    default = instance_image(engine)
    archive = kafka_archive(folder)
    with contextlib.ExitStack() as cleanup:
        networks = cleanup.enter_context(ground(engine, mark))
        server = cleanup.enter_context(moto_server(folder, networks.vpc.gateway))
        depot = cleanup.enter_context(
            Depot(networks.vpc.gateway, {"kafka.tgz": archive.path}).open()
        )
        box_dns = BoxDns(server, networks.vpc.range, networks.elastic)
        sides: dict[Side, Wire] = {"inside": networks.vpc, "outside": networks.outside}
        for side, wire in sides.items():
            cleanup.enter_context(dns_server(SideTable(box_dns, side), wire.gateway, DNS_PORT))

        def image(name: str) -> str:
            return images.get(name, default)

        fleet = Fleet(engine, server, networks, image, mark, folder, engines)
        balancers = Balancers(engine, server, networks, client_image(engine), mark)
        watch = cleanup.enter_context(Watch(server, fleet, balancers))
        parts = (mark, fleet, images, engines, watch, balancers)
        yield CloudBox(engine, server, networks, depot, archive, folder, *parts)
