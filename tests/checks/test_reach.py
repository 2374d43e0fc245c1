"""Who reaches the brokers of a plan in containers."""

from pathlib import Path
from typing import Any

from earshot.checks.reach import Reach, reach
from earshot.config.aws import AwsSpec
from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.config.local import LocalSpec
from earshot.names.machine import Machine
from earshot.placement.aws import plan_aws
from earshot.placement.docker import plan_docker
from earshot.placement.local import local_names
from earshot.placement.plan import PlacementPlan, plan
from earshot.topology.ways import Answer

AWS: dict[str, Any] = {
    "placement": "aws",
    "region": "eu-central-1",
    "brokers": 1,
    "archive": {"url": "https://archive.example/kafka_2.13-4.1.1.tgz", "sha512": "a" * 128},
    "vpc": {"cidr": "10.20.0.0/16", "zones": ["eu-central-1a", "eu-central-1b"]},
    "listeners": [
        {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
        {"name": "EXTERNAL", "port": 9092, "scopes": ["external"]},
    ],
    "clear_text": {"EXTERNAL": "a trial"},
    "place": "public",
    "clients": {"ranges": {"office": "203.0.113.0/24"}},
}
THIS_MACHINE = Machine(("127.0.0.1", "192.0.2.7"), "laptop", "127.0.1.1")
OUTSIDE = "other machines"
INSIDE, MACHINE = "containers on earshot-mine", "the Docker host"


def rows(**document: Any) -> dict[tuple[str, str], Reach]:
    spec = read_spec({"placement": "docker", **document}, "test")
    assert isinstance(spec, DockerSpec)
    return {(it.place, it.listener): it for it in reach(plan_docker(spec, "mine"))}


def test_each_place_has_a_listener_and_no_other() -> None:
    found = rows()
    answers = {key: row.answer for key, row in found.items()}
    assert answers == {
        (INSIDE, "INTERNAL"): Answer.YES,
        (INSIDE, "HOST"): Answer.NO,
        (MACHINE, "INTERNAL"): Answer.NO,
        (MACHINE, "HOST"): Answer.YES,
        (INSIDE, "EXTERNAL"): Answer.NO,
        (MACHINE, "EXTERNAL"): Answer.YES,
        (OUTSIDE, "INTERNAL"): Answer.NO,
        (OUTSIDE, "HOST"): Answer.NO,
        (OUTSIDE, "EXTERNAL"): Answer.NO,
    }
    assert list(map(str, found[MACHINE, "HOST"].addresses)) == [
        "localhost:9092", "localhost:9093", "localhost:9094"
    ]  # fmt: skip
    assert "Docker gives on its networks only" in found[MACHINE, "INTERNAL"].because


def test_brokers_on_several_hosts() -> None:
    hosts: list[dict[str, Any]] = [
        {"name": "a", "external": "203.0.113.1"},
        {"name": "b", "engine": "ssh://b", "external": "b.example.com"},
    ]
    listeners = [
        {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
        {"name": "LOCAL", "port": 9092, "scopes": ["internal"], "advertised": {1: "kafka-1"}},
    ]
    found = rows(hosts=hosts, brokers=2, listeners=listeners)
    assert {place for place, _ in found} == {
        "containers on earshot-mine of a",
        "the Docker host a",
        "containers on earshot-mine of b",
        "the Docker host b",
        "other machines",
    }
    at_home = (
        "containers on earshot-mine of a",
        "LOCAL",
    )  # kafka-1 is found, the other is not known
    for key, row in found.items():
        said = Answer.NO if row.listener == "LOCAL" and key != at_home else Answer.UNKNOWN
        assert row.answer is said, row
    why = "kafka-1 is a name that Docker gives on its networks only"
    assert found[OUTSIDE, "LOCAL"].because == why
    assert found["containers on earshot-mine of b", "LOCAL"].because == why


def test_a_name_of_the_host_is_not_known_to_be_this_machine() -> None:
    found = rows(hosts=[{"external": "kafka.example.com"}])
    for place in (INSIDE, MACHINE):
        row = found[place, "EXTERNAL"]
        assert row.answer is Answer.UNKNOWN
        assert row.because == "whether kafka.example.com is this machine"


def local_rows(external: str | None) -> dict[tuple[str, str], tuple[Answer, str]]:
    spec = read_spec({"placement": "local", "external_host": external}, "test")
    assert isinstance(spec, LocalSpec)
    names, _ = local_names(spec, THIS_MACHINE, Path("data"))
    planned = PlacementPlan(plan=plan(spec, names), names=names, notes=())
    return {(it.place, it.listener): (it.answer, it.because) for it in reach(planned)}


def test_processes_of_this_machine() -> None:
    assert local_rows(None) == {
        ("this machine", "INTERNAL"): (Answer.YES, ""),
        ("this machine", "EXTERNAL"): (Answer.YES, ""),
        ("other machines", "INTERNAL"): (
            Answer.NO,
            "the address leads to the client itself, where no broker listens",
        ),
        ("other machines", "EXTERNAL"): (
            Answer.NO,
            "EXTERNAL of node 1 listens on 127.0.1.1:9092 alone",
        ),
    }
    found = local_rows("laptop.example.com")
    assert found["this machine", "EXTERNAL"][0] is Answer.UNKNOWN
    assert found["other machines", "EXTERNAL"] == (
        Answer.UNKNOWN,
        "whether laptop.example.com leads to the brokers' machine",
    )


def aws_rows(**changed: Any) -> dict[tuple[str, str], Reach]:
    spec = read_spec({**AWS, **changed}, "test")
    assert isinstance(spec, AwsSpec)
    return {(it.place, it.listener): it for it in reach(plan_aws(spec))}


def test_instances_in_a_vpc() -> None:
    found = aws_rows()
    assert {key: (row.answer, row.because) for key, row in found.items()} == {
        ("in the VPC", "INTERNAL"): (Answer.YES, ""),
        ("in the VPC", "EXTERNAL"): (
            Answer.NO,
            "no security group opens port 9092 to 10.20.0.0/16",
        ),
        ("beyond the VPC", "INTERNAL"): (
            Answer.NO,
            "the network interface of broker-1: only the resolver of its VPC knows it",
        ),
        ("beyond the VPC", "EXTERNAL"): (Answer.YES, ""),
    }
    assert found["in the VPC", "INTERNAL"].addresses == ()


def test_a_name_that_only_dns_can_answer_is_not_known() -> None:
    listeners = [
        *AWS["listeners"][:1],
        {**AWS["listeners"][1], "advertised": {1: "kafka.example.org"}},
    ]
    row = aws_rows(listeners=listeners)["beyond the VPC", "EXTERNAL"]
    assert (row.answer, str(row.addresses[0])) == (Answer.UNKNOWN, "kafka.example.org:9092")
    assert row.because.startswith("kafka.example.org: ")


def test_whether_a_forwarder_leads_to_brokers_is_not_known() -> None:
    address = {"strategy": "port", "base_port": 9100}
    listeners = [AWS["listeners"][0], {**AWS["listeners"][1], "address": address}]
    found = aws_rows(listeners=listeners, expose="nlb")
    for place in ("in the VPC", "beyond the VPC"):
        row = found[place, "EXTERNAL"]
        assert row.answer is Answer.UNKNOWN
        assert row.because == (
            "(the balancer: not known yet) forwards to brokers, which only the validation can see"
        )


def test_each_connected_vpc_is_a_place_of_its_own() -> None:
    other = {"cidr": "10.60.0.0/16", "peering": "pcx-0123abcd"}
    connected: dict[str, dict[str, Any]] = {
        "analytics": {**other, "id": "vpc-0123abcd", "routed": True},
        "jobs": {**other, "id": "vpc-0456abcd", "cidr": "10.61.0.0/16", "associate": False},
        "labs": {**other, "id": "vpc-0789abcd", "cidr": "10.62.0.0/16"},
    }
    zone = {"name": "kafka.internal.example", "public_zone_id": "Z0123456789ABC"}
    found = aws_rows(connected=connected, naming="zone", zone=zone)
    assert {key: (row.answer, row.because) for key, row in found.items() if "VPC " in key[0]} == {
        ("in VPC analytics", "INTERNAL"): (Answer.YES, ""),
        ("in VPC analytics", "EXTERNAL"): (
            Answer.NO,
            "no security group opens port 9092 to 10.60.0.0/16",
        ),
        ("in VPC jobs", "INTERNAL"): (
            Answer.NO,
            "the private zone kafka.internal.example is not associated",
        ),
        ("in VPC jobs", "EXTERNAL"): (
            Answer.NO,
            "no security group opens port 9092 to 10.61.0.0/16",
        ),
        ("in VPC labs", "INTERNAL"): (
            Answer.UNKNOWN,
            "nothing says that routes lead to the brokers and back",
        ),
        ("in VPC labs", "EXTERNAL"): (
            Answer.NO,
            "no security group opens port 9092 to 10.62.0.0/16",
        ),
    }
    del connected["jobs"]["associate"]
    named_by_aws = aws_rows(connected=connected)["in VPC analytics", "INTERNAL"]
    assert named_by_aws.answer is Answer.UNKNOWN
    assert "only the resolver of its VPC knows it" in named_by_aws.because
