"""`earshot doctor` on a real broker, with the failure that this project began with."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from earshot.listeners.terms import Scope
from earshot.report.json import read_report
from tests.cli.command import Earshot
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


def external_port(cluster: Cluster) -> int:
    listener = cluster.plan.node(1).listener("EXTERNAL")
    assert listener is not None
    return listener.port


def test_with_a_contract_the_listener_has_its_name(
    cluster: Cluster, contract: str, earshot: Earshot
) -> None:
    code, output, _ = earshot(f"doctor --contract {contract}")
    address = f"{BAD}:{external_port(cluster)}"
    assert code == 1 and f"FAIL  EXTERNAL, broker 1 ({address}), from host" in output
    block = " ".join(output[output.index("FAIL  EXTERNAL") :].split())
    assert "stage resolve cause unresolvable" in block
    assert "fix " in block
    assert len(output.splitlines()) < 24  # one screen
    internal = next(line for line in output.splitlines() if line.startswith("  INTERNAL"))
    assert internal.split()[2] == "ok"


def test_only_the_listeners_of_a_scope(contract: str, earshot: Earshot) -> None:
    code, output, _ = earshot(f"doctor --contract {contract} --scope internal")
    assert code == 0 and "INTERNAL" in output and "EXTERNAL" not in output


def test_clients_of_containers_are_validated_elsewhere(
    cluster: Cluster, tmp_path: Path, earshot: Earshot
) -> None:
    file = tmp_path / "docker.json"
    file.write_text(cluster.contract.model_copy(update={"placement": "docker"}).to_json())
    note = "validates from where those clients are"
    code, output, _ = earshot(f"doctor --contract {file}")
    assert code == 1 and note in " ".join(output.split())
    code, output, _ = earshot(f"doctor --contract {file} --scope internal")
    assert code == 0 and note not in " ".join(output.split())


def test_without_a_contract_the_listener_has_its_address(
    cluster: Cluster, earshot: Earshot
) -> None:
    port = external_port(cluster)
    code, output, _ = earshot(f"doctor --bootstrap localhost:{port}")
    assert code == 1
    assert f"FAIL  localhost:{port}, broker 1 ({BAD}:{port}), from host" in output
    assert "stage     resolve" in output


def test_files_have_the_same_failure(contract: str, tmp_path: Path, earshot: Earshot) -> None:
    files = [tmp_path / name for name in ("r.json", "r.xml", "r.html", "r.md")]
    outputs = " ".join(f"--output {file}" for file in files)
    assert earshot(f"doctor --contract {contract} {outputs}").code == 1
    report = read_report(files[0].read_bytes(), "r.json")
    (bad,) = [cell for cell in report.cells if cell.cause is not None]
    (failure,) = ET.parse(files[1]).getroot().iter("failure")
    assert bad.cause is not None and failure.get("type") == bad.cause.kind == "unresolvable"
    for file in files[2:]:
        assert str(bad.address) in file.read_text()
