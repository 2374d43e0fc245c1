"""Provider plugins: who gets them by itself, and what is said where one is missing."""

import importlib.metadata
from pathlib import Path

import pytest
import yaml

from earshot.errors import EarshotError
from earshot.project import Project
from tests.config.aws_documents import document
from tests.raised import raised
from toolchain import stack as stack_module
from toolchain.paths import STACKS
from toolchain.pulumi_cli import installation
from toolchain.pulumi_cli.installation import Installation, Origin
from toolchain.stack import Stack, check_plugin, main

NAMES = ("docker", "aws")


def use(monkeypatch: pytest.MonkeyPatch, origin: Origin) -> None:
    cli = Installation(Path("/opt/pulumi/bin"), "3.259.0", origin)
    monkeypatch.setattr(installation, "recorded", lambda: cli)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("origin", [Origin.INSTALLED, Origin.DOWNLOADED])
def test_official_clis_get_the_plugin_themselves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: Origin, name: str
) -> None:
    use(monkeypatch, origin)
    check_plugin(name, {"PULUMI_HOME": str(tmp_path)})


@pytest.mark.parametrize("name", NAMES)
def test_the_built_cli_has_to_be_given_the_plugin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    use(monkeypatch, Origin.BUILT)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    version = importlib.metadata.version(f"pulumi-{name}")
    environment = {"PULUMI_HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    error = raised(EarshotError, check_plugin, name, environment)
    text = str(error)
    command = f"/opt/pulumi/bin/pulumi plugin install resource {name} {version}"
    assert f"PULUMI_HOME={tmp_path} {command}\n" in text
    assert f"--file pulumi-resource-{name}-v{version}-linux-arm64.tar.gz" in text
    assert error.exit_code == 2

    (tmp_path / "plugins" / f"resource-{name}-v{version}").mkdir(parents=True)
    check_plugin(name, environment)


def test_a_plugin_on_the_path_will_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, Origin.BUILT)
    plugin = tmp_path / "pulumi-resource-docker"
    plugin.write_text("")
    plugin.chmod(0o755)
    check_plugin("docker", {"PULUMI_HOME": str(tmp_path), "PATH": str(tmp_path)})


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a template for AWS, a built CLI and no plugin, where nothing may be run."""
    (tmp_path / "Pulumi.yaml").write_text(
        "name: earshot\nruntime: python\nstackConfigDir: stacks\n"
    )
    (tmp_path / "stacks").mkdir()
    template = (STACKS / "Pulumi.aws-dev.yaml").read_text()
    (tmp_path / "stacks" / "Pulumi.aws-dev.yaml").write_text(template)
    use(monkeypatch, Origin.BUILT)
    environment = {"PULUMI_HOME": str(tmp_path / "home"), "PATH": str(tmp_path)}
    monkeypatch.setattr(stack_module, "ROOT", tmp_path)
    monkeypatch.setattr(stack_module, "variables", lambda _stack: environment)
    monkeypatch.setattr(Stack, "_pulumi", lambda *_: pytest.fail("Pulumi was run"))
    monkeypatch.setattr(Stack, "_earshot", lambda *_: pytest.fail("something else came first"))
    return tmp_path


def test_make_up_names_what_was_not_filled_in(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--stack", "aws-dev-mine"]) == 2
    reported = capsys.readouterr().err
    assert reported.startswith("error: stacks/Pulumi.aws-dev-mine.yaml, earshot:cluster:\n")
    lines = [line.partition(": ")[0] for line in reported.splitlines()[1:]]
    assert lines == ["  - clients.ranges.office", "  - archive.sha512"]


def test_make_up_says_which_plugin_is_missing_before_anything_is_made(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = yaml.safe_dump({"config": {"earshot:cluster": document()}})
    Project(checkout).stack_file("aws-dev-mine").write_text(text)
    assert main(["up", "--stack", "aws-dev-mine"]) == 2
    reported = capsys.readouterr().err
    assert reported.startswith(
        f"error: Pulumi's plugin aws {importlib.metadata.version('pulumi-aws')}"
    )
    assert "pulumi plugin install resource aws " in reported


def test_make_up_goes_on_with_the_plugin(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = yaml.safe_dump({"config": {"earshot:cluster": document()}})
    Project(checkout).stack_file("aws-dev-mine").write_text(text)
    version = importlib.metadata.version("pulumi-aws")
    (checkout / "home" / "plugins" / f"resource-aws-v{version}").mkdir(parents=True)
    commands: list[str] = []

    def earshot(_stack: Stack, command: str) -> int:
        commands.append(command)
        return 3

    monkeypatch.setattr(Stack, "_earshot", earshot)
    assert main(["up", "--stack", "aws-dev-mine"]) == 3
    assert commands == ["plan"]
