"""`earshot tunnel` to three brokers whose names only a machine behind ssh resolves."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from earshot.doctor.doctor import examine
from earshot.listeners.address import Address
from tests.doubles.certificates import self_signed
from tests.e2e.cluster import Cluster, local_plan, running_cluster
from tests.e2e.open_sockets import open_sockets
from tests.e2e.ports import free_ports
from tests.e2e.ssh_host import ssh_host
from tests.e2e.steady_producer import (
    REPLICAS,
    SteadyProducer,
    assert_all_read,
    led_by_every_broker,
    read_all,
)
from tests.e2e.tunnels import Laptop, java, java_reads, java_writes, kafkajs, output_of
from tests.skips import lacking

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

IDS = (1, 2, 3)
LISTENERS = (
    {"name": "INTERNAL", "scopes": ["internal"]},
    {"name": "PRIVATE", "scopes": ["external"]},
    {"name": "SECURE", "scopes": ["external"], "protocol": "SSL"},
)
PATIENCE = 60.0


def name_of(id: int) -> str:
    return f"kafka-{id}.private.test"


@dataclass(frozen=True)
class Private:
    """A cluster, and a machine that has the way to it."""

    cluster: Cluster
    laptop: Laptop
    certificate: Path


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Private]:
    folder = tmp_path_factory.mktemp("private")
    names = {name_of(id): "127.0.0.1" for id in IDS}
    pem = self_signed(folder, ",".join(f"DNS:{name}" for name in names))
    stores = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(pem)}
    _, plan = local_plan(3, LISTENERS, extra=stores)
    nodes = tuple(
        node.model_copy(
            update={
                "listeners": tuple(
                    listener.model_copy(update={"host": name_of(node.id)})
                    if listener.name in ("PRIVATE", "SECURE")
                    else listener
                    for listener in node.listeners
                )
            }
        )
        for node in plan.nodes
    )
    plan = plan.model_copy(update={"nodes": nodes})
    ssh = tmp_path_factory.mktemp("ssh")
    with ssh_host(ssh, names) as path, running_cluster(plan) as cluster:
        contract = folder / "contract.json"
        contract.write_text(cluster.contract.model_dump_json())
        environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
        yield Private(cluster, Laptop(contract, environment), folder / "cert.pem")


def first_port() -> int:
    """The first of four ports that are free."""
    for _ in range(100):
        (port,) = free_ports(1)
        with contextlib.suppress(OSError), contextlib.ExitStack() as cleanup:
            for number in range(port, port + 4):
                cleanup.enter_context(socket.create_server(("127.0.0.1", number)))
            return port
    raise AssertionError("no four ports beside each other")


def options(private: Private, listener: str, *extra_words: str) -> list[str]:
    return ["--contract", str(private.laptop.contract), "--listener", listener, *extra_words]


def secure_address(private: Private, id: int) -> str:
    """The address that a broker advertises on the listener with TLS."""
    listener = private.cluster.plan.node(id).listener("SECURE")
    assert listener is not None
    return str(listener.advertised)


def create_topic(bootstrap: str, name: str, **settings: str) -> None:
    """A topic with a partition for each broker, known to all of them."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **settings})
    topic = NewTopic(name, len(IDS), replica_assignment=[[id] for id in IDS])
    admin.create_topics([topic])[name].result(PATIENCE)
    end = time.monotonic() + PATIENCE
    while True:
        leaders = [
            partition.leader
            for partition in admin.list_topics(name).topics[name].partitions.values()
        ]
        if sorted(leaders) == [*IDS]:
            return
        assert time.monotonic() < end, leaders
        time.sleep(0.1)


def read_back(bootstrap: str, topic: str, count: int) -> set[bytes]:
    """The values that a group reads of a topic, at most ``count``."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    record_values: set[bytes] = set()
    end = time.monotonic() + PATIENCE
    while len(record_values) < count and time.monotonic() < end:
        records = (message for message in consumer.consume(1000, 1.0) if message.error() is None)
        record_values |= {record.value() or b"" for record in records}
    consumer.close()
    return record_values


def test_clients_meet_every_broker_at_a_port_of_this_machine(
    private: Private, tmp_path: Path
) -> None:
    port = first_port()
    bootstrap = f"127.0.0.1:{port}"
    with private.laptop.tunnel(*options(private, "PRIVATE", "--port", str(port))) as tunnel_output:
        listed_ports = re.findall(r"127\.0\.0\.1:(\d+)  kafka-\d\.private", tunnel_output)
        assert listed_ports == [str(port + id) for id in IDS]
        report = examine([Address("127.0.0.1", port)], produce=True)
        assert report.exit_code == 0, report
        assert [cell.address.port for cell in report.cells] == [port + id for id in IDS]
        sockets = [
            open_socket
            for open_socket in open_sockets(psutil.Process())
            if open_socket.process == "tunnel"
        ]
        assert {socket.port for socket in sockets} == {port, *(port + id for id in IDS)}
        assert all(socket.address == "127.0.0.1" for socket in sockets)

        create_topic(bootstrap, "records")
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        for number in range(3000):
            producer.produce("records", str(number).encode(), partition=number % 3)
        assert producer.flush(PATIENCE) == 0
        assert len(read_back(bootstrap, "records", 3000)) == 3000

        producer_settings = [f"bootstrap.servers={bootstrap}", "acks=all"]
        assert "3000 records sent" in output_of(java_writes("records", 3000, producer_settings))
        assert len(output_of(java_reads("records", 6000, bootstrap)).splitlines()) == 6000


def test_one_address_is_enough_without_a_contract(private: Private) -> None:
    port = first_port()
    listener = private.cluster.plan.node(3).listener("PRIVATE")
    assert listener is not None
    arguments = ["--bootstrap", str(listener.advertised), "--port", str(port)]
    with private.laptop.tunnel(*arguments) as tunnel_output:
        assert f"127.0.0.1:{port + 1}  {listener.advertised}" in tunnel_output
        report = examine([Address("127.0.0.1", port)], produce=True)
        assert report.exit_code == 0, report
        # the others get their ports once a client has heard of them
        assert {cell.address.port for cell in report.cells} == {port + id for id in IDS}


@pytest.mark.combination
def test_a_client_of_node_passes_all_brokers(private: Private, tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        lacking("no npm on PATH: install it")
    script = kafkajs(tmp_path)
    port = first_port()
    with private.laptop.tunnel(*options(private, "PRIVATE", "--port", str(port))):
        create_topic(f"127.0.0.1:{port}", "node")
        settings = json.dumps({"brokers": [f"127.0.0.1:{port}"]})
        assert "read 300" in output_of(["node", str(script), settings, "node"])


def test_tls_goes_through_with_the_names_of_the_brokers(private: Private) -> None:
    tls_options = ["-X", "security.protocol=SSL", "-X", f"ssl.ca.location={private.certificate}"]
    for id in IDS:
        command = ["kcat", "-L", "-b", secure_address(private, id), *tls_options, "-m", "10"]
        output = private.laptop.output_of(private.laptop.tunnelled("SECURE", *command))
        assert "3 brokers" in output and secure_address(private, 1) in output
    with private.laptop.tunnel(*options(private, "SECURE")) as tunnel_output:
        hosts = re.findall(r"jdk.net.hosts.file=(\S+)", tunnel_output)[0]
        assert re.findall(r"127\.\d+\.\d+\.(\d+):\d+ ", tunnel_output) == ["1", "2", "3"]
        properties = private.laptop.contract.with_name("tls.properties")
        properties.write_text(
            "security.protocol=SSL\nssl.truststore.type=PEM\n"
            f"ssl.truststore.location={private.certificate}\n"
        )
        tool = "org.apache.kafka.tools.BrokerApiVersionsCommand"
        arguments = [
            "--bootstrap-server",
            secure_address(private, 2),
            "--command-config",
            str(properties),
        ]
        java_output = output_of(java(tool, *arguments, hosts=hosts))
        assert len(re.findall(r"^kafka-\d\.private\.test:\d+ \(id: \d", java_output, re.M)) == 3


@pytest.mark.combination
def test_two_commands_have_tunnels_at_the_same_time(private: Private) -> None:
    inner = private.laptop.tunnelled("SECURE", "true")
    assert private.laptop.output_of(private.laptop.tunnelled("SECURE", *inner)) == ""


def test_no_record_is_lost_while_a_broker_restarts(private: Private) -> None:
    port = first_port()
    with private.laptop.tunnel(*options(private, "PRIVATE", "--port", str(port))):
        servers = f"127.0.0.1:{port}"
        led_by_every_broker(servers, "steady")
        with SteadyProducer(servers, "steady", len(REPLICAS)) as producer:
            private.cluster.kill(2)
            private.cluster.start(2)
            end = time.monotonic() + PATIENCE
            old_count = len(producer.acknowledged)
            while len(producer.acknowledged) < old_count + 60:
                assert time.monotonic() < end
                time.sleep(0.1)
        assert producer.failed == []
        assert_all_read(producer.acknowledged, read_all(servers, "steady", len(REPLICAS)))


@pytest.mark.parametrize(("via", "arguments", "error"), [
    ("ssh://missing.invalid", ["--bootstrap", "a:1"], "Could not resolve hostname missing.invalid"),
    ("ssh://bastion", ["--bootstrap", "kafka-9.private.test:1"],
     "no broker is reached from there: kafka-9.private.test:1: connect failed: "),
    ("ssh://bastion", ["--as", "addresses", "--bootstrap", "a:1"], "only a contract"),
    ("ssh://bastion", ["--listener", "SECURE", "--as", "ports"], "nothing can be rewritten"),
    ("ssh://bastion", [], "allowed: PRIVATE, SECURE"),
    ("ssh://bastion", ["--listener", "OFFICE"], "allowed: INTERNAL, PRIVATE, SECURE"),
    ("kubectl:pod", [], "kubectl:NAMESPACE/POD"),
    ("ssm:bastion", [], "ssm:INSTANCE"),
])  # fmt: skip
def test_what_cannot_be_is_one_error(
    private: Private, via: str, arguments: list[str], error: str
) -> None:
    contract_arguments = (
        [] if "--bootstrap" in arguments else ["--contract", str(private.laptop.contract)]
    )
    command = [
        sys.executable,
        "-m",
        "earshot",
        "tunnel",
        "--via",
        via,
        *contract_arguments,
        *arguments,
    ]
    completed = subprocess.run(
        command, env=private.laptop.environment, capture_output=True, text=True
    )
    assert (
        completed.returncode == 2
        and error in completed.stderr
        and "Traceback" not in completed.stderr
    )


def test_a_port_that_is_taken_is_named(private: Private) -> None:
    with socket.create_server(("127.0.0.1", 0)) as port_holder:
        port = port_holder.getsockname()[1]
        arguments = options(private, "PRIVATE", "--port", str(port))
        command = [sys.executable, "-m", "earshot", "tunnel", "--via", "ssh://bastion", *arguments]
        completed = subprocess.run(
            command, env=private.laptop.environment, capture_output=True, text=True
        )
    assert completed.returncode == 2 and f"127.0.0.1:{port} of this machine" in completed.stderr


@pytest.mark.combination
def test_a_pod_is_a_way_too(private: Private, tmp_path: Path) -> None:
    """`kubectl` is a double: it enters the machine behind ssh, and runs what a pod would run."""
    double = tmp_path / "kubectl"
    double.write_text(
        '#!/bin/bash\ncase "$*" in "exec -i -n kafka client -- bash -c"*) ;; *) exit 9 ;; esac\n'
        'shift 6\nexec ssh bastion "$(printf "%q " "$@")"\n'
    )
    double.chmod(0o755)
    path = f"{tmp_path}:{private.laptop.environment['PATH']}"
    laptop_with_kubectl = replace(
        private.laptop, environment={**private.laptop.environment, "PATH": path}
    )
    port = first_port()
    arguments = options(private, "PRIVATE", "--port", str(port))
    with laptop_with_kubectl.tunnel(*arguments, via="kubectl:kafka/client"):
        report = examine([Address("127.0.0.1", port)], produce=False)
        assert report.exit_code == 0, report
