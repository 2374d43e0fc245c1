"""What a docker stack needs before Pulumi runs: an engine that answers, a plugin that is there."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.project import Project
from earshot.spec.docker import DockerHost, DockerSpec
from toolchain import docker_placement
from toolchain import stack as stack_module
from toolchain.pulumi_cli import installation
from toolchain.pulumi_cli.installation import Installation, Origin
from toolchain.stack import Stack, main

NOBODY = "tcp://127.0.0.1:1"
"""An engine that nobody has."""
VERSION = importlib.metadata.version("pulumi-docker")


def use(monkeypatch: pytest.MonkeyPatch, origin: Origin) -> None:
    cli = Installation(Path("/opt/pulumi/bin"), "3.259.0", origin)
    monkeypatch.setattr(installation, "recorded", lambda: cli)


def spec(engine: str) -> DockerSpec:
    return DockerSpec(placement="docker", hosts=(DockerHost(engine=engine),))


def test_no_engine_no_stack() -> None:
    with pytest.raises(EarshotError, match="does not answer") as caught:
        docker_placement.check(spec(NOBODY), {})
    assert "apt-get install docker.io" in str(caught.value)


@pytest.mark.parametrize("origin", [Origin.INSTALLED, Origin.DOWNLOADED])
def test_official_clis_get_the_plugin_themselves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: Origin
) -> None:
    use(monkeypatch, origin)
    docker_placement._check_plugin({"PULUMI_HOME": str(tmp_path)})


def test_the_built_cli_has_to_be_given_the_plugin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, Origin.BUILT)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    environment = {"PULUMI_HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    with pytest.raises(EarshotError) as caught:
        docker_placement._check_plugin(environment)
    text = str(caught.value)
    command = f"/opt/pulumi/bin/pulumi plugin install resource docker {VERSION}"
    assert f"PULUMI_HOME={tmp_path} {command}\n" in text
    assert f"--file pulumi-resource-docker-v{VERSION}-linux-arm64.tar.gz" in text
    assert caught.value.exit_code == 2

    (tmp_path / "plugins" / f"resource-docker-v{VERSION}").mkdir(parents=True)
    docker_placement._check_plugin(environment)


def test_a_plugin_on_the_path_will_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, Origin.BUILT)
    plugin = tmp_path / "pulumi-resource-docker"
    plugin.write_text("")
    plugin.chmod(0o755)
    docker_placement._check_plugin({"PULUMI_HOME": str(tmp_path), "PATH": str(tmp_path)})


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose docker template names an engine that nobody has."""
    (tmp_path / "Pulumi.yaml").write_text(
        "name: earshot\nruntime: python\nstackConfigDir: stacks\n"
    )
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.docker.yaml").write_text(
        "config:\n  earshot:cluster:\n    placement: docker\n"
        f"    hosts: [{{name: local, engine: '{NOBODY}'}}]\n"
    )
    (tmp_path / "stacks" / "Pulumi.local.yaml").write_text(
        "config:\n  earshot:cluster:\n    placement: local\n"
    )
    monkeypatch.setattr(stack_module, "ROOT", tmp_path)
    monkeypatch.setattr(stack_module, "variables", lambda _stack: {})
    return tmp_path


def test_make_up_says_how_to_get_an_engine_before_anything_else(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Stack, "_pulumi", lambda *_: pytest.fail("Pulumi was run"))
    monkeypatch.setattr(Stack, "_earshot", lambda *_: pytest.fail("something else came first"))
    assert main(["up", "--stack", "docker-mine"]) == 2
    told = capsys.readouterr().err
    assert f"Docker engine at {NOBODY}: does not answer" in told
    assert "apt-get install docker.io" in told
    assert Project(checkout).stack_file("docker-mine").exists(), "made from the template"


def test_a_local_stack_needs_no_engine(checkout: Path) -> None:
    assert Stack("local")._docker() is None
    assert Stack("docker")._docker() is not None
    assert Stack("nobody")._docker() is None
