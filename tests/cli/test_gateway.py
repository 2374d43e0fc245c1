"""`earshot gateway`: of a stack, or of a contract and the ports that brokers bind."""

import json
from pathlib import Path

import pytest

from earshot.project import Project
from tests.cli.command import Earshot, save_contract, save_stack
from tests.config import aws_documents

SNI = {"strategy": "sni", "pattern": "b-{id}.example.com", "port": 443}
PARTNERS = {"name": "PARTNERS", "port": 9095, "scopes": "external", "protocol": "SSL"}
OFFICE = {
    "name": "OFFICE",
    "port": 9195,
    "scopes": "external",
    "address": {"strategy": "port", "host": "kafka.example.com", "base_port": 9100,
                "path": {"idle_seconds": 350}},
}  # fmt: skip


@pytest.fixture(autouse=True)
def gateways(project: Project) -> Project:
    """The project, whose stack `s` has two listeners behind a gateway."""
    internal = {"name": "INTERNAL", "port": 19092, "scopes": "internal"}
    listeners = [internal, {**PARTNERS, "address": SNI}, OFFICE]
    save_stack(project, "s", placement="local", brokers=2, listeners=listeners)
    return project


def test_a_stack_has_names_ports_and_idle_times(earshot: Earshot) -> None:
    output = earshot.output("gateway --stack s")
    assert "use_backend PARTNERS-2 if { req.ssl_sni -i b-2.example.com }" in output
    # nodes of this machine bind consecutive ports
    server = "    timeout server 660s\n    server broker-2 localhost:9096"
    assert f"backend PARTNERS-2\n{server}" in output
    assert "bind :9102\n    timeout client 350s\n    default_backend OFFICE-2" in output
    output = earshot.output("gateway -s s --listener OFFICE --format nginx")
    assert "listen 9101" in output and "PARTNERS" not in output


def test_a_contract_with_the_bound_ports(project: Project, earshot: Earshot) -> None:
    document = save_contract(project, "s").model_dump(mode="json")
    file = Path("contract.json")
    file.write_text(json.dumps(document))
    with_port = "gateway --contract contract.json --bind PARTNERS=9099"
    shared = earshot.refusal(with_port)
    assert "brokers 1 and 2 at the same address localhost:9099" in shared
    assert "use --stack" in shared
    for broker in document["brokers"]:
        broker["advertised"]["INTERNAL"]["host"] = f"kafka-{broker['id']}"
    file.write_text(json.dumps({**document, "cluster": "s\nglobal"}))
    output = earshot.output(with_port)
    assert output.startswith("# Kafka brokers of s global, by `earshot gateway`.\n")
    assert "server broker-2 kafka-2:9099" in output and "OFFICE" not in output
    file.write_text(json.dumps(document))
    line = "gateway --contract contract.json"
    assert "LISTENER is INTERNAL or PARTNERS" in earshot.refusal(line)
    for bind in ("PARTNERS", "PARTNERS=0", "PARTNERS=x", "=9095"):
        assert f"found '{bind}'" in earshot.refusal(f"{line} --bind {bind}")
    error = earshot.refusal(f"{line} --bind NEW=9095")
    assert "listener NEW: is not in the contract of s" in error


def test_names_of_aws_are_those_of_the_last_update(
    project: Project, earshot: Earshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # no pulumi
    partners = {**aws_documents.EXTERNAL, "name": "PARTNERS", "port": 9095, "address": SNI}
    cluster = aws_documents.document(
        listeners=[aws_documents.INTERNAL, partners],
        clients={"ranges": {"gateway": "10.20.0.200/32"}},
    )
    save_stack(project, "cloud", **cluster)
    assert "has no contract yet" in earshot.refusal("gateway --stack cloud")
    contract = save_contract(project, "cloud", "aws").model_dump(mode="json")
    for broker in contract["brokers"]:
        broker["advertised"]["INTERNAL"]["host"] = f"ip-10-20-0-{broker['id']}.internal"
    project.contract_file("cloud").write_text(json.dumps(contract))
    output = earshot.output("gateway --stack cloud")
    assert "server broker-1 ip-10-20-0-1.internal:9095" in output


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("", "name a stack"),
        ("--stack s --bind OFFICE=1", "found with --stack"),
        ("--stack s --listener INTERNAL", "allowed: PARTNERS, OFFICE"),
        ("--stack local", "strategy sni, or port with a `host`"),
    ],
)
def test_wrong_options_are_refused(options: str, error: str, earshot: Earshot) -> None:
    assert error in earshot.refusal(f"gateway {options}")
