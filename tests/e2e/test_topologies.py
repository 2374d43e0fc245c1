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
from tests.topologies.compare import compared
from tests.topologies.engine import Judge, Running, judge
from tests.topologies.generate import Topology, topology
from tests.topologies.kafka import compared_with_kafka, kafka_topology
from tests.topologies.two_hosts import compared_on_two, names_of, two_hosts

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
CASES = sorted((Path(__file__).parents[1] / "topologies" / "cases").glob("*.yaml"))
COUNT, TWO_COUNT, KAFKA_COUNT = 10, 3, 2
SEEDS_BETWEEN = (30001, 30002, 30003)
"""Of topologies in which clients reach brokers on the other host."""


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """A network of Docker hosts, each in a network namespace of its own."""
    if (reason := hindrance()) is not None:
        lacking(reason)
    with docker_network() as made:
        yield made


@pytest.fixture(scope="module")
def judging(network: Network) -> Iterator[Judge]:
    """The judge on one Docker host."""
    host = network.host()
    with judge(host, client_image(host.engine)) as made:
        yield made


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
def on_two(judges: list[Judge], seeds: Sequence[int]) -> Iterator[list[tuple[Running, Running]]]:
    """Topologies of two hosts, as they run on both."""
    machines = (judges[0].host.address, judges[1].host.address)
    drawn = [two_hosts(seed, machines, slot) for slot, seed in enumerate(seeds)]
    with (
        judges[0].running([it for it, _ in drawn]) as here,
        judges[1].running([it for _, it in drawn]) as there,
    ):
        yield list(zip(here, there, strict=True))


def differences(made: Judge, drawn: list[Topology]) -> list[str]:
    """What the model says otherwise, each with its seed."""
    with made.running(drawn) as running:
        outcomes = [(item.topology.seed, compared(item)) for item in running]
    assert sum(outcome.agreed.total() for _, outcome in outcomes) > 10 * len(drawn)
    return [f"seed {seed}: {text}" for seed, outcome in outcomes for text in outcome.differences]


@pytest.mark.combination
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
def test_no_hop_between_two_hosts_is_predicted_wrongly(judges: list[Judge]) -> None:
    first = random.SystemRandom().randrange(10**6)
    with on_two(judges, range(first, first + TWO_COUNT)) as pairs:
        outcomes = [(pair[0].topology.seed, compared_on_two(pair)) for pair in pairs]
    wrong = [f"seed {seed}: {text}" for seed, it in outcomes for text in it.differences]
    assert wrong == []
    assert sum(it.agreed["other host"] for _, it in outcomes) > 0


@pytest.mark.combination
def test_records_arrive_in_real_brokers_where_the_walk_says_so(judges: list[Judge]) -> None:
    first, judging = random.SystemRandom().randrange(10**6), judges[0]
    address = judging.host.address
    drawn = [kafka_topology(first + i, address, i) for i in range(KAFKA_COUNT)]
    with judging.running(drawn) as running:
        outcomes = [compared_with_kafka(item) for item in running]
    assert [text for outcome in outcomes for text in outcome.differences] == []
    assert sum(outcome.agreed.total() for outcome in outcomes) > 0


@pytest.mark.parametrize(
    "broken",
    [
        "published",  # one shows that the comparison can fail
        *(pytest.param(it, marks=pytest.mark.combination) for it in ("bind", "networks", "names")),
    ],
)
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


@pytest.mark.combination
def test_a_model_that_takes_a_host_for_unreachable_is_caught(
    judges: list[Judge], monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_two(judges, SEEDS_BETWEEN) as pairs:
        assert all(compared_on_two(pair).differences == [] for pair in pairs)
        monkeypatch.setattr(Names, "_outside", lambda *_: UnresolvedName("broken"))
        assert any(compared_on_two(pair).differences != [] for pair in pairs)


def _break(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take one thing that the model knows away from it."""
    if what == "bind":  # every listener takes connections to any address
        monkeypatch.setattr(Ways, "_accepts", lambda *_, **__: True)
    elif what == "published":  # a port on loopback is on every address
        monkeypatch.setattr("earshot.topology.ways._is_published_at", lambda *_, **__: True)
    elif what == "networks":  # all networks are one
        monkeypatch.setattr(Ways, "_share_network", lambda *_: True)
    else:  # every name is the machine's
        found = Resolution((Machine(),), "broken")
        monkeypatch.setattr(Names, "resolve", lambda *_: found)
