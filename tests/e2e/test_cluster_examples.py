"""Examples with clusters of earshot's own: real engine and Kafka, doubles of AWS and a plugin."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from tests.config.aws_documents import ARCHIVE
from tests.doubles.aws.nodes import nodes_reporting
from tests.doubles.aws.server import REGION, MotoServer
from tests.e2e import project
from tests.e2e.aws_project import aws_project
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_project import docker_project
from tests.e2e.images.load import base_image
from tests.e2e.ports import free_ports
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
EXAMPLES = ROOT / "examples"


def prepare(made: project.Project, example: str, **config: Any) -> None:
    """Copies the program of ``example``, and sets its configuration."""
    shutil.copy(EXAMPLES / example / "__main__.py", made.folder)
    for key, value in config.items():
        made.runs("config", "set", key, str(value))


@pytest.fixture
def local(tmp_path: Path) -> Iterator[project.Project]:
    made = project.Project(tmp_path, "", project.prepared(tmp_path, {}))
    made.runs("stack", "init", project.STACK)
    yield made
    made.pulumi("destroy", "--yes", "--skip-preview")


def brokers_below(folder: Path) -> set[int]:
    """The processes of Kafka with files below ``folder``."""
    return {
        it.pid
        for it in psutil.process_iter(["cmdline"])
        if any(str(folder) in word for word in it.info["cmdline"] or ())
        and "kafka.Kafka" in (it.info["cmdline"] or ())
    }


def topics_at(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).topics)


def test_two_clusters_in_one_program(local: project.Project) -> None:
    first, second, other = free_ports(9)[::3]
    prepare(local, "two-clusters", orders=first, audit=second)
    assert "audit_bootstrap" in local.runs("preview")
    local.up()
    found = local.outputs()
    assert found["orders_proof"] == found["audit_proof"] == "pass"
    assert found["orders_id"] != found["audit_id"]
    for name in ("orders", "audit"):
        topics_at(found[f"{name}_bootstrap"]["CLIENTS"])
    running = brokers_below(local.folder)
    assert len(running) == 2
    assert "unchanged" in local.up("--expect-no-changes")

    local.runs("config", "set", "audit_clients", str(other))
    local.up()
    changed = local.outputs()
    assert changed["audit_bootstrap"]["CLIENTS"].endswith(f":{other}")
    assert changed["orders_bootstrap"] == found["orders_bootstrap"]
    assert len(running & brokers_below(local.folder)) == 1, "that of orders"

    local.runs("config", "set", "audit_clients", str(first))
    assert f"port {first} is in use by" in local.fails()
    assert len(brokers_below(local.folder)) == 2
    local.destroy()
    assert brokers_below(local.folder) == set()


def test_a_network_and_clients_of_the_program_s_own(
    docker_engine: Engine, kafka_image: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    made = docker_project(tmp_path / "p", docker_engine)
    config = {"image": kafka_image, "base": base_image(docker_engine)}
    prepare(made, "own-network", port=port, engine=docker_engine.address, **config)
    try:
        made.runs("preview")
        made.up()
        found = made.outputs()
        assert found["proof"] == "pass"
        assert found["bootstrap"]["INTERNAL"].startswith("test-kafka-kafka-1:")
        host, _, own_port = found["bootstrap"]["INTERNAL"].partition(":")
        reached = f"exec 3<>/dev/tcp/{host}/{own_port} && echo reached"
        said = docker_engine.run("exec", found["client"], "bash", "-c", reached)
        assert said.strip() == "reached"
        (shown,) = docker_engine.run(
            "inspect", found["client"], "--format", "{{json .Config.Env}}"
        ).splitlines()
        assert f"BOOTSTRAP_SERVERS={found['bootstrap']['INTERNAL']}" in shown
        assert "unchanged" in made.up("--expect-no-changes")
    finally:
        made.destroy()
    assert docker_engine.run("ps", "--all", "--quiet") == ""
    assert found["network"] not in docker_engine.run("network", "ls")


def test_a_vpc_of_the_program_s_own(server: MotoServer, tmp_path: Path) -> None:
    before = server.holdings()
    made = aws_project(tmp_path / "p", server, {})
    policy = '{"names": {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.5}}'
    prepare(
        made,
        "own-vpc",
        region=REGION,
        archive=ARCHIVE["url"],
        sha512=ARCHIVE["sha512"],
        protected="false",
        data="delete",
        policy=policy,
    )
    with nodes_reporting(server) as nodes:
        first = made.runs("preview")
        assert "planned in the update, as vpc.id" in first and not nodes.history
        made.up()
        found = made.outputs()
        ec2 = server.client("ec2")
        described = ec2.describe_instances(InstanceIds=list(found["instances"].values()))
        instances = [it for one in described["Reservations"] for it in one["Instances"]]
        assert {it["VpcId"] for it in instances} == {found["vpc"]}
        assert len(found["bootstrap"]["INTERNAL"].split(",")) == 3
        assert "unchanged" in made.up("--expect-no-changes")
        made.destroy()
    assert server.holdings() == before
