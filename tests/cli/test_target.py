"""The cluster that options name: a stack, a contract or addresses."""

import io
import sys
from pathlib import Path

import pytest

from earshot.cli.target import stack_contract, target
from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.placement import plan_stack
from earshot.project import Project
from earshot.validation.contract import Contract
from tests.cli.command import save_contract
from tests.raised import raised

STACK = "organization/earshot/local"


def contract_of(project: Project) -> Contract:
    plan = plan_stack(project.read_cluster("local"), "local", project.root).plan
    return Contract.of(plan, "local", "local")


def test_of_a_stack(project: Project) -> None:
    contract = save_contract(project, "local")
    chosen = target(STACK, None, "a:1")
    assert (chosen.contract, chosen.bootstrap) == (contract, (Address("a", 1),))
    assert chosen.report_file == project.report_file("local")
    assert target("local", None, None).bootstrap == ()


def test_of_a_file(project: Project) -> None:
    Path("c.json").write_text(contract_of(project).to_json())
    chosen = target(None, "c.json", None)
    assert (chosen.contract, chosen.report_file) == (contract_of(project), None)


def test_of_a_file_on_stdin(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def pipe(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    pipe(contract_of(project).to_json().encode())
    assert target(None, "-", None).contract == contract_of(project)
    pipe(b"{")
    with pytest.raises(EarshotError, match=r"^stdin: is not JSON"):
        target(None, "-", None)


@pytest.mark.parametrize(
    ("bootstrap", "addresses"),
    [
        ("a:1, [::1]:2,,", (Address("a", 1), Address("::1", 2))),
        # an underscore, as Compose writes it, and a trailing dot
        ("my_kafka:1,kafka.:2", (Address("my_kafka", 1), Address("kafka.", 2))),
    ],
)
def test_of_addresses(bootstrap: str, addresses: tuple[Address, ...]) -> None:
    chosen = target(None, None, bootstrap)
    assert (chosen.contract, chosen.bootstrap) == (None, addresses)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("options", "observed"),
    [
        ((None, None, None), "neither --stack nor --contract nor --bootstrap"),
        (("local", "c.json", None), "are both given"),
        ((None, "c.json", None), "cannot be read"),
        ((None, "Pulumi.yaml", None), "is not JSON"),
        ((None, None, "host"), "has no port"),
        ((None, None, ""), "has no port"),
        ((None, None, "host:70000"), "is not a usable port"),
        ((None, None, "my_kafka:70000"), "host 'my_kafka': has the label 'my_kafka'"),
        ((None, None, "_:9092_"), "host '_': has the label '_'"),
        ((None, None, "256.1.1.1:9092"), "looks like an IPv4 address"),
    ],
)
def test_each_fault_has_its_message(
    options: tuple[str | None, str | None, str | None], observed: str
) -> None:
    with pytest.raises(EarshotError, match=observed):
        target(*options)


@pytest.fixture
def without_pulumi(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project, whose folder is all of PATH."""
    monkeypatch.setenv("PATH", str(project.root))
    return project


def double_of_pulumi(project: Project, script: str) -> None:
    """A double of the Pulumi CLI, on PATH."""
    (project.root / "pulumi").write_text(f"#!/bin/sh\n{script}\n")
    (project.root / "pulumi").chmod(0o755)


def test_a_stack_without_contract_and_pulumi(without_pulumi: Project) -> None:
    file = without_pulumi.contract_file("local")
    assert str(raised(EarshotError, stack_contract, without_pulumi, STACK)) == (
        f"stack local: has no contract yet: {file} does not exist, and there is no pulumi on "
        "PATH to ask\n  fix: deploy it (make up STACK=local), or name a --contract"
    )


def test_pulumi_gives_the_contract_if_no_update_ran_here(without_pulumi: Project) -> None:
    Path("c.json").write_text(contract_of(without_pulumi).to_json())
    double_of_pulumi(without_pulumi, 'echo "$*" > words; /bin/cat c.json')
    assert stack_contract(without_pulumi, "local") == contract_of(without_pulumi)
    words = "stack output contract --json --stack local --non-interactive\n"
    assert Path("words").read_text() == words


def test_an_error_of_pulumi_is_passed_on(without_pulumi: Project) -> None:
    double_of_pulumi(without_pulumi, "echo 'error: no stack named local' >&2; exit 255")
    file = without_pulumi.contract_file("local")
    assert raised(EarshotError, stack_contract, without_pulumi, "local").observed == (
        f"has no contract yet: {file} does not exist, and `stack "
        "output contract --json --stack local` says: no stack named local"
    )


def test_pulumi_that_does_not_answer_is_given_up(
    without_pulumi: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    double_of_pulumi(without_pulumi, "exec /bin/sleep 60")
    monkeypatch.setattr("earshot.cli.target.PULUMI_SECONDS", 0.05)
    error = raised(EarshotError, stack_contract, without_pulumi, "local")
    assert error.observed.endswith(", and `pulumi` did not answer within 0.05 s")
