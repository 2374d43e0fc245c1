"""`earshot client`: credentials for a user of a secured stack."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from earshot.certificates.authority import Subject
from earshot.certificates.store import Store
from earshot.certificates.target import TargetCertificates
from earshot.cli.client import HEADER
from earshot.files import cache
from earshot.listeners.properties import read_properties
from earshot.project import Project
from tests.cli.command import Earshot, save_contract, save_stack

TO_STDOUT = "client --stack s --user app --listener EXTERNAL --output"
COMMAND = f"{TO_STDOUT} c.properties"
FILE = Path("c.properties")
CERTIFICATES = TargetCertificates(
    "s", {"node-1": ("localhost",)}, Subject("node", "nodes"), ("app",), 90, 30
)


@pytest.fixture(autouse=True)
def secured(project: Project) -> Project:
    """The project, whose stack `s` has a user."""
    inner = {"name": "INTERNAL", "port": 19092, "scopes": "internal", "protocol": "SSL"}
    outer = {"name": "EXTERNAL", "port": 9092, "scopes": "internal", "protocol": "SASL_SSL"}
    save_stack(
        project,
        "s",
        placement="local",
        brokers=1,
        listeners=[inner, outer],
        controllers={"protocol": "SSL"},
        security={"users": [{"name": "app"}]},
    )
    Store(project.credentials_file("s").parent).fill(CERTIFICATES, datetime.now(UTC))
    save_contract(project, "s")
    return project


def test_the_file_is_for_its_owner_only_and_replaces_an_earlier_one(earshot: Earshot) -> None:
    FILE.touch()
    assert earshot.output(COMMAND.replace("EXTERNAL", "INTERNAL")) == ""
    FILE.chmod(0o644)
    assert earshot.output(COMMAND) == ""
    assert FILE.stat().st_mode & 0o777 == 0o600
    values = read_properties(FILE.read_text()).values
    assert values["bootstrap.servers"] == "localhost:9092"
    assert values["security.protocol"] == "SASL_SSL"
    assert 'username="app"' in values["sasl.jaas.config"]


@pytest.mark.parametrize("content", ["listeners=A://:1\n", f"# mine\n{HEADER}\n"])
def test_another_file_is_replaced_only_by_force(content: str, earshot: Earshot) -> None:
    FILE.write_text(content)
    assert earshot.refusal(COMMAND) == (
        "error: output c.properties: exists, and is not a file that `earshot client` wrote\n"
        "  allowed: a new file, or a file that `earshot client` wrote\n"
        "  fix: name another file, or add --force to replace this one\n"
    )
    assert FILE.read_text() == content
    assert earshot.output(f"{COMMAND} --force") == ""
    assert FILE.stat().st_mode & 0o777 == 0o600
    assert "SASL_SSL" in FILE.read_text()


def test_a_dash_is_stdout(earshot: Earshot) -> None:
    values = read_properties(earshot.output(f"{TO_STDOUT} -")).values
    assert values["security.protocol"] == "SASL_SSL"
    assert not Path("-").exists()


def test_a_listener_with_certificates_gives_a_key_store(project: Project, earshot: Earshot) -> None:
    assert earshot.output(COMMAND.replace("EXTERNAL", "INTERNAL")) == ""
    values = read_properties(FILE.read_text()).values
    store = project.credentials_file("s").with_name("app.pem")
    assert values["ssl.keystore.location"] == str(store)
    assert "sasl.jaas.config" not in values


@pytest.mark.parametrize(("line", "error"), [
    (COMMAND.replace("--stack s", "--stack local"),
     ("stack local: has no `security`, so that it has no users\n"
      "  fix: `security: {}` in its file; see docs/security.md\n")),
    (COMMAND.replace("app", "z"), "--user: found 'z'\n  allowed: validator, app\n"),
    (COMMAND.replace("EXTERNAL", "X"), "--listener: found 'X'\n  allowed: INTERNAL, EXTERNAL\n"),
    (f"{TO_STDOUT} .earshot", "file .earshot: cannot be written (Is a directory)\n"),
])  # fmt: skip
def test_an_unknown_user_listener_or_file_is_named(line: str, error: str, earshot: Earshot) -> None:
    assert earshot.refusal(line) == f"error: {error}"
    assert not FILE.exists()


def test_into_a_pipe_the_text_is_written(earshot: Earshot) -> None:
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as pool:
        text = pool.submit(Path("pipe").read_text)
        assert earshot.output(f"{TO_STDOUT} pipe") == ""
        assert "SASL_SSL" in text.result()
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize(
    "output",
    [
        "stacks/Pulumi.s.yaml",
        ".earshot/stacks/s/contract.json",
        ".earshot/stacks/s/kafka/security/app.pem",
        ".earshot/stacks/s/kafka/node-1/server.properties",
        "link",
    ],
)
@pytest.mark.parametrize("force", ["", "--force"])
def test_a_file_of_the_stack_is_not_overwritten(
    project: Project, output: str, force: str, earshot: Earshot
) -> None:
    Path("link").symlink_to("stacks/Pulumi.s.yaml")
    settings = project.state_dir("s") / "kafka" / "node-1" / "server.properties"
    cache.write(settings, "listeners=A://:1\n")
    content = Path(output).read_text()
    assert earshot.refusal(f"{TO_STDOUT} {output} {force}") == (
        f"error: output {output}: is a file that is read\n  allowed: another file\n"
    )
    assert Path(output).read_text() == content
