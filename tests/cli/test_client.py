"""`earshot client`: credentials for a user of a secured stack."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from earshot import cache
from earshot.certificates.authority import Subject
from earshot.certificates.store import Store
from earshot.certificates.target import TargetCertificates
from earshot.cli import run
from earshot.cli.client import HEADER
from earshot.listeners.properties import read_properties
from earshot.placement import plan_stack
from earshot.project import Project
from earshot.validation.contract import Contract

STACK = """\
config:
  earshot:cluster:
    placement: local
    brokers: 1
    listeners:
      - {name: INTERNAL, port: 19092, scopes: internal, protocol: SSL}
      - {name: EXTERNAL, port: 9092, scopes: internal, protocol: SASL_SSL}
    controllers: {protocol: SSL}
    security: {users: [{name: app}]}
"""
PLAIN = """\
config:
  earshot:cluster: {placement: local}
"""
WANTED = TargetCertificates(
    "s", {"node-1": ("localhost",)}, Subject("node", "nodes"), ("app",), 90, 30
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    (tmp_path / "Pulumi.s.yaml").write_text(STACK)
    (tmp_path / "Pulumi.plain.yaml").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    plan = plan_stack(project.read_cluster("s"), "s", project.state_dir("s")).plan
    Store(project.credentials_file("s").parent).fill(WANTED, datetime.now(UTC))
    project.contract_file("s").write_text(Contract.of(plan, "s", "local").to_json())
    return project


def command(stack: str = "s", user: str = "app", listener: str = "EXTERNAL") -> list[str]:
    words = ["client", "--stack", stack, "--user", user, "--listener", listener]
    return [*words, "--output", "c.properties"]


def test_the_file_is_for_its_owner_alone_and_replaces_its_own(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path("c.properties")
    assert run(command(listener="INTERNAL")) == 0
    file.chmod(0o644)
    assert run(command()) == 0
    assert file.stat().st_mode & 0o777 == 0o600
    values = read_properties(file.read_text()).values
    assert values["bootstrap.servers"] == "localhost:9092"
    assert values["security.protocol"] == "SASL_SSL"
    assert 'username="app"' in values["sasl.jaas.config"]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("was", ["listeners=A://:1\n", f"# mine\n{HEADER}\n"])
def test_a_file_of_others_is_replaced_by_force_alone(
    project: Project, was: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path("c.properties")
    file.write_text(was)
    assert run(command()) == 2
    assert capsys.readouterr().err == (
        "error: output c.properties: exists, and is not a file that `earshot client` wrote\n"
        "  allowed: a new file, or a file that `earshot client` wrote\n"
        "  fix: name another file, or add --force to replace this one\n"
    )
    assert file.read_text() == was
    assert run([*command(), "--force"]) == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert "SASL_SSL" in file.read_text()


def test_an_empty_file_is_as_good_as_none(project: Project) -> None:
    Path("c.properties").touch()
    assert run(command()) == 0


def test_a_dash_is_stdout(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command()[:-1], "-"]) == 0
    values = read_properties(capsys.readouterr().out).values
    assert values["security.protocol"] == "SASL_SSL"
    assert not Path("-").exists()


def test_a_listener_with_certificates_gives_a_key_store(project: Project) -> None:
    assert run(command(listener="INTERNAL")) == 0
    values = read_properties(Path("c.properties").read_text()).values
    store = project.credentials_file("s").with_name("app.pem")
    assert values["ssl.keystore.location"] == str(store)
    assert "sasl.jaas.config" not in values


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (
            command(stack="plain"),
            (
                "stack plain: has no `security`, so that it has no users\n"
                "  fix: `security: {}` in its file; see docs/security.md\n"
            ),
        ),
        (command(user="z"), "--user: found 'z'\n  allowed: validator, app\n"),
        (command(listener="X"), "--listener: found 'X'\n  allowed: INTERNAL, EXTERNAL\n"),
        (
            [*command()[:-1], ".earshot"],
            "file .earshot: cannot be written (Is a directory)\n",
        ),
    ],
)
def test_what_there_is_not_is_named(
    project: Project, arguments: list[str], reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr().err == f"error: {reported}"
    assert not Path("c.properties").exists()


def test_into_a_pipe_the_text_is_written(project: Project) -> None:
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(Path("pipe").read_text)
        assert run([*command()[:-1], "pipe"]) == 0
        assert "SASL_SSL" in read.result()
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize(
    "output",
    [
        "Pulumi.s.yaml",
        ".earshot/stacks/s/contract.json",
        ".earshot/stacks/s/kafka/security/app.pem",
        ".earshot/stacks/s/kafka/node-1/server.properties",
        "link",
    ],
)
@pytest.mark.parametrize("more", [[], ["--force"]], ids=["", "by force"])
def test_what_belongs_to_the_stack_is_not_written_over(
    project: Project, output: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("link").symlink_to("Pulumi.s.yaml")
    settings = project.state_dir("s") / "kafka" / "node-1" / "server.properties"
    cache.write(settings, "listeners=A://:1\n")
    before = Path(output).read_text()
    assert run([*command()[:-1], output, *more]) == 2
    assert capsys.readouterr().err == (
        f"error: output {output}: is a file that is read\n  allowed: another file\n"
    )
    assert Path(output).read_text() == before
