"""Listeners of three brokers change, broker by broker, under running producers."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import psutil
import pytest

from earshot.transition.memory import FILE
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_stack import DockerStack, Doing, docker_cluster, docker_deployment
from tests.e2e.images.load import base_image
from tests.e2e.outside import outside
from tests.e2e.ports import consecutive_ports
from tests.e2e.steady_producer import (
    REPLICAS,
    SteadyProducer,
    all_there,
    led_by_every_broker,
    longest_wait,
    longest_wait_of_a_partition,
    read_all,
)
from tests.measured import MEASURED
from toolchain.state_files import recover

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

STAYS, CHANGES = "HOST", "EXTERNAL"


@pytest.fixture(scope="module")
def stack(
    docker_engine: Engine, kafka_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DockerStack]:
    """Three brokers, replication factor 3, two replicas in sync at least, three scopes.

    Clients beyond call the host by its address, so that a producer on this machine can be one.
    """
    with outside() as beyond:
        cluster = docker_cluster(
            kafka_image,
            replication_factor=3,
            min_insync_replicas=2,
            hosts=[{"name": "local", "external": beyond.address}],
            validator={"base": base_image(docker_engine)},
            validation={"records": 60, "deadline": 400},
        )
        folder = tmp_path_factory.mktemp("rolling") / "p"
        with docker_deployment(folder, docker_engine, cluster, {}) as made:
            made.up()
            yield made


def bootstrap(stack: DockerStack, listener: str) -> str:
    return str(stack.outputs()[f"bootstrap_{listener}"])


def moved(stack: DockerStack, listener: str) -> None:
    """The stack file with the next free ports for ``listener``."""
    (found,) = (item for item in stack.cluster["listeners"] if item["name"] == listener)
    found["port"] = consecutive_ports(9, 1)[0]


def one_by_one(doings: list[Doing]) -> bool:
    """Whether each broker had ended and started before the next one was touched."""
    order = [(what, id) for id in (1, 2, 3) for what in ("die", "start")]
    in_time = all(earlier.when < later.when for earlier, later in pairwise(doings))
    return in_time and [(it.what, it.id) for it in doings] == order


def answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 5):
        return True
    return False


def test_no_acknowledged_record_is_lost_while_the_external_listener_changes(
    stack: DockerStack, record_property: Callable[[str, object], None]
) -> None:
    """One producer on the listener that stays, one on the listener that changes."""
    servers = {listener: bootstrap(stack, listener) for listener in (STAYS, CHANGES)}
    topics = {listener: f"written-through-{listener}" for listener in servers}
    for listener, topic in topics.items():
        led_by_every_broker(servers[listener], topic)
    before, volumes, left = stack.containers(), stack.volumes(), servers[CHANGES].split(",")
    assert all(map(answers, left))

    moved(stack, CHANGES)
    producers = {
        listener: SteadyProducer(servers[listener], topic, len(REPLICAS))
        for listener, topic in topics.items()
    }
    with stack.watched() as doings, producers[STAYS], producers[CHANGES]:
        stack.up()
        # they were told no new address: they have learned them from the brokers that they knew
        learned = {listener: it.known_brokers() for listener, it in producers.items()}
        written = {listener: it.sent for listener, it in producers.items()}

    after = stack.containers()
    assert after.keys() == before.keys() and not set(after.values()) & set(before.values())
    assert one_by_one(doings), doings
    assert stack.volumes() == volumes
    assert not any(map(answers, left))

    for listener, producer in producers.items():
        now = bootstrap(stack, listener)
        assert learned[listener] == dict(zip((1, 2, 3), now.split(","), strict=True))
        assert (now == servers[listener]) == (listener == STAYS)

        sent = producer.sent
        assert producer.failed == [] and len(producer.acknowledged) == sent
        assert sent >= written[listener] > 0
        found = read_all(now, topics[listener], len(REPLICAS))
        all_there(producer.acknowledged, found)
        assert len(found) == sent, "and none was written twice"

        seconds = longest_wait(producer.acknowledged)
        worst = longest_wait_of_a_partition(producer.acknowledged)
        record_property(
            MEASURED,
            f"producer on {listener}, {CHANGES} changed on three brokers: {sent} records "
            f"acknowledged, none lost; longest time without an acknowledgement {seconds:.2f} s "
            f"(of one partition {worst:.2f} s)",
        )


def seen(stack: DockerStack) -> dict[str, bool]:
    """The listeners of the contract, and which of them are leaving."""
    return {it["name"]: it["leaving"] for it in stack.outputs()["contract"]["listeners"]}


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


def interrupted(stack: DockerStack) -> None:
    """An update whose engine is killed once the first broker has another container."""
    before = stack.containers()
    command = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive"]
    with subprocess.Popen(
        command, cwd=stack.folder, env=stack.environment, stdout=subprocess.DEVNULL
    ) as child:
        end = time.monotonic() + 240
        while stack.containers().get(1, before[1]) == before[1]:
            assert child.poll() is None and time.monotonic() < end
        below = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGKILL)
    psutil.wait_procs(below, 60)
    recover(stack.environment, stack.stack)  # as `make up` does before it calls the CLI


def test_the_listener_between_brokers_is_renamed_and_no_acknowledged_record_is_lost(
    stack: DockerStack, kafka_image: str, record_property: Callable[[str, object], None]
) -> None:
    old, *others = stack.cluster["listeners"]
    topic = "while-the-listener-between-brokers-is-renamed"
    led_by_every_broker(bootstrap(stack, STAYS), topic)
    new = {"name": "REPL", "port": consecutive_ports(9, 1)[0], "scopes": ["internal"]}
    stack.cluster |= {
        "listeners": [new, *others],
        "validation": {"records": 0, "deadline": 120},
    }
    before = stack.containers()
    preview = stack.pulumi("preview")
    assert "step 1 of 3: INTERNAL and REPL side by side; run again" in preview.stdout
    assert stack.containers() == before
    with SteadyProducer(bootstrap(stack, STAYS), topic, len(REPLICAS)) as producer:
        stack.up()
        assert seen(stack) == {"INTERNAL": True, "HOST": False, "EXTERNAL": False, "REPL": False}
        assert "bootstrap_REPL" in stack.outputs()
        interrupted(stack)
        # another checkout with the same state knows as much
        (stack.folder / ".earshot" / "stacks" / stack.stack / FILE).unlink()
        second = stack.up("--refresh")
        assert "step 2 of 3: brokers reach each other through REPL; run again" in second
        steady = stack.containers()
        with client_in_a_container(stack, kafka_image, "INTERNAL", 2):
            refused = " ".join(stack.refused().split())
            assert "listener INTERNAL would go, and has 1 connection of clients: 1 from" in refused
        assert stack.containers() == steady
        assert "step 3 of 3: INTERNAL taken away" in stack.up()
    assert seen(stack) == {"REPL": False, "HOST": False, "EXTERNAL": False}
    assert stack.volumes().keys() == before.keys()
    after = stack.containers()
    assert "unchanged" in stack.up() and stack.containers() == after
    assert producer.failed == [] and len(producer.acknowledged) == producer.sent > 0
    all_there(producer.acknowledged, read_all(bootstrap(stack, STAYS), topic, len(REPLICAS)))
    worst = longest_wait_of_a_partition(producer.acknowledged)
    record_property(
        MEASURED,
        f"producer on {STAYS}, {old['name']} renamed to REPL in three steps, one interrupted: "
        f"{producer.sent} records acknowledged, none lost; longest time of a partition without an "
        f"acknowledgement {worst:.2f} s",
    )
