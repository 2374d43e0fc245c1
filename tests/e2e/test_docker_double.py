"""The Docker double on a real engine, driven by the real CLI."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.docker_engine import Engine
from tests.e2e.docker_project import Project, docker_project

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(600)]


@pytest.fixture
def project(docker_engine: Engine, client_image: str, tmp_path: Path) -> Iterator[Project]:
    """A project whose resources, whatever becomes of the test, are gone from the engine."""
    made = docker_project(tmp_path / "p", docker_engine)
    yield made
    made.pulumi("destroy", "--yes", "--skip-preview")


@pytest.fixture
def mark() -> str:
    """Part of a name that nobody else uses."""
    return f"e{uuid.uuid4().hex[:8]}"


def inspected(engine: Engine, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(engine.run("inspect", name))[0]
    return found


def names(engine: Engine, kind: str, mark: str) -> set[str]:
    found = engine.run(kind, "ls", *(["--all"] if kind == "container" else []), "--format=json")
    lines = [json.loads(line) for line in found.splitlines()]
    all_names = {line.get("Names") or line["Name"] for line in lines}
    return {name for name in all_names if mark in name}


def test_a_stack_comes_up_stays_and_goes(project: Project, client_image: str, mark: str) -> None:
    engine = project.engine
    project.write(
        f"""
        image = docker.RemoteImage("image", name="{client_image}", keep_locally=True)
        network = docker.Network("net", name="{mark}-net")
        volume = docker.Volume("data", name="{mark}-data")
        container = docker.Container(
            "c",
            name="{mark}-c",
            image=image.image_id,
            hostname="inner",
            envs=["A=1", "B=two words"],
            command=["nc", "-lk", "-p", "80"],
            ports=[
                docker.ContainerPortArgs(internal=80, external=0, ip="127.0.0.1"),
                docker.ContainerPortArgs(internal=81, protocol="udp"),
            ],
            networks_advanced=[
                docker.ContainerNetworksAdvancedArgs(name=network.name, aliases=["one", "two"])
            ],
            volumes=[
                docker.ContainerVolumeArgs(volume_name=volume.name, container_path="/data"),
                docker.ContainerVolumeArgs(
                    host_path="/etc", container_path="/host", read_only=True
                ),
            ],
            healthcheck=docker.ContainerHealthcheckArgs(
                tests=["CMD", "nc", "-z", "localhost", "80"],
                interval="1s", timeout="5s", start_period="1m", retries=3,
            ),
            wait=True,
            restart="unless-stopped",
            user="root",
            labels=[docker.ContainerLabelArgs(label="owner", value="{mark}")],
            dns=["127.0.0.53"],
            hosts=[docker.ContainerHostArgs(host="elsewhere", ip="192.0.2.7")],
            memory=128,
            log_opts={{"max-size": "1m"}},
            stop_timeout=1,
            destroy_grace_seconds=1,
            capabilities=docker.ContainerCapabilitiesArgs(drops=["NET_RAW"]),
            tmpfs={{"/scratch": "size=1m"}},
            uploads=[docker.ContainerUploadArgs(file="/hello", content="world")],
        )
        pulumi.export("address", container.network_datas[0].ip_address)
        """
    )
    preview = project.pulumi("preview")
    assert preview.returncode == 0 and "+ 5 to create" in preview.stdout, preview.stdout
    assert names(engine, "container", mark) == set()

    output = project.up()
    assert "+ 5 created" in output
    found = inspected(engine, f"{mark}-c")
    config, host = found["Config"], found["HostConfig"]
    assert found["State"]["Health"]["Status"] == "healthy"
    assert (config["Hostname"], config["User"]) == ("inner", "root")
    assert {"A=1", "B=two words"} <= set(config["Env"])
    assert config["Cmd"] == ["nc", "-lk", "-p", "80"]
    assert config["Labels"]["owner"] == mark
    assert config["Healthcheck"]["StartPeriod"] == 60_000_000_000
    assert (config["StopTimeout"], host["Memory"]) == (1, 128 * 1024**2)
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    assert (host["Dns"], host["ExtraHosts"]) == (["127.0.0.53"], ["elsewhere:192.0.2.7"])
    assert (host["CapDrop"], host["Tmpfs"]) == (["NET_RAW"], {"/scratch": "size=1m"})
    assert host["LogConfig"]["Config"] == {"max-size": "1m"}
    assert set(host["PortBindings"]) == {"80/tcp", "81/udp"}
    assert host["PortBindings"]["80/tcp"][0]["HostIp"] == "127.0.0.1"
    assert {f"{mark}-data:/data:rw", "/etc:/host:ro"} == set(host["Binds"])
    networks = found["NetworkSettings"]["Networks"]
    assert set(networks) == {f"{mark}-net"}
    assert {"one", "two"} <= set(networks[f"{mark}-net"]["Aliases"])
    assert project.outputs()["address"] == networks[f"{mark}-net"]["IPAddress"]
    assert engine.run("exec", f"{mark}-c", "cat", "/hello") == "world"
    assert engine.run("exec", f"{mark}-c", "getent", "hosts", "two")

    for flags in ((), ("--refresh",)):
        output = project.up(*flags)
        assert "5 unchanged" in output and "created" not in output
    assert inspected(engine, f"{mark}-c")["Id"] == found["Id"]

    project.destroy()
    for kind in ("container", "network", "volume"):
        assert names(engine, kind, mark) == set()
    assert engine.run("image", "inspect", client_image), "it was to be kept"


def simple(mark: str, image: str, more: str = "") -> str:
    return f"""
        image = docker.RemoteImage("image", name="{image}", keep_locally=True)
        docker.Container("c", name="{mark}-c", image=image.image_id, {more})
        """


def test_changes_replace_deleting_first_or_update_in_place(
    project: Project, client_image: str, mark: str
) -> None:
    engine, name = project.engine, f"{mark}-c"
    project.write(simple(mark, client_image, 'envs=["A=1"], memory=64'))
    project.up()
    first = inspected(engine, name)["Id"]

    project.write(simple(mark, client_image, 'envs=["A=2"], memory=64'))
    preview = project.pulumi("preview", "--diff")
    assert "replace" in preview.stdout
    assert "+-1 replaced" in project.up()
    second = inspected(engine, name)
    assert second["Id"] != first and "A=2" in second["Config"]["Env"]

    project.write(simple(mark, client_image, 'envs=["A=2"], memory=96, restart="always"'))
    assert "~ 1 updated" in project.up()
    third = inspected(engine, name)
    assert third["Id"] == second["Id"]
    assert third["HostConfig"]["Memory"] == 96 * 1024**2
    assert third["HostConfig"]["RestartPolicy"]["Name"] == "always"


def test_a_stopped_container_is_started_and_a_removed_one_made_again(
    project: Project, client_image: str, mark: str
) -> None:
    engine, name = project.engine, f"{mark}-c"
    project.write(simple(mark, client_image))
    project.up()
    first = inspected(engine, name)["Id"]

    engine.run("kill", name)
    assert "unchanged" in project.up()
    assert not inspected(engine, name)["State"]["Running"], "only a refresh looks"
    assert "~ 1 updated" in project.up("--refresh")
    found = inspected(engine, name)
    assert found["Id"] == first and found["State"]["Running"]
    assert "unchanged" in project.up("--refresh")

    engine.run("rm", "--force", "--volumes", name)
    assert "+ 1 created" in project.up("--refresh")
    found = inspected(engine, name)
    assert found["Id"] != first and found["State"]["Running"]

    engine.run("rm", "--force", "--volumes", name)
    project.destroy()
    assert names(engine, "container", mark) == set()


def test_a_container_that_need_not_run_is_left_alone(
    project: Project, client_image: str, mark: str
) -> None:
    program = simple(mark, client_image, 'must_run=False, command=["true"]')
    project.write(program + 'pulumi.export("x", 1)\n')
    project.up()
    assert "unchanged" in project.up("--refresh")
    assert not inspected(project.engine, f"{mark}-c")["State"]["Running"]


def test_what_is_not_implemented_is_refused_by_name(
    project: Project, client_image: str, mark: str
) -> None:
    project.write(simple(mark, client_image, 'gpus="all"'))
    for command in ("preview", "up"):
        output = project.fails(command=command)
        assert "the input gpus is not implemented by this test double" in output
    project.write('docker.Tag("t", source_image="a", target_image="b")\n')
    assert "docker:index/tag:Tag is not implemented by this test double" in project.fails()
    project.write('docker.Provider("p", ca_material="x")\n')
    assert "caMaterial is not implemented by this test double" in project.fails()
    assert names(project.engine, "container", mark) == set()


def test_a_missing_image_is_named_and_the_next_run_goes_on(
    project: Project, client_image: str, mark: str
) -> None:
    project.write(simple(mark, "nobody/has-this:1"))
    assert "Unable to find the image nobody/has-this:1 on the engine" in project.fails()
    project.write(f'docker.Container("c", name="{mark}-c", image="nobody/has-this:2")\n')
    assert "Unable to find the image nobody/has-this:2 on the engine" in project.fails()
    project.write(simple(mark, client_image))
    project.up()


def test_a_taken_name_is_the_engines_own_message(
    project: Project, client_image: str, mark: str
) -> None:
    engine, name = project.engine, f"{mark}-c"
    engine.run("create", "--name", name, client_image)
    engine.run("network", "create", f"{mark}-net")
    try:
        project.write(simple(mark, client_image))
        assert f'The container name "/{name}" is already in use' in project.fails()
        project.write(f'docker.Network("n", name="{mark}-net")')
        assert f"network with name {mark}-net already exists" in project.fails()
    finally:
        engine.run("rm", "--force", "--volumes", name)
        engine.run("network", "rm", f"{mark}-net")
    project.up()
    assert names(engine, "network", mark) == {f"{mark}-net"}


def test_a_container_that_ends_at_once_says_its_last_line(
    project: Project, client_image: str, mark: str
) -> None:
    command = 'command=["sh", "-c", "echo no luck; exit 3"]'
    project.write(simple(mark, client_image, command))
    assert f"container {mark}-c exited with status 3: no luck" in project.fails()
    assert names(project.engine, "container", mark) == {f"{mark}-c"}, "known to the state"
    project.write(simple(mark, client_image))
    project.up()
    assert inspected(project.engine, f"{mark}-c")["State"]["Running"]


def test_waiting_ends_with_what_the_health_check_said(
    project: Project, client_image: str, mark: str
) -> None:
    check = 'docker.ContainerHealthcheckArgs(tests=["CMD-SHELL", "echo ill; false"], {})'
    check = check.format('interval="1s", retries=1')
    project.write(simple(mark, client_image, f"wait=True, wait_timeout=3, healthcheck={check}"))
    output = project.fails()
    assert f"container {mark}-c is unhealthy, not healthy, after 3 s: status 1 ill" in output
    project.write(simple(mark, client_image, "wait=True"))
    assert "is to be waited for and has no health check" in project.fails()


def test_a_port_in_use_is_the_engines_own_message(
    project: Project, client_image: str, mark: str
) -> None:
    engine = project.engine
    id = engine.run("run", "--detach", "--publish=127.0.0.1::80", client_image).strip()
    try:
        port = engine.run("port", id, "80").strip().rpartition(":")[2]
        ports = f'ports=[docker.ContainerPortArgs(internal=80, external={port}, ip="127.0.0.1")]'
        project.write(simple(mark, client_image, ports))
        assert "port is already allocated" in project.fails()
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
    output = project.fails()
    assert f"no Docker engine answers at unix://{tmp_path}/none.sock" in output
    assert names(project.engine, "volume", mark) == set()


def test_names_are_made_up_where_none_is_given(project: Project, client_image: str) -> None:
    project.write(
        """
        pulumi.export("network", docker.Network("made-up").name)
        pulumi.export("volume", docker.Volume("made-up").name)
        """
    )
    project.up()
    found = project.outputs()
    assert all(name.startswith("made-up-") for name in found.values())
    assert "unchanged" in project.up()
    assert project.outputs() == found
