"""A secured stack on AWS on doubles: who is replaced for which secret, and another checkout."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.aws.server import MotoServer
from tests.e2e.aws_stack import Stack, aws_stack, cluster
from tests.e2e.project import STACK

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FOLDER = Path(".earshot", "stacks", STACK, "kafka", "security")
OPEN: dict[str, Any] = {"deletion_protection": False, "data": "delete"}


@pytest.fixture
def stack(server: MotoServer, tmp_path: Path) -> Iterator[Stack]:
    with aws_stack(server, tmp_path) as found:
        yield found


def secured(*users: str, **security: Any) -> dict[str, Any]:
    named = [{"name": user, "prefixes": [f"{user}-"]} for user in users]
    apart = {"mode": "separate", "count": 1}
    return cluster(2, controllers=apart, security={"users": named, **security}, **OPEN)


def ids(stack: Stack) -> dict[str, str]:
    """Instances by name."""
    return {name: str(it["InstanceId"]) for name, it in stack.instances().items()}


def replaced_in(preview: str) -> set[str]:
    """The names of instances in it."""
    return {line.split()[2] for line in preview.splitlines() if "aws:ec2:Instance" in line}


def test_one_instance_is_replaced_for_users_and_none_for_another_checkout(stack: Stack) -> None:
    before = stack.server.holdings()
    stack.configure(secured("app"))
    stack.project.up()
    first = ids(stack)
    assert sorted(first) == ["test-broker-1", "test-broker-2", "test-controller-10001"]
    assert "unchanged" in stack.project.up("--refresh", "--expect-no-changes")

    stack.configure(secured("app", "other"))
    stack.project.up()
    second = ids(stack)
    assert {name for name in first if first[name] != second[name]} == {"test-broker-1"}

    folder = stack.project.folder / FOLDER
    held = {path.name: path.read_text() for path in folder.iterdir()}
    shutil.rmtree(folder)
    assert replaced_in(stack.project.runs("preview")) == set(second), "it cannot know better yet"
    stack.project.up()
    assert ids(stack) == second
    found = {path.name for path in folder.iterdir() if held[path.name] == path.read_text()}
    # whom the cluster may know stands in the state
    assert held.keys() - found == {"app.pem", "other.pem", "validator.pem", "users.json"}
    assert "unchanged" in stack.project.up("--expect-no-changes")

    stack.configure(secured("app", "other", tls={"days": 800, "renew_days": 500}))
    stack.project.up()
    third = ids(stack)
    assert not third.items() & second.items(), "all certificates are renewed"

    stack.configure(cluster(2, controllers={"mode": "separate", "count": 1}, **OPEN))
    said = stack.project.fails(command="preview")
    assert "would change from CONTROLLER (SSL) to CONTROLLER (PLAINTEXT) while they run" in said
    assert ids(stack) == third
    stack.configure(secured("app", "other", tls={"days": 800, "renew_days": 500}))
    stack.project.destroy()
    assert stack.server.holdings() == before
