"""Users of a secured local stack after each kind of change and a restart of every broker."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psutil
import pytest

from earshot.validation.terms import Verdict
from tests.e2e.engine import deployment
from tests.e2e.secured import accepted_by_each, client_error
from tests.e2e.test_local_secure import LocalSecured, secure_cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSecured]:
    """Three running brokers with two users."""
    cluster = secure_cluster()
    cluster["validation"]["records"] = 0
    cluster["security"]["users"] = [user_settings("app"), user_settings("other")]
    with deployment(tmp_path_factory.mktemp("users") / "p", cluster) as new_stack:
        new_stack.up()
        yield LocalSecured(new_stack)


def user_settings(name: str) -> dict[str, Any]:
    return {"name": name, "prefixes": [f"{name}-"]}


Change = Callable[[dict[str, Any], dict[str, Any]], Any]
"""A change of `security`, and of the listener for clients."""
CHANGES: Mapping[str, Change] = {
    "a user renamed": lambda security, _: security.update(
        users=[user_settings("app3"), user_settings("other")]
    ),
    "a user removed": lambda security, _: security.update(users=[user_settings("app3")]),
    "a user added": lambda security, _: security.update(
        users=[user_settings("app3"), user_settings("new")]
    ),
    "a user comes back": lambda security, _: security.update(
        users=[user_settings("app"), user_settings("new")]
    ),
    "other prefixes": lambda security, _: security["users"][0].update(prefixes=["x-"]),
    "other passwords": lambda security, _: security.update(
        password_numbers={"app": 2, "validator": 2}
    ),
    "another mechanism": lambda security, _: security.update(mechanism="SCRAM-SHA-256"),
    "a user removed under it": lambda security, _: security.update(users=[user_settings("app")]),
    "a listener with another": lambda _, listener: listener.update(mechanism="SCRAM-SHA-512"),
    "a listener without": lambda _, listener: listener.pop("mechanism"),
    "the first mechanism": lambda security, _: security.update(mechanism="SCRAM-SHA-512"),
    "another authority trusted": lambda security, _: security.update(tls={"authorities": [1, 2]}),
    "another authority issues": lambda security, _: security.update(tls={"authorities": [2, 1]}),
    "the first authority gone": lambda security, _: security.update(tls={"authorities": [2]}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_all_brokers_accept_users_after_a_change_and_a_restart(
    stack: LocalSecured, change: str
) -> None:
    deployment = stack.deployment
    security, (_, listener) = deployment.cluster["security"], deployment.cluster["listeners"]
    old_clients = {user: stack.client(user) for user in names(security)}
    CHANGES[change](security, listener)
    deployment.up()
    check(stack, old_clients)
    for pid in deployment.pids().values():
        psutil.Process(pid).kill()
    assert "any more" not in deployment.up(), "a broker has lost its users"
    check(stack, old_clients)
    assert {cell.verdict for cell in stack.report().cells} == {Verdict.PASS}


def names(security: Mapping[str, Any]) -> list[str]:
    return ["validator", *(user["name"] for user in security["users"])]


def check(stack: LocalSecured, old_clients: Mapping[str, Mapping[str, Any]]) -> None:
    """Checks that current users log in at each broker, and removed ones at none."""
    new_names = names(stack.deployment.cluster["security"])
    for user in new_names:
        assert accepted_by_each(stack.client(user)), user
    client = stack.client("validator")
    current = {
        key: setting
        for key, setting in client.items()
        if key.startswith(("ssl.", "sasl.mechanism"))
    }
    for user in old_clients.keys() - set(new_names):
        assert client_error({**old_clients[user], **current}) == "authentication"
