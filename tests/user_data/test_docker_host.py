"""User data of a Docker host: its files, and its script."""

import json
import subprocess
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from earshot.user_data.boot import System, ssm_report, ssm_secret
from earshot.user_data.cloud_config import LIMIT
from earshot.user_data.docker_host import (
    KEYS,
    REGISTRIES,
    ROOT,
    DockerHost,
    docker_host_user_data,
)
from earshot.user_data.host_report import HostReport
from tests.user_data.properties import files_in
from tests.user_data.test_scripts import schema

REGION = "eu-central-1"
HOST = DockerHost(
    name="a", address="10.20.0.10", volume="vol-0123456789abcdef0",
    authority="-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    version="0123456789abcdef",
    fetch=ssm_secret("server.pem", "/earshot/s-m/docker/a/key", REGION).command,
    report=ssm_report("/earshot/s-m/docker/a/report", REGION), bridge=IPv4Network("172.17.0.0/16"),
)  # fmt: skip
REGISTRY = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
WITH_ECR = replace(
    HOST,
    registries=(REGISTRY,),
    images=ssm_secret("images", "/earshot/s-m/docker/images", REGION).command,
)
PREPARE = "/usr/local/sbin/docker-prepare"
UNITS = "/etc/systemd/system"


def files(host: DockerHost = HOST) -> dict[str, Any]:
    return files_in(docker_host_user_data(host))


def test_the_engine_checks_clients_and_uses_its_volume_and_free_addresses() -> None:
    settings = json.loads(files()["/etc/docker/daemon.json"])
    assert settings["tls"] and settings["tlsverify"]
    assert settings["tlscert"] == settings["tlskey"] == f"{KEYS}/server.pem"
    assert files()[settings["tlscacert"]] == HOST.authority
    assert "hosts" not in settings, "its unit has them"
    assert settings["data-root"] == ROOT
    assert settings["bip"] == "172.17.0.1/24"
    assert settings["default-address-pools"] == [{"base": "172.17.0.0/16", "size": 24}]


def test_it_listens_at_the_private_address_only_and_starts_after_its_volume_and_key() -> None:
    unit = files()[f"{UNITS}/docker.service.d/earshot.conf"]
    assert "--host=fd:// --host=tcp://10.20.0.10:2376 " in unit
    assert unit.count("--host=tcp") == 1 and "0.0.0.0" not in unit
    assert "Requires=docker-prepare.service\nAfter=docker-prepare.service\n" in unit
    script = files()[PREPARE]
    assert script.index("\nmount_volume\n") < script.rindex("\nfetch_key\n")


def test_another_key_is_another_boot() -> None:
    assert docker_host_user_data(replace(HOST, version="another")) != docker_host_user_data(HOST)


@pytest.mark.parametrize("system", System)
def test_images_in_ecr_are_pulled_with_the_role_s_login(system: System) -> None:
    text = docker_host_user_data(replace(WITH_ECR, system=system))
    assert text.isascii() and len(text) < LIMIT
    written_files = files_in(text)
    settings = json.loads(written_files[f"{REGISTRIES}/config.json"])
    assert settings == {"credHelpers": {REGISTRY: "ecr-login"}}
    assert (
        "need docker-credential-ecr-login amazon-ecr-credential-helper\n" in written_files[PREPARE]
    )
    assert "--name /earshot/s-m/docker/images" in written_files[PREPARE]
    assert "AWS_ECR_DISABLE_CACHE=1" in written_files[PREPARE], "no login is written to the disk"
    assert "docker-prepare pull\n" in written_files[f"{UNITS}/docker-prepare.service"]


def test_a_host_without_images_in_ecr_has_nothing_of_them() -> None:
    text = docker_host_user_data(replace(WITH_ECR, registries=()))
    assert text == docker_host_user_data(HOST)
    assert "ecr-login" not in text and "docker-pull" not in text


@pytest.mark.requires("shellcheck")
@pytest.mark.parametrize("system", System)
def test_shellcheck_finds_nothing(system: System, tmp_path: Path) -> None:
    path = tmp_path / "prepare.sh"
    path.write_text(files(replace(WITH_ECR, system=system))[PREPARE])
    completed = subprocess.run(["shellcheck", path], capture_output=True, text=True)
    assert (completed.returncode, completed.stdout) == (0, "")


@pytest.mark.requires("cloud-init")
def test_cloud_inits_schema_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "user-data"
    path.write_text(docker_host_user_data(WITH_ECR))
    completed = schema(path)
    assert completed.returncode == 0, completed.stdout + completed.stderr


@pytest.mark.parametrize(
    ("problem", "expected"),
    [('it says "no" \\ to\nthat', "it says no  to that"), ("x" * 700, "x" * 600)],
)
def test_a_report_can_be_read_whatever_the_problem_is(
    problem: str, expected: str, tmp_path: Path
) -> None:
    script = files(replace(HOST, report=("printf", "%s\n")))[PREPARE]
    begin, end = script.index("report() {"), script.index("finish() {")
    (tmp_path / "instance").write_text("i-1\n")
    (tmp_path / "booted").write_text("1790000000\n")
    program = f'set -euo pipefail\nstate={tmp_path}\n{script[begin:end]}\nreport failed "$1"'
    completed = subprocess.run(
        ["bash", "-c", program, "-", problem], capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr
    report = HostReport.read(completed.stdout)
    assert report is not None and report.is_final
    assert (report.instance, report.detail, report.booted) == ("i-1", expected, 1790000000)


@pytest.mark.parametrize("text", ["nothing yet", "", "{}", '{"instance": "i-1", "state": "up"}'])
def test_what_is_no_report_is_none(text: str) -> None:
    assert HostReport.read(text) is None
