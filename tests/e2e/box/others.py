"""Brokers in a box that no stack created: containers in a VPC with records made by hand, and NAT
with another port for each broker."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earshot.validation.contract import Contract
from earshot.validation.result import Report
from earshot.validation.terms import Verdict
from tests.doubles.aws.server import REGION
from tests.e2e.aws_project import Project, aws_project
from tests.e2e.box.balancers import inside
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.gateway import on_both_sides
from tests.e2e.box.place import Place
from tests.e2e.box.stack import failures, report_by

IDS = (1, 2, 3)
ZONE, PUBLIC = "others.internal.test", "others.test"
INTERNAL, EXTERNAL, PORT = "INTERNAL", "EXTERNAL", 9094
PORTS = {1: 31001, 2: 30502, 3: 443}
"""The ports of the NAT, by broker."""
PATH = {"keeps_client_address": False, "idle_seconds": 700}
"""The NAT's handling of connections."""
START_SECONDS = 120.0
PROGRAM = """
from earshot_pulumi import Listeners

kafka = Listeners("kafka", json.load(open("inputs.json")))
pulumi.export("environment", kafka.environment)
pulumi.export("contract", kafka.contract)
"""


def name_of(id: int) -> str:
    return f"broker-{id}.{ZONE}"


@dataclass
class OtherBrokers:
    box: CloudBox
    project: Project
    nat: Place
    addresses: dict[int, str]
    """The addresses in the VPC."""
    zone: str
    """The id of the private zone."""
    places: dict[str, tuple[Place, str]]
    """The place of the clients and their listener, by vantage."""
    folder: Path

    def inputs(self, *, path: bool = True, **advertised: str) -> dict[str, Any]:
        """The inputs of `Listeners`. ``advertised`` replaces addresses of EXTERNAL, as in
        b2="name:1". Without ``path`` the inputs have no description of the forwarding."""
        external = {str(id): f"kafka.{PUBLIC}:{port}" for id, port in PORTS.items()}
        external |= {key.removeprefix("b"): address for key, address in advertised.items()}
        return {
            "vantage": "vpc",
            "nodes": {
                str(id): {"internal": name_of(id), "addresses": [address]}
                for id, address in self.addresses.items()
            },
            "listeners": [
                {"name": INTERNAL, "port": 19092, "scopes": ["internal"]},
                {
                    "name": EXTERNAL,
                    "port": PORT,
                    "scopes": ["external"],
                    "address": {"strategy": "given", **({"path": PATH} if path else {})},
                    "advertised": {id: address for id, address in external.items() if address},
                },
            ],
            "policy": self.box.policy(),
        }

    def configure(self, inputs: dict[str, Any]) -> None:
        (self.project.folder / "inputs.json").write_text(json.dumps(inputs))

    def refusal(self, **changes: Any) -> str:
        """The output of the preview with those changes of `inputs`, which must fail."""
        self.configure(self.inputs(**changes))
        try:
            return " ".join(self.project.failed_output(command="preview").split())
        finally:
            self.configure(self.inputs())

    def report_at(self, command: str, vantage: str, *words: str, listener: str = "") -> Report:
        """The report of `earshot doctor` or `earshot validate` at ``vantage``."""
        place, own_listener = self.places[vantage]
        contract = Contract.model_validate(self.project.outputs()["contract"])
        file = self.folder / f"{command}-contract.json"
        file.write_text(contract.with_listeners([listener or own_listener]).to_json())
        return report_by(self.folder, command, place.command, "--contract", str(file), *words)

    def failures(self, vantage: str) -> dict[int, tuple[Any, str]]:
        """The stage at which the doctor fails at ``vantage``, and the cause, by broker."""
        return failures(self.report_at("doctor", vantage))

    @contextlib.contextmanager
    def with_ports(self, **ports: int) -> Iterator[None]:
        """The NAT with another broker for some ports, as in b2=3; 0 is none."""
        by_port = {id: ports.get(f"b{id}", id) for id in IDS}
        self._map(by_port)
        try:
            yield
        finally:
            self._map({id: id for id in IDS})

    def _map(self, brokers: dict[int, int]) -> None:
        rules = [
            f"-A PREROUTING -p tcp --dport {PORTS[id]} -j DNAT --to {self.addresses[broker]}:{PORT}"
            for id, broker in brokers.items()
            if broker
        ]
        rules = ["-F", *rules, "-A POSTROUTING -p tcp -j MASQUERADE"]
        inside(self.nat.pid, *(f"iptables --wait -t nat {rule}" for rule in rules))

    def record(self, id: int, address: str) -> None:
        """Makes the private name of broker ``id`` resolve to ``address``."""
        _upsert_record(self.box, self.zone, name_of(id), address)


def _upsert_record(box: CloudBox, zone: str, name: str, address: str) -> None:
    record = {"Name": name, "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": address}]}
    change = {"Action": "UPSERT", "ResourceRecordSet": record}
    box.server.client("route53").change_resource_record_sets(
        HostedZoneId=zone, ChangeBatch={"Changes": [change]}
    )


def _private_zone(box: CloudBox) -> str:
    """The id of the zone in a VPC with the range of the box."""
    ec2 = box.server.client("ec2")
    id = ec2.create_vpc(CidrBlock=str(box.ground.vpc.range))["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=id, EnableDnsHostnames={"Value": True})
    answer = box.server.client("route53").create_hosted_zone(
        Name=ZONE,
        CallerReference=secrets.token_hex(4),
        HostedZoneConfig={"PrivateZone": True},
        VPC={"VPCRegion": REGION, "VPCId": id},
    )
    return str(answer["HostedZone"]["Id"])


@contextlib.contextmanager
def others(box: CloudBox, image: str, folder: Path) -> Iterator[OtherBrokers]:
    """Three running brokers with the settings of `Listeners`. They are removed at the end."""
    with contextlib.ExitStack() as cleanup:
        nat, outside = cleanup.enter_context(on_both_sides(box))
        inside(nat.pid, "sysctl -q -w net.ipv4.ip_forward=1")
        addresses = {id: str(box.ground.vpc.range[256 + 10 + id]) for id in IDS}
        zone = _private_zone(box)
        for id, address in addresses.items():
            _upsert_record(box, zone, name_of(id), address)
        _upsert_record(box, box.public_zone(PUBLIC), f"kafka.{PUBLIC}", outside)
        project = aws_project(folder / "program", box.server, name="others")
        project.write(PROGRAM)
        places = {
            "vpc": (cleanup.enter_context(box.place("inside")), INTERNAL),
            "outside": (cleanup.enter_context(box.place("outside")), EXTERNAL),
        }
        brokers = OtherBrokers(box, project, nat, addresses, zone, places, folder)
        brokers.configure(brokers.inputs())
        project.up()
        cleanup.callback(project.destroy)
        for id in IDS:
            cleanup.enter_context(_broker(brokers, id, image))
        cleanup.enter_context(brokers.with_ports())
        end = time.monotonic() + START_SECONDS
        while {cell.verdict for cell in brokers.report_at("doctor", "vpc").cells} != {Verdict.PASS}:
            assert time.monotonic() < end
        yield brokers


@contextlib.contextmanager
def _broker(other_brokers: OtherBrokers, id: int, image: str) -> Iterator[None]:
    box, vpc = other_brokers.box, other_brokers.box.ground.vpc
    name = f"earshot-box-{box.mark}-others-{id}"
    variables = other_brokers.project.outputs()["environment"][str(id)] | {
        "KAFKA_HEAP_OPTS": "-Xmx256m"
    }
    options = [f"--name={name}", f"--network={vpc.name}", f"--ip={other_brokers.addresses[id]}"]
    options += [f"--env={key}={value}" for key, value in variables.items()]
    resolver = other_brokers.places["vpc"][0].resolver
    options.append(f"--volume={resolver}:/etc/resolv.conf:ro")
    box.engine.run("run", "--detach", *options, image)
    try:
        yield
    finally:
        box.engine.run("rm", "--force", "--volumes", name)
