"""What a stack may do over what is on its engines; engines themselves are asked end to end."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import DockerException
from earshot_pulumi.docker import images, labels, on_engines, running, volume_data
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import (
    EngineContainer,
    EngineNetwork,
    EngineObjects,
    EngineVolume,
    TargetStack,
)
from earshot_pulumi.docker.preflight import EnginePreflightKind
from earshot_pulumi.unknown_inputs import Markers

from earshot.cluster_id import of_stack_name
from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.errors import EarshotError
from earshot.placement.docker import plan_docker
from earshot.topology.container import PublishedPort
from tests.components.called import Called

MINE = "0123456789ab"
OWN_ID = "5L6g3nShT-eMCtK-X86swQ"


def wanted(stack: str = "s", **settings: Any) -> TargetStack:
    spec = read_spec({"placement": "docker", **settings}, "test")
    assert isinstance(spec, DockerSpec)
    planned = plan_docker(spec, stack)
    return TargetStack(stack, MINE, OWN_ID, planned.plan, planned.containers, planned.hosts)


def container(of: TargetStack, id: int, **changes: Any) -> EngineContainer:
    """The running container of node ``id`` as this very deployment has made it."""
    made = of.containers[id]
    own = labels.of_container(of.stack, of.deployment, of.plan, of.plan.node(id))
    seen = EngineContainer(
        of.host_of(id), f"id-{id}", made.name, "sha256:1", True, own, ports=made.ports
    )
    return replace(seen, **changes)


def volume(of: TargetStack, id: int, **changes: Any) -> EngineVolume:
    own = labels.of_volume(of.stack, of.cluster_id, of.plan, of.plan.node(id))
    return replace(EngineVolume(of.host_of(id), of.containers[id].volume, own), **changes)


def everything(of: TargetStack) -> EngineObjects:
    """What is on the engines once ``of`` is up."""
    network = EngineNetwork("local", "earshot-s", labels.of_deployment(of.stack, of.deployment))
    return EngineObjects(
        tuple(container(of, id) for id in of.containers),
        tuple(volume(of, id) for id in of.containers),
        (network,),
    )


def problems(of: TargetStack, seen: EngineObjects) -> list[str]:
    return list(on_engines.problems(of, seen))


def the_problem(of: TargetStack, seen: EngineObjects) -> str:
    (found,) = problems(of, seen)
    return found


def test_on_empty_engines_everything_may_be_made() -> None:
    assert problems(wanted(), EngineObjects()) == []


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
    back = TargetStack.from_props(floats)
    assert back == replace(
        now, containers={id: replace(it, environment={}) for id, it in now.containers.items()}
    )


def test_the_name_of_a_strangers_container_is_taken() -> None:
    now = wanted(brokers=1)
    stranger = EngineContainer("local", "x", "kafka-1", "redis:7", False)
    reported = the_problem(now, EngineObjects((stranger,)))
    assert "the name kafka-1 of node 1 is taken on Docker host local" in reported
    assert "a container of the image redis:7" in reported
    assert "names: {1: …}" in reported


def test_another_checkouts_stack_of_the_same_name_is_another() -> None:
    now = wanted(brokers=1)
    others = {**container(now, 1).labels, labels.DEPLOYMENT: "fedcba987654"}
    reported = "\n".join(problems(now, EngineObjects((container(now, 1, labels=others),))))
    assert "another deployment of a stack s" in reported


def test_a_name_on_another_host_is_free() -> None:
    now = wanted(brokers=1)
    assert (
        problems(now, EngineObjects((EngineContainer("elsewhere", "x", "kafka-1", "i", True),)))
        == []
    )


def test_a_strangers_network_is_not_joined() -> None:
    now = wanted(brokers=1)
    reported = the_problem(now, EngineObjects(networks=(EngineNetwork("local", "earshot-s"),)))
    assert "the network earshot-s exists on Docker host local" in reported


def test_a_volume_that_is_not_this_nodes_is_not_written_to() -> None:
    now = wanted(brokers=1)
    for own in ({}, {labels.STACK: "other"}, {labels.STACK: "s", labels.NODE: "2"}):
        reported = the_problem(now, EngineObjects(volumes=(volume(now, 1, labels=own),)))
        assert "does not hold node 1 of stack s" in reported


def test_voters_are_in_the_data() -> None:
    (reported,) = problems(wanted(controllers={"count": 1}), everything(wanted()))
    assert "the quorum has the voters 1, 2, 3 and would get 1:" in reported
    assert "`controllers.count: 3`" in reported


def test_controllers_do_not_move_while_they_run() -> None:
    before, after = wanted(), wanted(controllers={"port": 29093})
    assert "`pulumi destroy`" in the_problem(after, everything(before))
    stopped = tuple(replace(it, running=False) for it in everything(before).containers)
    assert problems(after, replace(everything(before), containers=stopped)) == []


def test_a_strangers_port_is_taken() -> None:
    now = wanted(brokers=1)
    port = now.containers[1].ports[0]
    occupant = EngineContainer(
        "local", "x", "other", "i", True, ports=(replace(port, host_ip="::"),)
    )
    reported = the_problem(now, EngineObjects((occupant,)))
    assert f"port {port.host_port} of Docker host local, for node 1, is taken" in reported
    assert "container other. Free the port" in reported


@pytest.mark.parametrize(
    "changes", [{"host_port": 1}, {"protocol": "udp"}, {"host_ip": "192.0.2.1"}]
)
def test_another_port_is_free(changes: dict[str, Any]) -> None:
    now = wanted(brokers=1, listeners=[{"name": "I", "port": 1000, "scopes": "internal"},
                                       {"name": "H", "port": 2000, "scopes": "host"}])  # fmt: skip
    (port,) = now.containers[1].ports
    assert port == PublishedPort(2000, 2000, "127.0.0.1")
    occupant = EngineContainer("local", "x", "other", "i", True, ports=(replace(port, **changes),))
    assert problems(now, EngineObjects((occupant,))) == []


def test_brokers_do_not_swap_ports_while_both_run() -> None:
    before = wanted(brokers=2)
    swapped = [
        {"name": "INTERNAL", "port": 19092, "scopes": "internal"},
        {"name": "HOST", "port": 9092, "scopes": "host", "published": {1: 9093, 2: 9092}},
    ]
    now = wanted(brokers=2, listeners=swapped)
    reported = problems(now, everything(before))
    assert [
        ("node 2 of this stack" in text, "node 1 of this stack" in text) for text in reported
    ] == [
        (True, False),
        (False, True),
    ]


def test_controllers_at_hosts_that_a_preview_does_not_know_do_not_move() -> None:
    listeners = [{"name": "INTERNAL", "port": 19092, "scopes": "internal"}]
    listeners.append({"name": "EXTERNAL", "port": 9092, "scopes": "external"})

    def between(*hosts: str) -> TargetStack:
        placed = [{"name": f"h{n}", "external": it} for n, it in enumerate(hosts)]
        return wanted(hosts=placed, listeners=listeners)

    path = "hosts[1].external"
    seen = everything(between("a.example", "b.example"))
    assert any("would move" in it for it in problems(between("a.example", "c.example"), seen))
    unknown = between("a.example", Markers([path]).text(path))
    assert not any("would move" in it for it in problems(unknown, seen))


def test_what_is_left_of_removed_brokers() -> None:
    before, now = wanted(brokers=4), wanted(brokers=3)
    seen = everything(before)
    assert volume_data.removed(now, seen) == {4: [container(before, 4), volume(before, 4)]}
    assert volume_data.removed(before, seen) == {}


def test_controllers_alone_hold_no_replicas() -> None:
    quorum = {"mode": "separate", "count": 3}
    before = wanted(brokers=1, controllers=quorum)
    now = wanted(brokers=1)
    assert volume_data.removed(now, everything(before)) == {}


OTHER = "7QhzWcGeQ9mTn0UP4nS3Rg"


def test_data_that_another_cluster_has_kept_is_not_started_on() -> None:
    """A stack of this name in another checkout, or this one's state was lost."""
    now = wanted()
    theirs = everything(replace(now, cluster_id=OTHER)).volumes
    assert the_problem(now, EngineObjects(volumes=theirs)) == (
        "earshot-s-kafka-1 on Docker host local, earshot-s-kafka-2 on Docker host local, "
        f"earshot-s-kafka-3 on Docker host local: data of cluster {OTHER}, which a stack called s "
        f"has made, of this checkout or another; this one is {OWN_ID}. To take it over, write "
        f"`cluster_id: {OTHER}` into the stack's file; if it is no longer needed, "
        f"remove the volumes "
        "(`docker volume rm`); else name the stack otherwise"
    )
    assert problems(replace(now, cluster_id=OTHER), EngineObjects(volumes=theirs)) == []


def test_before_the_id_is_decided_nothing_is_said_of_kept_data() -> None:
    """The resource that decides the id compares the volumes."""
    now = wanted(brokers=1)
    assert (
        problems(replace(now, cluster_id=""), EngineObjects(volumes=everything(now).volumes)) == []
    )


def test_volumes_of_earlier_releases_hold_the_id_of_their_stacks_name() -> None:
    now = wanted(brokers=1)
    unmarked = {key: it for key, it in volume(now, 1).labels.items() if key != labels.CLUSTER}
    old = EngineObjects(volumes=(volume(now, 1, labels=unmarked),))
    assert f"`cluster_id: {of_stack_name('s')}`" in the_problem(now, old)
    assert problems(replace(now, cluster_id=of_stack_name("s")), old) == []


def test_a_refusal_is_of_no_property(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulumi would print the property's value."""
    monkeypatch.setattr(Engines, "of", lambda self, host: None)
    now = wanted(brokers=1)
    monkeypatch.setattr(on_engines, "look", lambda _engines, _hosts: everything(now))
    monkeypatch.setattr(running, "link_problems", lambda *_: ["it would not do"])
    monkeypatch.setattr(running, "running", lambda *_: [])
    monkeypatch.setattr(images, "absent", lambda *_: [])
    news = {**now.to_props(), "cluster_id": OWN_ID, "remove": "unused"}
    olds = news | {"deployment": MINE}
    (failure,) = Called(EnginePreflightKind()).check(olds, news).failures
    assert failure == ("\n- it would not do")


@pytest.mark.parametrize(
    ("state", "running"),
    [("running", True), ("restarting", True), ("paused", True), ("exited", False), ("dead", False)],
)
def test_a_container_as_an_engine_lists_it(state: str, running: bool) -> None:
    ports = [
        {"PrivatePort": 1, "PublicPort": 2, "IP": "::", "Type": "tcp"},
        {"PrivatePort": 3, "Type": "tcp"},
        {"PrivatePort": 4, "PublicPort": 5, "Type": "udp"},
    ]
    listed = {"Id": "0123456789abcdef", "Image": "i", "State": state}
    full = {**listed, "Names": ["/kafka-1"], "Labels": {labels.NODE: "7"}, "Ports": ports}
    seen = on_engines._container("h", full)
    assert seen == EngineContainer(
        *("h", "0123456789abcdef", "kafka-1", "i", running, {labels.NODE: "7"}),
        (PublishedPort(1, 2, "::", "tcp"), PublishedPort(4, 5, "", "udp")),
    )
    assert seen.node == 7
    bare = on_engines._container("h", {**listed, "Names": [], "Labels": None, "Ports": None})
    assert (bare.name, bare.labels, bare.ports, bare.node) == ("0123456789ab", {}, (), -1)
    assert EngineVolume("h", "v").node == -1
    assert EngineVolume("h", "v", {labels.NODE: "7"}).node == 7


def test_engines_are_looked_at_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = wanted(hosts=[{"name": "a", "external": "a"}, {"name": "b", "external": "b"}]).hosts
    asked: list[bool] = []

    class Api:
        volumes_there: Any = ({"Name": "v", "Labels": None}, {"Name": "w", "Labels": {"a": "b"}})

        def containers(self, all: bool = False) -> list[dict[str, Any]]:
            asked.append(all)
            return [{"Id": "x", "Names": ["/k"], "Image": "i", "State": "dead", "Labels": None,
                     "Ports": None}]  # fmt: skip

        def volumes(self) -> dict[str, Any]:
            return {"Volumes": self.volumes_there}

        def networks(self) -> list[dict[str, Any]]:
            return [{"Name": "n", "Labels": None}, {"Name": "o", "Labels": {"c": "d"}}]

    api = Api()
    monkeypatch.setattr(Engines, "of", lambda *_: SimpleNamespace(api=api))
    seen = on_engines.look(Engines(), hosts)
    assert asked == [True, True], "also those that do not run"
    assert [(it.host, it.name) for it in seen.containers] == [("a", "k"), ("b", "k")]
    assert seen.volumes[:2] == (EngineVolume("a", "v", {}), EngineVolume("a", "w", {"a": "b"}))
    assert seen.networks[2:] == (EngineNetwork("b", "n", {}), EngineNetwork("b", "o", {"c": "d"}))
    api.volumes_there = None
    assert on_engines.look(Engines(), hosts).volumes == ()
    monkeypatch.setattr(Api, "networks", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        on_engines.look(Engines(), hosts)


@pytest.mark.parametrize("reason", [DockerException("gone"), OSError("gone")])
def test_an_engine_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, reason: Exception
) -> None:
    def refused(all: bool = False) -> None:
        raise reason

    api = SimpleNamespace(containers=refused)
    monkeypatch.setattr(Engines, "of", lambda *_: SimpleNamespace(api=api))
    with pytest.raises(EarshotError, match="Docker host local"):
        on_engines.look(Engines(), wanted().hosts)


def test_what_is_in_the_way_is_told_with_all_that_mends_it() -> None:
    now = wanted(brokers=1)
    stranger = EngineContainer("local", "x", "kafka-1", "redis:7", False)
    assert problems(now, EngineObjects((stranger,))) == [
        (
            "the name kafka-1 of node 1 is taken on Docker host local by a container of the image "
            "redis:7. Remove it (`docker rm --force kafka-1` leaves its volumes), or choose "
            "another name: `names: {1: …}`"
        )
    ]
    network = EngineNetwork("local", "earshot-s")
    assert problems(now, EngineObjects(networks=(network,))) == [
        (
            "the network earshot-s exists on Docker host local and is not of this stack. Remove it "
            "(`docker network rm earshot-s`), or name the stack otherwise"
        )
    ]
    theirs = replace(network, labels={labels.STACK: "s", labels.DEPLOYMENT: "other"})
    assert problems(now, EngineObjects(networks=(theirs,))) == [
        (
            "the network earshot-s exists on Docker host local and is another deployment of a "
            "stack s, whose state is kept elsewhere or was lost. Remove it (`docker network rm "
            "earshot-s`), or name the stack otherwise"
        )
    ]
    assert problems(now, EngineObjects(networks=(replace(network, name="bridge"),))) == []
    assert problems(now, EngineObjects(volumes=(volume(now, 1, labels={}),))) == [
        (
            "volume earshot-s-kafka-1 on Docker host local is there already and does not hold node "
            "1 of stack s. Name the stack or the node otherwise, or remove the volume if it "
            "is no longer needed"
        )
    ]
    assert (
        problems(now, EngineObjects(volumes=(volume(now, 1, host="elsewhere", labels={}),))) == []
    )
    occupant = {**volume(now, 1).labels, labels.VOTERS: "1,2,3"}
    assert problems(now, EngineObjects(volumes=(volume(now, 1, labels=occupant),))) == [
        (
            "the quorum has the voters 1, 2, 3 and would get 1: voters are written into every "
            "node's data when it is formatted, and a static quorum cannot change them. Set "
            "`controllers.count: 3` to keep them, or remove the data with `data: delete` and "
            "`pulumi destroy`"
        )
    ]


def test_whose_port_it_is_is_told() -> None:
    now = wanted(brokers=2)
    first, second = (now.containers[id].ports[0] for id in (1, 2))
    other = EngineContainer("local", "x", "other", "i", True, ports=(first,))
    assert problems(now, EngineObjects((other,))) == [
        (
            f"port {first.host_port} of Docker host local, for node 1, is taken by container "
            "other. Free the port, or choose another `port` (or `published`) for the listener"
        )
    ]
    assert problems(now, EngineObjects((replace(other, host="elsewhere"),))) == []
    own = container(now, 2, ports=(first, second))
    assert problems(now, EngineObjects((own,))) == [
        (
            f"port {first.host_port} of Docker host local, for node 1, is taken by container "
            "kafka-2, node 2 of this stack. Free the port, or choose another `port` (or "
            "`published`) for the listener"
        )
    ]


def test_only_this_deployment_s_controllers_that_run_keep_their_place() -> None:
    before, after = wanted(), wanted(controllers={"port": 29093})
    old, new = (",".join(f"{id}@kafka-{id}:{port}" for id in (1, 2, 3)) for port in (29092, 29093))
    seen = everything(before)
    assert problems(after, seen) == [
        (
            f"the controllers would move from {old} to {new} while they run: no majority would "
            "find each other during a rolling change. Stop the cluster first (`pulumi destroy`; "
            "data is kept)"
        )
    ]
    unknown = tuple(
        replace(it, labels={k: v for k, v in it.labels.items() if k != labels.VOTERS})
        for it in seen.containers
    )
    assert problems(after, replace(seen, containers=unknown)) == []
    theirs = EngineContainer(
        "local", "x", "theirs", "i", True, {**seen.containers[0].labels, labels.DEPLOYMENT: "o"}
    )
    assert problems(after, EngineObjects((theirs,))) == []


def test_containers_of_a_stack_whose_data_was_kept_are_named() -> None:
    now = wanted(brokers=1)
    theirs = replace(now, cluster_id=OTHER, deployment="other")
    left = container(theirs, 1, name="old-1", ports=())
    seen = EngineObjects((left,), (volume(theirs, 1),))
    assert problems(now, seen) == [
        (
            f"earshot-s-kafka-1 on Docker host local: data of cluster {OTHER}, which a stack "
            f"called s has made, of this checkout or another; this one is {OWN_ID}. Containers of "
            f"such a stack are there: old-1. To take it over, write `cluster_id: {OTHER}` into the "
            "stack's file; if it is no longer needed, remove the volumes (`docker "
            "volume rm`); else name "
            "the stack otherwise"
        )
    ]
    own = on_engines.spots(now.hosts, now.containers.values())
    (reported,) = on_engines.another_clusters_data("s", None, own, seen)
    assert "this one is a new one. Containers" in reported
    assert list(on_engines.another_clusters_data("other", None, own, seen)) == []
    assert (
        on_engines.held_by_cluster("s", own, EngineObjects(volumes=(volume(theirs, 1, name="x"),)))
        == {}
    )


def test_without_inputs_there_are_no_hosts() -> None:
    assert on_engines.hosts_of({}) == ()
