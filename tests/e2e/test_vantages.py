"""Three listeners of one broker, each from where its clients stand, on a real engine."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from docker.errors import NotFound

from earshot.cli import run
from earshot.placement.standpoint import CandidateEngine, Standpoint, docker_standpoints, to_json
from earshot.remote.leftovers import CLUSTER_LABEL, remove_leftovers
from earshot.remote.run import validate_from
from earshot.report.json import read_report
from earshot.spark.run import ValidationOptions
from earshot.validation.result import Report
from earshot.validation.terms import Stage, Verdict
from tests.doubles.answers import contract as clients_of
from tests.doubles.dns_server import dns_server
from tests.e2e.docker_engine import Engine
from tests.e2e.images import load
from tests.e2e.lone_broker import NAME, LoneBroker, dns_for_broker, lone_broker
from tests.skips import lacking

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.combination,
    pytest.mark.timeout(600),
    # PySpark leaves the sockets that it collects rows from to the garbage collector
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
OPTIONS = ValidationOptions(records=300)
DOCTOR_ALONE = ValidationOptions(records=0)
APPEARS_SECONDS = 120
ENDS_SECONDS = 60


@pytest.fixture(scope="module")
def broker(docker_engine: Engine, kafka_image: str) -> Iterator[LoneBroker]:
    with lone_broker(docker_engine, kafka_image) as new_broker:
        yield new_broker


@pytest.fixture(scope="module")
def base(docker_engine: Engine, client_image: str) -> str:
    return load.base_image(docker_engine)


def standpoints(
    broker: LoneBroker, engines: Sequence[str], base: str, dns: str
) -> tuple[Standpoint, ...]:
    candidates = [CandidateEngine(engine=engine) for engine in engines]
    return docker_standpoints(broker.contract, candidates, broker.network, base, [dns])


def run_resources(engine: Engine, broker: LoneBroker) -> list[str]:
    """The names of containers and networks of runs against the broker."""
    filters = {"label": f"{CLUSTER_LABEL}={broker.contract.cluster}"}
    with contextlib.closing(engine.client()) as client:
        containers = client.containers.list(all=True, filters=filters, ignore_removed=True)
        return [resource.name for resource in [*containers, *client.networks.list(filters=filters)]]


def by_vantage(report: Report) -> dict[str, Verdict]:
    assert len(report.cells) == 3
    return {cell.vantage: cell.verdict for cell in report.cells}


def test_each_scope_is_proved_from_where_its_clients_stand(
    docker_engine: Engine, broker: LoneBroker, base: str, tmp_path: Path
) -> None:
    """The command validates. The first engine that it may use does not answer."""
    engines = [f"unix://{tmp_path}/none", docker_engine.address]
    contract, vantages, report = (tmp_path / f"{name}.json" for name in ("c", "v", "report"))
    contract.write_text(broker.contract.to_json())
    arguments = ["validate", "--contract", str(contract), "--vantages", str(vantages)]
    with dns_for_broker(broker) as dns:
        vantages.write_text(to_json(standpoints(broker, engines, base, dns)))
        code = run([*arguments, "--records", "300", "-o", str(report)])
    read_back_report = read_report(report.read_bytes(), "report")
    assert by_vantage(read_back_report) == dict.fromkeys(
        ("internal", "host", "external"), Verdict.PASS
    )
    assert code == 0
    assert [vantage.kind for vantage in read_back_report.vantages] == [
        "container",
        "host",
        "container",
    ]
    assert {
        (delivery.written_through, delivery.acknowledged, delivery.lost)
        for delivery in read_back_report.delivery
    } == {(name, 300, 0) for name in ("INTERNAL", "HOST", "EXTERNAL")}
    assert run_resources(docker_engine, broker) == []


def test_a_name_that_does_not_exist_is_the_listeners_fault(
    docker_engine: Engine, broker: LoneBroker, base: str
) -> None:
    with dns_server({}, broker.gateway, 53):
        places = standpoints(broker, [docker_engine.address], base, broker.gateway)
        report = validate_from(places, broker.contract, DOCTOR_ALONE, only=["external"])
    (cell,) = [report_cell for report_cell in report.cells if report_cell.vantage == "external"]
    assert (cell.verdict, cell.failed_stage) == (Verdict.FAIL, Stage.RESOLVE)
    assert cell.cause is not None and cell.cause.kind == "unresolvable"
    assert report.exit_code == 1


def test_a_silent_dns_server_is_the_vantages_fault(
    docker_engine: Engine, broker: LoneBroker, base: str
) -> None:
    places = standpoints(broker, [docker_engine.address], base, broker.gateway)
    report = validate_from(places, broker.contract, DOCTOR_ALONE, only=["external"])
    assert by_vantage(report) == {
        "internal": Verdict.SKIP,
        "host": Verdict.SKIP,
        "external": Verdict.INCONCLUSIVE,
    }
    (vantage,) = [
        report_vantage for report_vantage in report.vantages if report_vantage.name == "external"
    ]
    assert vantage.verdict is Verdict.INCONCLUSIVE
    assert "no DNS server of this vantage answers" in vantage.reason and NAME in vantage.reason
    assert report.exit_code == 3


def test_names_of_the_network_need_no_dns_server(
    docker_engine: Engine, broker: LoneBroker, base: str
) -> None:
    places = standpoints(broker, [docker_engine.address], base, broker.gateway)
    report = validate_from(places, broker.contract, DOCTOR_ALONE, only=["internal"])
    assert by_vantage(report)["internal"] is Verdict.PASS
    assert report.exit_code == 3  # two were not asked for


def test_without_an_engine_nothing_is_proved_and_nothing_passes(
    broker: LoneBroker, tmp_path: Path
) -> None:
    places = standpoints(broker, [f"unix://{tmp_path}/none"], "none", broker.gateway)
    report = validate_from(places, broker.contract, DOCTOR_ALONE)
    assert by_vantage(report) == {
        "internal": Verdict.INCONCLUSIVE,
        "host": Verdict.PASS,
        "external": Verdict.INCONCLUSIVE,
    }
    reasons = {cell.reason for cell in report.cells if cell.vantage != "host"}
    assert all(f"{tmp_path}/none: does not answer" in reason for reason in reasons)
    assert report.exit_code == 3


def test_an_image_that_cannot_be_made_is_named_with_its_step(
    docker_engine: Engine, broker: LoneBroker
) -> None:
    nowhere = "registry.invalid/earshot/none:1"
    places = standpoints(broker, [docker_engine.address], nowhere, broker.gateway)
    report = validate_from(places, broker.contract, DOCTOR_ALONE, only=["internal"])
    (cell,) = [report_cell for report_cell in report.cells if report_cell.vantage == "internal"]
    assert cell.verdict is Verdict.INCONCLUSIVE
    assert "validator image: step 2/" in cell.reason and "FROM ${BASE}" in cell.reason
    assert "registry.invalid" in cell.reason
    assert "validator.base" in next(
        vantage.reason for vantage in report.vantages if vantage.name == "internal"
    )


def test_a_container_that_is_killed_leaves_its_cells_undecided(
    docker_engine: Engine, broker: LoneBroker, base: str
) -> None:
    killed_names: list[str] = []

    def kill(name: str) -> None:
        with contextlib.closing(docker_engine.client()) as client:
            container = next(
                running_container
                for running_container in client.containers.list()
                if running_container.name == name
            )
            container.kill()
            killed_names.append(name)

    places = standpoints(broker, [docker_engine.address], base, broker.gateway)
    with act_on_container(docker_engine, broker, kill):
        report = validate_from(places, broker.contract, OPTIONS, only=["internal"])
    assert len(killed_names) == 1
    (cell,) = [report_cell for report_cell in report.cells if report_cell.vantage == "internal"]
    assert cell.verdict is Verdict.INCONCLUSIVE and "ended with status 137" in cell.reason
    assert run_resources(docker_engine, broker) == []


@contextlib.contextmanager
def act_on_container(
    engine: Engine, broker: LoneBroker, action: Callable[[str], None]
) -> Iterator[None]:
    thread = threading.Thread(target=lambda: action(await_container(engine, broker)))
    thread.start()
    try:
        yield
    finally:
        thread.join(APPEARS_SECONDS)


def await_container(engine: Engine, broker: LoneBroker) -> str:
    """The name of a vantage's container, as soon as it runs."""
    filters = {"label": f"{CLUSTER_LABEL}={broker.contract.cluster}"}
    end = time.monotonic() + APPEARS_SECONDS
    with contextlib.closing(engine.client()) as client:
        while not (containers := client.containers.list(filters=filters, ignore_removed=True)):
            assert time.monotonic() < end, "no container appeared"
            time.sleep(0.1)
        return str(containers[0].name)


PATIENT = """
from earshot import cli
from earshot.cli import ending
ending._grace = 50
cli.main()
"""
"""The command `earshot`, which on a busy machine has more than its usual second to clean up."""


@contextlib.contextmanager
def running_validation(
    engine: Engine, broker: LoneBroker, base: str, folder: Path
) -> Iterator[subprocess.Popen[str]]:
    """The command, whose container for clients beyond the host runs."""
    contract, vantages = folder / "contract.json", folder / "vantages.json"
    contract.write_text(broker.contract.to_json())
    vantages.write_text(to_json(standpoints(broker, [engine.address], base, broker.gateway)))
    command = [sys.executable, "-c", PATIENT, "validate", "--contract", str(contract)]
    command += ["--vantages", str(vantages), "--only", "external"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            await_container(engine, broker)
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing(
    number: signal.Signals,
    code: int,
    docker_engine: Engine,
    broker: LoneBroker,
    base: str,
    tmp_path: Path,
) -> None:
    with running_validation(docker_engine, broker, base, tmp_path) as process:
        assert len(run_resources(docker_engine, broker)) == 2
        process.send_signal(number)
        assert process.wait(ENDS_SECONDS) == code
    assert run_resources(docker_engine, broker) == []


def test_the_rest_of_a_killed_command_cleans_up(
    docker_engine: Engine, broker: LoneBroker, base: str, tmp_path: Path
) -> None:
    with running_validation(docker_engine, broker, base, tmp_path) as process:
        (working,) = psutil.Process(process.pid).children()
        process.kill()
        assert psutil.wait_procs([working], ENDS_SECONDS)[1] == []
    assert run_resources(docker_engine, broker) == []


def test_what_a_killed_run_left_is_removed_by_the_next(
    docker_engine: Engine, broker: LoneBroker, base: str, tmp_path: Path
) -> None:
    cluster = broker.contract.cluster
    with (
        running_validation(docker_engine, broker, base, tmp_path) as process,
        contextlib.closing(docker_engine.client()) as client,
    ):
        assert remove_leftovers(client, cluster) == []  # it is alive
        killed_processes = [psutil.Process(process.pid), *psutil.Process(process.pid).children()]
        for process_of_run in killed_processes:
            process_of_run.kill()
        psutil.wait_procs(killed_processes, ENDS_SECONDS)
        process.wait(ENDS_SECONDS)
        leftovers = run_resources(docker_engine, broker)
        assert len(leftovers) == 2
        removed_leftovers = remove_leftovers(client, cluster)
        assert [name.split()[-1] for name in removed_leftovers] == leftovers
        with pytest.raises(NotFound):
            client.containers.get(leftovers[0])
    assert run_resources(docker_engine, broker) == []


def test_a_machine_without_a_network_blames_no_listener(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        lacking("only root makes network namespaces: sudo make test")
    contract = tmp_path / "contract.json"
    contract.write_text(clients_of(L=["broker.example.com:9092", "192.0.2.99:9092"]).to_json())
    command = [sys.executable, "-m", "earshot", "doctor", "--contract", str(contract)]
    completed = subprocess.run(
        ["unshare", "--net", *command, "--format", "json"], capture_output=True, text=True
    )
    assert completed.returncode == 3, completed.stderr
    report = read_report(completed.stdout.encode(), "stdout")
    assert [cell.verdict for cell in report.cells] == [Verdict.INCONCLUSIVE] * 2
    assert "no DNS server of this vantage answers" in report.cells[0].reason
    assert "no route to 192.0.2.99, and none to anywhere" in report.cells[1].reason
