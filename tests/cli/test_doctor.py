"""`earshot doctor` on a real broker, with the failure that this project began with."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from earshot.cli import run
from earshot.listeners.terms import Scope
from earshot.report.json import read_report
from tests.e2e.cluster import Cluster, local_plan, running_cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

BAD = "kafka0"  # the name of a container, as on its own Docker network


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One broker whose EXTERNAL listener advertises a name that does not resolve here."""
    _, planned = local_plan(brokers=1, hosts={Scope.HOST: BAD})
    with running_cluster(planned) as cluster:
        yield cluster


@pytest.fixture
def contract(cluster: Cluster, tmp_path: Path) -> str:
    file = tmp_path / "contract.json"
    file.write_text(cluster.contract.to_json())
    return str(file)


def listener_port(cluster: Cluster, name: str) -> int:
    listener = cluster.plan.node(1).listener(name)
    assert listener is not None
    return listener.port


def test_with_a_contract_the_listener_has_its_name(
    cluster: Cluster, contract: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", "--contract", contract]) == 1
    output = capsys.readouterr().out
    address = f"{BAD}:{listener_port(cluster, 'EXTERNAL')}"
    assert f"FAIL  EXTERNAL, broker 1 ({address}), from host" in output
    block = " ".join(output[output.index("FAIL  EXTERNAL") :].split())
    assert "stage resolve cause unresolvable" in block
    assert "fix " in block
    assert len(output.splitlines()) < 24  # one screen
    internal = next(line for line in output.splitlines() if line.startswith("  INTERNAL"))
    assert internal.split()[2] == "ok"


def test_only_the_listeners_of_a_scope(
    cluster: Cluster, contract: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", "--contract", contract, "--scope", "internal"]) == 0
    output = capsys.readouterr().out
    assert "INTERNAL" in output and "EXTERNAL" not in output


def test_a_scope_that_no_listener_is_for(contract: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--contract", contract, "--scope", "external"]) == 2
    assert "allowed: internal, host" in capsys.readouterr().err
    assert run(["doctor", "--bootstrap", "localhost:9092", "--scope", "host"]) == 2
    assert "name a --stack or a --contract" in capsys.readouterr().err


def test_of_containers_it_says_that_their_clients_stand_elsewhere(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "docker.json"
    file.write_text(cluster.contract.model_copy(update={"placement": "docker"}).to_json())
    assert run(["doctor", "--contract", str(file)]) == 1
    assert "validates from where those clients are" in " ".join(capsys.readouterr().out.split())
    assert run(["doctor", "--contract", str(file), "--scope", "internal"]) == 0
    assert "validates from where those clients are" not in " ".join(capsys.readouterr().out.split())


def test_without_one_it_is_known_by_its_address(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    port = listener_port(cluster, "EXTERNAL")
    assert run(["doctor", "--bootstrap", f"localhost:{port}"]) == 1
    output = capsys.readouterr().out
    assert f"FAIL  localhost:{port}, broker 1 ({BAD}:{port}), from host" in output
    assert "stage     resolve" in output


def test_files_say_the_same(cluster: Cluster, contract: str, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("r.json", "r.xml", "r.html", "r.md")]
    outputs = [text for file in files for text in ("--output", str(file))]
    assert run(["doctor", "--contract", contract, *outputs]) == 1
    report = read_report(files[0].read_bytes(), "r.json")
    (bad,) = [cell for cell in report.cells if cell.cause is not None]
    (failure,) = ET.parse(files[1]).getroot().iter("failure")
    assert bad.cause is not None and failure.get("type") == bad.cause.kind == "unresolvable"
    for file in files[2:]:
        assert str(bad.address) in file.read_text()
