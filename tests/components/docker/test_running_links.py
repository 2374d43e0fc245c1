"""Which listeners running containers have, and whether they can be given others one by one."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import DockerException, NotFound
from earshot_pulumi.docker import running
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import EngineObjects, TargetStack

from earshot.errors import EarshotError
from tests.components.docker.stacks import container, target_stack

RENAMED = [{"name": "BROKERS", "port": 19092, "scopes": "internal"}]
BOTH = [
    {"name": "INTERNAL", "port": 19092, "scopes": "internal"},
    {"name": "BROKERS", "port": 29093, "scopes": "internal"},
]
ONE = BOTH[:1]


def said(
    monkeypatch: pytest.MonkeyPatch, before: TargetStack, after: TargetStack, **changes: Any
) -> str:
    """With all containers of ``before`` as they are, ``changes`` aside."""
    environment = {f"id-{id}": it.environment for id, it in before.containers.items()}

    def inspect(id: str) -> dict[str, Any]:
        if id not in environment:
            raise NotFound(id)
        return {"Config": {"Env": [f"{key}={value}" for key, value in environment[id].items()]}}

    client = SimpleNamespace(api=SimpleNamespace(inspect_container=inspect))
    monkeypatch.setattr(Engines, "of", lambda self, host: client)
    seen = EngineObjects(
        tuple(replace(container(before, id), **changes) for id in before.containers)
    )
    return "\n".join(problems(after, seen))


def problems(after: TargetStack, seen: EngineObjects) -> list[str]:
    return running.link_problems(running.running(Engines(), after, seen), after)


def test_a_renamed_inter_broker_listener_is_refused_with_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported = said(monkeypatch, target_stack(listeners=ONE), target_stack(listeners=RENAMED))
    assert "would change from INTERNAL (PLAINTEXT) to BROKERS (PLAINTEXT)" in reported
    assert reported.endswith(
        "Run the same command once with the current listeners, so that they are recorded, and then "
        "with these; or stop the cluster first (`pulumi destroy`; data is kept)"
    )


def test_another_protocol_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tls = target_stack(listeners=[{**ONE[0], "protocol": "SSL"}])
    reported = said(monkeypatch, target_stack(listeners=ONE), tls)
    assert "would change from INTERNAL (PLAINTEXT) to INTERNAL (SSL)" in reported


def test_the_way_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [
        target_stack(listeners=ONE),
        target_stack(listeners=BOTH, inter_broker="INTERNAL"),
        target_stack(listeners=BOTH, inter_broker="BROKERS"),
        target_stack(listeners=BOTH[1:]),
    ]
    assert [said(monkeypatch, *pair) for pair in pairwise(steps)] == [""] * 3


@pytest.mark.parametrize(
    "changes", [{"running": False}, {"labels": {}}, {"id": "gone"}, {"host": "another"}]
)
def test_only_what_runs_is_in_the_way(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    assert (
        said(monkeypatch, target_stack(listeners=ONE), target_stack(listeners=RENAMED), **changes)
        == ""
    )


@pytest.mark.parametrize("reason", [DockerException("stopped"), OSError("stopped")])
def test_an_engine_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, reason: Exception) -> None:
    def inspect(id: str) -> None:
        raise reason

    client = SimpleNamespace(api=SimpleNamespace(inspect_container=inspect))
    monkeypatch.setattr(Engines, "of", lambda self, host: client)
    now = target_stack(brokers=1)
    with pytest.raises(EarshotError, match="Docker host local"):
        problems(now, EngineObjects((container(now, 1),)))


def test_what_does_not_count_leaves_the_others_to_be_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, after = target_stack(listeners=ONE), target_stack(listeners=RENAMED)
    environment = {f"id-{id}": it.environment for id, it in before.containers.items()}

    def inspect(id: str) -> dict[str, Any]:
        if id == "bare":
            return {"Config": {"Env": None}}
        if id not in environment:
            raise NotFound(id)
        return {"Config": {"Env": [f"{key}={value}" for key, value in environment[id].items()]}}

    client = SimpleNamespace(api=SimpleNamespace(inspect_container=inspect))
    monkeypatch.setattr(Engines, "of", lambda self, host: client)
    first = container(before, 1)
    others = [
        replace(first, host="another"),
        replace(first, running=False),
        replace(first, labels={}),
        replace(first, id="gone"),
    ]
    own = [container(before, id) for id in (1, 2, 3)]
    assert len(problems(after, EngineObjects((*others, *own)))) == 1
    assert problems(before, EngineObjects(tuple(own))) == []
    assert problems(after, EngineObjects((replace(first, id="bare"),))) == []


TLS = [{**ONE[0], "protocol": "SSL"}]
SSL_CONTROLLERS = {"mode": "separate", "count": 3, "protocol": "SSL"}


@pytest.mark.parametrize(("secured", "what"), [(True, "come"), (False, "go")])
def test_security_does_not_come_or_go_while_nodes_run(
    monkeypatch: pytest.MonkeyPatch, secured: bool, what: str
) -> None:
    own_keys = target_stack(listeners=TLS, controllers=SSL_CONTROLLERS)
    stacks_keys = target_stack(listeners=TLS, controllers=SSL_CONTROLLERS, security={})
    before, after = (own_keys, stacks_keys) if secured else (stacks_keys, own_keys)
    assert said(monkeypatch, before, after) == (
        f"`security` would {what} while brokers run: those restarted first would ask for "
        "certificates that the others do not show, or show none where the others ask. Stop the "
        "cluster first (`pulumi destroy`; data is kept)"
    )
    assert said(monkeypatch, after, after) == ""
