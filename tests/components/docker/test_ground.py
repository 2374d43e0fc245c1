"""What a stack may do over what is on its engines; engines themselves are asked end to end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.docker import ground, labels
from components.docker.ground import Seen, SeenContainer, SeenNetwork, SeenVolume, Wanted
from earshot.placement import plan_docker
from earshot.rules.container import PublishedPort
from earshot.spec.docker import DockerSpec
from earshot.spec.document import read_spec

MINE = "0123456789ab"


def wanted(stack: str = "s", **settings: Any) -> Wanted:
    spec = read_spec({"placement": "docker", **settings}, "test")
    assert isinstance(spec, DockerSpec)
    planned = plan_docker(spec, stack)
    return Wanted(stack, MINE, planned.plan, planned.containers, planned.hosts)


def container(of: Wanted, id: int, **changes: Any) -> SeenContainer:
    """The running container of node ``id`` as this very deployment has made it."""
    made = of.containers[id]
    own = labels.of_container(of.stack, of.deployment, of.plan, of.plan.node(id))
    seen = SeenContainer(
        of.host_of(id), f"id-{id}", made.name, "sha256:1", True, own, ports=made.ports
    )
    return replace(seen, **changes)


def volume(of: Wanted, id: int, **changes: Any) -> SeenVolume:
    own = labels.of_volume(of.stack, of.plan, of.plan.node(id))
    return replace(SeenVolume(of.host_of(id), of.containers[id].volume, own), **changes)


def everything(of: Wanted) -> Seen:
    """What is on the engines once ``of`` is up."""
    network = SeenNetwork("local", "earshot-s", labels.of_network(of.stack, of.deployment))
    return Seen(
        tuple(container(of, id) for id in of.containers),
        tuple(volume(of, id) for id in of.containers),
        (network,),
    )


def problems(of: Wanted, seen: Seen) -> list[str]:
    return list(ground.problems(of, seen))


def the_problem(of: Wanted, seen: Seen) -> str:
    (found,) = problems(of, seen)
    return found


def test_on_empty_engines_everything_may_be_made() -> None:
    assert problems(wanted(), Seen()) == []


def test_what_this_deployment_has_made_is_no_obstacle() -> None:
    now = wanted()
    assert problems(now, everything(now)) == []
    bigger = wanted(brokers=4, heap="1g", extra={"num.io.threads": "4"})
    assert problems(bigger, everything(now)) == []


def test_inputs_survive_the_way_through_pulumi() -> None:
    import json

    now = wanted(hosts=[{"external": "x.example"}])
    props = {**now.to_props(), "deployment": MINE}
    floats = json.loads(json.dumps(props), parse_int=float)
    back = Wanted.from_props(floats)
    assert back == replace(
        now, containers={id: replace(it, environment={}) for id, it in now.containers.items()}
    )


def test_the_name_of_a_strangers_container_is_taken() -> None:
    now = wanted(brokers=1)
    stranger = SeenContainer("local", "x", "kafka-1", "redis:7", False)
    told = the_problem(now, Seen((stranger,)))
    assert "the name kafka-1 of node 1 is taken on Docker host local" in told
    assert "a container of the image redis:7" in told
    assert "names: {1: …}" in told


def test_another_checkouts_stack_of_the_same_name_is_another() -> None:
    now = wanted(brokers=1)
    others = {**container(now, 1).labels, labels.DEPLOYMENT: "fedcba987654"}
    told = "\n".join(problems(now, Seen((container(now, 1, labels=others),))))
    assert "another deployment of a stack s" in told


def test_a_name_on_another_host_is_free() -> None:
    now = wanted(brokers=1)
    assert problems(now, Seen((SeenContainer("elsewhere", "x", "kafka-1", "i", True),))) == []


def test_a_strangers_network_is_not_joined() -> None:
    now = wanted(brokers=1)
    told = the_problem(now, Seen(networks=(SeenNetwork("local", "earshot-s"),)))
    assert "the network earshot-s exists on Docker host local" in told


def test_a_volume_that_is_not_this_nodes_is_not_written_to() -> None:
    now = wanted(brokers=1)
    for own in ({}, {labels.STACK: "other"}, {labels.STACK: "s", labels.NODE: "2"}):
        told = the_problem(now, Seen(volumes=(volume(now, 1, labels=own),)))
        assert "does not hold node 1 of stack s" in told


def test_voters_are_in_the_data() -> None:
    told = problems(wanted(controllers={"count": 1}), everything(wanted()))
    assert len(told) == 3, "each volume says so"
    assert "was formatted for a quorum of 1,2,3 and would get one of 1" in told[0]
    assert "`controllers.count: 3`" in told[0]


@pytest.mark.parametrize(
    ("version", "refused"), [("4.1.0", False), ("4.2.0", False), ("4.0.2", True), ("3.9.1", True)]
)
def test_data_goes_forward_only(version: str, refused: bool) -> None:
    seen = Seen(volumes=everything(wanted(kafka_version="4.1.1")).volumes)
    told = problems(wanted(kafka_version=version), seen)
    assert bool(told) is refused
    assert all(f"was written by Kafka 4.1.1, and {version} is older" in text for text in told)


def test_controllers_do_not_move_while_they_run() -> None:
    before, after = wanted(), wanted(controllers={"port": 29093})
    assert "make down STACK=s" in the_problem(after, everything(before))
    stopped = tuple(replace(it, running=False) for it in everything(before).containers)
    assert problems(after, replace(everything(before), containers=stopped)) == []


def test_a_strangers_port_is_taken() -> None:
    now = wanted(brokers=1)
    port = now.containers[1].ports[0]
    held = SeenContainer("local", "x", "other", "i", True, ports=(replace(port, host_ip="::"),))
    told = the_problem(now, Seen((held,)))
    assert f"port {port.host_port} of Docker host local, for node 1, is taken" in told
    assert "container other. Free the port" in told


@pytest.mark.parametrize(
    "changes", [{"host_port": 1}, {"protocol": "udp"}, {"host_ip": "192.0.2.1"}]
)
def test_another_port_is_free(changes: dict[str, Any]) -> None:
    now = wanted(brokers=1, listeners=[{"name": "I", "port": 1000, "scopes": "internal"},
                                       {"name": "H", "port": 2000, "scopes": "host"}])  # fmt: skip
    (port,) = now.containers[1].ports
    assert port == PublishedPort(2000, 2000, "127.0.0.1")
    held = SeenContainer("local", "x", "other", "i", True, ports=(replace(port, **changes),))
    assert problems(now, Seen((held,))) == []


def test_brokers_do_not_swap_ports_while_both_run() -> None:
    before = wanted(brokers=2)
    swapped = [
        {"name": "INTERNAL", "port": 19092, "scopes": "internal"},
        {"name": "HOST", "port": 9092, "scopes": "host", "published": {1: 9093, 2: 9092}},
    ]
    now = wanted(brokers=2, listeners=swapped)
    told = problems(now, everything(before))
    assert [("node 2 of this stack" in text, "node 1 of this stack" in text) for text in told] == [
        (True, False),
        (False, True),
    ]


def test_what_is_left_of_removed_brokers() -> None:
    before, now = wanted(brokers=4), wanted(brokers=3)
    seen = everything(before)
    assert ground.removed(now, seen) == {4: [container(before, 4), volume(before, 4)]}
    assert ground.removed(before, seen) == {}


def test_controllers_alone_hold_no_replicas() -> None:
    quorum = {"mode": "separate", "count": 3}
    before = wanted(brokers=1, controllers=quorum)
    now = wanted(brokers=1)
    assert ground.removed(now, everything(before)) == {}


def test_which_folders_are_replicas() -> None:
    listing = (
        "a-0 my-topic-12 __consumer_offsets-3 __cluster_metadata-0 meta.properties x lost+found"
    )
    assert ground.replicas(listing.split()) == ["__consumer_offsets-3", "a-0", "my-topic-12"]
