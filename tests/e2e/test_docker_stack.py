"""The docker placement in plain text on a real engine: changes, refusals, data that stays.

The template with its three vantages, a second update, data that outlives the stack and a killed
container are proved on the secured stack, in test_docker_secure.py.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.docker import labels

from earshot.sockets import conflict, free, listening, of_java
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_stack import (
    DockerStack,
    docker_cluster,
    docker_deployment,
)
from tests.e2e.images.load import validator_images
from tests.e2e.ports import free_ports

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(900)]

HEALTHY_SECONDS = 40


@pytest.fixture(scope="module")
def base(docker_engine: Engine, kafka_image: str) -> str:
    """The base of the validator image in tests."""
    return validator_images(docker_engine)[0]


def internal_cluster(image: str, base: str, **settings: Any) -> dict[str, Any]:
    """A cluster with one listener and so one vantage."""
    cluster = docker_cluster(image, validator={"base": base}, **settings)
    cluster["validation"]["records"] = 0
    cluster["listeners"] = cluster["listeners"][:1]
    return cluster


@pytest.fixture(scope="module")
def changing_stack(
    docker_engine: Engine, kafka_image: str, base: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DockerStack]:
    """Three brokers with one listener; every test leaves them up."""
    folder = tmp_path_factory.mktemp("changing") / "p"
    cluster = internal_cluster(kafka_image, base)
    with docker_deployment(folder, docker_engine, cluster, {}) as stack:
        stack.up()
        yield stack


@contextlib.contextmanager
def container_events(stack: DockerStack) -> Iterator[list[tuple[str, int]]]:
    """Events of the stack's containers within the block: ("die" or "start", node id), in order.

    Taken down as it happens: the engine remembers few events, and health checks make many.
    """
    events: list[tuple[str, int]] = []
    filters = {"label": f"{labels.STACK}={stack.stack}", "event": ["die", "start"]}
    with contextlib.closing(stack.engine.client()) as client:
        stream = client.events(decode=True, filters=filters | {"type": "container"})

        def take_down() -> None:
            for event in stream:
                events.append((event["Action"], int(event["Actor"]["Attributes"][labels.NODE])))

        thread = threading.Thread(target=take_down)
        thread.start()
        try:
            yield events
        finally:
            stream.close()
            thread.join(20)


def test_the_containers_are_healthy_by_their_own_word(changing_stack: DockerStack) -> None:
    end = time.monotonic() + HEALTHY_SECONDS
    for id in changing_stack.names:
        while (health := changing_stack.inspect(id)["State"]["Health"])["Status"] != "healthy":
            assert time.monotonic() < end, health
            time.sleep(1)


def test_a_change_takes_one_container_after_the_other(changing_stack: DockerStack) -> None:
    changing_stack.produce("rolled", "before")
    old_containers = changing_stack.containers()
    changing_stack.cluster["heap"] = "272m"
    with container_events(changing_stack) as events:
        changing_stack.up()
    new_containers = changing_stack.containers()
    assert all(new_containers[id] != old_containers[id] for id in old_containers)
    assert events == [(event, id) for id in (1, 2, 3) for event in ("die", "start")]
    assert changing_stack.first_record("rolled") == "before"


def test_a_broker_comes_and_goes_and_the_others_are_left_alone(changing_stack: DockerStack) -> None:
    old_containers = changing_stack.containers()
    names = dict(changing_stack.cluster["names"])
    mark = names[1].partition("-")[2]
    changing_stack.cluster |= {"brokers": 4, "names": names | {4: f"k4-{mark}"}}
    leftover_container = create_leftover(changing_stack, f"k4-{mark}")
    changing_stack.up()
    new_containers = changing_stack.containers()
    fourth_container = new_containers.pop(4)
    assert new_containers == old_containers and fourth_container != leftover_container

    changing_stack.kafka(
        1, "kafka-topics", "--create", "--topic", "on-four", "--replica-assignment=4:1"
    )
    changing_stack.cluster |= {"brokers": 3, "names": names}
    for command in ("preview", "up"):
        output = changing_stack.refusal(command=command)
        assert "broker 4 would be removed and still holds 1 replica(s): on-four-0" in output
        assert "kafka-reassign-partitions" in output
    assert changing_stack.containers() == old_containers | {4: fourth_container}

    changing_stack.kafka(1, "kafka-topics", "--delete", "--topic", "on-four")
    changing_stack.up()
    assert changing_stack.containers() == old_containers
    assert set(changing_stack.volumes()) == {1, 2, 3, 4}, "data is kept"


def create_leftover(stack: DockerStack, name: str) -> str:
    """Creates a container as an interrupted run leaves it: it is missing in the state."""
    container_labels = stack.inspect(1)["Config"]["Labels"]
    flags = [f"--label={key}={container_labels[key]}" for key in (labels.STACK, labels.DEPLOYMENT)]
    flags.append(f"--label={labels.NODE}=4")
    return stack.engine.run("create", "--name", name, *flags, stack.cluster["image"]).strip()


@pytest.mark.parametrize(("command", "change", "words"), [
    ("preview", {"controllers": {"count": 1}},
     ["the quorum has the voters 1, 2, 3 and would get 1", "`controllers.count`"]),
    ("up", {"controllers": {"port": 29777}},
     ["the controllers would move from", "keep the controllers' addresses; or stop"]),
    (
        "up",
        {"listeners": [{"name": "BROKERS", "scopes": ["internal"]}]},  # on INTERNAL's port
        ["would change from INTERNAL to BROKERS in one step", "give BROKERS a port"],
    ),
    ("preview", {"listeners": [{"name": "INTERNAL", "scopes": ["internal"], "protocol": "SSL"}]},
     ["would change from PLAINTEXT to SSL", "add a listener of scope internal with SSL"]),
    ("up", {"kafka_version": "4.0.2"}, ["was written by Kafka 4.1.1", "4.0.2 is older"]),
])  # fmt: skip
def test_what_the_data_forbids_is_refused_before_anything_is_touched(
    changing_stack: DockerStack, command: str, change: dict[str, Any], words: list[str]
) -> None:
    old_containers, cluster = changing_stack.containers(), dict(changing_stack.cluster)
    port = cluster["listeners"][0]["port"]
    listeners = [
        {"port": port, **listener} for listener in change.get("listeners", cluster["listeners"])
    ]
    changing_stack.cluster |= {**change, "listeners": listeners}
    try:
        output = " ".join(changing_stack.refusal(command=command).split())
    finally:
        changing_stack.cluster = cluster
    assert all(word in output for word in words), output
    assert "map[" not in output, output
    assert changing_stack.containers() == old_containers


def test_kept_data_of_another_checkout_is_taken_over_by_saying_so(
    docker_engine: Engine, kafka_image: str, base: str, tmp_path: Path
) -> None:
    cluster = internal_cluster(kafka_image, base, brokers=1)
    with docker_deployment(tmp_path / "p", docker_engine, cluster, {}) as stack:
        stack.up()
        kept_cluster_id = stack.outputs()["contract"]["cluster_id"]
        stack.produce("kept", "still here")
        stack.destroy()
        # the only difference from another checkout with a stack of that name
        (stack.root.parent / "cluster-id").unlink()
        for command in ("preview", "up"):
            output = stack.refusal(command=command)
            assert f"data of cluster {kept_cluster_id}, of a stack {stack.stack} in this" in output
            assert (
                f"To use this data, write `cluster_id: {kept_cluster_id}` into the stack's file"
                in output
            )
        assert stack.containers() == {}
        stack.cluster["cluster_id"] = kept_cluster_id
        stack.up()
        assert stack.outputs()["contract"]["cluster_id"] == kept_cluster_id
        assert stack.first_record("kept") == "still here"
        del stack.cluster["cluster_id"]
        stack.up("--expect-no-changes")
        stack.cluster["cluster_id"] = "b3RoZXItdGVzdHMtY2x1cw"
        assert (
            f"is not the id of this stack's cluster, which is {kept_cluster_id}" in stack.refusal()
        )


@pytest.mark.parametrize(
    ("published", "taken_by_host"),
    [
        ("127.0.0.1", {"127.0.0.1": True, "0.0.0.0": True, "127.0.0.2": False}),
        ("0.0.0.0", {"127.0.0.1": True, "0.0.0.0": True, "127.0.0.2": True}),
    ],
)
def test_ports_that_docker_publishes_are_seen(
    docker_engine: Engine, base: str, published: str, taken_by_host: dict[str, bool]
) -> None:
    (port,) = free_ports(1)
    words = ("--detach", "--publish", f"{published}:{port}:80", "--entrypoint", "sleep")
    id = docker_engine.run("run", *words, base, "60").strip()
    try:
        bound_addresses = [
            bound_address.bound for bound_address in listening() if bound_address.bound.port == port
        ]
        assert bound_addresses
        for host, is_taken in taken_by_host.items():
            wanted_address = of_java(host, port)
            assert (
                any(conflict(wanted_address, bound_address) for bound_address in bound_addresses)
                is is_taken
            )
            assert free(wanted_address) is not is_taken
    finally:
        docker_engine.run("rm", "--force", id)


def test_separate_controllers_start_and_roll(
    docker_engine: Engine, kafka_image: str, base: str, tmp_path: Path
) -> None:
    quorum = {"mode": "separate", "count": 1, "port": 29092}
    cluster = internal_cluster(
        kafka_image, base, brokers=1, controllers=quorum, controller_ids=[10001]
    )
    with docker_deployment(tmp_path / "p", docker_engine, cluster, {}) as stack:
        stack.up()
        assert stack.containers().keys() == {1, 10001}
        stack.cluster["heap"] = "272m"
        with container_events(stack) as events:
            stack.up()
        assert events == [(event, id) for id in (1, 10001) for event in ("die", "start")]
        stack.cluster["data"] = "delete"
        stack.up()
        stack.destroy()
        assert stack.volumes() == {}, "data: delete"
