"""`earshot gateway`: of a stack, or of a contract and the ports that brokers bind."""

import json
from pathlib import Path

import pytest

from earshot.cli import run
from earshot.placement import plan_stack
from earshot.project import Project
from earshot.validation.contract import Contract
from tests.config import aws_documents

STACK = """\
config:
  earshot:cluster:
    placement: local
    brokers: 2
    listeners:
      - {name: INTERNAL, port: 19092, scopes: internal}
      - name: PARTNERS
        port: 9095
        scopes: external
        protocol: SSL
        address: {strategy: sni, pattern: "b-{id}.example.com", port: 443}
      - name: OFFICE
        port: 9195
        scopes: external
        address: {strategy: port, host: kafka.example.com, base_port: 9100,
                  path: {idle_seconds: 350}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    (tmp_path / "Pulumi.s.yaml").write_text(STACK)
    (tmp_path / "Pulumi.plain.yaml").write_text("config:\n  earshot:cluster: {placement: local}\n")
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(["gateway", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


def test_a_stack_has_names_ports_and_idle_times(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["gateway", "--stack", "s"]) == 0
    out = capsys.readouterr().out
    assert "use_backend PARTNERS-2 if { req.ssl_sni -i b-2.example.com }" in out
    # nodes of this machine bind consecutive ports
    assert "backend PARTNERS-2\n    timeout server 660s\n    server broker-2 localhost:9096" in out
    assert "bind :9102\n    timeout client 350s\n    default_backend OFFICE-2" in out


def test_one_listener_alone(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gateway", "-s", "s", "--listener", "OFFICE", "--format", "nginx"]) == 0
    out = capsys.readouterr().out
    assert "listen 9101" in out and "PARTNERS" not in out


def test_a_contract_with_the_bound_ports(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = plan_stack(project.read_cluster("s"), "s", project.state_dir("s"))
    file = project.root / "contract.json"
    deployed = Contract.of(planned.plan, "s", "local").model_dump(mode="json")
    file.write_text(json.dumps(deployed))
    shared = refused(capsys, "--contract", str(file), "--bind", "PARTNERS=9099")
    assert (
        "brokers 1 and 2 at the same address localhost:9099" in shared and "use --stack" in shared
    )
    for broker in deployed["brokers"]:
        broker["advertised"]["INTERNAL"]["host"] = f"kafka-{broker['id']}"
    file.write_text(json.dumps({**deployed, "cluster": "s\nglobal"}))
    assert run(["gateway", "--contract", str(file), "--bind", "PARTNERS=9099"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# Kafka brokers of s global, by `earshot gateway`.\n")
    assert "server broker-2 kafka-2:9099" in out and "OFFICE" not in out
    file.write_text(json.dumps(deployed))
    assert "LISTENER is INTERNAL or PARTNERS" in refused(capsys, "--contract", str(file))
    for bind in ("PARTNERS", "PARTNERS=0", "PARTNERS=x", "=9095"):
        assert f"found '{bind}'" in refused(capsys, "--contract", str(file), "--bind", bind)
    given = refused(capsys, "--contract", str(file), "--bind", "NEW=9095")
    assert "listener NEW: is not in the contract of s" in given


def test_names_of_aws_are_those_of_the_last_update(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # no pulumi
    address = {"strategy": "sni", "pattern": "b-{id}.example.com", "port": 443}
    partners = {**aws_documents.EXTERNAL, "name": "PARTNERS", "port": 9095, "address": address}
    document = aws_documents.document(
        listeners=[aws_documents.INTERNAL, partners],
        clients={"ranges": {"gateway": "10.20.0.200/32"}},
    )
    text = json.dumps({"config": {"earshot:cluster": document}})
    project.stack_file("cloud").write_text(text)
    assert "has no contract yet" in refused(capsys, "--stack", "cloud")
    spec = project.read_cluster("cloud")
    planned = plan_stack(spec, "cloud", project.state_dir("cloud"))
    deployed = Contract.of(planned.plan, "cloud", "aws").model_dump(mode="json")
    for broker in deployed["brokers"]:
        broker["advertised"]["INTERNAL"]["host"] = f"ip-10-20-0-{broker['id']}.internal"
    project.contract_file("cloud").parent.mkdir(parents=True, exist_ok=True)
    project.contract_file("cloud").write_text(json.dumps(deployed))
    assert run(["gateway", "--stack", "cloud"]) == 0
    assert "server broker-1 ip-10-20-0-1.internal:9095" in capsys.readouterr().out


def test_bad_requests(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert "name a stack" in refused(capsys)
    assert "found with --stack" in refused(capsys, "--stack", "s", "--bind", "OFFICE=1")
    assert "allowed: PARTNERS, OFFICE" in refused(capsys, "--stack", "s", "--listener", "INTERNAL")
    assert "strategy sni, or port with a `host`" in refused(capsys, "--stack", "plain")
