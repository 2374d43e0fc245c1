"""`earshot tunnel` to three brokers whose names only a machine behind ssh resolves."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from earshot.doctor.doctor import examine
from earshot.jvm.java import find_java
from earshot.listeners.address import Address
from tests.doubles.certificates import self_signed
from tests.e2e.cluster import Cluster, local_plan, running_cluster
from tests.e2e.images.load import kafka_jars
from tests.e2e.open_sockets import open_sockets
from tests.e2e.ports import free_ports
from tests.e2e.ssh_host import ssh_host
from tests.e2e.steady_producer import (
    REPLICAS,
    SteadyProducer,
    all_there,
    led_by_every_broker,
    read_all,
)
from tests.skips import lacking

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

IDS = (1, 2, 3)
LISTENERS = (
    {"name": "INTERNAL", "scopes": ["internal"]},
    {"name": "PRIVATE", "scopes": ["external"]},
    {"name": "SECURE", "scopes": ["external"], "protocol": "SSL"},
)
PATIENCE = 60.0
KAFKAJS = """
const { Kafka, logLevel } = require("kafkajs")
const kafka = new Kafka({ brokers: [process.env.BOOTSTRAP], logLevel: logLevel.WARN })
const work = async () => {
  const producer = kafka.producer()
  await producer.connect()
  for (const partition of [0, 1, 2]) {
    const numbers = [...Array(100).keys()]
    const messages = numbers.map((it) => ({ partition, value: `${partition}-${it}` }))
    await producer.send({ topic: "node", messages })
  }
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: "node" })
  await consumer.connect()
  await consumer.subscribe({ topic: "node", fromBeginning: true })
  const read = new Set()
  await new Promise((resolve) => consumer.run({ eachMessage: async ({ message }) => {
    read.add(message.value.toString())
    if (read.size === 300) resolve()
  }}))
  await consumer.disconnect()
  console.log(`read ${read.size}`)
}
work().then(() => process.exit(0), (fault) => { console.error(fault); process.exit(1) })
"""


def name_of(id: int) -> str:
    return f"kafka-{id}.private.test"


@dataclass(frozen=True)
class Private:
    """A cluster, its contract as a file, and the environment that has the way to it."""

    cluster: Cluster
    contract: Path
    certificate: Path
    environment: dict[str, str]

    def ran(self, *arguments: str) -> str:
        return ran([sys.executable, "-m", "earshot", *arguments], self.environment)


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Private]:
    folder = tmp_path_factory.mktemp("private")
    names = {name_of(id): "127.0.0.1" for id in IDS}
    pem = self_signed(folder, ",".join(f"DNS:{name}" for name in names))
    stores = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(pem)}
    _, planned = local_plan(3, LISTENERS, extra=stores)
    nodes = tuple(
        node.model_copy(
            update={
                "listeners": tuple(
                    it.model_copy(update={"host": name_of(node.id)})
                    if it.name in ("PRIVATE", "SECURE")
                    else it
                    for it in node.listeners
                )
            }
        )
        for node in planned.nodes
    )
    planned = planned.model_copy(update={"nodes": nodes})
    ssh = tmp_path_factory.mktemp("ssh")
    with ssh_host(ssh, names) as path, running_cluster(planned) as cluster:
        contract = folder / "contract.json"
        contract.write_text(cluster.contract.model_dump_json())
        environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
        yield Private(cluster, contract, folder / "cert.pem", environment)


@contextlib.contextmanager
def tunnel(private: Private, *options: str, via: str = "ssh://bastion") -> Iterator[str]:
    """A tunnel that is ready: what it has printed. SIGTERM ends it, and its commands."""
    command = [sys.executable, "-m", "earshot", "tunnel", "--via", via, *options]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=private.environment, **pipes) as process:
        printed = ""
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            printed += line
            if line.startswith("ready"):
                break
        else:
            raise AssertionError(process.stderr.read())
        try:
            yield printed
        finally:
            below = psutil.Process(process.pid).children(recursive=True)
            process.terminate()
            began = time.monotonic()
            _, said = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0 and time.monotonic() - began < 3, said
            assert not psutil.wait_procs(below, 3)[1]


def first_port() -> int:
    """The first of four ports that are free."""
    for _ in range(100):
        (port,) = free_ports(1)
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for number in range(port, port + 4):
                held.enter_context(socket.create_server(("127.0.0.1", number)))
            return port
    raise AssertionError("no four ports beside each other")


def options(private: Private, listener: str, *more: str) -> list[str]:
    return ["--contract", str(private.contract), "--listener", listener, *more]


def secure(private: Private, id: int) -> str:
    """What a broker advertises on the listener with TLS."""
    listener = private.cluster.plan.node(id).listener("SECURE")
    assert listener is not None
    return str(listener.advertised)


def made_topic(bootstrap: str, name: str, **settings: str) -> None:
    """A topic with a partition for each broker, known to all of them."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **settings})
    topic = NewTopic(name, len(IDS), replica_assignment=[[id] for id in IDS])
    admin.create_topics([topic])[name].result(PATIENCE)
    end = time.monotonic() + PATIENCE
    while True:
        leaders = [it.leader for it in admin.list_topics(name).topics[name].partitions.values()]
        if sorted(leaders) == [*IDS]:
            return
        assert time.monotonic() < end, leaders
        time.sleep(0.1)


def read_back(bootstrap: str, topic: str, count: int) -> set[bytes]:
    """What a group reads of a topic, at most ``count`` records."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    read: set[bytes] = set()
    end = time.monotonic() + PATIENCE
    while len(read) < count and time.monotonic() < end:
        records = (it for it in consumer.consume(1000, 1.0) if it.error() is None)
        read |= {it.value() or b"" for it in records}
    consumer.close()
    return read


def java(*arguments: str, hosts: str = "") -> list[str]:
    """The command of one of Kafka's tools, with a file of hosts of its own where one is named."""
    jars = ":".join(map(str, kafka_jars()))
    named = [f"-Djdk.net.hosts.file={hosts}"] if hosts else []
    return [str(find_java().executable), "-Xmx128m", *named, "-cp", jars, *arguments]


def ran(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_clients_meet_every_broker_at_a_port_of_this_machine(
    private: Private, tmp_path: Path
) -> None:
    port = first_port()
    bootstrap = f"127.0.0.1:{port}"
    with tunnel(private, *options(private, "PRIVATE", "--port", str(port))) as printed:
        own = re.findall(r"127\.0\.0\.1:(\d+)  kafka-\d\.private", printed)
        assert own == [str(port + id) for id in IDS]
        report = examine([Address("127.0.0.1", port)], produce=True)
        assert report.exit_code == 0, report
        assert [it.address.port for it in report.cells] == [port + id for id in IDS]
        sockets = [it for it in open_sockets(psutil.Process()) if it.process == "tunnel"]
        assert {it.port for it in sockets} == {port, *(port + id for id in IDS)}
        assert all(it.address == "127.0.0.1" for it in sockets)

        made_topic(bootstrap, "records")
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        for number in range(3000):
            producer.produce("records", str(number).encode(), partition=number % 3)
        assert producer.flush(PATIENCE) == 0
        assert len(read_back(bootstrap, "records", 3000)) == 3000

        listed = [f"bootstrap.servers={bootstrap}", "acks=all"]
        tool = "org.apache.kafka.tools.ProducerPerformance"
        counts = ["--num-records", "3000", "--record-size", "100", "--throughput", "-1"]
        written = ran(java(tool, "--topic", "records", *counts, "--producer-props", *listed))
        assert "3000 records sent" in written
        tool = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        counts = ["--from-beginning", "--max-messages", "6000", "--timeout-ms", "60000"]
        given = ["--topic", "records", "--bootstrap-server", bootstrap]
        assert len(ran(java(tool, *counts, *given)).splitlines()) == 6000


def test_one_address_is_enough_without_a_contract(private: Private) -> None:
    port = first_port()
    listener = private.cluster.plan.node(3).listener("PRIVATE")
    assert listener is not None
    given = ["--bootstrap", str(listener.advertised), "--port", str(port)]
    with tunnel(private, *given) as printed:
        assert f"127.0.0.1:{port + 1}  {listener.advertised}" in printed
        report = examine([Address("127.0.0.1", port)], produce=True)
        assert report.exit_code == 0, report
        # the others get their ports once a client has heard of them
        assert {it.address.port for it in report.cells} == {port + id for id in IDS}


@pytest.mark.combination
def test_a_client_of_node_passes_all_brokers(private: Private, tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        lacking("no npm on PATH: install it")
    ran(["npm", "install", "--prefix", str(tmp_path), "--silent", "kafkajs@2.2.4"])
    port = first_port()
    (tmp_path / "all.js").write_text(KAFKAJS)
    with tunnel(private, *options(private, "PRIVATE", "--port", str(port))):
        made_topic(f"127.0.0.1:{port}", "node")
        environment = {**os.environ, "BOOTSTRAP": f"127.0.0.1:{port}"}
        assert "read 300" in ran(["node", str(tmp_path / "all.js")], environment)


def test_tls_goes_through_with_the_names_of_the_brokers(private: Private) -> None:
    trusted = ["-X", "security.protocol=SSL", "-X", f"ssl.ca.location={private.certificate}"]
    for id in IDS:
        command = ["kcat", "-L", "-b", secure(private, id), *trusted, "-m", "10"]
        shown = private.ran(
            "tunnel", "--via", "ssh://bastion", *options(private, "SECURE"), "--", *command
        )
        assert "3 brokers" in shown and secure(private, 1) in shown
    with tunnel(private, *options(private, "SECURE")) as printed:
        hosts = re.findall(r"jdk.net.hosts.file=(\S+)", printed)[0]
        assert re.findall(r"127\.\d+\.\d+\.(\d+):\d+ ", printed) == ["1", "2", "3"]
        properties = private.contract.with_name("tls.properties")
        properties.write_text(
            "security.protocol=SSL\nssl.truststore.type=PEM\n"
            f"ssl.truststore.location={private.certificate}\n"
        )
        tool = "org.apache.kafka.tools.BrokerApiVersionsCommand"
        given = ["--bootstrap-server", secure(private, 2), "--command-config", str(properties)]
        said = ran(java(tool, *given, hosts=hosts))
        assert len(re.findall(r"^kafka-\d\.private\.test:\d+ \(id: \d", said, re.M)) == 3


@pytest.mark.combination
def test_no_record_is_lost_while_a_broker_restarts(private: Private) -> None:
    port = first_port()
    with tunnel(private, *options(private, "PRIVATE", "--port", str(port))):
        servers = f"127.0.0.1:{port}"
        led_by_every_broker(servers, "steady")
        with SteadyProducer(servers, "steady", len(REPLICAS)) as producer:
            private.cluster.kill(2)
            private.cluster.start(2)
            end = time.monotonic() + PATIENCE
            seen = len(producer.acknowledged)
            while len(producer.acknowledged) < seen + 300:
                assert time.monotonic() < end
                time.sleep(0.1)
        assert producer.failed == []
        all_there(producer.acknowledged, read_all(servers, "steady", len(REPLICAS)))


@pytest.mark.parametrize(
    ("via", "given", "said"),
    [
        (
            "ssh://nobody.invalid",
            ["--bootstrap", "a:1"],
            "Could not resolve hostname nobody.invalid",
        ),
        ("ssh://bastion", ["--bootstrap", "kafka-9.private.test:1"], "no broker is reached"),
        ("ssh://bastion", ["--as", "addresses", "--bootstrap", "a:1"], "only a contract"),
        ("ssh://bastion", ["--listener", "SECURE", "--as", "ports"], "nothing can be rewritten"),
        ("ssh://bastion", [], "allowed: PRIVATE, SECURE"),
        ("ssh://bastion", ["--listener", "OFFICE"], "allowed: INTERNAL, PRIVATE, SECURE"),
        ("kubectl:pod", [], "kubectl:NAMESPACE/POD"),
        ("ssm:bastion", [], "ssm:INSTANCE"),
    ],
)
def test_what_cannot_be_is_one_error(
    private: Private, via: str, given: list[str], said: str
) -> None:
    looked_at = [] if "--bootstrap" in given else ["--contract", str(private.contract)]
    command = [sys.executable, "-m", "earshot", "tunnel", "--via", via, *looked_at, *given]
    done = subprocess.run(command, env=private.environment, capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_named(private: Private) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = options(private, "PRIVATE", "--port", str(port))
        command = [sys.executable, "-m", "earshot", "tunnel", "--via", "ssh://bastion", *given]
        done = subprocess.run(command, env=private.environment, capture_output=True, text=True)
    assert done.returncode == 2 and f"127.0.0.1:{port} of this machine" in done.stderr


@pytest.mark.combination
def test_a_pod_is_a_way_too(private: Private, tmp_path: Path) -> None:
    """`kubectl` is a double: it enters the machine behind ssh, and runs what a pod would run."""
    double = tmp_path / "kubectl"
    double.write_text(
        '#!/bin/bash\ncase "$*" in "exec -i -n kafka client -- bash -c"*) ;; *) exit 9 ;; esac\n'
        'shift 6\nexec ssh bastion "$(printf "%q " "$@")"\n'
    )
    double.chmod(0o755)
    path = f"{tmp_path}:{private.environment['PATH']}"
    elsewhere = replace(private, environment={**private.environment, "PATH": path})
    port = first_port()
    given = options(private, "PRIVATE", "--port", str(port))
    with tunnel(elsewhere, *given, via="kubectl:kafka/client"):
        report = examine([Address("127.0.0.1", port)], produce=False)
        assert report.exit_code == 0, report
