"""Three files that teams start from: adopted, deployed, and asked with kcat from where clients are.

Names and ports are those of the files, because what kcat prints is compared to the letter. The
two-listener and the three-listener file serve the network on BOB (29092), this machine on FRED
(9092), and others on ALICE (29094); the KRaft file publishes port 9092 as 39092.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from earshot.placement.docker import network_name
from earshot.validation.result import Cell
from earshot.validation.terms import Stage
from tests.e2e.clients import HERE, Client, client_on, kcat_listing
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_stack import DockerStack, docker_deployment, resolver_config
from tests.e2e.images.load import validator_images
from tests.e2e.outside import Outside, outside
from tests.e2e.ports import is_free
from tests.skips import lacking

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(900)]

FILES = Path(__file__).parents[1] / "adopt" / "files"
ALICE_HOST = "never-gonna-give-you-up"
ON_LOOPBACK = "LISTENER_FRED://localhost:9092"
"""FRED's bind address in the two-listener file, which is also its correct advertised address."""


@dataclass(frozen=True)
class RunningFile:
    """The stack adopted from one file, and the clients of its brokers."""

    stack: DockerStack
    inside_client: Client
    """Clients in containers on the brokers' network."""
    outside_client: Client
    """Clients in containers on another network, which reach this machine only."""

    @property
    def address(self) -> str:
        """The network settings of the broker's container. This machine has a route there."""
        return str(self._network["IPAddress"])

    @property
    def gateway(self) -> str:
        """An address of this machine, to which all containers have a route."""
        return str(self._network["Gateway"])

    @property
    def _network(self) -> dict[str, Any]:
        (id,) = self.stack.names
        networks = self.stack.inspect(id)["NetworkSettings"]["Networks"]
        network: dict[str, Any] = networks[network_name(self.stack.stack)]
        return network


Deploy = Callable[..., contextlib.AbstractContextManager[RunningFile]]


@pytest.fixture(scope="module")
def deploy(
    docker_engine: Engine,
    kafka_image: str,
    client_image: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Deploy:
    """Deploys an adopted cluster with the double of `apache/kafka`, with little memory.

    If `outside` resolves the brokers' names, Spark proves the listeners; otherwise the doctor does.
    """
    base, validator = validator_images(docker_engine)

    @contextlib.contextmanager
    def deploy_cluster(
        cluster: dict[str, Any], dns_of_broker: Outside | None = None
    ) -> Iterator[RunningFile]:
        ports = [
            port
            for listener in cluster["listeners"]
            for port in listener.get("published", {}).values()
        ]
        names = cluster["names"].values()
        _must_be_free(docker_engine, list(names), ports)
        small_cluster = cluster | {
            "image": kafka_image,
            "heap": "256m",
            "validator": {"base": base},
            "validation": {"records": 100 if dns_of_broker else 0, "deadline": 300},
        }
        dns = [dns_of_broker.address] if dns_of_broker else []
        if dns_of_broker:
            small_cluster["dns"] = dns
        config = resolver_config(dns_of_broker) if dns_of_broker else {}
        folder = tmp_path_factory.mktemp("adopted") / "p"
        with docker_deployment(folder, docker_engine, small_cluster, config) as stack:
            stack.up()
            inside_client, outside_client = (
                client_on(docker_engine, network, client_image, validator, dns)
                for network in (network_name(stack.stack), "bridge")
            )
            yield RunningFile(stack, inside_client, outside_client)

    return deploy_cluster


def _must_be_free(engine: Engine, names: Sequence[str], ports: Sequence[int]) -> None:
    """Skips if names or ports of the files are in use on this machine."""
    with contextlib.closing(engine.client()) as client:
        container_names = {
            container.name for container in client.containers.list(all=True, ignore_removed=True)
        }
    for name in container_names.intersection(names):
        lacking(f"a container {name} is there already, and the file calls its broker so")
    deadline = time.monotonic() + 60  # 39092 is one that Linux gives to clients, for a while
    for port in ports:
        while not is_free(port):
            if time.monotonic() > deadline:
                lacking(f"port {port} is taken on this machine, and the file publishes it")
            time.sleep(0.5)


def adopt(file: Path, folder: Path) -> tuple[int, str, dict[str, Any]]:
    """Runs `earshot adopt`. Returns its exit code, its output, and `earshot:cluster`."""
    stack_file = folder / "Pulumi.adopted.yaml"
    command = [sys.executable, "-m", "earshot", "adopt", str(file), "--output", str(stack_file)]
    completed = subprocess.run(command, capture_output=True, text=True)
    assert completed.stderr == ""
    cluster: dict[str, Any] = yaml.safe_load(stack_file.read_text())["config"]["earshot:cluster"]
    return completed.returncode, completed.stdout, cluster


def only_cell(client: Client, bootstrap: str) -> Cell:
    """The doctor's one cell from there: every file has one broker."""
    (cell,) = client.examine(bootstrap).cells
    return cell


def test_the_two_listener_file_as_it_is_written_is_stopped(
    docker_engine: Engine, tmp_path: Path
) -> None:
    code, adopt_output, cluster = adopt(FILES / "two_listeners.yml", tmp_path)
    finding = (
        "container kafka0, broker 0, listener LISTENER_FRED: listens on localhost:9092, which "
        "inside the container is the container alone, behind the published port"
    )
    assert code == 1
    assert (
        "container kafka0, listener LISTENER_FRED: publishes 9092->9092, and LISTENER_FRED listens "
        "on localhost:9092, which is the container alone: no client connects there [KL017]"
    ) in adopt_output
    with docker_deployment(tmp_path / "p", docker_engine, cluster, {}) as stack:
        refusal = stack.refusal("--skip-preview")
        assert stack.containers() == stack.volumes() == {}
    assert refusal.count("[KL006]") == refusal.count(finding) == 1
    assert f"{finding} 127.0.0.1:9092->9092 [KL006]" in refusal
    assert "write LISTENER_FRED://0.0.0.0:9092 into `listeners`" in refusal


@pytest.fixture(scope="class")
def two_listeners(
    deploy: Deploy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningFile]:
    folder = tmp_path_factory.mktemp("fixed")
    text = (FILES / "two_listeners.yml").read_text()
    text_before, key, text_after = text.partition("KAFKA_ADVERTISED_LISTENERS")
    text_with_bind = text_before.replace(ON_LOOPBACK, "LISTENER_FRED://0.0.0.0:9092")
    assert text_with_bind != text_before and ON_LOOPBACK in text_after
    (folder / "docker-compose.yml").write_text(text_with_bind + key + text_after)
    code, output, cluster = adopt(folder / "docker-compose.yml", folder)
    assert code == 0, output
    with deploy(cluster) as running_cluster:
        yield running_cluster


class TestTwoListeners:
    """FRED is bound to all interfaces in the Compose file, as the remedy says."""

    def test_each_port_hands_out_its_own_address(self, two_listeners: RunningFile) -> None:
        fred = kcat_listing("-1: kafka0:9092/bootstrap", "localhost:9092")
        assert two_listeners.inside_client.listing("kafka0:9092") == fred
        assert two_listeners.inside_client.listing("kafka0:29092") == kcat_listing(
            "0: kafka0:29092/0", "kafka0:29092"
        )

    @pytest.mark.requires("kcat")
    def test_each_listener_serves_its_own_clients(self, two_listeners: RunningFile) -> None:
        assert HERE.listing("localhost:9092") == kcat_listing(
            "0: localhost:9092/0", "localhost:9092"
        )
        two_listeners.inside_client.produce("kafka0:29092", "test", "from the network")
        HERE.produce("localhost:9092", "test", "from this machine")
        records = ["from the network", "from this machine"]
        assert two_listeners.inside_client.consume("kafka0:29092", "test", 2) == records
        assert HERE.consume("localhost:9092", "test", 2) == records

    def test_fred_sends_containers_to_themselves(self, two_listeners: RunningFile) -> None:
        failure = two_listeners.inside_client.failure("kafka0:9092", "test")
        assert (
            "localhost:9092/0: Connect to ipv4#127.0.0.1:9092 failed: Connection refused" in failure
        )
        cell = only_cell(two_listeners.inside_client, "kafka0:9092")
        assert (str(cell.address), cell.failed_stage) == ("localhost:9092", Stage.TCP)
        assert cell.cause is not None and cell.cause.kind == "refused"
        assert "must not advertise localhost, which leads every client to itself" in (
            cell.cause.remedy
        )

    @pytest.mark.requires("kcat")
    def test_bob_is_a_name_that_this_machine_does_not_know(
        self, two_listeners: RunningFile
    ) -> None:
        bootstrap = f"{two_listeners.address}:29092"
        assert HERE.listing(bootstrap) == kcat_listing(f"-1: {bootstrap}/bootstrap", "kafka0:29092")
        failure = HERE.failure(bootstrap, "test")
        assert (
            "Local: Host resolution failure: kafka0:29092/0: Failed to resolve 'kafka0:29092'"
            in failure
        )
        cell = only_cell(HERE, bootstrap)
        assert (str(cell.address), cell.failed_stage) == ("kafka0:29092", Stage.RESOLVE)
        assert cell.cause is not None and cell.cause.kind == "unresolvable"
        assert f"{bootstrap} answered" in cell.stages[0].detail
        assert "connect from that network, or let broker 0 advertise" in cell.cause.remedy

    def test_neither_is_for_clients_beyond_this_machine(self, two_listeners: RunningFile) -> None:
        bootstrap = f"{two_listeners.gateway}:9092"
        assert "Connection refused" in two_listeners.outside_client.refusal(bootstrap)
        cell = only_cell(two_listeners.outside_client, bootstrap)
        assert (cell.failed_stage, cell.cause and cell.cause.kind) == (Stage.TCP, "refused")


@pytest.fixture(scope="class")
def three_listeners(
    deploy: Deploy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningFile]:
    folder = tmp_path_factory.mktemp("three")
    code, output, cluster = adopt(FILES / "three_listeners.yml", folder)
    assert code == 0, output
    with outside() as outside_network:
        outside_network.call(ALICE_HOST)
        with deploy(cluster, outside_network) as running_cluster:
            yield running_cluster


class TestThreeListeners:
    """A DNS server resolves the name under which ALICE's clients reach this machine."""

    def test_each_is_proved_from_where_its_clients_stand(
        self, three_listeners: RunningFile
    ) -> None:
        cells = three_listeners.stack.report()["cells"]
        assert {
            (cell["vantage"], cell["listener"], cell["address"], cell["verdict"]) for cell in cells
        } == {
            ("internal", "LISTENER_BOB", "kafka0:29092", "pass"),
            ("host", "LISTENER_FRED", "localhost:9092", "pass"),
            ("external", "LISTENER_ALICE", f"{ALICE_HOST}:29094", "pass"),
        }
        assert {delivery["lost"] for delivery in three_listeners.stack.report()["delivery"]} == {0}

    def test_each_port_hands_out_its_own_address(self, three_listeners: RunningFile) -> None:
        bob, fred, alice = (
            three_listeners.inside_client.listing(f"kafka0:{port}") for port in (29092, 9092, 29094)
        )
        assert bob == kcat_listing("0: kafka0:29092/0", "kafka0:29092")
        assert fred == kcat_listing("-1: kafka0:9092/bootstrap", "localhost:9092")
        assert alice == kcat_listing("-1: kafka0:29094/bootstrap", f"{ALICE_HOST}:29094")

    def test_alice_serves_clients_who_know_this_machine_by_name(
        self, three_listeners: RunningFile
    ) -> None:
        bootstrap = f"{ALICE_HOST}:29094"
        assert three_listeners.outside_client.listing(bootstrap) == kcat_listing(
            f"0: {bootstrap}/0", bootstrap
        )
        assert only_cell(three_listeners.outside_client, bootstrap).cause is None

    @pytest.mark.requires("kcat")
    def test_alice_fails_those_who_do_not(self, three_listeners: RunningFile) -> None:
        bootstrap = "localhost:29094"
        assert HERE.listing(bootstrap) == kcat_listing(
            f"-1: {bootstrap}/bootstrap", f"{ALICE_HOST}:29094"
        )
        cell = only_cell(HERE, bootstrap)
        assert (str(cell.address), cell.failed_stage) == (f"{ALICE_HOST}:29094", Stage.RESOLVE)
        assert cell.cause is not None and cell.cause.kind == "unresolvable"


@pytest.fixture(scope="class")
def kraft(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFile]:
    folder = tmp_path_factory.mktemp("kraft")
    code, output, cluster = adopt(FILES / "kraft_remapped.yml", folder)
    assert code == 0, output
    with deploy(cluster) as running_cluster:
        yield running_cluster


class TestKraft:
    """One combined node, whose port on this machine is not the container's."""

    @pytest.mark.requires("kcat")
    def test_it_works_from_this_machine_and_from_the_network(self, kraft: RunningFile) -> None:
        host_bootstrap, network_bootstrap = "localhost:39092", "kafka-test:19092"
        assert HERE.listing(host_bootstrap) == kcat_listing(
            f"1: {host_bootstrap}/1", host_bootstrap, broker=1
        )
        assert kraft.inside_client.listing(network_bootstrap) == kcat_listing(
            f"1: {network_bootstrap}/1", network_bootstrap, broker=1
        )
        HERE.produce(host_bootstrap, "test", "from this machine")
        kraft.inside_client.produce(network_bootstrap, "test", "from the network")
        records = ["from this machine", "from the network"]
        assert HERE.consume(host_bootstrap, "test", 2) == records
        assert kraft.inside_client.consume(network_bootstrap, "test", 2) == records
        assert only_cell(HERE, host_bootstrap).cause is None
        assert only_cell(kraft.inside_client, network_bootstrap).cause is None

    def test_its_port_inside_hands_out_the_port_outside(self, kraft: RunningFile) -> None:
        bootstrap = "kafka-test:9092"
        output = kcat_listing(f"-1: {bootstrap}/bootstrap", "localhost:39092", broker=1)
        assert kraft.inside_client.listing(bootstrap) == output
        assert "localhost:39092/1: Connect to" in kraft.inside_client.failure(bootstrap, "test")
