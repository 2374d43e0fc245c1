"""Docker hosts on AWS in a box, and a cluster on them: real user data, real engines with TLS.

Instances are containers that boot what moto holds; each has a Docker engine inside, whose data root
is its volume. The tests go on from each other.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from earshot.certificates.engines import EngineStore, new_engines_authority
from earshot.user_data.host_report import HostReport
from tests.doubles.aws.server import REGION
from tests.doubles.certificates import self_signed
from tests.doubles.docker.install import install_docker_plugin
from tests.doubles.registry import REPOSITORY, registry
from tests.e2e.aws_project import Project, aws_project
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.docker_hosts import give_engines, journals
from tests.kubernetes.cluster import until
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(1500)]

HOSTS = ("a", "b")
UP_SECONDS = 600
IN_ECR = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/apache/kafka:4.1.1"
"""The name of the Kafka image here, which the engines have from the start."""
REGISTRY = IN_ECR.partition("/")[0]
PULLED = f"{REGISTRY}/{REPOSITORY}:next"
REPORT = "/earshot/test-machines/docker/{}/report"
PASSWORD = "of the role"
HELPER = """#!/bin/sh
# A double of the helper of amazon-ecr-credential-helper, which logs in by the instance's role.
[ "$1" = get ] || exit 1
read -r server
password=$(cat /usr/local/share/role/password 2>/dev/null) ||
    { echo "no EC2 IMDS role found"; exit 1; }
printf '{"ServerURL":"%s","Username":"AWS","Secret":"%s"}' "$server" "$password"
"""


@dataclass
class Hosts:
    box: CloudBox
    project: Project
    certificate: Path
    """The registry's certificate with its key."""
    role: Path
    """The folder with the password that the role gives; empty at first."""

    @property
    def client(self) -> Path:
        (path,) = self.project.folder.glob(".earshot/stacks/*/docker-hosts/*/client")
        return path

    def docker(self, host_name: str, *arguments: str, certificates: Path | None = None) -> Any:
        """Docker's command line at the engine of ``host_name``."""
        host_outputs = {
            host_output["name"]: host_output for host_output in self.project.outputs()["hosts"]
        }
        environment = {
            **os.environ,
            "DOCKER_HOST": host_outputs[host_name]["engine"],
            "DOCKER_TLS_VERIFY": "1",
            "DOCKER_CERT_PATH": str(certificates or self.client),
        }
        return subprocess.run(
            ["docker", *arguments], env=environment, capture_output=True, text=True, timeout=60
        )

    def report(self, host: str) -> HostReport | None:
        """The last report of ``host`` in its SSM parameter."""
        ssm = self.box.server.client("ssm")
        return HostReport.read(ssm.get_parameter(Name=REPORT.format(host))["Parameter"]["Value"])

    def docker_output(self, host: str, *arguments: str) -> str:
        completed = self.docker(host, *arguments)
        assert completed.returncode == 0, completed.stderr
        return str(completed.stdout).strip()

    def up(self, *flags: str) -> str:
        try:
            return self.project.up(*flags)
        except BaseException as error:
            error.add_note(journals(self.box))
            raise


@pytest.fixture(scope="module")
def hosts(
    box: CloudBox, kafka_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hosts]:
    folder: Path = tmp_path_factory.mktemp("hosts")
    helper = folder / "docker-credential-ecr-login"
    helper.write_text(HELPER)
    helper.chmod(0o755)
    role = folder / "role"
    role.mkdir()
    certificate = self_signed(folder, f"DNS:{REGISTRY}")
    box.engine.run("tag", kafka_image, IN_ECR)
    base = give_engines(
        box,
        [f"test-machines-{host}" for host in HOSTS],
        IN_ECR,
        folder,
        f"--volume={helper}:/usr/local/bin/{helper.name}:ro",
        f"--volume={role}:/usr/local/share/role:ro",
        f"--volume={folder / 'cert.pem'}:/etc/docker/certs.d/{REGISTRY}/ca.crt:ro",
    )
    project = aws_project(folder / "stack", box.server)
    project.seconds = UP_SECONDS
    install_docker_plugin(project.folder / "home")
    shutil.copy(ROOT / "examples" / "docker-hosts" / "__main__.py", project.folder)
    vpc_resolvers = [box.ground.vpc.gateway]  # clients beyond the hosts are in the VPC, too
    resolvers = dict.fromkeys(("internal", "controller", "external"), vpc_resolvers)
    config = {
        "region": REGION,
        "here": f"{box.ground.vpc.gateway}/32",
        "cidr": str(box.ground.vpc.range),
        "gib": "8",
        "ready": "200",
        "image": IN_ECR,
        "images": json.dumps([IN_ECR]),
        "base": base,
        "policy": json.dumps({"names": {"resolvers": resolvers, "timeout": 10}}),
        "protected": "false",
        "data": "delete",
    }
    for key, value in config.items():
        project.run("config", "set", key, value)
    new_hosts = Hosts(box, project, certificate, role)
    yield new_hosts
    project.pulumi("destroy", "--yes", "--skip-preview")
    box.engine.run("rmi", IN_ECR)


def test_hosts_and_a_cluster_in_one_update(hosts: Hosts) -> None:
    output = hosts.project.run("preview")
    assert "docker:index:Container" in output, "planned, though no host is known"
    hosts.up()
    outputs = hosts.project.outputs()
    assert outputs["proof"] == "pass"
    assert sorted(outputs["engines"]) == list(HOSTS)
    assert "unchanged" in hosts.project.up("--expect-no-changes")
    keys = [path for path in hosts.client.parent.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    private = (hosts.client / "key.pem").read_text().splitlines()[1]
    engine = hosts.box.instance("test-machines-a").run("cat", "/run/docker-keys/server.pem")
    (engine_key,) = [
        key_block.splitlines()[1] for key_block in engine.split("-----END PRIVATE KEY-----")[:1]
    ]
    state = hosts.project.run("stack", "export", "--show-secrets")
    assert private not in state and engine_key not in state
    assert engine_key not in hosts.box.instance("test-machines-a").journal()


def test_no_engine_takes_a_client_without_its_authority_s_certificate(
    hosts: Hosts, tmp_path: Path
) -> None:
    assert hosts.docker_output("a", "info", "--format", "{{.ServerVersion}}")
    other_store = EngineStore(tmp_path)
    other_store.keep(new_engines_authority("other", datetime.now(UTC)), datetime.now(UTC))
    shutil.copy(hosts.client / "ca.pem", other_store.client)
    refusal = hosts.docker("a", "info", certificates=other_store.client)
    assert refusal.returncode != 0 and "bad certificate" in refusal.stderr
    (host_output, _) = hosts.project.outputs()["hosts"]
    clear_text_call = subprocess.run(
        ["docker", "--host", host_output["engine"], "info"], capture_output=True, text=True
    )
    assert "HTTP request to an HTTPS server" in clear_text_call.stderr


def test_only_deployers_come_to_the_engine(hosts: Hosts) -> None:
    (host_output, _) = hosts.project.outputs()["hosts"]
    host, _, port = host_output["engine"].removeprefix("tcp://").partition(":")
    with hosts.box.place("inside") as place:  # in the VPC, and in none of the ranges
        assert not place.opens(host, int(port))


def test_hosts_pull_another_image_by_their_role_and_report_why_they_cannot(hosts: Hosts) -> None:
    instances = hosts.project.outputs()["instances"]
    for host in HOSTS:  # the box's DNS server has no names of ECR
        line = f"{hosts.box.ground.vpc.gateway} {REGISTRY}"
        machine = hosts.box.instance(f"test-machines-{host}")
        machine.run("sh", "-c", f"echo '{line}' >>/etc/hosts")

    def problem(host: str) -> bool:
        return str(hosts.report(host)).startswith(f"prepared: cannot pull {PULLED}: ")

    def healthy(host: str) -> bool:
        return str(hosts.report(host)) == "prepared"

    with (
        registry("next", PASSWORD, (hosts.box.ground.vpc.gateway, 443), hosts.certificate),
        ThreadPoolExecutor() as pool,
    ):
        hosts.project.run("config", "set", "images", json.dumps([IN_ECR, PULLED]))
        update = pool.submit(hosts.up)
        until(lambda: update.done() or problem("a"), lambda: f"{hosts.report('a')}")
        assert not update.done(), f"it waits for the image:\n{update.result()}"
        (hosts.role / "password").write_text(PASSWORD)
        update.result()
    assert hosts.project.outputs()["instances"] == instances
    secret = base64.b64encode(f"AWS:{PASSWORD}".encode()).decode()
    for host in HOSTS:
        assert hosts.docker_output(host, "image", "ls", "--quiet", PULLED)
        instance = hosts.box.instance(f"test-machines-{host}")
        assert instance.show("docker-pull.timer", "ActiveState") == "active"
        until(partial(healthy, host), partial(str, host))
        search = f"grep -rslF -e '{PASSWORD}' -e {secret} /etc /root /run /var/lib/docker || true"
        assert instance.run("sh", "-c", search) == "", "no login is kept"


def test_a_replaced_host_has_its_engine_its_brokers_and_their_records(hosts: Hosts) -> None:
    old_outputs = hosts.project.outputs()
    container = hosts.docker_output("b", "ps", "--quiet", "--no-trunc")
    bootstrap = old_outputs["bootstrap"]["INTERNAL"]
    write = f"printf %s kept | kcat -b {bootstrap} -P -t kept -X acks=all"
    hosts.docker_output("b", "exec", container, "bash", "-c", write)

    bigger = json.dumps({"b": {"root_gib": 20}})
    hosts.project.run("config", "set", "instances", bigger)
    hosts.up()
    new_outputs = hosts.project.outputs()
    assert new_outputs["instances"]["a"] == old_outputs["instances"]["a"]
    assert new_outputs["instances"]["b"] != old_outputs["instances"]["b"]
    assert new_outputs["hosts"] == old_outputs["hosts"]
    assert new_outputs["proof"] == "pass"
    assert hosts.docker_output("b", "ps", "--quiet", "--no-trunc") == container, "on its volume"
    read = f"timeout 60 kcat -b {bootstrap} -C -t kept -o beginning -c 1 -q"
    assert hosts.docker_output("b", "exec", container, "bash", "-c", read) == "kept"
    assert "unchanged" in hosts.project.up("--expect-no-changes")


def test_nothing_is_left(hosts: Hosts) -> None:
    client = hosts.client
    hosts.project.destroy()
    assert not client.exists()
    ssm = hosts.box.server.client("ssm")
    parameter_names = [parameter["Name"] for parameter in ssm.describe_parameters()["Parameters"]]
    assert [name for name in parameter_names if name.startswith("/earshot/")] == []
