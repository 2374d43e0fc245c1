"""Real brokers behind a forwarder: a port for each, a name for each, and what goes wrong there."""

import contextlib
import dataclasses
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from earshot.doctor.doctor import examine
from earshot.gateway.render import Software, render
from earshot.gateway.routes import BoundListener, routes
from earshot.report.json import read_report
from earshot.validation.contract import Contract
from earshot.validation.result import Cell, Report
from earshot.validation.terms import Stage, Verdict
from tests.doubles.certificates import self_signed
from tests.doubles.forwarder import Forwarder, forwarding, ports_of
from tests.e2e.cluster import local_plan, running_cluster
from tests.e2e.engine import Deployment, deployment, local_cluster
from tests.e2e.ports import consecutive_ports, free_ports
from tests.skips import lacking

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

IDS = (1, 2, 3)
KAFKA = "127.0.0.1"


@dataclasses.dataclass(frozen=True)
class ForwardedStack:
    """A stack whose clients come through a forwarder of this test."""

    stack: Deployment
    forwarder: Forwarder
    base: int

    @property
    def contract(self) -> Contract:
        return Contract.model_validate(self.stack.outputs()["contract"])


@pytest.fixture(scope="module")
def forwarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForwardedStack]:
    """Three brokers, one name and a port for each: up and validated through the forwarder."""
    cluster = local_cluster(validation={"records": 0, "deadline": 120})
    external = cluster["listeners"][1]
    (base,) = consecutive_ports(4, 1)
    external["address"] = {
        "strategy": "port",
        "host": "localhost",
        "base_port": base,
        "bootstrap_port": base,
        "path": {"idle_seconds": 350},
    }
    brokers = {id: (KAFKA, external["port"] + id - 1) for id in IDS}
    # `localhost` is [::1] as well, where nothing listens
    with (
        forwarding(Forwarder(KAFKA, by_port=ports_of(brokers, base))) as forwarder,
        deployment(tmp_path_factory.mktemp("behind") / "p", cluster) as stack,
    ):
        stack.up()
        yield ForwardedStack(stack, forwarder, base)


@pytest.fixture
def remapped(forwarded: ForwardedStack) -> Iterator[ForwardedStack]:
    """Like `forwarded`. The targets of all ports are restored after the test."""
    old_targets = dict(forwarded.forwarder.by_port)
    yield forwarded
    forwarded.forwarder.by_port.update(old_targets)


def cells(report: Report) -> dict[int, Cell]:
    return {cell.broker: cell for cell in report.cells if cell.listener == "EXTERNAL"}


def failures(report: Report) -> dict[int, tuple[Stage | None, str]]:
    """The failed stage and the cause, by broker."""
    return {
        id: (cell.failed_stage, cell.cause.kind if cell.cause else "")
        for id, cell in cells(report).items()
        if cell.verdict is not Verdict.PASS
    }


def test_the_whole_matrix_passes_through_a_port_per_broker(forwarded: ForwardedStack) -> None:
    report = read_report((forwarded.stack.root.parent / "report.json").read_bytes(), "report.json")
    assert report.exit_code == 0
    assert {cell.verdict for cell in report.cells} == {Verdict.PASS}
    contract = forwarded.contract
    assert contract.listener("EXTERNAL").bootstrap == f"localhost:{forwarded.base}"
    places = [
        str(address) for listener, _, address in contract.places if listener.name == "EXTERNAL"
    ]
    assert places == [f"localhost:{forwarded.base + id}" for id in IDS]
    assert forwarded.forwarder.connections > len(IDS)
    second_output = forwarded.stack.up()
    assert (
        "unchanged" in second_output
        and "created" not in second_output
        and "updated" not in second_output
    )


@pytest.mark.combination
def test_sparks_records_pass_through_a_port_per_broker(forwarded: ForwardedStack) -> None:
    validation = forwarded.stack.cluster["validation"]
    validation["records"] = 300
    try:
        forwarded.stack.up()
    finally:
        validation["records"] = 0
    report = read_report((forwarded.stack.root.parent / "report.json").read_bytes(), "report.json")
    assert {delivery.verdict for delivery in report.delivery} == {Verdict.PASS}
    forwarded.stack.up()


def test_a_time_out_below_the_brokers_is_named_before_clients_are_cut_off(
    forwarded: ForwardedStack,
) -> None:
    preview = forwarded.stack.pulumi("preview")
    assert preview.returncode == 0
    assert "KL025" in preview.stdout and "drops them after 350 s without traffic" in preview.stdout


def test_a_port_that_leads_to_another_broker_is_named(remapped: ForwardedStack) -> None:
    ports = remapped.forwarder.by_port
    ports[remapped.base + 2] = ports[remapped.base + 3]
    assert failures(examine(remapped.contract)) == {2: (Stage.METADATA, "misrouted")}


def test_a_port_that_spreads_over_brokers_is_named(remapped: ForwardedStack) -> None:
    ports = remapped.forwarder.by_port
    ports[remapped.base + 1] = ports[remapped.base]
    assert failures(examine(remapped.contract)) == {1: (Stage.METADATA, "misrouted")}


def test_an_unhealthy_target_is_named_and_the_others_pass(remapped: ForwardedStack) -> None:
    (closed_port,) = free_ports(1)
    remapped.forwarder.by_port[remapped.base + 1] = [(KAFKA, closed_port)]
    report = examine(remapped.contract)
    (cell,) = [
        report_cell for report_cell in report.cells if report_cell.verdict is not Verdict.PASS
    ]
    assert (cell.listener, cell.broker, cell.failed_stage) == ("EXTERNAL", 1, Stage.BOOTSTRAP)


def test_a_bootstrap_that_leads_nowhere_fails_although_all_brokers_answer(
    remapped: ForwardedStack,
) -> None:
    remapped.forwarder.by_port[remapped.base] = []
    report = examine(remapped.contract)
    assert report.exit_code == 1
    (cell,) = [
        report_cell for report_cell in report.cells if report_cell.verdict is not Verdict.PASS
    ]
    assert str(cell.address) == f"localhost:{remapped.base}"


def test_the_gate_refuses_a_forwarder_that_chooses_the_broker(forwarded: ForwardedStack) -> None:
    address = forwarded.stack.cluster["listeners"][1]["address"]
    pids = forwarded.stack.pids()
    address["path"] = {"per_broker": False, "ends_tls": True}
    try:
        refusal = forwarded.stack.refusal("--skip-preview")
    finally:
        address["path"] = {"idle_seconds": 350}
    assert "KL024" in refusal and "spreads them over 3 brokers" in refusal
    assert "ends TLS" in refusal
    assert forwarded.stack.pids() == pids


NAME = "broker-{id}.kafka.test"
BOOTSTRAP = "bootstrap.kafka.test"


def run_with_hosts(hosts: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs ``command`` with its own hosts file."""
    script = f'mount --bind {hosts} /etc/hosts && exec "$@"'
    return subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", *command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@contextlib.contextmanager
def gateway(software: str, folder: Path, configuration: str, port: int) -> Iterator[None]:
    """HAProxy or nginx with ``configuration``, from when it has ``port``."""
    file = folder / f"{software}.conf"
    words = ["haproxy", "-db", "-f", str(file)]
    if software == Software.NGINX:
        module = "load_module /usr/lib/nginx/modules/ngx_stream_module.so;"
        configuration = f"{module}\npid {folder}/pid;\ndaemon off;\nevents {{}}\n{configuration}"
        words = ["nginx", "-e", "stderr", "-c", str(file)]
    file.write_text(configuration)
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            end = time.monotonic() + 20
            while not is_open(port):
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < end
                time.sleep(0.1)
            yield
        finally:
            process.terminate()


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((KAFKA, port), 1):
        return True
    return False


@pytest.mark.parametrize(
    "software",
    [
        pytest.param("haproxy", marks=pytest.mark.requires("haproxy")),
        pytest.param("nginx", marks=[pytest.mark.requires("nginx"), pytest.mark.combination]),
    ],
)
def test_a_name_per_broker_that_tls_shows(software: str, tmp_path: Path) -> None:
    """One port for all, and no certificate at the gateway: it reads the name and forwards."""
    names = [NAME.format(id=id) for id in IDS]
    pem = self_signed(tmp_path, ",".join(f"DNS:{name}" for name in [*names, BOOTSTRAP]))
    (port,) = free_ports(1)
    address = {"strategy": "sni", "pattern": NAME, "port": port, "bootstrap_host": BOOTSTRAP}
    listeners = (
        {"name": "INTERNAL", "scopes": ["internal"]},
        {"name": "SECURE", "scopes": ["external"], "protocol": "SSL", "address": address},
    )
    stores = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(pem)}
    _, cluster_plan = local_plan(3, listeners, extra=stores)
    hosts = tmp_path / "hosts"
    lines = ["127.0.0.1 localhost", *(f"127.0.0.1 {name}" for name in [*names, BOOTSTRAP])]
    hosts.write_text("\n".join(lines) + "\n")
    if shutil.which("unshare") is None or run_with_hosts(hosts, "true").returncode:
        lacking("a mount namespace of its own (unshare --map-root-user --mount)")
    secure = {node.id: node.listener("SECURE") for node in cluster_plan.nodes}
    bound_ports = {
        id: listener.bind_port for id, listener in secure.items() if listener is not None
    }
    with running_cluster(cluster_plan) as cluster:
        gateway_routes = routes(cluster.contract, {"SECURE": BoundListener(bound_ports)})
        configuration = render(gateway_routes, Software(software), "brokers of a test")
        contract = tmp_path / "contract.json"
        text = cluster.contract.for_scope(cluster.contract.listener("SECURE").scopes[0]).to_json()
        contract.write_text(text)
        client = tmp_path / "client.properties"
        client.write_text(f"ssl.truststore.type=PEM\nssl.truststore.location={tmp_path}/cert.pem\n")
        doctor = [sys.executable, "-m", "earshot", "doctor", "--contract", str(contract)]
        doctor += ["--client-config", str(client), "--format", "json"]

        with gateway(software, tmp_path, configuration, port):
            completed = run_with_hosts(hosts, *doctor)
        assert completed.returncode == 0, completed.stdout + completed.stderr
        assert json.loads(text)["listeners"][0]["bootstrap"] == f"{BOOTSTRAP}:{port}"

        shown_name = f"{{ req.ssl_sni -i {names[1]} }}"
        mistake = {
            "haproxy": (f"SECURE-2 if {shown_name}", f"SECURE-3 if {shown_name}"),
            "nginx": (f"{names[1]} SECURE-2;", f"{names[1]} SECURE-3;"),
        }[software]
        assert mistake[0] in configuration
        with gateway(software, tmp_path, configuration.replace(*mistake), port):
            completed_with_mistake = run_with_hosts(hosts, *doctor)
        assert completed_with_mistake.returncode == 1
        report = read_report(completed_with_mistake.stdout.encode(), "doctor")
        (cell,) = [
            report_cell for report_cell in report.cells if report_cell.verdict is not Verdict.PASS
        ]
        assert (cell.broker, cell.cause and cell.cause.kind) == (2, "misrouted")
