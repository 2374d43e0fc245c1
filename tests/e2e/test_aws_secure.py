"""A secured stack on AWS on doubles: who is replaced for which secret, and another checkout."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.certificates.handed_over import FILES, PASSWORD, hand_over
from tests.doubles.aws.server import REGION, MotoServer
from tests.e2e.attack import Attack, attack_within
from tests.e2e.aws_stack import Stack, aws_stack, cluster
from tests.e2e.open_sockets import documented_addresses
from tests.e2e.project import STACK
from tests.e2e.secured import secrets_in
from tests.e2e.stranger import Stranger

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FOLDER = Path(".earshot", "stacks", STACK, "kafka", "security")
DOUBLES = ("tests.doubles.aws.server", "plugins/resource-aws-")
"""Words in the command lines of the AWS double and of its plugin."""
OPEN: dict[str, Any] = {"deletion_protection": False, "data": "delete"}


@pytest.fixture
def stack(server: MotoServer, tmp_path: Path) -> Iterator[Stack]:
    with aws_stack(server, tmp_path) as new_stack:
        yield new_stack


def secured_cluster(*users: str, **security: Any) -> dict[str, Any]:
    user_settings = [{"name": user, "prefixes": [f"{user}-"]} for user in users]
    controllers = {"mode": "separate", "count": 1}
    return cluster(
        2, controllers=controllers, security={"users": user_settings, **security}, **OPEN
    )


def ids(stack: Stack) -> dict[str, str]:
    """Instances by name."""
    return {name: str(instance["InstanceId"]) for name, instance in stack.instances().items()}


def replaced_instances(preview: str) -> set[str]:
    """The names of instances in it."""
    return {line.split()[2] for line in preview.splitlines() if "aws:ec2:Instance" in line}


def current_secrets(stack: Stack) -> dict[str, str]:
    """The secrets that the update has created so far, by file."""
    with contextlib.suppress(FileNotFoundError):
        return secrets_in(stack.project.folder / FOLDER)
    return {}


def assert_nothing_got(attack: Attack, stack: Stack) -> None:
    """Another user got no secret during the update, but finds a planted one."""
    secrets = current_secrets(stack)
    assert {"node-1.pem", "app.password"} <= secrets.keys()
    processes = {socket.process for socket in attack.sockets.values()}
    doubles = {process for process in processes if any(double in process for double in DOUBLES)}
    assert len(doubles) == len(DOUBLES)
    earshot_processes = processes - doubles
    assert (
        {"Pulumi engine", "earshot's plugin, gate"}
        <= earshot_processes
        <= documented_addresses().keys()
    ), earshot_processes
    assert attack.answers and attack.exposed(secrets) == []
    if os.geteuid() == 0:
        assert attack.readable and attack.holders == set()
        planted_file = stack.project.folder / "planted.txt"
        planted_file.write_text(secrets["node-1.pem"])
        with Stranger() as stranger:
            _, holders = stranger.readable(stack.project.folder, secrets.values())
        planted_file.unlink()
        assert holders == ["planted.txt"]


def test_one_instance_is_replaced_for_users_and_none_for_another_checkout(stack: Stack) -> None:
    old_holdings = stack.server.holdings()
    stack.configure(secured_cluster("app"))
    with attack_within(stack.project.folder, lambda: current_secrets(stack), list) as attack:
        stack.project.up()
    assert_nothing_got(attack, stack)
    state = stack.project.run("stack", "export")
    assert [
        secret for secret, text in current_secrets(stack).items() if json.dumps(text)[1:-1] in state
    ] == []
    first_ids = ids(stack)
    assert sorted(first_ids) == ["test-broker-1", "test-broker-2", "test-controller-10001"]
    assert "unchanged" in stack.project.up("--refresh", "--expect-no-changes")

    stack.configure(secured_cluster("app", "other"))
    stack.project.up()
    second_ids = ids(stack)
    assert {name for name in first_ids if first_ids[name] != second_ids[name]} == {"test-broker-1"}

    folder = stack.project.folder / FOLDER
    file_texts = {path.name: path.read_text() for path in folder.iterdir()}
    shutil.rmtree(folder)
    assert replaced_instances(stack.project.run("preview")) == set(second_ids), (
        "it cannot know better yet"
    )
    stack.project.up()
    assert ids(stack) == second_ids
    unchanged_files = {
        path.name for path in folder.iterdir() if file_texts[path.name] == path.read_text()
    }
    # the users that the cluster may know are in the state
    assert file_texts.keys() - unchanged_files == {
        "app.pem",
        "other.pem",
        "validator.pem",
        "users.json",
    }

    stack.configure(cluster(2, controllers={"mode": "separate", "count": 1}, **OPEN))
    output = stack.project.failed_output(command="preview")
    assert "would change from CONTROLLER (SSL) to CONTROLLER (PLAINTEXT) while they run" in output
    assert ids(stack) == second_ids
    stack.configure(secured_cluster("app", "other"))
    stack.project.destroy()
    assert stack.server.holdings() == old_holdings


@pytest.mark.combination
def test_certificates_of_others_reach_their_own_instance_alone(stack: Stack) -> None:
    old_holdings = stack.server.holdings()
    certs, hosts = stack.project.folder / "certs", [f"*.{REGION}.compute.internal"]
    hand_over(certs, {1: hosts, 2: ["elsewhere.example.com"]})
    stack.configure(cluster(2, security={"tls": {"from": FILES}}, **OPEN))
    output = stack.project.failed_output()
    assert "KL010" in output and "its certificate is for elsewhere.example.com" in output
    assert ids(stack) == {}
    hand_over(certs, {2: hosts})
    stack.project.up()
    first_ids = ids(stack)
    assert sorted(first_ids) == ["test-broker-1", "test-broker-2"]
    assert "unchanged" in stack.project.up("--refresh", "--expect-no-changes")

    hand_over(certs, {2: hosts})
    stack.project.up()
    second_ids = ids(stack)
    assert {name for name in first_ids if first_ids[name] != second_ids[name]} == {"test-broker-2"}
    parameter_query = {"Name": f"/earshot/{STACK}/security/node-2", "WithDecryption": True}
    parameter = stack.server.client("ssm").get_parameter(**parameter_query)["Parameter"]
    assert parameter["Type"] == "SecureString"
    key, begin, chain = parameter["Value"].partition("-----BEGIN CERTIFICATE")
    assert begin + chain == (certs / "2.pem").read_text()
    state = stack.project.run("stack", "export", "--show-secrets")
    assert key.splitlines()[1] not in state and PASSWORD not in state
    stack.project.destroy()
    assert stack.server.holdings() == old_holdings
