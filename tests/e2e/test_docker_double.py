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
from tests.e2e.ports import free_ports

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
    engine, (tcp, udp) = project.engine, free_ports(2)
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
                docker.ContainerPortArgs(internal=81, external={udp}, protocol="udp"),
                docker.ContainerPortArgs(internal=80, external={tcp}, ip="127.0.0.1"),
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
                tests=["CMD", "nc", "-z", "localhost", "80"], start_period="1m", retries=3,
            ),
            restart="unless-stopped",
            labels=[docker.ContainerLabelArgs(label="owner", value="{mark}")],
            dns=["192.0.2.53", "10.255.255.53"],
            log_opts={{"max-size": "1m"}},
            stop_timeout=1,
            destroy_grace_seconds=1,
        )
        pulumi.export("address", container.network_datas[0].ip_address)
        pulumi.export("ports", container.ports)
        """
    )
    preview = project.pulumi("preview")
    assert preview.returncode == 0 and "+ 5 to create" in preview.stdout, preview.stdout
    assert names(engine, "container", mark) == set()

    output = project.up()
    assert "+ 5 created" in output
    found = inspected(engine, f"{mark}-c")
    config, host = found["Config"], found["HostConfig"]
    assert config["Hostname"] == "inner"
    assert {"A=1", "B=two words"} <= set(config["Env"])
    assert config["Cmd"] == ["nc", "-lk", "-p", "80"]
    assert config["Labels"]["owner"] == mark
    assert config["Healthcheck"]["StartPeriod"] == 60_000_000_000
    assert config["StopTimeout"] == 1
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    assert host["Dns"] == ["10.255.255.53", "192.0.2.53"], "a set, in an order of its own"
    assert host["LogConfig"]["Config"] == {"max-size": "1m"}
    assert set(host["PortBindings"]) == {"80/tcp", "81/udp"}
    assert {f"{mark}-data:/data:rw", "/etc:/host:ro"} == set(host["Binds"])
    networks = found["NetworkSettings"]["Networks"]
    assert set(networks) == {f"{mark}-net"}
    assert {"one", "two"} <= set(networks[f"{mark}-net"]["Aliases"])
    outputs = project.outputs()
    assert outputs["address"] == networks[f"{mark}-net"]["IPAddress"]
    described = [(it["internal"], it["ip"], it["protocol"]) for it in outputs["ports"]]
    assert described == [(80, "127.0.0.1", "tcp"), (81, "0.0.0.0", "udp")], "sorted, whole"
    assert engine.run("exec", f"{mark}-c", "getent", "hosts", "two")

    for flags in ((), ("--refresh",)):
        output = project.up(*flags)
        assert "5 unchanged" in output and "created" not in output
    assert inspected(engine, f"{mark}-c")["Id"] == found["Id"]
    shapes = {it["type"].rpartition(":")[2]: it for it in resources(project)}
    inputs, outputs = (shapes["Container"][it] for it in ("inputs", "outputs"))
    assert inputs["waitTimeout"] == 60 and "waitTimeout" in inputs["__defaults"]
    assert inputs["ports"][0]["__defaults"] == ["ip"]
    assert inputs["ports"][1]["__defaults"] == ["protocol"]
    assert "__defaults" not in outputs and outputs["dnsOpts"] == []
    assert outputs["networksAdvanced"][0]["ipv6Address"] == ""

    project.destroy()
    for kind in ("container", "network", "volume"):
        assert names(engine, kind, mark) == set()
    assert engine.run("image", "inspect", client_image), "it was to be kept"


def resources(project: Project) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(project.runs("stack", "export"))["deployment"][
        "resources"
    ]
    return found


def simple(mark: str, image: str, more: str = "") -> str:
    return f"""
        image = docker.RemoteImage("image", name="{image}", keep_locally=True)
        docker.Container("c", name="{mark}-c", image=image.image_id, {more})
        """


def test_what_is_replaced_deleting_first_and_what_is_updated_in_place(
    project: Project, client_image: str, mark: str
) -> None:
    engine, name, (port,) = project.engine, f"{mark}-c", free_ports(1)
    published = f"ports=[docker.ContainerPortArgs(internal=80, external={port})]"
    project.write(simple(mark, client_image, 'envs=["A=1"]'))
    project.up()
    first = inspected(engine, name)["Id"]

    project.write(simple(mark, client_image, f'envs=["A=2"], {published}'))
    assert "+-1 replaced" in project.up()
    second = inspected(engine, name)
    assert second["Id"] != first and "A=2" in second["Config"]["Env"]

    project.write(simple(mark, client_image, f'envs=["A=2"], restart="always", {published}'))
    assert "~ 1 updated" in project.up()
    third = inspected(engine, name)
    assert third["Id"] == second["Id"]
    assert third["HostConfig"]["RestartPolicy"]["Name"] == "always"

    engine.run("kill", name)
    assert "unchanged" in project.up(), "only a refresh looks"
    assert "+-1 replaced" in project.up("--refresh"), "it has no ports, and must run"
    fourth = inspected(engine, name)["Id"]
    assert fourth != third["Id"]

    more = f'envs=["A=2"], restart="always", must_run=False, {published}'
    project.write(simple(mark, client_image, more))
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


def test_a_container_that_ends_at_once_was_created(
    project: Project, client_image: str, mark: str
) -> None:
    project.write(simple(mark, client_image, 'command=["true"]'))
    project.up()
    assert not inspected(project.engine, f"{mark}-c")["State"]["Running"]


def test_what_is_not_implemented_is_refused_by_name(
    project: Project, client_image: str, mark: str
) -> None:
    project.write(simple(mark, client_image, 'gpus="all"'))
    for command in ("preview", "up"):
        output = project.fails(command=command)
        assert "the input gpus is not implemented by this test double" in output
    project.write(simple(mark, client_image, "wait=True"))
    assert "waiting for health is not implemented" in project.fails(command="preview")
    project.write('docker.Tag("t", source_image="a", target_image="b")\n')
    assert "docker:index/tag:Tag is not implemented by this test double" in project.fails()
    project.write('docker.Provider("p", ca_material="x")\n')
    assert "caMaterial is not implemented by this test double" in project.fails()
    assert names(project.engine, "container", mark) == set()


def test_a_missing_image_is_named_and_the_next_run_goes_on(
    project: Project, client_image: str, mark: str
) -> None:
    project.write(simple(mark, "nobody/has-this:1"))
    assert "unable to pull image nobody/has-this:1: error pulling image" in project.fails()
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
    assert f"failed to connect to any docker daemon at unix://{tmp_path}/none.sock" in output
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
