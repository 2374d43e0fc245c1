"""The model of topologies beside a real Docker engine: a share of `make judge-topologies`."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from earshot.topology.names import Machine, Names, Resolution
from earshot.topology.ways import Ways
from tests.e2e.docker_hosts import docker_network
from tests.e2e.images.base import hindrance
from tests.e2e.images.load import client_image, kafka_image
from tests.skips import lacking
from tests.topologies.compare import compared
from tests.topologies.engine import Judge, judge
from tests.topologies.generate import Topology, topology
from tests.topologies.kafka import compared_with_kafka, kafka_topology

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
CASES = sorted((Path(__file__).parents[1] / "topologies" / "cases").glob("*.yaml"))
COUNT, KAFKA_COUNT = 10, 2


@pytest.fixture(scope="module")
def judging() -> Iterator[Judge]:
    """A judge on a Docker host in a network namespace of its own."""
    if (reason := hindrance()) is not None:
        lacking(reason)
    with docker_network() as network:
        host = network.host()
        with judge(host, client_image(host.engine), kafka_image(host.engine)) as made:
            yield made


def differences(made: Judge, drawn: list[Topology]) -> list[str]:
    """What the model says otherwise, each with its seed."""
    with made.running(drawn) as running:
        outcomes = [(item.topology.seed, compared(item)) for item in running]
    assert sum(outcome.agreed.total() for _, outcome in outcomes) > 10 * len(drawn)
    return [f"seed {seed}: {text}" for seed, outcome in outcomes for text in outcome.differences]


def test_no_hop_of_random_topologies_is_predicted_wrongly(judging: Judge) -> None:
    first = random.SystemRandom().randrange(10**6)
    drawn = [topology(first + i, judging.host.address, i) for i in range(COUNT)]
    assert differences(judging, drawn) == []


def test_no_hop_of_kept_topologies_is_predicted_wrongly(judging: Judge) -> None:
    address = judging.host.address
    drawn = [
        Topology(i, yaml.safe_load(path.read_text().replace("MACHINE", address)), address)
        for i, path in enumerate(CASES)
    ]
    assert differences(judging, drawn) == []


@pytest.mark.combination
def test_records_arrive_in_real_brokers_where_the_walk_says_so(judging: Judge) -> None:
    first = random.SystemRandom().randrange(10**6)
    address = judging.host.address
    drawn = [kafka_topology(first + i, address, i) for i in range(KAFKA_COUNT)]
    with judging.running(drawn) as running:
        outcomes = [compared_with_kafka(item) for item in running]
    assert [text for outcome in outcomes for text in outcome.differences] == []
    assert sum(outcome.agreed.total() for outcome in outcomes) > 0


@pytest.mark.parametrize("broken", ["bind", "published", "networks", "names"])
def test_a_broken_model_is_caught(
    broken: str, judging: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = judging.host.address
    path = next(path for path in CASES if path.stem == broken)
    document = yaml.safe_load(path.read_text().replace("MACHINE", address))
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(judging.running([Topology(900, document, address)]))
        assert compared(running[0]).differences == []
        _break(broken, monkeypatch)
        assert compared(running[0]).differences != []


def _break(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take one thing that the model knows away from it."""
    if what == "bind":  # every listener takes connections to any address
        monkeypatch.setattr(Ways, "_accepts", lambda *_, **__: True)
    elif what == "published":  # a port on loopback is on every address
        monkeypatch.setattr("earshot.topology.ways._is_published_at", lambda *_, **__: True)
    elif what == "networks":  # all networks are one
        monkeypatch.setattr(Ways, "_share", lambda *_: True)
    else:  # every name is the machine's
        found = Resolution((Machine(),), "broken")
        monkeypatch.setattr(Names, "resolve", lambda *_: found)
