"""The Docker double on a real engine, driven by the real CLI."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.docker.install import real_plugin
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_project import Project, docker_project
from tests.e2e.ports import free_ports
from tests.skips import not_meant

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(600)]


@pytest.fixture
def project(docker_engine: Engine, client_image: str, tmp_path: Path) -> Iterator[Project]:
    """A project whose resources, whatever becomes of the test, are gone from the engine."""
    new_project = docker_project(tmp_path / "p", docker_engine)
    yield new_project
    new_project.pulumi("destroy", "--yes", "--skip-preview")


@pytest.fixture
def mark() -> str:
    """A unique part of names."""
    return f"e{uuid.uuid4().hex[:8]}"


def inspect_container(engine: Engine, name: str) -> dict[str, Any]:
    container: dict[str, Any] = json.loads(engine.run("inspect", name))[0]
    return container


def names(engine: Engine, kind: str, mark: str) -> set[str]:
    output = engine.run(kind, "ls", *(["--all"] if kind == "container" else []), "--format=json")
    lines = [json.loads(line) for line in output.splitlines()]
    all_names = {line.get("Names") or line["Name"] for line in lines}
    return {name for name in all_names if mark in name}


def container_program(mark: str, image: str, container_arguments: str = "") -> str:
    return f"""
        image = docker.RemoteImage("image", name="{image}", keep_locally=True)
        docker.Container("c", name="{mark}-c", image=image.image_id, {container_arguments})
        """


def test_what_is_replaced_deleting_first_and_what_is_updated_in_place(
    project: Project, client_image: str, mark: str
) -> None:
    engine, name, (port,) = project.engine, f"{mark}-c", free_ports(1)
    published = f"ports=[docker.ContainerPortArgs(internal=80, external={port})]"
    project.write(container_program(mark, client_image, 'envs=["A=1"]'))
    project.up()
    first_id = inspect_container(engine, name)["Id"]

    project.write(container_program(mark, client_image, f'envs=["A=2"], {published}'))
    assert "+-1 replaced" in project.up()
    second_container = inspect_container(engine, name)
    assert second_container["Id"] != first_id and "A=2" in second_container["Config"]["Env"]

    project.write(
        container_program(mark, client_image, f'envs=["A=2"], restart="always", {published}')
    )
    assert "~ 1 updated" in project.up()
    third_container = inspect_container(engine, name)
    assert third_container["Id"] == second_container["Id"]
    assert third_container["HostConfig"]["RestartPolicy"]["Name"] == "always"

    engine.run("kill", name)
    assert "unchanged" in project.up(), "only a refresh looks"
    assert "+-1 replaced" in project.up("--refresh"), "it has no ports, and must run"
    fourth_id = inspect_container(engine, name)["Id"]
    assert fourth_id != third_container["Id"]

    container_arguments = f'envs=["A=2"], restart="always", must_run=False, {published}'
    project.write(container_program(mark, client_image, container_arguments))
    assert "~ 1 updated" in project.up()
    engine.run("kill", name)
    assert "unchanged" in project.up("--refresh")
    engine.run("start", name)
    engine.run("network", "disconnect", "bridge", name)
    assert "+-1 replaced" in project.up("--refresh"), "it has no ports again"

    engine.run("rm", "--force", "--volumes", name)
    assert "+ 1 created" in project.up("--refresh")
    engine.run("rm", "--force", "--volumes", name)
    project.destroy()
    assert names(engine, "container", mark) == set()


def test_what_is_not_implemented_is_refused_by_name(
    project: Project, client_image: str, mark: str
) -> None:
    if real_plugin():
        not_meant("a real plugin implements all")
    project.write(container_program(mark, client_image, 'gpus="all"'))
    for command in ("preview", "up"):
        output = project.failed_output(command=command)
        assert "the input gpus is not implemented by this test double" in output
    project.write(container_program(mark, client_image, "wait=True"))
    assert "waiting for health is not implemented" in project.failed_output(command="preview")
    project.write('docker.Tag("t", source_image="a", target_image="b")\n')
    assert "docker:index/tag:Tag is not implemented by this test double" in project.failed_output()
    project.write('docker.Provider("p", ca_material="x")\n')
    assert "caMaterial is not implemented by this test double" in project.failed_output()
    assert names(project.engine, "container", mark) == set()


def test_a_missing_image_is_named_and_the_next_run_goes_on(
    project: Project, client_image: str, mark: str
) -> None:
    project.write(container_program(mark, "nobody/has-this:1"))
    assert "unable to pull image nobody/has-this:1: error pulling image" in project.failed_output()
    project.write(container_program(mark, client_image))
    project.up()


def test_a_taken_name_is_the_engines_own_message(
    project: Project, client_image: str, mark: str
) -> None:
    engine, name = project.engine, f"{mark}-c"
    engine.run("create", "--name", name, client_image)
    engine.run("network", "create", f"{mark}-net")
    try:
        project.write(container_program(mark, client_image))
        assert f'The container name "/{name}" is already in use' in project.failed_output()
        project.write(f'docker.Network("n", name="{mark}-net")')
        assert f"network with name {mark}-net already exists" in project.failed_output()
    finally:
        engine.run("rm", "--force", "--volumes", name)
        engine.run("network", "rm", f"{mark}-net")
    project.up()
    assert names(engine, "network", mark) == {f"{mark}-net"}


def test_a_port_in_use_is_the_engines_own_message(
    project: Project, client_image: str, mark: str
) -> None:
    engine = project.engine
    id = engine.run("run", "--detach", "--publish=127.0.0.1::80", client_image).strip()
    try:
        port = engine.run("port", id, "80").strip().rpartition(":")[2]
        ports = f'ports=[docker.ContainerPortArgs(internal=80, external={port}, ip="127.0.0.1")]'
        project.write(container_program(mark, client_image, ports))
        assert "port is already allocated" in project.failed_output()
    finally:
        engine.run("rm", "--force", "--volumes", id)


def test_no_engine_at_the_providers_host(
    project: Project, client_image: str, mark: str, tmp_path: Path
) -> None:
    project.write(
        f"""
        provider = docker.Provider("elsewhere", host="unix://{tmp_path}/none.sock")
        docker.Volume(
            "v", name="{mark}-v", opts=pulumi.ResourceOptions(provider=provider)
        )
        """
    )
    output = project.failed_output()
    address = f"unix://{tmp_path}/none.sock"
    if real_plugin():  # of the upstream provider; the official plugin asks the engine before it
        assert address in output
    else:
        assert f"failed to connect to any docker daemon at {address}" in output
    assert names(project.engine, "volume", mark) == set()
