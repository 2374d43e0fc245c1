"""Dependencies of many brokers on many hosts: few for each broker, and all hosts before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi import DockerCluster
from earshot_pulumi.docker import host_resources
from earshot_pulumi.outputs import once_there
from pulumi.runtime import mocks, resource_cycle_breaker, rpc

from tests.components.docker import test_brokers
from tests.components.docker.test_brokers import BETWEEN_HOSTS, CONTAINER, READY, STOP
from tests.components.engine_double import Engine

HOST = "test:index:Host"
FEW, MORE, MANY = 10, 12, 14


class Answers(test_brokers._Answers):
    """Outputs of a new stack."""

    def call(self, args: mocks.MockCallArgs) -> Any:
        return {"outputs": {}}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: program\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    # hooks are the engine's to call, and no engine is here
    monkeypatch.setattr(host_resources, "clearing", lambda *_: pulumi.ResourceHookBinding())


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Resources that Pulumi's SDK visits in its search for cycles, by dependency of a node."""
    visits: list[int] = []

    def declare(dependent: Any, dependency: Any) -> bool:
        visited, waiting = set(), [dependency]
        while waiting:
            if (resource := waiting.pop()) not in visited:
                visited.add(resource)
                waiting.extend(resource_cycle_breaker._deps(resource))
        if dependent._type in (CONTAINER, STOP, READY):
            visits.append(len(visited))
        resource_cycle_breaker._add_dep(dependent, dependency)
        return True

    monkeypatch.setattr(rpc, "declare_dependency", declare)
    return visits


def registered(brokers: int, hosts: int = 5) -> Engine:
    """Every registration of a cluster of ``brokers`` on ``hosts`` that the program creates."""
    engine = Engine(Answers())
    mocks.set_mocks(Answers(), project="program", stack="s", preview=False, monitor=engine)

    def program() -> Any:
        described = []
        for index in range(hosts):
            host = pulumi.CustomResource(HOST, f"h{index}", {})
            address = once_there(host, f"h{index}.lan")
            described.append(
                {
                    "name": f"h{index}",
                    "engine": pulumi.Output.concat("ssh://ops@", address),
                    "internal": address,
                    "external": address,
                }
            )
        args: Any = {"brokers": brokers, "hosts": described, "listeners": BETWEEN_HOSTS}
        return DockerCluster("kafka", args).proof

    pulumi.runtime.test(program)()  # type: ignore[no-untyped-call]
    assert len(engine.of(CONTAINER)) == brokers and len(engine.of(HOST)) == hosts
    return engine


def edges(engine: Engine) -> int:
    return sum(len(it.request.dependencies) for it in engine.seen)


def reached(engine: Engine, urn: str) -> set[str]:
    """What Pulumi creates before ``urn``, and deletes after it: parents and dependencies."""
    requests = {it.urn: it.request for it in engine.seen}

    def direct(request: Any) -> Iterator[str]:
        for other in (request.parent, *request.dependencies):
            yield "::".join(other.split("$")[-1].split("::")[-2:])

    known, waiting = set(), [urn]
    while waiting:
        if (other := waiting.pop()) not in known:
            known.add(other)
            waiting.extend(direct(requests[other]) if other in requests else ())
    return known


def test_edges_grow_with_the_brokers_and_not_with_brokers_times_hosts() -> None:
    few, more, many = (edges(registered(it)) for it in (FEW, MORE, MANY))
    assert many - more == more - few, "each further broker has as many as the one before"
    on_many_hosts = edges(registered(MANY, hosts=10)) - edges(registered(FEW, hosts=10))
    assert on_many_hosts == many - few, "a host is no edge of each broker"


def test_the_search_for_cycles_visits_as_many_resources_for_each_broker(
    searched: list[int],
) -> None:
    """The order of registrations makes a small difference; a chain adds several for each broker."""
    visits = {}
    for brokers in (FEW, 4 * FEW):
        searched.clear()
        registered(brokers)
        visits[brokers] = sum(searched) / brokers
    few, many = visits.values()
    assert many < few + 10, "the chain of nodes is not searched for each of them"


def test_no_broker_is_touched_before_all_hosts_the_gate_and_the_broker_before_it() -> None:
    engine = registered(FEW)
    hosts = {it.urn for it in engine.of(HOST).values()}
    (gate,) = engine.of("pulumi:providers:earshot").values()
    ready = [it for it in engine.of(READY).values() if it.name != "kafka-cluster"]
    for kind in (CONTAINER, STOP):
        for index, node in enumerate(engine.of(kind).values()):
            before = reached(engine, node.urn)
            assert hosts | {gate.urn} <= before, node.urn
            assert {it.urn for it in ready[:index]} <= before, node.urn
            assert all(
                engine.before(it, node) for it in (*engine.of(HOST).values(), gate, *ready[:index])
            )
