"""Images from registries that ask for a login, pulled by a real engine."""

import base64
import contextlib
import json
import os
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import docker
import pytest
from earshot_pulumi.docker import images
from earshot_pulumi.docker.container_address import Engines

from earshot.errors import EarshotError
from earshot.user_data.docker_host import REGISTRIES
from earshot.user_data.host_report import HostReport
from tests.doubles.registry import REPOSITORY, registry
from tests.e2e.docker_engine import Engine
from tests.e2e.test_docker_preflight import wanted_image
from tests.user_data.test_docker_host import HOST, PREPARE, files

pytestmark = [pytest.mark.e2e, pytest.mark.combination]

PASSWORD = "of the role"
HELPER = """#!/bin/sh
# A double of the helper of amazon-ecr-credential-helper: answers `get` for one registry.
[ "$1" = get ] || exit 1
read -r server
[ -n "$PASSWORD" ] || { echo "no EC2 IMDS role found"; exit 1; }
printf '{"ServerURL":"%s","Username":"AWS","Secret":"%s"}' "$server" "$PASSWORD"
"""


class DockerHost:
    """The script of a host's user data, run here with this engine in the place of the host's."""

    def __init__(self, engine: Engine, registry: str, image: str, folder: Path) -> None:
        self._engine, self._folder = engine, folder
        self._reports = folder / "reports"
        command = ("sh", "-c", f'printf "%s\\n" "$1" >>{self._reports}', "sh")
        written_files = files(
            replace(HOST, registries=(registry,), images=("echo", image), report=command)
        )
        text = written_files[PREPARE].replace("/run/docker-host", str(folder))
        self._script = folder / "prepare"
        self._script.write_text(text.replace(REGISTRIES, str(folder)))
        (folder / "config.json").write_text(written_files[f"{REGISTRIES}/config.json"])
        helper = folder / "docker-credential-ecr-login"
        helper.write_text(HELPER)
        helper.chmod(helper.stat().st_mode | stat.S_IXUSR)
        (folder / "instance").write_text("i-1\n")
        (folder / "booted").write_text("1790000000\n")

    def pull(self, password: str) -> None:
        environment = {
            **os.environ,
            "PATH": f"{self._folder}:{os.environ['PATH']}",
            "DOCKER_HOST": self._engine.address,
            "PASSWORD": password,
        }
        completed = subprocess.run(
            ["bash", self._script, "pull"], env=environment, capture_output=True, text=True
        )
        assert completed.returncode == 0, completed.stderr

    def reports(self) -> list[str]:
        lines = self._reports.read_text().splitlines() if self._reports.exists() else []
        host_reports = [HostReport.read(line) for line in lines]
        return [f"{host_report}" for host_report in host_reports if host_report is not None]


@pytest.fixture
def image(docker_engine: Engine) -> Iterator[str]:
    """An image in a registry that asks for a login; removed from the engine at the end."""
    with (
        registry("there", PASSWORD) as address,
        contextlib.closing(docker_engine.client()) as client,
    ):
        name = f"{address}/{REPOSITORY}:there"
        yield name
        if has(client, name):
            client.images.remove(name)


def has(client: docker.DockerClient, name: str) -> bool:
    return name in [tag for image in client.images.list() for tag in image.tags]


def test_a_host_pulls_with_its_role_and_says_why_it_cannot(
    docker_engine: Engine, image: str, tmp_path: Path
) -> None:
    host = DockerHost(docker_engine, image.partition("/")[0], image, tmp_path)
    with contextlib.closing(docker_engine.client()) as client:
        host.pull("")
        host.pull("")
        (report,) = host.reports()  # once
        assert report.startswith(f"prepared: cannot pull {image}: "), report
        assert not has(client, image)
        host.pull("of another")
        assert host.reports()[-1].startswith(f"prepared: cannot pull {image}: ")
        assert not has(client, image)
        host.pull(PASSWORD)
        assert has(client, image)
        assert host.reports()[-1] == "prepared"
    stored_text = "".join(path.read_text() for path in tmp_path.iterdir() if path.is_file())
    secret = base64.b64encode(f"AWS:{PASSWORD}".encode()).decode()
    assert PASSWORD not in stored_text and secret not in stored_text


def test_other_registries_take_the_login_of_this_machine(
    docker_engine: Engine, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    registry_image = wanted_image(docker_engine, image)
    with Engines() as engines, pytest.raises(EarshotError) as caught:
        images.pull(engines, registry_image, ["local"], print)
    assert "log in to it on this machine (docker login)" in str(caught.value)
    secret = base64.b64encode(f"AWS:{PASSWORD}".encode()).decode()
    logins = {"auths": {image.partition("/")[0]: {"auth": secret}}}
    (tmp_path / "config.json").write_text(json.dumps(logins))
    with Engines() as engines:
        images.pull(engines, registry_image, ["local"], print)
        assert images.absent(engines, registry_image) == []
