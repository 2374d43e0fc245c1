"""Real Kafka brokers for tests: started from a plan, stopped by pid, and then removed."""

import contextlib
import shutil
import signal
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka.admin import AdminClient
from earshot_pulumi.local.process import Launch, last_log_lines, start, stop
from earshot_pulumi.local.process_record import Record, process_of, read_record, running

from earshot.config.local import LocalSpec
from earshot.jvm.jars import KAFKA_VERSION, kafka_broker_jars
from earshot.jvm.java import find_java
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.render import server_properties
from earshot.listeners.terms import Scope
from earshot.placement.plan import NodeNames, plan
from earshot.validation.client import configuration
from earshot.validation.contract import Contract
from tests.config.read import read_local
from tests.e2e.ports import free_ports

VERSION = KAFKA_VERSION
CLUSTER_ID = "ZWFyc2hvdC10ZXN0cy1ydQ"
READY = 60.0
"""Seconds that a broker may take to start on a busy machine."""
SMALL = {
    "log.cleaner.dedupe.buffer.size": "2097152",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    # a killed broker is fenced soon, and may register again soon
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
}
TWO_LISTENERS: tuple[Mapping[str, Any], ...] = (
    {"name": "INTERNAL", "scopes": ["internal"]},
    {"name": "EXTERNAL", "scopes": ["host"]},
)


def own_topics(contract: Contract, expected: Collection[str] = ()) -> set[str]:
    """The topics of earshot, once they equal ``expected`` or after 10 s, because brokers learn of
    them late."""
    admin = AdminClient(configuration(contract.listeners[0].bootstrap, None, {}))
    end = time.monotonic() + 10
    while True:
        names = admin.list_topics(timeout=10).topics
        topics = {name for name in names if name.startswith("__earshot")}
        if topics == set(expected) or time.monotonic() > end:
            return topics
        time.sleep(0.1)


def local_plan(
    brokers: int = 3,
    listeners: Sequence[Mapping[str, Any]] = TWO_LISTENERS,
    hosts: Mapping[Scope, str] | None = None,
    **settings: Any,
) -> tuple[LocalSpec, ClusterPlan]:
    """A plan on free ports of the loopback.

    ``listeners`` as in a stack file, without ports; ``settings`` are further keys of the spec.
    Bound to 127.0.0.1 and advertised as `localhost` unless ``hosts`` says otherwise by scope.
    """
    ports = iter(free_ports((len(listeners) + 1) * brokers))
    blocks = [[next(ports) for _ in range(brokers)] for _ in range(len(listeners) + 1)]
    extra = SMALL | settings.pop("extra", {})
    spec = read_local(
        {
            "placement": "local",
            "brokers": brokers,
            "listeners": [
                {"port": block[0], "bind": "127.0.0.1"} | dict(listener)
                for listener, block in zip(listeners, blocks, strict=False)
            ],
            "controllers": {"port": blocks[-1][0]} | settings.pop("controllers", {}),
            "extra": extra,
            **settings,
        },
        "test",
    )
    scopes = {Scope.INTERNAL: "localhost", Scope.HOST: "localhost", Scope.EXTERNAL: "localhost"}
    names = {
        id: NodeNames(
            hosts=scopes | {Scope.CONTROLLER: "localhost"} | dict(hosts or {}),
            binds={Scope.CONTROLLER: "127.0.0.1"},
            machine=f"test-{id}",
            log_dir=f"@{id}",
        )
        for id in spec.node_ids
    }
    return spec, _spread(plan(spec, names), blocks)


def _spread(plan: ClusterPlan, blocks: Sequence[Sequence[int]]) -> ClusterPlan:
    """Every listener gets its own free port, instead of consecutive ones."""
    ports = {block[0]: block for block in blocks}

    def moved(node: Node, index: int) -> Node:
        listeners = tuple(
            listener.model_copy(
                update={
                    "bind_port": ports[listener.bind_port][index],
                    # an advertised port that was given on purpose stays
                    "port": ports[listener.bind_port][index]
                    if listener.port == listener.bind_port
                    else listener.port,
                }
            )
            for listener in node.listeners
        )
        return node.model_copy(update={"listeners": listeners})

    nodes = tuple(moved(node, index) for index, node in enumerate(plan.nodes))
    return plan.model_copy(update={"nodes": nodes})


@dataclass
class Cluster:
    """Brokers of a plan, each of which a test may stop, kill, change and start again."""

    plan: ClusterPlan
    directory: Path
    jars: tuple[Path, ...]
    heap: str = "256m"
    name: str = "test"
    extra: dict[int, dict[str, str]] = field(default_factory=dict)
    """Further properties by node id, applied at its next start; they win over the plan's."""

    @property
    def contract(self) -> Contract:
        return Contract.of(self.plan, self.name, "local", CLUSTER_ID)

    def node_directory(self, id: int) -> Path:
        return self.directory / f"node-{id}"

    def start(self, *ids: int) -> None:
        """Starts these nodes (all by default) at the same time and waits until they serve."""
        chosen = ids or tuple(node.id for node in self.plan.nodes)
        with ThreadPoolExecutor(len(chosen)) as pool:
            list(pool.map(self._start, chosen))
        for id in chosen:
            self._wait(id)

    def stop(self, id: int) -> None:
        stop(self.node_directory(id))

    def kill(self, id: int) -> None:
        """Kills a node with SIGKILL, like the kernel without memory."""
        process = process_of(self.node_directory(id))
        assert process is not None, f"node {id} runs no more"
        process.send_signal(signal.SIGKILL)
        process.wait(10)

    @contextlib.contextmanager
    def suspended(self, id: int) -> Iterator[None]:
        """A node whose threads have all stopped: the kernel accepts its connections, and nothing
        answers. It goes on at the end.

        The signal reaches one thread, which stops the others: on a busy machine, they go on for a
        while.
        """
        process = psutil.Process(self.pid(id))
        process.suspend()
        try:
            threads = Path(f"/proc/{process.pid}/task")
            end = time.monotonic() + READY
            while any(
                (thread / "stat").read_text().rpartition(")")[2].split()[0] != "T"
                for thread in threads.iterdir()
            ):
                assert time.monotonic() < end, f"node {id} does not stop"
                time.sleep(0.01)
            yield
        finally:
            process.resume()

    def reset(self) -> None:
        """Restores the planned nodes after a test. Unchanged running nodes are not touched."""
        directories = {node.id: self.node_directory(node.id) for node in self.plan.nodes}
        changed_settings = [
            id for id, folder in directories.items() if id in self.extra or running(folder) is None
        ]
        self.extra.clear()
        for id in changed_settings:
            self.stop(id)
        if changed_settings:
            self.start(*changed_settings)

    def pid(self, id: int) -> int:
        return self._record(id).pid

    def advertise(self, id: int, **listeners: str) -> None:
        """Changes the advertised addresses of a node (`EXTERNAL="host:port"`) in contradiction to
        the plan, and restarts it."""
        node = self.plan.node(id)
        values = [
            f"{listener.name}://{listeners.get(listener.name, listener.advertised)}"
            for listener in node.listeners
        ]
        changed_settings = {"advertised.listeners": ",".join(values)}
        self.extra[id] = self.extra.get(id, {}) | changed_settings
        self.stop(id)
        self.start(id)

    def _record(self, id: int) -> Record:
        record = running(self.node_directory(id))
        assert record is not None, (
            f"node {id} runs no more\n{last_log_lines(self.node_directory(id))}"
        )
        return record

    def _start(self, id: int) -> None:
        node = self.plan.node(id)
        directory = self.node_directory(id)
        node = node.model_copy(update={"log_dir": str(directory / "log")})
        changed_settings = self.extra.get(id, {})
        lines = [
            line
            for line in server_properties(self.plan, node).splitlines()
            if line.partition("=")[0] not in changed_settings
        ]
        lines += [f"{key}={value}" for key, value in changed_settings.items()]
        (directory / "server.log").unlink(missing_ok=True)
        java = find_java().executable
        launch = Launch(id, directory, "\n".join(lines) + "\n", self.heap, VERSION, java, self.jars)
        start(launch, CLUSTER_ID)

    def _wait(self, id: int) -> None:
        directory = self.node_directory(id)
        log = directory / "server.log"
        end = time.monotonic() + READY
        while not (log.exists() and "Kafka Server started" in log.read_text(errors="replace")):
            if running(directory) is None:
                process_state = f"{read_record(directory)}, {process_of(directory)}"
                raise AssertionError(
                    f"node {id} ended ({process_state})\n{last_log_lines(directory)}"
                )
            assert time.monotonic() < end, f"node {id} is not ready\n{last_log_lines(directory)}"
            time.sleep(0.1)


@contextlib.contextmanager
def running_cluster(plan: ClusterPlan, **settings: Any) -> Iterator[Cluster]:
    """The running brokers of ``plan``. They are stopped and their data removed at the end.

    ``settings`` are fields of Cluster (`heap`, `name`, `extra`).
    """
    directory = Path(tempfile.mkdtemp(prefix="earshot-cluster-"))
    cluster = Cluster(plan, directory, kafka_broker_jars(VERSION), **settings)
    try:
        cluster.start()
        yield cluster
    finally:
        with ThreadPoolExecutor(len(plan.nodes)) as pool:
            # no client waits for a hand-over of leadership
            list(pool.map(lambda node: stop(cluster.node_directory(node.id), 0.5), plan.nodes))
        shutil.rmtree(directory, ignore_errors=True)
