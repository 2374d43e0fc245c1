"""One broker that serves well, and a contract of another cluster at the same addresses."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from earshot_pulumi.local import cluster_memory
from earshot_pulumi.local.readiness import RunningCluster

from earshot.cli import run as earshot
from earshot.doctor.doctor import examine
from earshot.errors import EarshotError
from earshot.listeners.address import parse_address
from earshot.sockets import conflict, listening, of_java
from earshot.spark import run
from earshot.spark.attempts import Route, RouteFailure, RouteProblem
from earshot.spark.cluster import routes_to_other_clusters
from earshot.spark.executor_probe import prober
from earshot.spark.job import ListenerAccess
from earshot.spark.session import SessionStart, SparkSettings
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.result import Report
from earshot.validation.terms import Stage, Verdict
from tests.e2e.cluster import CLUSTER_ID, Cluster, local_plan, running_cluster

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(180),
    # PySpark leaves the sockets that it collects rows from to the garbage collector
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ANOTHER = "b3RoZXItdGVzdHMtY2x1cw"
NAMES = ("INTERNAL", "EXTERNAL")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    _, plan = local_plan(brokers=1)
    with running_cluster(plan) as running_brokers:
        yield running_brokers


@pytest.fixture
def wrong_contract(cluster: Cluster) -> Contract:
    return cluster.contract.identified(ANOTHER)


def address(contract: Contract, listener: str) -> str:
    return contract.listener(listener).bootstrap


def check_all_strange(report: Report, contract: Contract) -> None:
    """Every cell failed, for that reason; nothing was written."""
    assert (report.exit_code, report.cluster_id) == (1, ANOTHER)
    cell_by_listener = {cell.listener: cell for cell in report.cells}
    assert list(cell_by_listener) == list(NAMES)
    for name, cell in cell_by_listener.items():
        assert cell.failed_stage is Stage.METADATA and cell.cause is not None
        assert cell.cause.kind == "another-cluster"
        assert cell.cause.observed == f"{address(contract, name)} belongs to cluster {CLUSTER_ID}"
        assert cell.cause.expected == f"cluster {ANOTHER} of the contract"
    assert report.delivery == ()
    admin = AdminClient({"bootstrap.servers": address(contract, "INTERNAL")})
    assert admin.list_topics(timeout=10).topics == {}


def test_the_doctor_fails_every_cell(wrong_contract: Contract) -> None:
    check_all_strange(examine(wrong_contract), wrong_contract)


def test_an_address_that_the_user_gives_does_not_speak_for_another_cluster(
    wrong_contract: Contract,
) -> None:
    bootstrap = parse_address(address(wrong_contract, "INTERNAL"))
    report = examine(wrong_contract, bootstrap=[bootstrap])
    check_all_strange(report, wrong_contract)
    assert report.notes == (
        f"{bootstrap} belongs to cluster {CLUSTER_ID}, not to {ANOTHER} of the contract",
    )


def test_the_validation_fails_every_cell(wrong_contract: Contract) -> None:
    check_all_strange(
        run.validate(wrong_contract, run.ValidationOptions(deadline=120)), wrong_contract
    )


def test_a_contract_of_an_earlier_release_is_compared_with_nothing(cluster: Cluster) -> None:
    old_contract = cluster.contract.model_copy(update={"version": 1, "cluster_id": None})
    report = examine(old_contract)
    assert report.verdict is Verdict.PASS and report.cluster_id == ""
    (note,) = report.notes
    assert note.startswith(f"cluster {CLUSTER_ID} answers; the contract names no cluster_id")


def test_the_command_says_which_cluster_answers(
    wrong_contract: Contract, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "contract.json"
    file.write_text(wrong_contract.to_json())
    assert earshot(["doctor", "--contract", str(file)]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert f"cluster test (id {ANOTHER})" in output
    assert f"belongs to cluster {CLUSTER_ID}" in output


def test_readiness_does_not_take_another_clusters_broker_for_its_own(cluster: Cluster) -> None:
    broker_address = address(cluster.contract, "INTERNAL")
    RunningCluster(cluster.directory, CLUSTER_ID, deadline=20).wait_for([1])
    with pytest.raises(EarshotError) as caught:
        RunningCluster(cluster.directory, ANOTHER, deadline=20).wait_for([1])
    assert str(caught.value).startswith(
        f"broker 1: cluster {CLUSTER_ID} answers at {broker_address}\n  allowed: cluster {ANOTHER}"
    )


@pytest.mark.combination
def test_sparks_driver_and_executors_see_which_cluster_it_is(cluster: Cluster) -> None:
    contract = cluster.contract
    routes, options = [], {}
    for listener in contract.listeners:
        broker_address = contract.brokers[0].advertised[listener.name].address
        routes.append(Route(listener.name, 1, broker_address, 0))
        options[listener.name] = ListenerAccess(listener.bootstrap, listener.protocol).options
    probed_routes = [(route.listener, route.broker, *route.address, True) for route in routes]
    (probe_result,) = prober(probed_routes, 5.0)([])
    assert {answer["cluster_id"] for answer in probe_result["reached"]} == {CLUSTER_ID}
    session_start = SessionStart(SparkSettings())
    try:
        spark, end = session_start.session(100), Deadline(60)
        assert routes_to_other_clusters(spark, routes, options, CLUSTER_ID, end) == {}
        assert routes_to_other_clusters(spark, routes, options, ANOTHER, end) == {
            route.key: RouteProblem(
                RouteFailure.OTHER_CLUSTER,
                f"for Spark, {route.address} belongs to cluster {CLUSTER_ID}",
            )
            for route in routes
        }
    finally:
        session_start.close()


def test_a_second_cluster_on_the_same_ports_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """A JVM's sockets show as IPv4 mapped into IPv6."""
    pid = cluster.pid(1)
    own_sockets = [open_socket for open_socket in listening() if open_socket.pid == pid]
    settings = cluster.node_directory(1) / "server.properties"
    problems = list(cluster_memory.problems(tmp_path, cluster.plan))
    assert problems == [
        f"listener {listener.name} of node 1: port {listener.bind_port} is in use by pid {pid} "
        f"({psutil.Process(pid).name()}) (Kafka with {settings}). Free the port, or choose another "
        f"`port` for {listener.name}"
        for listener in cluster.plan.nodes[0].listeners
    ]
    for listener in cluster.plan.nodes[0].listeners:
        wanted_address = of_java(listener.bind_host, listener.bind_port)
        assert any(conflict(wanted_address, open_socket.bound) for open_socket in own_sockets)
