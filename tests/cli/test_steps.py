"""`earshot plan --against`: the steps of a change, before anything is touched."""

import json
from pathlib import Path
from typing import Any

import pytest

from earshot.cli import run
from earshot.placement import plan_stack
from earshot.project import Project
from earshot.transition import memory

INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}
REPL = {"name": "REPL", "port": 19192, "scopes": ["internal"]}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


def stack(project: Project, *listeners: dict[str, Any], name: str = "mine") -> None:
    document = {"placement": "local", "brokers": 1, "listeners": listeners}
    text = json.dumps({"config": {"earshot:cluster": document}})
    project.stack_file(name).write_text(text)


def runs(project: Project) -> None:
    """From now on the stack is remembered to run what its file says."""
    state = project.state_dir("mine")
    memory.complete(state, plan_stack(project.read_cluster("mine"), "mine", state).plan, 0)


def test_each_step_with_its_costs(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    stack(project, INTERNAL)
    runs(project)
    stack(project, REPL, name="wanted")
    assert run(["plan", "-s", "wanted", "--against", "mine"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "stack mine: 2 steps, each by an update of its own",
        "",
        "step 1 of 2: REPL added next to INTERNAL; brokers reach each other through REPL",
        "  restarts           1",
        "  between brokers    REPL",
        "  clients, internal  meanwhile INTERNAL; after it INTERNAL, REPL",
        "  broker 1           INTERNAL://localhost:19092, REPL://localhost:19192",
        "",
        "step 2 of 2: INTERNAL removed",
        "  restarts           1",
        "  between brokers    REPL",
        "  clients, internal  meanwhile REPL; after it REPL",
        "  broker 1           REPL://localhost:19192",
    ]


def test_one_step_and_a_moment_without_a_listener_for_clients(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project, INTERNAL)
    runs(project)
    stack(project, INTERNAL | {"protocol": "SSL"})
    assert run(["plan", "-s", "mine", "--against", "mine"]) == 0
    assert capsys.readouterr().out == (
        "stack mine: one step\n"
        "\n"
        "step 1 of 1: INTERNAL from PLAINTEXT to SSL\n"
        "  restarts           1\n"
        "  between brokers    INTERNAL\n"
        "  clients, internal  meanwhile none reaches every broker; after it INTERNAL\n"
        "  broker 1           INTERNAL://localhost:19092\n"
    )


def test_what_runs_already_and_what_is_unknown(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project, INTERNAL)
    assert run(["plan", "-s", "mine", "--against", "mine"]) == 0
    assert capsys.readouterr().out == (
        "stack mine: nothing is remembered of its brokers, so no steps are planned\n"
    )
    runs(project)
    assert run(["plan", "-s", "mine", "--against", "mine"]) == 0
    assert capsys.readouterr().out == "stack mine: its brokers run these listeners already\n"


def test_what_cannot_be_done_is_one_error(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project, INTERNAL)
    runs(project)
    stack(project, REPL | {"port": 19092})
    assert run(["plan", "-s", "mine", "--against", "mine"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: nothing was touched: running brokers cannot")


@pytest.mark.parametrize("other", [["--format", "json"], ["--render", "all"], ["--check"]])
def test_steps_stand_alone(
    project: Project, other: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project, INTERNAL)
    assert run(["plan", "-s", "mine", "--against", "mine", *other]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: --against: found with")


def test_the_name_of_no_stack_is_refused(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project, INTERNAL)
    assert run(["plan", "-s", "mine", "--against", "nope"]) == 2
    assert "error: stack nope: Pulumi.nope.yaml does not exist" in capsys.readouterr().err
