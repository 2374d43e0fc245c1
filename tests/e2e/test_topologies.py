"""The model of topologies beside a real Docker engine: a share of `make judge-topologies`."""

import contextlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from earshot.topology.names import Machine, Names, Resolution, UnresolvedName
from earshot.topology.ways import Ways
from tests.e2e.docker_hosts import Network, docker_network
from tests.e2e.images.base import hindrance
from tests.e2e.images.load import client_image, kafka_image
from tests.skips import lacking
from tests.topologies.compare import compare_with_model
from tests.topologies.engine import Judge, Running, judge
from tests.topologies.generate import Topology, topology
from tests.topologies.kafka import compare_with_kafka, kafka_topology
from tests.topologies.two_hosts import compare_on_two, names_of, two_hosts

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
CASES = sorted((Path(__file__).parents[1] / "topologies" / "cases").glob("*.yaml"))
COUNT, TWO_COUNT, KAFKA_COUNT = 10, 3, 2
SEEDS_BETWEEN = (30001, 30002, 30003)
"""The number of topologies in which clients reach brokers on the other host."""


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """A network of Docker hosts, each in its own network namespace."""
    if (reason := hindrance()) is not None:
        lacking(reason)
    with docker_network() as new_network:
        yield new_network


@pytest.fixture(scope="module")
def host_judge(network: Network) -> Iterator[Judge]:
    """The judge on one Docker host."""
    host = network.host()
    with judge(host, client_image(host.engine)) as new_judge:
        yield new_judge


@pytest.fixture(scope="module")
def judges(network: Network) -> Iterator[list[Judge]]:
    """Judges on two Docker hosts that know each other's names; the first has Kafka's image."""
    hosts = [network.host() for _ in range(2)]
    names = names_of((hosts[0].address, hosts[1].address))
    kafka_images = (kafka_image(hosts[0].engine), "")
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(judge(host, client_image(host.engine), kafka, names=names))
            for host, kafka in zip(hosts, kafka_images, strict=True)
        ]


@contextlib.contextmanager
def running_on_two(
    judges: list[Judge], seeds: Sequence[int]
) -> Iterator[list[tuple[Running, Running]]]:
    """Topologies of two hosts, as they run on both."""
    machines = (judges[0].host.address, judges[1].host.address)
    topology_pairs = [two_hosts(seed, machines, slot) for slot, seed in enumerate(seeds)]
    with (
        judges[0].running(
            [host_topology for host_topology, _ in topology_pairs]
        ) as running_on_first,
        judges[1].running(
            [host_topology for _, host_topology in topology_pairs]
        ) as running_on_second,
    ):
        yield list(zip(running_on_first, running_on_second, strict=True))


def differences(host_judge: Judge, topologies: list[Topology]) -> list[str]:
    """The differences between model and containers, each with its seed."""
    with host_judge.running(topologies) as running_topologies:
        outcomes = [
            (running_topology.topology.seed, compare_with_model(running_topology))
            for running_topology in running_topologies
        ]
    assert sum(outcome.agreed.total() for _, outcome in outcomes) > 10 * len(topologies)
    return [f"seed {seed}: {text}" for seed, outcome in outcomes for text in outcome.differences]


@pytest.mark.combination
def test_no_hop_of_random_topologies_is_predicted_wrongly(host_judge: Judge) -> None:
    first_seed = random.SystemRandom().randrange(10**6)
    topologies = [topology(first_seed + i, host_judge.host.address, i) for i in range(COUNT)]
    assert differences(host_judge, topologies) == []


def test_no_hop_of_kept_topologies_is_predicted_wrongly(host_judge: Judge) -> None:
    address = host_judge.host.address
    topologies = [
        Topology(i, yaml.safe_load(path.read_text().replace("MACHINE", address)), address)
        for i, path in enumerate(CASES)
    ]
    assert differences(host_judge, topologies) == []


@pytest.mark.combination
def test_no_hop_between_two_hosts_is_predicted_wrongly(judges: list[Judge]) -> None:
    first_seed = random.SystemRandom().randrange(10**6)
    with running_on_two(judges, range(first_seed, first_seed + TWO_COUNT)) as pairs:
        outcomes = [(pair[0].topology.seed, compare_on_two(pair)) for pair in pairs]
    wrong_hops = [
        f"seed {seed}: {text}" for seed, outcome in outcomes for text in outcome.differences
    ]
    assert wrong_hops == []
    assert sum(outcome.agreed["other host"] for _, outcome in outcomes) > 0


@pytest.mark.combination
def test_records_arrive_in_real_brokers_where_the_walk_says_so(judges: list[Judge]) -> None:
    first_seed, judging = random.SystemRandom().randrange(10**6), judges[0]
    address = judging.host.address
    topologies = [kafka_topology(first_seed + i, address, i) for i in range(KAFKA_COUNT)]
    with judging.running(topologies) as running_topologies:
        outcomes = [compare_with_kafka(running_topology) for running_topology in running_topologies]
    assert [text for outcome in outcomes for text in outcome.differences] == []
    assert sum(outcome.agreed.total() for outcome in outcomes) > 0


@pytest.mark.parametrize("broken", [
    "published",  # one shows that the comparison can fail
    *(pytest.param(model_part, marks=pytest.mark.combination)
      for model_part in ("bind", "networks", "names")),
])  # fmt: skip
def test_a_broken_model_is_caught(
    broken: str, host_judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = host_judge.host.address
    path = next(path for path in CASES if path.stem == broken)
    document = yaml.safe_load(path.read_text().replace("MACHINE", address))
    with contextlib.ExitStack() as stack:
        running_topologies = stack.enter_context(
            host_judge.running([Topology(900, document, address)])
        )
        assert compare_with_model(running_topologies[0]).differences == []
        _break(broken, monkeypatch)
        assert compare_with_model(running_topologies[0]).differences != []


@pytest.mark.combination
def test_a_model_that_takes_a_host_for_unreachable_is_caught(
    judges: list[Judge], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_on_two(judges, SEEDS_BETWEEN) as pairs:
        assert all(compare_on_two(pair).differences == [] for pair in pairs)
        monkeypatch.setattr(Names, "_outside", lambda *_: UnresolvedName("broken"))
        assert any(compare_on_two(pair).differences != [] for pair in pairs)


def _break(knowledge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take one thing that the model knows away from it."""
    if knowledge == "bind":  # every listener takes connections to any address
        monkeypatch.setattr(Ways, "_accepts", lambda *_, **__: True)
    elif knowledge == "published":  # a port on loopback is on every address
        monkeypatch.setattr("earshot.topology.ways._is_published_at", lambda *_, **__: True)
    elif knowledge == "networks":  # all networks are one
        monkeypatch.setattr(Ways, "_share_network", lambda *_: True)
    else:  # every name is the machine's
        resolution = Resolution((Machine(),), "broken")
        monkeypatch.setattr(Names, "resolve", lambda *_: resolution)
