"""Four ways to secured brokers in private subnets, in a box: a gateway that routes by the name in
TLS, an endpoint of PrivateLink in another VPC, a VPC that is connected by peering, and a tunnel
through a bastion.

HAProxy and sshd are real, with the configuration of `earshot gateway`; endpoint, balancer and
peering are doubles (`box/endpoints.py`, `box/balancers.py`, `box/other_vpc.py`). The tests go on
from each other.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from earshot.listeners.properties import read_properties
from earshot.validation.client import translate
from earshot.validation.terms import Stage, Verdict
from tests.doubles.certificates import self_signed
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.stack import RECORDS, passed_cells
from tests.e2e.box.ways import (
    BASE,
    BELIEVED_SECONDS,
    BOOTSTRAP,
    DOMAIN,
    IDS,
    INTERNAL,
    LINKED,
    NAMED,
    PATTERN,
    SNI_PORT,
    ZONE,
    Ways,
    deployed_ways,
)
from tests.e2e.distant_producer import DistantProducer
from tests.e2e.steady_producer import assert_all_read
from tests.e2e.tunnels import Laptop, java_reads, java_writes, kafkajs

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.combination,
    pytest.mark.requires("haproxy"),
    pytest.mark.timeout(1200),
]


START_SESSION = """
import json, socket, subprocess, sys, time
given = json.loads(sys.argv[sys.argv.index("--parameters") + 1])
way = ":".join(given[it][0] for it in ("localPortNumber", "host", "portNumber"))
with subprocess.Popen(["ssh", "-N", "-L", f"127.0.0.1:{way}", "bastion"]) as ssh:
    while ssh.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", int(given["localPortNumber"][0]))).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    print("Waiting for connections...", flush=True)
"""
BACK_SECONDS = 90.0
"""Maximum seconds until a killed broker serves again."""


@pytest.fixture(scope="module")
def ways(box: CloudBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    with deployed_ways(box, tmp_path_factory.mktemp("ways")) as new_ways:
        yield new_ways


def test_the_matrix_passes_from_every_vantage(ways: Ways) -> None:
    sides = {
        "vpc": (ways.inside, INTERNAL),
        "jobs": (ways.job, INTERNAL),
        "outside": (ways.laptop, NAMED),
        "partner": (ways.partner, LINKED),
    }
    for vantage, (place, listener) in sides.items():
        report = ways.report_at("validate", place, listener, "--vantage", vantage, *RECORDS)
        assert passed_cells(report) == {(vantage, listener, id) for id in IDS}
        assert {delivery.verdict for delivery in report.delivery} == {Verdict.PASS}
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
    second_name, third_name = (PATTERN.format(id=id) for id in (2, 3))
    crossed_configuration = ways.configuration.replace(
        f"{NAMED}-2 if {{ req.ssl_sni -i {second_name} }}",
        f"{NAMED}-3 if {{ req.ssl_sni -i {second_name} }}",
    )
    assert crossed_configuration != ways.configuration and third_name in crossed_configuration
    with ways.with_configuration(crossed_configuration):
        assert ways.failures(ways.laptop, NAMED) == {2: (Stage.SECURITY, "misrouted")}
    assert ways.failures(ways.laptop, NAMED) == {}


def test_a_name_that_the_gateway_does_not_know_is_named(ways: Ways) -> None:
    lines = ways.configuration.splitlines(keepends=True)
    without = [line for line in lines if f"-i {PATTERN.format(id=3)}" not in line]
    assert len(without) == len(lines) - 1
    with ways.with_configuration("".join(without)):
        assert ways.failures(ways.laptop, NAMED) == {3: (Stage.SECURITY, "protocol")}


def test_a_name_that_no_certificate_has_is_named(ways: Ways) -> None:
    alias = f"kafka.kafka.{DOMAIN}"
    configuration_line = f"use_backend {NAMED}-bootstrap if {{ req.ssl_sni -i "
    with ways.with_configuration(
        ways.configuration.replace(
            configuration_line, f"{configuration_line}{alias} }}\n    {configuration_line}", 1
        )
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
    names = ",".join(f"DNS:{name}" for name in (*(PATTERN.format(id=id) for id in IDS), BOOTSTRAP))
    pem = self_signed(tmp_path, names)
    lines = [line for line in ways.configuration.splitlines() if "tcp-request" not in line]
    lines_without_tls = [
        f"{line} ssl verify none" if line.strip().startswith("server ") else line for line in lines
    ]
    text = "\n".join(lines_without_tls).replace("req.ssl_sni", "ssl_fc_sni") + "\n"
    with ways.with_configuration(
        text.replace(f"bind :{SNI_PORT}", f"bind :{SNI_PORT} ssl crt {pem}")
    ):
        failures = ways.failures(ways.laptop, NAMED)
    assert set(failures.values()) == {(Stage.SECURITY, "certificate-untrusted")}
    output = ways.refusal(listeners=with_address(ways, path={"ends_tls": True}))
    assert "KL024" in output and "its forwarder ends TLS" in output


def with_address(ways: Ways, **changes: Any) -> list[dict[str, Any]]:
    """The listeners, of which NAMED has other keys of `address`."""
    listeners: list[dict[str, Any]] = copy.deepcopy(ways.settings["listeners"])
    listeners[-1]["address"] |= changes
    return listeners


def test_names_and_ports_that_cannot_work_are_refused_in_the_preview(ways: Ways) -> None:
    output = ways.refusal(listeners=with_address(ways, pattern=f"brokers.kafka.{DOMAIN}"))
    assert "allowed: a name with {id}" in output
    output = ways.refusal(listeners=with_address(ways, pattern="broker-{id}.nowhere.test"))
    assert "KL011" in output and "broker-1.nowhere.test" in output


def test_without_a_private_zone_the_endpoints_names_do_not_resolve(ways: Ways) -> None:
    route53, name = ways.box.server.client("route53"), f"kafka.{ZONE}."
    zone = next(
        hosted_zone
        for hosted_zone in route53.list_hosted_zones()["HostedZones"]
        if hosted_zone["Name"] == name
    )
    record_sets = route53.list_resource_record_sets(HostedZoneId=zone["Id"])["ResourceRecordSets"]
    (record,) = [record_set for record_set in record_sets if record_set["Type"] == "A"]
    for action, expected in (("DELETE", {"unresolvable"}), ("CREATE", set())):
        changes = [{"Action": action, "ResourceRecordSet": record}]
        route53.change_resource_record_sets(
            HostedZoneId=zone["Id"], ChangeBatch={"Changes": changes}
        )
        time.sleep(BELIEVED_SECONDS)
        failures = ways.failures(ways.partner, LINKED)
        assert {cause for _, cause in failures.values()} == expected


def test_a_port_that_the_endpoint_lacks_is_named(ways: Ways) -> None:
    ec2 = ways.box.server.client("ec2")
    (endpoint,) = [
        vpc_endpoint
        for vpc_endpoint in ec2.describe_vpc_endpoints()["VpcEndpoints"]
        if vpc_endpoint["VpcEndpointType"] == "Interface"
    ]
    group = endpoint["Groups"][0]["GroupId"]
    (security_group,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    (rule,) = security_group["IpPermissions"]
    narrow_rule = {**rule, "ToPort": BASE + 2}
    for old_rule, new_rule in ((rule, narrow_rule), (narrow_rule, rule)):
        ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[old_rule])
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[new_rule])
        ways.box.settle()
        expected = {3: (Stage.TCP, "timeout")} if new_rule is narrow_rule else {}
        assert ways.failures(ways.partner, LINKED) == expected


def test_a_missing_route_between_vpcs_is_named_and_refused(ways: Ways) -> None:
    ways.jobs.cut()
    ways.box.settle()
    failures = ways.failures(ways.job, INTERNAL)
    assert set(failures.values()) == {(Stage.TCP, "timeout")}
    connected_vpcs = ways.settings["connected"]
    output = ways.refusal(connected={"jobs": {**connected_vpcs["jobs"], "routed": False}})
    assert "KL026" in output and "no routes lead to" in output


def test_a_missing_route_back_is_named(ways: Ways) -> None:
    """Connections leave, and answers do not come: the same for a client."""
    ways.jobs.restore(ways.settings["connected"]["jobs"]["peering"])
    ways.box.settle()
    assert ways.failures(ways.job, INTERNAL) == {}
    routes = ways.jobs.routes_back()
    ec2 = ways.box.server.client("ec2")
    for table in routes:
        ec2.delete_route(RouteTableId=table, DestinationCidrBlock=str(ways.jobs.wire.range))
    ways.box.settle()
    failures = ways.failures(ways.job, INTERNAL)
    assert set(failures.values()) == {(Stage.TCP, "timeout")}
    ways.stack.up("--refresh")  # which makes the routes of the stack again
    ways.box.settle()
    assert ways.failures(ways.job, INTERNAL) == {}


def test_a_zone_that_is_not_associated_is_named_and_refused(ways: Ways) -> None:
    connected_vpcs = ways.settings["connected"]
    output = ways.refusal(connected={"jobs": {**connected_vpcs["jobs"], "associate": False}})
    assert "KL026" in output and f"private zone {ZONE} is not associated" in output
    route53 = ways.box.server.client("route53")
    zone = next(
        hosted_zone["Id"]
        for hosted_zone in route53.list_hosted_zones()["HostedZones"]
        if hosted_zone["Name"] == f"{ZONE}."
    )
    vpc = {"VPCRegion": ways.box.server.client("ec2").meta.region_name, "VPCId": ways.jobs.id}
    route53.disassociate_vpc_from_hosted_zone(HostedZoneId=zone, VPC=vpc)
    time.sleep(BELIEVED_SECONDS)
    failures = ways.failures(ways.job, INTERNAL)
    assert set(failures.values()) == {(Stage.RESOLVE, "unresolvable")}
    route53.associate_vpc_with_hosted_zone(HostedZoneId=zone, VPC=vpc)
    time.sleep(BELIEVED_SECONDS)
    assert ways.failures(ways.job, INTERNAL) == {}


def test_a_tunnel_carries_three_libraries_while_a_broker_restarts(
    ways: Ways, tmp_path: Path
) -> None:
    """Java, librdkafka and KafkaJS, each with the brokers' own names in TLS."""
    address = ways.inside.lookup(f"broker-2.{ZONE}")[0]
    assert not ways.laptop.opens(address, 19092), "no way leads there but the tunnel"
    laptop, file = ways.laptop_with_ssh(), ways.client("app", INTERNAL)
    through = functools.partial(laptop.tunnelled, INTERNAL)
    properties = read_properties(file.read_text()).values
    client, bootstrap = translate(properties), properties["bootstrap.servers"]
    client_file = tmp_path / "client.json"
    client_file.write_text(json.dumps({**client, "bootstrap.servers": bootstrap}))
    topic = "app-tunnel"
    with DistantProducer(through, client_file, topic) as producer:
        assert failed_brokers(ways, laptop) == set()
        words = [word for key, value in client.items() for word in ("-X", f"{key}={value}")]
        assert "3 brokers" in laptop.output_of(through("kcat", "-L", "-b", bootstrap, *words))
        java_settings = (
            f"bootstrap.servers={bootstrap}",
            "acks=all",
            "--producer.config",
            str(file),
        )
        assert "3000 records sent" in laptop.output_of(
            through(*java_writes(topic, 3000, java_settings))
        )
        words = ["--consumer.config", str(file), "--group", f"{topic}-java"]
        read = laptop.output_of(through(*java_reads(topic, 3000, bootstrap, *words)))
        assert len(read.splitlines()) == 3000
        pem = Path(client["ssl.certificate.location"]).read_text()
        identity = {"ca": [client["ssl.ca.pem"]], "cert": pem, "key": pem}
        settings = json.dumps({"brokers": bootstrap.split(","), "ssl": identity})
        script = str(kafkajs(tmp_path))
        assert "read 300" in laptop.output_of(through("node", script, settings, topic))

        broker = ways.box.instances()["test-broker-2"]
        broker.run("systemctl", "kill", "--signal=KILL", "kafka")
        end = time.monotonic() + BACK_SECONDS
        while failed_brokers(ways, laptop):
            assert time.monotonic() < end, "broker 2 is not back"
    assert broker.show("kafka", "NRestarts") == "1"
    assert producer.failed == [] and len(producer.acknowledged) == producer.sent > 0
    assert_all_read(producer.acknowledged, producer.records)


def failed_brokers(ways: Ways, laptop: Laptop, via: str = "ssh://bastion") -> set[int]:
    """The brokers that do not pass from the laptop, by the doctor in a tunnel."""
    wrap = functools.partial(laptop.tunnelled, INTERNAL, via=via)
    report = ways.report_by("doctor", wrap, "--contract", str(laptop.contract))
    assert {cell.broker for cell in report.cells} == {*IDS}
    return {cell.broker for cell in report.cells if cell.verdict is not Verdict.PASS}


def test_a_session_of_ssm_is_a_hop_too(ways: Ways, tmp_path: Path) -> None:
    """AWS's CLI and its plugin are doubles: the port that they open is forwarded by ssh."""
    (tmp_path / "aws").write_text(f"#!{sys.executable}\n{START_SESSION}")
    for name in ("aws", "session-manager-plugin"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o755)
    laptop = ways.laptop_with_ssh()
    path = f"PATH={tmp_path}:{ways.bastion.path}:{os.environ['PATH']}"
    wrap = functools.partial(ways.laptop.command, "env", path)
    assert failed_brokers(ways, replace(laptop, wrap=wrap), "ssm:i-0123456789abcdef0") == set()


def test_a_broker_that_a_bastion_does_not_reach_is_named(ways: Ways) -> None:
    laptop = ways.laptop_with_ssh()
    words = ("--contract", str(laptop.contract), "--listener", INTERNAL)
    broker = ways.box.instances()["test-broker-3"]
    (address,) = ways.inside.lookup(f"broker-2.{ZONE}")
    broker.run("systemctl", "stop", "kafka")
    with ways.bastion.with_blocked_address(address, 19092), laptop.tunnel(*words) as tunnel_output:
        assert "NOT REACHED" not in tunnel_output.partition(f"broker-2.{ZONE}")[0]
        assert f"broker-2.{ZONE}:19092  NOT REACHED: no answer within 10 s" in tunnel_output
        assert re.search(
            rf"broker-3.{ZONE}:19092  NOT REACHED: .*Connection refused", tunnel_output
        )
        assert failed_brokers(ways, laptop) == {2, 3}
    broker.run("systemctl", "start", "kafka")
    with ways.bastion.with_key_option("no-port-forwarding"):
        command = laptop.tunnelled(INTERNAL, "true")
        completed = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert completed.returncode == 2 and "no broker is reached from there" in completed.stderr
    assert "administratively prohibited" in completed.stderr
