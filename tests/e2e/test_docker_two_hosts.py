"""One cluster on two Docker hosts with networks of their own, and either engine stopped.

The brokers 1 and 3, a majority of the quorum, are on the first host, whose engine is found at a
socket; broker 2 is on the second, whose engine speaks TLS on the network. Each test leaves both up.
"""

import contextlib
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from earshot_pulumi.docker_hosts.turns import DockerHostTurnKind

from earshot.placement.standpoint import read_standpoints, to_json
from earshot.report.json import read_report
from earshot.validation.terms import Verdict
from tests.components.called import Called
from tests.doubles.dns_server import dns_server
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_hosts import Host, Network, copy_images, docker_network
from tests.e2e.docker_stack import DockerStack, docker_cluster, docker_deployment
from tests.e2e.images.load import validator_images

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

MAJORITY, MINORITY = (1, 3), (2,)
LISTENERS = {"internal": "INTERNAL", "external": "EXTERNAL"}
EVERYTHING = {(place, name, id) for place, name in LISTENERS.items() for id in (1, 2, 3)}
DOCTOR_ALONE = {"records": 0, "deadline": 180}
NO_RECORDS = ("--records", "0")
VALIDATION_SECONDS = 300
"""For a validation with a deadline of 180 s: none may hang."""

Cell = tuple[str, str, int]
"""Vantage, listener, broker."""


@dataclass
class TwoHosts:
    """The stack, and the hosts that its brokers are on."""

    stack: DockerStack
    first_host: Host
    second_host: Host

    def validate(self, *options: str) -> tuple[int, dict[Cell, dict[str, Any]]]:
        """`earshot validate --stack`, at any time: its exit code and the cells of its report."""
        command = [sys.executable, "-m", "earshot", "validate", "--stack", self.stack.stack]
        completed = subprocess.run(
            [*command, "--format", "json", *options],
            cwd=self.stack.folder,
            env=self.stack.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VALIDATION_SECONDS,
        )
        assert completed.returncode in (0, 1, 3), completed.stderr
        return completed.returncode, cells_by_key(json.loads(completed.stdout))

    def containers_on(self, host: Host) -> dict[int, dict[str, Any]]:
        """The engine's descriptions of the brokers on ``host``, by node id."""
        ids = MAJORITY if host is self.first_host else MINORITY
        names = [self.stack.names[id] for id in ids]
        return dict(zip(ids, json.loads(host.engine.run("inspect", *names)), strict=True))


def cells_by_key(report: dict[str, Any]) -> dict[Cell, dict[str, Any]]:
    return {(cell["vantage"], cell["listener"], cell["broker"]): cell for cell in report["cells"]}


def cause_by_cell(cells: dict[Cell, dict[str, Any]]) -> dict[Cell, str]:
    """The causes of the cells that failed; the others passed."""
    assert {cell["verdict"] for cell in cells.values()} <= {"pass", "fail"}, cells
    return {key: cell["cause"]["kind"] for key, cell in cells.items() if cell["verdict"] == "fail"}


def cells_of(*ids: int) -> set[Cell]:
    return {key for key in EVERYTHING if key[2] in ids}


@pytest.fixture(scope="module")
def network(docker_engine: Engine) -> Iterator[Network]:
    with docker_network() as new_network:
        yield new_network


@pytest.fixture(scope="module")
def two_hosts(
    network: Network,
    docker_engine: Engine,
    kafka_image: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[TwoHosts]:
    """Both hosts with the images, a DNS server that knows them, and the stack, up and validated."""
    folder = tmp_path_factory.mktemp("two")
    base, validator = validator_images(docker_engine)
    hosts = [network.host(folder / f"certificates-{name}") for name in ("first", "second")]
    # the stack reaches the first by its socket
    engines = [(hosts[0].engine.address, None), (hosts[1].url, str(hosts[1].certificates))]
    copy_images(docker_engine, [host.engine for host in hosts], kafka_image, validator)
    mark = secrets.token_hex(3)
    names = [f"{name}-{mark}" for name in ("first", "second")]
    table: dict[str, tuple[str, ...] | str] = {
        f"{name}.{zone}": (host.address,)
        for name, host in zip(names, hosts, strict=True)
        for zone in ("example.com", "lan.example.com")
    }
    cluster = docker_cluster(
        kafka_image,
        hosts=[
            {
                "name": name.partition("-")[0],
                "engine": engine,
                "cert_path": cert_path,
                "external": f"{name}.example.com",
                "internal": f"{name}.lan.example.com",
                "brokers": list(ids),
            }
            for name, (engine, cert_path), ids in zip(
                names, engines, (MAJORITY, MINORITY), strict=True
            )
        ],
        dns=[network.gateway],
        validator={"base": base},
        validation=DOCTOR_ALONE,
    )
    cluster["listeners"] = [
        listener for listener in cluster["listeners"] if listener["name"] != "HOST"
    ]
    pack = {"names": {"resolvers": {"external": [network.gateway]}, "timeout": 5}}
    with (
        dns_server(table, network.gateway, 53),
        docker_deployment(folder / "p", hosts[0].engine, cluster, pack) as stack,
    ):
        stack.up()
        yield TwoHosts(stack, *hosts)


@contextlib.contextmanager
def stopped_engine(two_hosts: TwoHosts, host: Host) -> Iterator[None]:
    """Stops the engine of ``host`` within the block. Then starts it and its brokers again."""
    host.stop_engine()
    try:
        yield
    finally:
        host.start_engine()
    two_hosts.stack.up()


def write(stack: DockerStack, topic: str, record: str, replicas: str) -> None:
    settings = ("--config", "min.insync.replicas=1", "--replica-assignment", replicas)
    stack.kafka(1, "kafka-topics", "--create", "--topic", topic, *settings)
    stack.produce(topic, record)


def test_every_broker_is_reached_through_every_listener(two_hosts: TwoHosts) -> None:
    report = two_hosts.stack.report()
    assert {vantage["name"]: vantage["verdict"] for vantage in report["vantages"]} == dict.fromkeys(
        LISTENERS, "pass"
    )
    cells = cells_by_key(report)
    assert cells.keys() == EVERYTHING
    assert cause_by_cell(cells) == {}
    assert two_hosts.containers_on(two_hosts.first_host).keys() == {1, 3}
    assert two_hosts.containers_on(two_hosts.second_host).keys() == {2}


@pytest.mark.combination
def test_spark_proves_every_listener(two_hosts: TwoHosts) -> None:
    two_hosts.stack.cluster["validation"] = {"records": 300, "deadline": 300}
    try:
        two_hosts.stack.up()
    finally:
        two_hosts.stack.cluster["validation"] = DOCTOR_ALONE
    file = two_hosts.stack.root.parent / "report.json"
    report = read_report(file.read_bytes(), "report.json")
    assert {cell.verdict for cell in report.cells} == {Verdict.PASS}
    assert {delivery.verdict for delivery in report.delivery} == {Verdict.PASS}
    two_hosts.stack.up()


@pytest.mark.combination
def test_clients_on_the_other_host_reach_them_too(two_hosts: TwoHosts) -> None:
    """The stack's own vantages are on the first host whose engine answers."""
    vantages_file = (
        two_hosts.stack.folder / ".earshot" / "stacks" / two_hosts.stack.stack / "vantages.json"
    )
    moved_vantages = [
        place.model_copy(update={"engines": place.engines[::-1]})
        for place in read_standpoints(vantages_file)
    ]
    file = two_hosts.stack.folder / "moved.json"
    file.write_text(to_json(moved_vantages))
    code, cells = two_hosts.validate("--vantages", str(file), *NO_RECORDS)
    assert (code, cause_by_cell(cells)) == (0, {})
    assert cells.keys() == EVERYTHING


def test_a_second_update_changes_nothing(two_hosts: TwoHosts) -> None:
    output = two_hosts.stack.up()
    assert "unchanged" in output
    assert not any(word in output for word in ("created", "updated", "replaced", "deleted"))


@pytest.mark.combination
def test_an_image_that_one_host_cannot_have_stops_no_broker(two_hosts: TwoHosts) -> None:
    old_ids = {
        id: container["Id"]
        for host in (two_hosts.first_host, two_hosts.second_host)
        for id, container in two_hosts.containers_on(host).items()
    }
    image = two_hosts.stack.cluster["image"]
    half_image = image.rpartition(":")[0] + ":half"
    two_hosts.first_host.engine.run("tag", image, half_image)
    two_hosts.stack.cluster["image"] = half_image
    try:
        output = two_hosts.stack.refusal("--skip-preview")
        assert (
            f"image {half_image} on Docker host second: is missing, and its engine cannot" in output
        )
    finally:
        two_hosts.stack.cluster["image"] = image
        two_hosts.first_host.engine.run("rmi", half_image)
    new_ids = {
        id: container["Id"]
        for host in (two_hosts.first_host, two_hosts.second_host)
        for id, container in two_hosts.containers_on(host).items()
    }
    assert new_ids == old_ids


@pytest.mark.combination
def test_a_host_has_its_turn_while_the_brokers_on_the_other_are_in_sync(
    two_hosts: TwoHosts, capsys: pytest.CaptureFixture[str]
) -> None:
    """The turn is that of hosts that a stack creates. The first has two of three brokers."""
    hosts = [
        {"name": name, "engine": host.url, "cert_path": str(host.certificates)}
        for name, host in (("first", two_hosts.first_host), ("second", two_hosts.second_host))
    ]
    common_inputs = {"hosts": hosts, "arch": "x86_64", "answered": True, "seconds": 120.0}
    turn, name = Called(DockerHostTurnKind()), two_hosts.stack.names[2]

    def props(host: str, wanted_digest: str) -> dict[str, Any]:
        return {**common_inputs, "host": host, "wanted": [wanted_digest], "granted": None}

    first_host_change, second_host_change = (
        (props(host, "old"), props(host, "new")) for host in ("first", "second")
    )
    assert turn.check(*second_host_change).failures == []
    assert capsys.readouterr().out == "", "the other two go on without broker 2"
    assert turn.check(*first_host_change).failures == []
    output = capsys.readouterr().out
    assert (
        "Docker host first holds nodes 1, 3 of" in output and "the cluster has no quorum" in output
    )
    two_hosts.second_host.engine.run("stop", name)
    try:
        (refusal,) = turn.check(*first_host_change).failures
        assert f"second: container {name}: it does not run" in refusal
    finally:
        two_hosts.second_host.engine.run("start", name)
    assert turn.update(*first_host_change).outs["granted"]
    lagging_partitions = two_hosts.stack.kafka(
        1, "kafka-topics", "--describe", "--under-replicated-partitions"
    )
    assert lagging_partitions.strip() == ""


@pytest.mark.combination
def test_without_the_minority_exactly_its_brokers_fail(two_hosts: TwoHosts) -> None:
    write(two_hosts.stack, "on-second", "kept by the second", replicas="2")
    with stopped_engine(two_hosts, two_hosts.second_host):
        code, cells = two_hosts.validate(*NO_RECORDS)
        assert code == 1
        assert cells.keys() == EVERYTHING
        assert cause_by_cell(cells) == dict.fromkeys(cells_of(*MINORITY), "refused")
        refusal = two_hosts.stack.refusal()
        assert f"Docker engine at {two_hosts.second_host.url}: does not answer" in refusal
    assert cause_by_cell(cells_by_key(two_hosts.stack.report())) == {}
    assert two_hosts.stack.first_record("on-second") == "kept by the second"


@pytest.mark.combination
def test_without_the_majority_the_quorum_is_said_to_be_lost(two_hosts: TwoHosts) -> None:
    write(two_hosts.stack, "on-first", "kept by the first", replicas="1,3")
    with stopped_engine(two_hosts, two_hosts.first_host):
        start_time = time.monotonic()
        code, cells = two_hosts.validate()
        elapsed = time.monotonic() - start_time
        print(f"a lost quorum was reported after {elapsed:.0f} s")
        assert code == 1
        assert cells.keys() == EVERYTHING
        causes = cause_by_cell(cells)
        assert {causes[key] for key in cells_of(*MAJORITY)} == {"refused"}
        assert {causes[key] for key in cells_of(*MINORITY)} == {"no-quorum"}
    assert cause_by_cell(cells_by_key(two_hosts.stack.report())) == {}
    assert two_hosts.stack.first_record("on-first") == "kept by the first"
