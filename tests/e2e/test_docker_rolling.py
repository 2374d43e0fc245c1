"""Listeners of three brokers change, step by step and broker by broker, under running producers.

The tests go on from each other, and each step is interrupted in another way.
"""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import psutil
import pytest

from earshot.transition.memory import FILE
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_stack import ContainerEvent, DockerStack, docker_cluster, docker_deployment
from tests.e2e.images.load import validator_images
from tests.e2e.outside import outside
from tests.e2e.ports import consecutive_ports
from tests.e2e.steady_producer import (
    REPLICAS,
    SteadyProducer,
    assert_all_read,
    led_by_every_broker,
    longest_wait,
    longest_wait_of_a_partition,
    read_all,
)
from tests.measured import MEASURED
from toolchain.state_files import recover

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(1500)]

STAYS, CHANGES = "HOST", "EXTERNAL"
PATIENCE = 240.0


@dataclass
class RollingStack:
    """The stack, and another address by which clients beyond can call its host."""

    stack: DockerStack
    other_address: str


@pytest.fixture(scope="module")
def rolling(
    docker_engine: Engine, kafka_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RollingStack]:
    """Three brokers, replication factor 3, two replicas in sync at least, three scopes.

    Clients beyond call the host by its address, so that a producer on this machine can be one.
    """
    with outside() as first_outside, outside() as new_outside:
        cluster = docker_cluster(
            kafka_image,
            replication_factor=3,
            min_insync_replicas=2,
            hosts=[{"name": "local", "external": first_outside.address}],
            validator={"base": validator_images(docker_engine)[0]},
            validation={"records": 0, "deadline": 400},
        )
        folder = tmp_path_factory.mktemp("rolling") / "p"
        with docker_deployment(folder, docker_engine, cluster, {}) as stack:
            stack.up()
            yield RollingStack(stack, new_outside.address)


@pytest.fixture(scope="module")
def stack(rolling: RollingStack) -> DockerStack:
    return rolling.stack


@dataclass
class Traffic:
    """A producer on the listener that stays and one on the listener that changes, to the end.

    They get no new address from the test: they learn it from the brokers that they know.
    """

    old_bootstraps: dict[str, str]
    """The bootstrap before the first change, by listener."""
    topics: dict[str, str]
    producers: dict[str, SteadyProducer]
    producer_contexts: contextlib.ExitStack
    """Ends both."""


@pytest.fixture(scope="module")
def traffic(stack: DockerStack) -> Iterator[Traffic]:
    servers = {listener: bootstrap(stack, listener) for listener in (STAYS, CHANGES)}
    topics = {listener: f"written-through-{listener}" for listener in servers}
    for listener, topic in topics.items():
        led_by_every_broker(servers[listener], topic)
    with contextlib.ExitStack() as contexts:
        producers = {
            listener: contexts.enter_context(
                SteadyProducer(servers[listener], topic, len(REPLICAS))
            )
            for listener, topic in topics.items()
        }
        yield Traffic(servers, topics, producers, contexts)


def bootstrap(stack: DockerStack, listener: str) -> str:
    return str(stack.outputs()[f"bootstrap_{listener}"])


def is_rolling(events: list[ContainerEvent]) -> bool:
    """True if each broker had ended and started before the next one ended."""
    order = [(event, id) for id in (1, 2, 3) for event in ("die", "start")]
    in_time = all(
        earlier_event.when < later_event.when for earlier_event, later_event in pairwise(events)
    )
    return in_time and [(event.action, event.id) for event in events] == order


def accepts_connections(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 5):
        return True
    return False


def leaving_by_listener(stack: DockerStack) -> dict[str, bool]:
    """The listeners of the contract, and which of them are leaving."""
    return {
        listener["name"]: listener["leaving"]
        for listener in stack.outputs()["contract"]["listeners"]
    }


@contextlib.contextmanager
def client_in_a_container(stack: DockerStack, image: str, listener: str, id: int) -> Iterator[None]:
    """A container on the brokers' network that is connected to ``listener`` of a broker."""
    name, network = f"client-{stack.stack}", f"earshot-{stack.stack}"
    host, _, port = bootstrap(stack, listener).split(",")[id - 1].partition(":")
    script = f"exec 3<>/dev/tcp/{host}/{port} && echo connected && sleep 300"
    stack.engine.run(
        "run", "--detach", "--rm", "--name", name, "--network", network, "--entrypoint", "bash",
        image, "-c", script,
    )  # fmt: skip
    try:
        end = time.monotonic() + 30
        while "connected" not in stack.engine.run("logs", name):
            assert time.monotonic() < end
        yield
    finally:
        stack.engine.run("rm", "--force", name)


@contextlib.contextmanager
def update_with_replaced_container(stack: DockerStack, id: int) -> Iterator[subprocess.Popen[str]]:
    """An update, once the broker ``id`` has another container, which runs; it ends within."""
    old_containers = stack.containers()
    with stack.updating() as child:
        end = time.monotonic() + PATIENCE
        while (
            current_container := stack.containers().get(id, old_containers[id])
        ) == old_containers[id] or not is_running(stack, current_container):
            assert child.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        yield child
    recover(stack.environment, stack.stack)  # as `make up` does before it calls the CLI


def is_running(stack: DockerStack, container: str) -> bool:
    """True if the container has written its first lines."""
    with contextlib.suppress(AssertionError):
        return "INFO" in stack.engine.run("logs", container)
    return False


def test_a_listener_comes_and_another_one_moves_with_its_clients(
    rolling: RollingStack, traffic: Traffic
) -> None:
    """The first of three steps: INTERNAL is to become REPL. EXTERNAL gets another host and port."""
    stack = rolling.stack
    old_containers, volumes = stack.containers(), stack.volumes()
    old_addresses = traffic.old_bootstraps[CHANGES].split(",")
    assert all(map(accepts_connections, old_addresses))
    leaving_listener, steady_listener, moving_listener = stack.cluster["listeners"]
    assert (leaving_listener["name"], steady_listener["name"], moving_listener["name"]) == (
        "INTERNAL",
        STAYS,
        CHANGES,
    )
    ports = consecutive_ports(9, 2)
    stack.cluster |= {
        "listeners": [
            {"name": "REPL", "port": ports[0], "scopes": ["internal"]},
            steady_listener,
            moving_listener | {"port": ports[1]},
        ],
        "hosts": [{"name": "local", "external": rolling.other_address}],
    }
    with stack.recorded_events() as events:
        with update_with_replaced_container(stack, 1) as child:
            os.killpg(child.pid, signal.SIGINT)
            child.communicate(timeout=PATIENCE)
            assert child.returncode != 0
        assert "step 1 of 3: REPL added next to INTERNAL; EXTERNAL at other" in stack.up()
    assert is_rolling(events), events
    new_containers = stack.containers()
    assert new_containers.keys() == old_containers.keys() and not set(
        new_containers.values()
    ) & set(old_containers.values())
    assert stack.volumes() == volumes
    assert leaving_by_listener(stack) == {
        "INTERNAL": True,
        "HOST": False,
        "EXTERNAL": False,
        "REPL": False,
    }
    for listener, producer in traffic.producers.items():
        current_bootstrap = bootstrap(stack, listener)
        assert producer.known_brokers() == dict(
            zip((1, 2, 3), current_bootstrap.split(","), strict=True)
        )
        assert (current_bootstrap == traffic.old_bootstraps[listener]) == (listener == STAYS)
    assert all(
        word.startswith(f"{rolling.other_address}:")
        for word in bootstrap(stack, CHANGES).split(",")
    )
    assert not any(map(accepts_connections, old_addresses))


def test_no_second_container_is_stopped_while_one_is_down(
    stack: DockerStack, traffic: Traffic
) -> None:
    """The second step, in which a broker is killed: it is started, and changed before others."""
    old_containers = stack.containers()
    with update_with_replaced_container(stack, 1) as child:
        stack.engine.run("kill", stack.names[3])
        output, _ = child.communicate(timeout=PATIENCE)
        assert child.returncode != 0
    refusal = (
        f"container {stack.names[2]} was not stopped: down already: container {stack.names[3]}"
    )
    assert refusal in output, output
    assert {
        id for id, container in stack.containers().items() if old_containers[id] != container
    } == {1}
    # another checkout with the same state knows as much
    (stack.folder / ".earshot" / "stacks" / stack.stack / FILE).unlink()
    with stack.recorded_events() as events:
        second_output = stack.up()
    assert "step 2 of 3: brokers reach each other through REPL; run again" in second_output
    assert [(event.action, event.id) for event in sorted(events, key=lambda event: event.when)] == [
        ("start", 3), ("die", 3), ("start", 3), ("die", 2), ("start", 2),
    ]  # fmt: skip


def test_an_unused_listener_is_removed_and_no_acknowledged_record_is_lost(
    stack: DockerStack,
    traffic: Traffic,
    kafka_image: str,
    record_property: Callable[[str, object], None],
) -> None:
    """The third step, in which the CLI is killed."""
    old_containers = stack.containers()
    with client_in_a_container(stack, kafka_image, "INTERNAL", 2):
        refusal = " ".join(stack.refusal().split())
        assert (
            "listener INTERNAL would be removed, and has 1 connection of clients: 1 from" in refusal
        )
    assert stack.containers() == old_containers
    with update_with_replaced_container(stack, 1) as child:
        child_processes = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGKILL)
        psutil.wait_procs(child_processes, 60)
    assert "step 3 of 3: INTERNAL removed" in stack.up()
    assert leaving_by_listener(stack) == {"REPL": False, "HOST": False, "EXTERNAL": False}
    traffic.producer_contexts.close()
    for listener, producer in traffic.producers.items():
        assert producer.failed == [] and len(producer.acknowledged) == producer.sent > 0
        stored_records = read_all(
            bootstrap(stack, listener), traffic.topics[listener], len(REPLICAS)
        )
        assert_all_read(producer.acknowledged, stored_records)
        assert len(stored_records) == producer.sent, "and none was written twice"
        seconds = longest_wait(producer.acknowledged)
        partition_seconds = longest_wait_of_a_partition(producer.acknowledged)
        record_property(
            MEASURED,
            f"producer on {listener}, INTERNAL renamed to REPL and {CHANGES} moved in three steps, "
            f"each interrupted: {producer.sent} records acknowledged, none lost; longest time "
            f"without an acknowledgement {seconds:.2f} s "
            f"(of one partition {partition_seconds:.2f} s)",
        )
