"""What a stack may do over the objects on its engines; engines themselves are tested end to end."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from earshot_pulumi.docker import engine_objects, images, labels, running
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.engine_objects import (
    EngineContainer,
    EngineNetwork,
    EngineObjects,
    EngineVolume,
    TargetStack,
)
from earshot_pulumi.docker.preflight import EnginePreflightKind
from earshot_pulumi.unknown_inputs import Markers

from earshot.listeners.cluster_id import of_stack_name
from earshot.topology.container import PublishedPort
from tests.components.called import Called
from tests.components.docker.stacks import (
    MINE,
    OTHER_ID,
    OWN_ID,
    container,
    everything,
    target_stack,
    volume,
)

INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": "internal"}
STRANGER = EngineContainer("local", "x", "kafka-1", "redis:7", False)
NETWORK = EngineNetwork("local", "earshot-s")
ONE = target_stack(brokers=1)
VOLUME = volume(ONE, 1)


def problems(target: TargetStack, objects: EngineObjects) -> list[str]:
    return list(engine_objects.problems(target, objects))


def test_a_stack_may_be_created_on_empty_engines_and_over_its_own_objects() -> None:
    assert problems(target_stack(), EngineObjects()) == []
    target = target_stack()
    assert problems(target, everything(target)) == []
    bigger = target_stack(brokers=4, heap="1g", extra={"num.io.threads": "4"})
    assert problems(bigger, everything(target)) == []


def test_inputs_survive_the_way_through_pulumi() -> None:
    target = target_stack(hosts=[{"external": "x.example"}])
    props = {**target.to_props(), "deployment": MINE, "cluster_id": target.cluster_id}
    floats = json.loads(json.dumps(props), parse_int=float)
    without_environments = {
        id: replace(planned, environment={}) for id, planned in target.containers.items()
    }
    assert TargetStack.from_props(floats) == replace(target, containers=without_environments)
    assert engine_objects.hosts_of({}) == (), "a new resource has no old inputs"


@pytest.mark.parametrize(("objects", "message"), [
    (EngineObjects((STRANGER,)),
     ("the name kafka-1 of node 1 is taken on Docker host local by a container of the "
      "image redis:7. Remove it (`docker rm --force kafka-1` leaves its volumes), or "
      "choose another name: `names: {1: …}`")),
    (EngineObjects((replace(STRANGER, host="elsewhere"),)), None),
    (EngineObjects(networks=(NETWORK,)),
     ("the network earshot-s exists on Docker host local and is not of this stack. "
      "Remove it (`docker network rm earshot-s`), or give the stack another name")),
    (EngineObjects(networks=(replace(NETWORK,
                                     labels={labels.STACK: "s", labels.DEPLOYMENT: "other"}),)),
     ("the network earshot-s exists on Docker host local and is another deployment of a "
      "stack s, whose state is kept elsewhere or was lost. Remove it (`docker network rm "
      "earshot-s`), or give the stack another name")),
    (EngineObjects(networks=(replace(NETWORK, name="bridge"),)), None),
    *((EngineObjects(volumes=(replace(VOLUME, labels=own),)),
       ("volume earshot-s-kafka-1 on Docker host local exists already and is not of "
        "node 1 of stack s. Give the stack or the node another name, or remove the "
        "volume if it is no longer needed"))
      for own in ({}, {labels.STACK: "other"}, {labels.STACK: "s", labels.NODE: "2"})),
    (EngineObjects(volumes=(replace(VOLUME, host="elsewhere", labels={}),)), None),
    (EngineObjects(volumes=(replace(VOLUME, labels={**VOLUME.labels, labels.VOTERS: "1,2,3"}),)),
     ("the quorum has the voters 1, 2, 3 and would get 1: voters are written into every "
      "node's data when it is formatted, and a static quorum cannot change them. Set "
      "`controllers.count: 3` to keep them, or remove the data with `data: delete` and "
      "`pulumi destroy`")),
])  # fmt: skip
def test_objects_of_others_are_named_with_a_remedy(
    objects: EngineObjects, message: str | None
) -> None:
    assert problems(ONE, objects) == ([] if message is None else [message])


def test_another_checkouts_stack_of_the_same_name_is_another() -> None:
    theirs = {**container(ONE, 1).labels, labels.DEPLOYMENT: "fedcba987654"}
    messages = problems(ONE, EngineObjects((container(ONE, 1, labels=theirs),)))
    assert "another deployment of a stack s" in "\n".join(messages)


@pytest.mark.parametrize(
    ("changes", "taken"),
    [
        ({}, True),
        ({"host_ip": "::"}, True),
        ({"host_port": 1}, False),
        ({"protocol": "udp"}, False),
        ({"host_ip": "192.0.2.1"}, False),
    ],
)
def test_the_port_of_another_container_is_taken(changes: dict[str, Any], taken: bool) -> None:
    host = {"name": "H", "port": 2000, "scopes": "host"}
    target = target_stack(brokers=1, listeners=[INTERNAL, host])
    (port,) = target.containers[1].ports
    assert port == PublishedPort(2000, 2000, "127.0.0.1")
    ports = (replace(port, **changes),)
    occupant = EngineContainer("local", "x", "other", "i", True, ports=ports)
    message = (
        "port 2000 of Docker host local, for node 1, is taken by container other. Free the port, "
        "or choose another `port` (or `published`) for the listener"
    )
    assert problems(target, EngineObjects((occupant,))) == [message] * taken
    assert problems(target, EngineObjects((replace(occupant, host="elsewhere"),))) == []


def test_brokers_do_not_swap_ports_while_both_run() -> None:
    before = target_stack(brokers=2)
    swapped = {"name": "HOST", "port": 9092, "scopes": "host", "published": {1: 9093, 2: 9092}}
    target = target_stack(brokers=2, listeners=[INTERNAL, swapped])
    messages = problems(target, everything(before))
    assert [text.partition(". ")[0] for text in messages] == [
        f"port {port} of Docker host local, for node {id}, is taken by container kafka-{other}, "
        f"node {other} of this stack"
        for port, id, other in ((9093, 1, 2), (9092, 2, 1))
    ]
    first, second = (before.containers[id].ports[0] for id in (1, 2))
    both = container(before, 2, ports=(first, second))
    (message,) = problems(before, EngineObjects((both,)))
    assert "for node 1, is taken by container kafka-2, node 2 of this stack. Choose" in message


def test_controllers_do_not_move_while_they_run() -> None:
    before, after = target_stack(), target_stack(controllers={"port": 29093})
    old, new = (",".join(f"{id}@kafka-{id}:{port}" for id in (1, 2, 3)) for port in (29092, 29093))
    objects = everything(before)
    assert problems(after, objects) == [
        (
            f"the controllers would move from {old} to {new} while they run: during a rolling "
            "change no majority could connect to each other. Stop the cluster first (`pulumi "
            "destroy`; with `data: keep` it keeps the data)"
        )
    ]
    running = objects.containers
    stopped = tuple(replace(node, running=False) for node in running)
    unmarked = tuple(
        replace(node, labels={k: v for k, v in node.labels.items() if k != labels.VOTERS})
        for node in running
    )
    for containers in (stopped, unmarked):
        assert problems(after, replace(objects, containers=containers)) == []
    theirs = replace(running[0], name="theirs", ports=())
    theirs = replace(theirs, labels={**theirs.labels, labels.DEPLOYMENT: "o"})
    assert problems(after, EngineObjects((theirs,))) == []


def test_controllers_at_hosts_that_a_preview_does_not_know_do_not_move() -> None:
    external = {"name": "EXTERNAL", "port": 9092, "scopes": "external"}

    def between(*names: str) -> TargetStack:
        hosts = [{"name": f"h{index}", "external": name} for index, name in enumerate(names)]
        return target_stack(hosts=hosts, listeners=[INTERNAL, external])

    path = "hosts[1].external"
    objects = everything(between("a.example", "b.example"))
    moved = between("a.example", "c.example")
    assert any("would move" in text for text in problems(moved, objects))
    unknown = between("a.example", Markers([path]).text(path))
    assert not any("would move" in text for text in problems(unknown, objects))


def test_data_that_another_cluster_has_kept_is_not_started_on() -> None:
    """A stack of this name in another checkout, or this one's state was lost."""
    target = target_stack()
    theirs = everything(replace(target, cluster_id=OTHER_ID)).volumes
    assert problems(target, EngineObjects(volumes=theirs)) == [
        (
            "earshot-s-kafka-1 on Docker host local, earshot-s-kafka-2 on Docker host local, "
            f"earshot-s-kafka-3 on Docker host local: data of cluster {OTHER_ID}, of a stack s in "
            f"this checkout or another one; the cluster of this stack is {OWN_ID}. To use this "
            f"data, write `cluster_id: {OTHER_ID}` into the stack's file; if it is no longer "
            "needed, remove the volumes (`docker volume rm`); otherwise give the stack another name"
        )
    ]
    assert problems(replace(target, cluster_id=OTHER_ID), EngineObjects(volumes=theirs)) == []


def test_before_the_id_is_decided_kept_data_is_not_compared() -> None:
    """The resource that decides the id compares the volumes."""
    assert problems(replace(ONE, cluster_id=""), EngineObjects(volumes=(VOLUME,))) == []


def test_volumes_of_earlier_releases_hold_the_id_of_their_stacks_name() -> None:
    unmarked = {key: text for key, text in VOLUME.labels.items() if key != labels.CLUSTER}
    objects = EngineObjects(volumes=(replace(VOLUME, labels=unmarked),))
    (message,) = problems(ONE, objects)
    assert f"`cluster_id: {of_stack_name('s')}`" in message
    assert problems(replace(ONE, cluster_id=of_stack_name("s")), objects) == []


def test_a_refusal_names_no_property(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulumi would print the property's value."""
    monkeypatch.setattr(Engines, "of", lambda self, host: None)
    monkeypatch.setattr(engine_objects, "look", lambda _engines, _hosts: everything(ONE))
    monkeypatch.setattr(running, "link_problems", lambda *_: ["it would not do"])
    monkeypatch.setattr(running, "expired_problems", lambda *_: ["it has expired"])
    monkeypatch.setattr(running, "running", lambda *_: [])
    monkeypatch.setattr(images, "absent", lambda *_: [])
    news = {**ONE.to_props(), "cluster_id": OWN_ID, "remove": "unused"}
    olds = news | {"deployment": MINE}
    (failure,) = Called(EnginePreflightKind()).check(olds, news).failures
    assert failure == "\n- it would not do\n- it has expired"


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
    node = engine_objects._container("h", full)
    assert node == EngineContainer(
        *("h", "0123456789abcdef", "kafka-1", "i", running, {labels.NODE: "7"}),
        (PublishedPort(1, 2, "::", "tcp"), PublishedPort(4, 5, "", "udp")),
    )
    assert node.node == 7
    bare = engine_objects._container("h", {**listed, "Names": [], "Labels": None, "Ports": None})
    assert (bare.name, bare.labels, bare.ports, bare.node) == ("0123456789ab", {}, (), -1)
    assert EngineVolume("h", "v").node == -1
    assert EngineVolume("h", "v", {labels.NODE: "7"}).node == 7
    for text in ("x", "", "²", "7 ", "9" * 5000):
        assert EngineVolume("h", "v", {labels.NODE: text}).node == -1, "labels of others"


def test_engines_are_looked_at_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = target_stack(
        hosts=[{"name": "a", "external": "a"}, {"name": "b", "external": "b"}]
    ).hosts
    listed: list[bool] = []

    class Api:
        volume_list: Any = ({"Name": "v", "Labels": None}, {"Name": "w", "Labels": {"a": "b"}})

        def containers(self, all: bool = False) -> list[dict[str, Any]]:
            listed.append(all)
            return [{"Id": "x", "Names": ["/k"], "Image": "i", "State": "dead", "Labels": None,
                     "Ports": None}]  # fmt: skip

        def volumes(self) -> dict[str, Any]:
            return {"Volumes": self.volume_list}

        def networks(self) -> list[dict[str, Any]]:
            return [{"Name": "n", "Labels": None}, {"Name": "o", "Labels": {"c": "d"}}]

    api = Api()
    monkeypatch.setattr(Engines, "of", lambda *_: SimpleNamespace(api=api))
    objects = engine_objects.look(Engines(), hosts)
    assert listed == [True, True], "also those that do not run"
    assert [(node.host, node.name) for node in objects.containers] == [("a", "k"), ("b", "k")]
    assert objects.volumes[:2] == (EngineVolume("a", "v", {}), EngineVolume("a", "w", {"a": "b"}))
    assert objects.networks[2:] == (
        EngineNetwork("b", "n", {}),
        EngineNetwork("b", "o", {"c": "d"}),
    )
    api.volume_list = None
    assert engine_objects.look(Engines(), hosts).volumes == ()
    monkeypatch.setattr(Api, "networks", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        engine_objects.look(Engines(), hosts)


def test_containers_of_a_stack_whose_data_was_kept_are_named() -> None:
    target = target_stack(brokers=1)
    theirs = replace(target, cluster_id=OTHER_ID, deployment="other")
    former = container(theirs, 1, name="old-1", ports=())
    objects = EngineObjects((former,), (volume(theirs, 1),))
    assert problems(target, objects) == [
        (
            f"earshot-s-kafka-1 on Docker host local: data of cluster {OTHER_ID}, of a stack s in "
            f"this checkout or another one; the cluster of this stack is {OWN_ID}. Containers of "
            f"such a stack exist: old-1. To use this data, write `cluster_id: {OTHER_ID}` into the "
            "stack's file; if it is no longer needed, remove the volumes (`docker volume rm`); "
            "otherwise give the stack another name"
        )
    ]
    (message,) = engine_objects.another_clusters_data(target, None, objects)
    assert "the cluster of this stack is a new one. Containers" in message
    other = replace(target, stack="other")
    assert list(engine_objects.another_clusters_data(other, None, objects)) == []
    elsewhere = EngineObjects(volumes=(volume(theirs, 1, name="x"),))
    assert engine_objects.held_by_cluster(target, elsewhere) == {}
