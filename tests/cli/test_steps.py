"""`earshot plan --against`: the steps of a change, before anything is touched."""

from typing import Any

import pytest

from earshot.placement import plan_stack
from earshot.project import Project
from earshot.transition import memory
from tests.cli.command import Earshot, save_stack

INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}
REPL = {"name": "REPL", "port": 19192, "scopes": ["internal"]}
AGAINST = "plan -s mine --against mine"


def stack(project: Project, listener: dict[str, Any], name: str = "mine") -> None:
    save_stack(project, name, placement="local", brokers=1, listeners=[listener])


def remember(project: Project) -> None:
    """Remembers that the brokers of the stack run the listeners of its file."""
    state = project.state_dir("mine")
    memory.complete(state, plan_stack(project.read_cluster("mine"), "mine", state).plan, 0)


@pytest.fixture
def running(project: Project) -> Project:
    """The project, whose stack `mine` runs the listener INTERNAL."""
    stack(project, INTERNAL)
    remember(project)
    return project


def test_each_step_with_its_costs(running: Project, earshot: Earshot) -> None:
    stack(running, REPL, name="wanted")
    assert earshot.output("plan -s wanted --against mine").splitlines() == [
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
    running: Project, earshot: Earshot
) -> None:
    stack(running, INTERNAL | {"protocol": "SSL"})
    assert earshot.output(AGAINST) == (
        "stack mine: one step\n"
        "\n"
        "step 1 of 1: INTERNAL from PLAINTEXT to SSL\n"
        "  restarts           1\n"
        "  between brokers    INTERNAL\n"
        "  clients, internal  meanwhile none reaches every broker; after it INTERNAL\n"
        "  broker 1           INTERNAL://localhost:19092\n"
    )


def test_listeners_that_run_already_or_are_unknown(project: Project, earshot: Earshot) -> None:
    stack(project, INTERNAL)
    assert earshot.output(AGAINST) == (
        "stack mine: the listeners of its brokers are not stored, so no steps are planned\n"
    )
    remember(project)
    assert earshot.output(AGAINST) == "stack mine: its brokers run these listeners already\n"


def test_an_impossible_change_is_one_error(running: Project, earshot: Earshot) -> None:
    stack(running, REPL | {"port": 19092})
    error = earshot.refusal(AGAINST)
    assert error.startswith("error: nothing was changed: running brokers cannot")


@pytest.mark.parametrize("option", ["--format json", "--render all", "--check"])
def test_steps_are_shown_without_other_output(
    running: Project, option: str, earshot: Earshot
) -> None:
    assert earshot.refusal(f"{AGAINST} {option}").startswith("error: --against: found with")


def test_an_unknown_stack_is_refused(running: Project, earshot: Earshot) -> None:
    error = earshot.refusal("plan -s mine --against nope")
    assert "error: stack nope: stacks/Pulumi.nope.yaml does not exist" in error
