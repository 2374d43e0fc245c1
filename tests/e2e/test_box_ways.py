"""Three ways to secured brokers in private subnets, in a box: a gateway that routes by the name in
TLS, an endpoint of PrivateLink in another VPC, and a VPC that is connected by peering.

HAProxy is real, with the configuration of `earshot gateway`; endpoint, balancer and peering are
doubles (`box/endpoints.py`, `box/balancers.py`, `box/other_vpc.py`). The tests go on from each
other.
"""

from __future__ import annotations

import contextlib
import copy
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from earshot.report.json import read_report
from earshot.validation.contract import Contract
from earshot.validation.result import Report
from earshot.validation.terms import Stage, Verdict
from tests.doubles.certificates import self_signed
from tests.e2e.aws_project import Project, aws_project
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.gateway import Gateway, gateway, gateway_address
from tests.e2e.box.other_vpc import OtherVpc, other_vpc
from tests.e2e.box.place import Place
from tests.e2e.box.secured import SECURITY, STATE
from tests.e2e.box.stack import RECORDS, BoxStack, passed
from tests.e2e.project import STACK

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.combination,
    pytest.mark.requires("haproxy"),
    pytest.mark.timeout(1200),
]

IDS = (1, 2, 3)
DOMAIN = "partners.test"
PATTERN, BOOTSTRAP = f"broker-{{id}}.kafka.{DOMAIN}", f"bootstrap.kafka.{DOMAIN}"
SNI_PORT, BASE = 443, 9100
BELIEVED_SECONDS = 2.0
"""After which a resolver of the box knows a change."""
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


@dataclass
class Ways:
    box: CloudBox
    stack: BoxStack
    settings: dict[str, Any]
    gateway: Gateway
    consumer: Project
    jobs: OtherVpc
    inside: Place
    laptop: Place
    """Outside, where the gateway is."""
    partner: Place
    """In the VPC of the endpoint."""
    job: Place
    """In the VPC that is connected."""
    folder: Path

    @property
    def validator(self) -> Path:
        """The properties by which earshot itself logs in."""
        return self.stack.project.folder / STATE / "kafka" / "security" / "validator.properties"

    @property
    def configuration(self) -> str:
        """HAProxy's, as a user gets it."""
        command = [sys.executable, "-m", "earshot", "gateway", "--stack", STACK]
        done = subprocess.run(
            command, cwd=self.stack.project.folder, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def contract(self, listener: str) -> Contract:
        """What clients of one way have."""
        if listener == LINKED:
            return Contract.model_validate(self.consumer.outputs()["contract"])
        return self.stack.contract().with_listeners([listener])

    def asked(self, command: str, place: Place, listener: str, *words: str) -> Report:
        """The report of `earshot doctor` or `earshot validate` at ``place``."""
        contract = self.folder / f"{command}-contract.json"
        contract.write_text(self.contract(listener).to_json())
        return self.run(command, place, "--contract", str(contract), *words)

    def run(self, command: str, place: Place, *words: str) -> Report:
        """The same of what ``words`` name."""
        report = self.folder / f"{command}-report.json"
        validator = (
            self.stack.project.folder / STATE / "kafka" / "security" / "validator.properties"
        )
        called = place.command(
            sys.executable, "-m", "earshot", command, "--client-config", str(validator),
            "--output", str(report), "--force", *words,
        )  # fmt: skip
        done = subprocess.run(called, capture_output=True, text=True, timeout=400)
        assert done.returncode in (0, 1, 3), done.stderr
        return read_report(report.read_bytes(), report.name)

    def failures(self, place: Place, listener: str, *words: str) -> dict[int, tuple[Any, str]]:
        """By broker, the stage at which the doctor fails, and the cause."""
        return {
            cell.broker: (cell.failed_stage, cell.cause.kind if cell.cause else "")
            for cell in self.asked("doctor", place, listener, *words).cells
            if cell.verdict is not Verdict.PASS
        }

    def refused(self, **settings: Any) -> str:
        """What the preview of the stack with other ``settings`` says; it must fail."""
        self.stack.configure({**self.settings, **settings})
        try:
            return " ".join(self.stack.project.fails(command="preview").split())
        finally:
            self.stack.configure(self.settings)

    @contextlib.contextmanager
    def misconfigured(self, configuration: str) -> Iterator[None]:
        """The gateway with another ``configuration``."""
        self.gateway.start(configuration, SNI_PORT)
        try:
            yield
        finally:
            self.gateway.start(self.configuration, SNI_PORT)


def public_names(box: CloudBox, address: str) -> None:
    """A wildcard that leads to the gateway, as its owner makes it."""
    record = {"Name": f"*.kafka.{DOMAIN}", "Type": "A", "TTL": 60}
    change = {**record, "ResourceRecords": [{"Value": address}]}
    box.server.client("route53").change_resource_record_sets(
        HostedZoneId=box.public_zone(DOMAIN),
        ChangeBatch={"Changes": [{"Action": "CREATE", "ResourceRecordSet": change}]},
    )


def consumed(box: CloudBox, partner: OtherVpc, outputs: dict[str, Any], folder: Path) -> Project:
    """A stack with an endpoint in the VPC ``partner``."""
    made = aws_project(folder, box.server, name="consumer")
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
    made.write(CONSUMER)
    made.up()
    return made


@pytest.fixture(scope="module")
def ways(box: CloudBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    folder = tmp_path_factory.mktemp("ways")
    with contextlib.ExitStack() as made:
        partner = made.enter_context(other_vpc(box, "partner"))
        jobs = made.enter_context(other_vpc(box, "jobs"))
        sni = made.enter_context(gateway(box, folder))
        public_names(box, sni.outside)
        settings = cluster(box, jobs, jobs.peer())
        stack = box.stack(folder / "stack")
        stack.configure(settings)
        stack.up()
        made.callback(stack.destroy)
        consumer = consumed(box, partner, stack.project.outputs(), folder / "consumer")
        made.callback(consumer.destroy)
        box.settle()
        inside, laptop, client, job = (
            made.enter_context(it)
            for it in (box.place("inside"), box.place("outside"), partner.place(), jobs.place())
        )
        places = (inside, laptop, client, job)
        found = Ways(box, stack, settings, sni, consumer, jobs, *places, folder)
        sni.start(found.configuration, SNI_PORT)
        yield found


def test_the_matrix_passes_from_every_vantage(ways: Ways) -> None:
    sides = {
        "vpc": (ways.inside, INTERNAL),
        "jobs": (ways.job, INTERNAL),
        "outside": (ways.laptop, NAMED),
        "partner": (ways.partner, LINKED),
    }
    for vantage, (place, listener) in sides.items():
        report = ways.asked("validate", place, listener, "--vantage", vantage, *RECORDS)
        assert passed(report) == {(vantage, listener, id) for id in IDS}
        assert {it.verdict for it in report.delivery} == {Verdict.PASS}
    assert "unchanged" in ways.stack.up("--expect-no-changes")
    assert "unchanged" in ways.consumer.up("--expect-no-changes")


def test_each_way_is_for_its_own_clients(ways: Ways) -> None:
    broker = f"broker-1.{ZONE}"
    assert ways.job.lookup(broker) and ways.job.opens(broker, 19092)
    for place in (ways.laptop, ways.partner):
        assert place.lookup(broker) == []
    (address,) = ways.inside.lookup(broker)
    assert not ways.job.opens(address, 9094) and not ways.job.opens(address, 9095)
    assert not ways.partner.opens(address, 19092), "an endpoint is no route"


def test_a_name_that_leads_to_another_broker_is_named(ways: Ways) -> None:
    two, three = (PATTERN.format(id=id) for id in (2, 3))
    crossed = ways.configuration.replace(
        f"{NAMED}-2 if {{ req.ssl_sni -i {two} }}", f"{NAMED}-3 if {{ req.ssl_sni -i {two} }}"
    )
    assert crossed != ways.configuration and three in crossed
    with ways.misconfigured(crossed):
        assert ways.failures(ways.laptop, NAMED) == {2: (Stage.SECURITY, "misrouted")}
    assert ways.failures(ways.laptop, NAMED) == {}


def test_a_name_that_the_gateway_does_not_know_is_named(ways: Ways) -> None:
    lines = ways.configuration.splitlines(keepends=True)
    without = [it for it in lines if f"-i {PATTERN.format(id=3)}" not in it]
    assert len(without) == len(lines) - 1
    with ways.misconfigured("".join(without)):
        assert ways.failures(ways.laptop, NAMED) == {3: (Stage.SECURITY, "protocol")}


def test_a_name_that_no_certificate_has_is_named(ways: Ways) -> None:
    alias = f"kafka.kafka.{DOMAIN}"
    known = f"use_backend {NAMED}-bootstrap if {{ req.ssl_sni -i "
    with ways.misconfigured(
        ways.configuration.replace(known, f"{known}{alias} }}\n    {known}", 1)
    ):
        # without a contract, only the properties have the protocol
        client = ways.folder / "alias.properties"
        client.touch(mode=0o600)
        client.write_text(f"{ways.validator.read_text()}\nsecurity.protocol=SASL_SSL\n")
        words = ("--bootstrap", f"{alias}:{SNI_PORT}", "--client-config", str(client))
        report = ways.run("doctor", ways.laptop, *words)
    (cell,) = report.cells
    assert cell.cause is not None and cell.cause.kind == "certificate-name"


def test_tls_that_ends_at_the_gateway_is_named_and_refused(ways: Ways, tmp_path: Path) -> None:
    names = ",".join(f"DNS:{it}" for it in (*(PATTERN.format(id=id) for id in IDS), BOOTSTRAP))
    pem = self_signed(tmp_path, names)
    lines = [it for it in ways.configuration.splitlines() if "tcp-request" not in it]
    ended = [f"{it} ssl verify none" if it.strip().startswith("server ") else it for it in lines]
    text = "\n".join(ended).replace("req.ssl_sni", "ssl_fc_sni") + "\n"
    with ways.misconfigured(text.replace(f"bind :{SNI_PORT}", f"bind :{SNI_PORT} ssl crt {pem}")):
        found = ways.failures(ways.laptop, NAMED)
    assert set(found.values()) == {(Stage.SECURITY, "certificate-untrusted")}
    said = ways.refused(listeners=with_address(ways, path={"ends_tls": True}))
    assert "KL024" in said and "its forwarder ends TLS" in said


def with_address(ways: Ways, **changes: Any) -> list[dict[str, Any]]:
    """The listeners, of which NAMED has other keys of `address`."""
    listeners: list[dict[str, Any]] = copy.deepcopy(ways.settings["listeners"])
    listeners[-1]["address"] |= changes
    return listeners


def test_names_and_ports_that_cannot_work_are_refused_in_the_preview(ways: Ways) -> None:
    said = ways.refused(listeners=with_address(ways, pattern=f"brokers.kafka.{DOMAIN}"))
    assert "allowed: a name with {id}" in said
    said = ways.refused(listeners=with_address(ways, pattern="broker-{id}.nowhere.test"))
    assert "KL011" in said and "broker-1.nowhere.test" in said


def test_without_a_private_zone_the_endpoints_names_do_not_resolve(ways: Ways) -> None:
    route53, name = ways.box.server.client("route53"), f"kafka.{ZONE}."
    zone = next(it for it in route53.list_hosted_zones()["HostedZones"] if it["Name"] == name)
    listed = route53.list_resource_record_sets(HostedZoneId=zone["Id"])["ResourceRecordSets"]
    (record,) = [it for it in listed if it["Type"] == "A"]
    for action, expected in (("DELETE", {"unresolvable"}), ("CREATE", set())):
        changes = [{"Action": action, "ResourceRecordSet": record}]
        route53.change_resource_record_sets(
            HostedZoneId=zone["Id"], ChangeBatch={"Changes": changes}
        )
        time.sleep(BELIEVED_SECONDS)
        found = ways.failures(ways.partner, LINKED)
        assert {cause for _, cause in found.values()} == expected


def test_a_port_that_the_endpoint_lacks_is_named(ways: Ways) -> None:
    ec2 = ways.box.server.client("ec2")
    (endpoint,) = [
        it
        for it in ec2.describe_vpc_endpoints()["VpcEndpoints"]
        if it["VpcEndpointType"] == "Interface"
    ]
    group = endpoint["Groups"][0]["GroupId"]
    (held,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    (rule,) = held["IpPermissions"]
    fewer = {**rule, "ToPort": BASE + 2}
    for gone, new in ((rule, fewer), (fewer, rule)):
        ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[gone])
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[new])
        ways.box.settle()
        expected = {3: (Stage.TCP, "timeout")} if new is fewer else {}
        assert ways.failures(ways.partner, LINKED) == expected


def test_a_missing_route_between_vpcs_is_named_and_refused(ways: Ways) -> None:
    ways.jobs.cut()
    ways.box.settle()
    found = ways.failures(ways.job, INTERNAL)
    assert set(found.values()) == {(Stage.TCP, "timeout")}
    connected = ways.settings["connected"]
    said = ways.refused(connected={"jobs": {**connected["jobs"], "routed": False}})
    assert "KL026" in said and "no routes lead to" in said


def test_a_missing_route_back_is_named(ways: Ways) -> None:
    """Connections leave, and answers do not come: the same for a client."""
    ways.jobs.restore(ways.settings["connected"]["jobs"]["peering"])
    ways.box.settle()
    assert ways.failures(ways.job, INTERNAL) == {}
    back = ways.jobs.routes_back()
    ec2 = ways.box.server.client("ec2")
    for table in back:
        ec2.delete_route(RouteTableId=table, DestinationCidrBlock=str(ways.jobs.wire.range))
    ways.box.settle()
    found = ways.failures(ways.job, INTERNAL)
    assert set(found.values()) == {(Stage.TCP, "timeout")}
    ways.stack.up("--refresh")  # which makes the routes of the stack again
    ways.box.settle()
    assert ways.failures(ways.job, INTERNAL) == {}


def test_a_zone_that_is_not_associated_is_named_and_refused(ways: Ways) -> None:
    connected = ways.settings["connected"]
    said = ways.refused(connected={"jobs": {**connected["jobs"], "associate": False}})
    assert "KL026" in said and f"private zone {ZONE} is not associated" in said
    route53 = ways.box.server.client("route53")
    zone = next(
        it["Id"] for it in route53.list_hosted_zones()["HostedZones"] if it["Name"] == f"{ZONE}."
    )
    vpc = {"VPCRegion": ways.box.server.client("ec2").meta.region_name, "VPCId": ways.jobs.id}
    route53.disassociate_vpc_from_hosted_zone(HostedZoneId=zone, VPC=vpc)
    time.sleep(BELIEVED_SECONDS)
    found = ways.failures(ways.job, INTERNAL)
    assert set(found.values()) == {(Stage.RESOLVE, "unresolvable")}
    route53.associate_vpc_with_hosted_zone(HostedZoneId=zone, VPC=vpc)
    time.sleep(BELIEVED_SECONDS)
    assert ways.failures(ways.job, INTERNAL) == {}
