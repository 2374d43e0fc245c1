"""System packages: installed unasked in CI as root, named everywhere else."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from toolchain import system_packages
from toolchain.system_packages import TOOLS, Tool

KCAT = Tool("kcat", "kcat")
DOCKERD = Tool("dockerd", "docker.io")


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that are not run."""
    recorded: list[list[str]] = []

    def record(command: list[str], environment: Mapping[str, str]) -> None:
        recorded.append(command)

    monkeypatch.setattr(system_packages, "_retry", record)
    monkeypatch.setattr(system_packages, "missing", lambda: [KCAT])
    return recorded


def test_elsewhere_the_command_is_printed(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(system_packages, "may_install", lambda: False)
    system_packages.ensure(for_tests=True)
    assert commands == []
    assert "apt-get install --yes kcat" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("for_tests", "expected"),
    [(True, [["apt-get", "update"], ["apt-get", "install", "--yes", "kcat"]]), (False, [])],
)
def test_in_ci_the_tools_of_tests_are_installed(
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    for_tests: bool,
    expected: list[list[str]],
) -> None:
    monkeypatch.setattr(system_packages, "may_install", lambda: True)
    system_packages.ensure(for_tests=for_tests)
    assert commands == expected


@pytest.mark.parametrize(
    ("value", "uid", "in_ci", "with_docker"),
    [
        ("true", 0, True, None),
        ("1", 0, True, True),
        ("", 0, False, False),
        ("false", 0, False, None),
        ("true", 1000, False, None),
        ("1", 1000, False, False),
    ],
)
def test_only_root_in_ci_may_install_and_is_given_docker(
    monkeypatch: pytest.MonkeyPatch, value: str, uid: int, in_ci: bool, with_docker: bool | None
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert system_packages.may_install({"CI": value}) is in_ci
    if with_docker is not None:
        assert system_packages.docker_is_wanted({"EARSHOT_TEST_DOCKER": value}) is with_docker


def test_one_variable_asks_for_dockers_packages_alone(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(system_packages, "may_install", lambda: False)
    monkeypatch.setattr(system_packages, "docker_is_wanted", lambda: True)
    monkeypatch.setattr(system_packages, "missing", lambda: [KCAT, DOCKERD])
    system_packages.ensure(for_tests=True)
    assert commands == [["apt-get", "update"], ["apt-get", "install", "--yes", "docker.io"]]
    assert "apt-get install --yes kcat\n" in capsys.readouterr().out


def test_an_engine_elsewhere_makes_dockerd_unnecessary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    monkeypatch.setattr(system_packages, "_has_socket", lambda: False)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    assert not DOCKERD.is_installed()
    monkeypatch.setattr(system_packages, "_has_socket", lambda: True)
    assert DOCKERD.is_installed()
    monkeypatch.setattr(system_packages, "_has_socket", lambda: False)
    monkeypatch.setenv("DOCKER_HOST", "ssh://elsewhere")
    assert DOCKERD.is_installed()
    assert not KCAT.is_installed()


def test_failing_installation_is_tried_again_and_then_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(system_packages, "LOGS", tmp_path)
    with pytest.raises(EarshotError, match="System packages"):
        system_packages._retry(["false"], os.environ)
    assert capsys.readouterr().out.count("failed, trying again") == system_packages.ATTEMPTS - 1


def test_tools_are_named_once() -> None:
    assert len({tool.command for tool in TOOLS}) == len(TOOLS)
