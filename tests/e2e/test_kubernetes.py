"""The model of pods and Services beside real kube-proxies and CoreDNS: a share of `make
judge-kubernetes`."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from earshot.topology.cluster import ClusterService, ServicePort
from earshot.topology.pod_ways import PodWays
from earshot.topology.ways import Leg
from tests.kubernetes import parts
from tests.kubernetes.compare import compare_with_model
from tests.kubernetes.generate import Topology, topology
from tests.kubernetes.judge import Judge, judge
from tests.skips import lacking

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(1500)]
CASES = sorted((Path(__file__).parents[1] / "kubernetes" / "cases").glob("*.yaml"))
COUNT = 8
BROKEN = ("selectors", "namespaces", "ports")


@pytest.fixture(scope="module", params=["iptables", "nftables"])
def cluster_judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    """A judge on a cluster whose kube-proxies are in one mode."""
    if (reason := parts.hindrance()) is not None:
        lacking(reason)
    with judge(request.param) as new_judge:
        yield new_judge


def kept_topology(cluster_judge: Judge, path: Path, number: int) -> Topology:
    """A kept manifest with the addresses of the nodes, in its own namespaces."""
    text = path.read_text().replace("NEAR", f"near{number}").replace("FAR", f"far{number}")
    for name, address in zip(("NODE1", "NODE2"), cluster_judge.nodes, strict=True):
        text = text.replace(name, address)
    return Topology(number, tuple(yaml.safe_load_all(text)))


def differences(cluster_judge: Judge, topologies: list[Topology]) -> list[str]:
    """The differences between model and cluster, each with its seed."""
    with cluster_judge.running(topologies) as running_topologies:
        outcomes = [
            (
                running_topology.topology.seed,
                compare_with_model(running_topology, cluster_judge.nodes),
            )
            for running_topology in running_topologies
        ]
    assert sum(outcome.agreed.total() for _, outcome in outcomes) > 10 * len(topologies)
    return [f"seed {seed}: {text}" for seed, outcome in outcomes for text in outcome.differences]


def test_no_hop_of_random_manifests_is_predicted_wrongly(cluster_judge: Judge) -> None:
    first_seed = random.SystemRandom().randrange(10**6)
    topologies = [topology(first_seed + i, cluster_judge.nodes, i) for i in range(COUNT)]
    assert differences(cluster_judge, topologies) == []


def test_no_hop_of_kept_manifests_is_predicted_wrongly(cluster_judge: Judge) -> None:
    assert (
        differences(
            cluster_judge, [kept_topology(cluster_judge, path, i) for i, path in enumerate(CASES)]
        )
        == []
    )


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_model_is_caught(
    broken: str, cluster_judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = next(case for case in CASES if case.stem == "broken")
    with cluster_judge.running(
        [kept_topology(cluster_judge, path, 900 + BROKEN.index(broken))]
    ) as running_topologies:
        assert compare_with_model(running_topologies[0], cluster_judge.nodes).differences == []
        _break(broken, monkeypatch)
        assert compare_with_model(running_topologies[0], cluster_judge.nodes).differences != []


def _break(knowledge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take one thing that the model knows away from it."""
    if knowledge == "selectors":  # a Service selects every pod
        monkeypatch.setattr(PodWays, "selected", lambda self, _: self.all)
    elif knowledge == "namespaces":  # a short name means a Service of any namespace
        monkeypatch.setattr(
            PodWays,
            "services_named",
            lambda self, host, _: [
                service for service in self.services if service.name == host.split(".")[0]
            ],
        )
    else:  # a Service forwards to its own port of the pods
        ways_to_pods = PodWays.ways_to_pods

        def to_own_port(
            self: PodWays, service: ClusterService, port: ServicePort, place: str
        ) -> list[Leg]:
            return ways_to_pods(self, service, replace(port, target=port.port), place)

        monkeypatch.setattr(PodWays, "ways_to_pods", to_own_port)
