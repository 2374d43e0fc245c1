"""What a docker stack needs before Pulumi runs: an engine that answers, a plugin that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.project import Project
from earshot.spec.docker import DockerHost, DockerSpec
from toolchain import docker_placement
from toolchain import stack as stack_module
from toolchain.stack import Stack, main

NOBODY = "tcp://127.0.0.1:1"
"""An engine that nobody has."""


def spec(engine: str) -> DockerSpec:
    return DockerSpec(placement="docker", hosts=(DockerHost(engine=engine),))


def test_no_engine_no_stack() -> None:
    with pytest.raises(EarshotError, match="does not answer") as caught:
        docker_placement.check(spec(NOBODY), {})
    assert "apt-get install docker.io" in str(caught.value)


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
    Stack("local")._check_needs()
    Stack("nobody")._check_needs()
    with pytest.raises(EarshotError, match="does not answer"):
        Stack("docker")._check_needs()
