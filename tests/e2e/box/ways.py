"""A box with secured brokers in private subnets and four ways to them: a gateway that routes by the
name in TLS, an endpoint of PrivateLink in another VPC, a VPC that is connected by peering, and a
bastion for tunnels."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earshot.validation.contract import Contract
from earshot.validation.result import Report
from tests.e2e.aws_project import Project, aws_project
from tests.e2e.box.balancers import inside
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.gateway import Gateway, gateway, gateway_address, on_both_sides
from tests.e2e.box.other_vpc import OtherVpc, other_vpc
from tests.e2e.box.place import Place
from tests.e2e.box.secured import SECURITY, STATE
from tests.e2e.box.stack import BoxStack, failures, report_by
from tests.e2e.project import STACK
from tests.e2e.ssh_host import ssh_host
from tests.e2e.tunnels import Laptop

IDS = (1, 2, 3)
DOMAIN = "partners.test"
PATTERN, BOOTSTRAP = f"broker-{{id}}.kafka.{DOMAIN}", f"bootstrap.kafka.{DOMAIN}"
SNI_PORT, BASE = 443, 9100
BELIEVED_SECONDS = 2.0
"""Seconds after which a resolver of the box knows a change."""
ZONE = "kafka.internal.test"
INTERNAL, LINKED, NAMED = "INTERNAL", "LINKED", "NAMED"
CONSUMER = """
from earshot_pulumi import AwsEndpoint

endpoint = AwsEndpoint("kafka", json.load(open("inputs.json")))
pulumi.export("contract", endpoint.contract)
"""


def cluster(box: CloudBox, jobs: OtherVpc, peering: str) -> dict[str, Any]:
    """A listener for each way."""
    sni = {
        "strategy": "sni", "pattern": PATTERN, "port": SNI_PORT, "bootstrap_host": BOOTSTRAP
    }  # fmt: skip
    return box.cluster(
        len(IDS),
        security=SECURITY,
        clear_text={},
        listeners=[
            {"name": INTERNAL, "port": 19092, "scopes": ["internal"]},
            {
                "name": LINKED,
                "port": 9094,
                "scopes": ["external"],
                "address": {"strategy": "port", "base_port": BASE},
            },
            {"name": NAMED, "port": 9095, "scopes": ["external"], "address": sni},
        ],
        place="private",
        naming="zone",
        zone={"name": ZONE},
        expose={"kind": "privatelink", "acceptance": "automatic"},
        clients={"ranges": {"gateway": f"{gateway_address(box)}/32"}},
        connected={
            "jobs": {
                "id": jobs.id, "cidr": str(jobs.wire.range), "peering": peering, "routed": True
            }
        },
    )  # fmt: skip


@dataclass(frozen=True)
class Bastion:
    """A machine in the VPC with sshd at its address outside."""

    place: Place
    folder: Path
    path: Path
    """The folder with an `ssh` that knows the bastion."""

    @contextlib.contextmanager
    def with_key_option(self, option: str) -> Iterator[None]:
        """Within, the user's key has an ``option`` of sshd."""
        keys = self.folder / "authorized"
        old_text = keys.read_text()
        keys.write_text(f"{option} {old_text}")
        try:
            yield
        finally:
            keys.write_text(old_text)

    @contextlib.contextmanager
    def with_blocked_address(self, address: str, port: int) -> Iterator[None]:
        """Within, no rule of its security group allows connections to this address and port."""
        rule = f"OUTPUT -d {address} -p tcp --dport {port} -j DROP"
        inside(self.place.pid, f"iptables --wait -A {rule}")
        try:
            yield
        finally:
            inside(self.place.pid, f"iptables --wait -D {rule}")


@contextlib.contextmanager
def bastion(box: CloudBox, folder: Path) -> Iterator[Bastion]:
    """A bastion that runs until the end."""
    folder.mkdir()
    with (
        on_both_sides(box) as (place, outside),
        ssh_host(folder, {}, outside, place.command) as path,
    ):
        yield Bastion(place, folder, path)


@dataclass
class Ways:
    box: CloudBox
    stack: BoxStack
    settings: dict[str, Any]
    gateway: Gateway
    bastion: Bastion
    consumer: Project
    jobs: OtherVpc
    inside: Place
    laptop: Place
    """The place outside, where the gateway is."""
    partner: Place
    """The place in the VPC of the endpoint."""
    job: Place
    """The place in the connected VPC."""
    folder: Path

    @property
    def validator(self) -> Path:
        """The client properties of earshot itself."""
        return self.stack.project.folder / STATE / "kafka" / "security" / "validator.properties"

    @property
    def configuration(self) -> str:
        """HAProxy's configuration, as a user gets it."""
        command = [sys.executable, "-m", "earshot", "gateway", "--stack", STACK]
        completed = subprocess.run(
            command, cwd=self.stack.project.folder, capture_output=True, text=True, timeout=60
        )
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    def contract(self, listener: str) -> Contract:
        """The contract for clients of one way."""
        if listener == LINKED:
            return Contract.model_validate(self.consumer.outputs()["contract"])
        return self.stack.contract().with_listeners([listener])

    def laptop_with_ssh(self) -> Laptop:
        """A laptop outside, with the contract of INTERNAL."""
        contract = self.folder / "tunnel-contract.json"
        contract.write_text(self.contract(INTERNAL).to_json())
        path = f"PATH={self.bastion.path}:{os.environ['PATH']}"
        wrap = functools.partial(self.laptop.command, "env", path)
        return Laptop(contract, os.environ, wrap)

    def report_at(self, command: str, place: Place, listener: str, *words: str) -> Report:
        """The report of `earshot doctor` or `earshot validate` at ``place``."""
        contract = self.folder / f"{command}-contract.json"
        contract.write_text(self.contract(listener).to_json())
        return self.run(command, place, "--contract", str(contract), *words)

    def run(self, command: str, place: Place, *words: str) -> Report:
        """Like `report_at`, but with the options in ``words``."""
        return self.report_by(command, place.command, *words)

    def report_by(self, command: str, wrap: Callable[..., Sequence[str]], *words: str) -> Report:
        """Like `run`, but with the command from ``wrap``."""
        client_options = ("--client-config", str(self.validator))
        return report_by(self.folder, command, wrap, *client_options, *words)

    def client(self, user: str, listener: str) -> Path:
        """The properties of ``user``, as `earshot client` writes them."""
        file = self.folder / f"{user}.properties"
        words = ("--stack", STACK, "--user", user, "--listener", listener, "--output", str(file))
        command = [sys.executable, "-m", "earshot", "client", *words]
        folder = self.stack.project.folder
        completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
        assert completed.returncode == 0, completed.stderr
        return file

    def failures(self, place: Place, listener: str, *words: str) -> dict[int, tuple[Any, str]]:
        """The stage at which the doctor fails, and the cause, by broker."""
        return failures(self.report_at("doctor", place, listener, *words))

    def refusal(self, **settings: Any) -> str:
        """The output of the stack's preview with other ``settings``, which must fail."""
        self.stack.configure({**self.settings, **settings})
        try:
            return " ".join(self.stack.project.failed_output(command="preview").split())
        finally:
            self.stack.configure(self.settings)

    @contextlib.contextmanager
    def with_configuration(self, configuration: str) -> Iterator[None]:
        """Within, the gateway has another ``configuration``."""
        self.gateway.start(configuration, SNI_PORT)
        try:
            yield
        finally:
            self.gateway.start(self.configuration, SNI_PORT)


def add_public_names(box: CloudBox, address: str) -> None:
    """A wildcard record that resolves to the gateway."""
    record = {"Name": f"*.kafka.{DOMAIN}", "Type": "A", "TTL": 60}
    change = {**record, "ResourceRecords": [{"Value": address}]}
    box.server.client("route53").change_resource_record_sets(
        HostedZoneId=box.public_zone(DOMAIN),
        ChangeBatch={"Changes": [{"Action": "CREATE", "ResourceRecordSet": change}]},
    )


def deploy_consumer(
    box: CloudBox, partner: OtherVpc, outputs: dict[str, Any], folder: Path
) -> Project:
    """A stack with an endpoint in the VPC ``partner``."""
    project = aws_project(folder, box.server, name="consumer")
    service = outputs["endpoint_service"]
    inputs = {
        "service_name": service["service_name"],
        "zone_ids": service["zone_ids"],
        "contract": outputs["contract"],
        "vpc_id": partner.id,
        "subnets": list(partner.subnets),
        "clients": {"apps": str(partner.wire.range)},
    }
    (folder / "inputs.json").write_text(json.dumps(inputs))
    project.write(CONSUMER)
    project.up()
    return project


@contextlib.contextmanager
def deployed_ways(box: CloudBox, folder: Path) -> Iterator[Ways]:
    """The box with the deployed stack and the running gateway, removed at the end."""
    with contextlib.ExitStack() as cleanup:
        partner = cleanup.enter_context(other_vpc(box, "partner"))
        jobs = cleanup.enter_context(other_vpc(box, "jobs"))
        sni = cleanup.enter_context(gateway(box, folder))
        hop = cleanup.enter_context(bastion(box, folder / "bastion"))
        add_public_names(box, sni.outside)
        settings = cluster(box, jobs, jobs.peer())
        stack = box.stack(folder / "stack")
        stack.configure(settings)
        stack.up()
        cleanup.callback(stack.destroy)
        consumer = deploy_consumer(box, partner, stack.project.outputs(), folder / "consumer")
        cleanup.callback(consumer.destroy)
        box.settle()
        inside, laptop, client, job = (
            cleanup.enter_context(context)
            for context in (
                box.place("inside"),
                box.place("outside"),
                partner.place(),
                jobs.place(),
            )
        )
        places = (inside, laptop, client, job)
        found_ways = Ways(box, stack, settings, sni, hop, consumer, jobs, *places, folder)
        sni.start(found_ways.configuration, SNI_PORT)
        yield found_ways
