"""Random topologies whose brokers are real Kafka, and whose clients are real ones (librdkafka's).

Brokers reach each other and the quorum on a network of their own, so that every cluster comes up;
what clients meet on the other networks is as random as without Kafka.
"""

import json
import random
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from earshot.topology.walk import walk, worst
from earshot.topology.ways import Answer, HopKind
from tests.topologies.compare import Outcome, cause_of, model_of, text_of
from tests.topologies.engine import READY_SECONDS, Running
from tests.topologies.generate import Document, Maker, Topology

IMAGE = "apache/kafka:4.1.1"
"""The image in the file that the model reads. The engine runs the double of this image."""
QUORUM = "quorum"
REPLICATION_PORT, CONTROLLER_PORT = 19092, 19093
TOPIC = "judge"
MESSAGE_SECONDS = 6
AT_ONCE = 6
"""Clients that run at a time; each has its own time limit."""
ALL_DOWN = "All broker connections are down"
ATTEMPTS = 8
SUBNET = 110
FIRST_PORT = 9092
RIGHT = 0.6
"""The share of addresses that work in a simple file."""


def kafka_topology(seed: int, machine: str, slot: int) -> Topology:
    """The topology of ``seed`` with Kafka brokers, and one client on the machine's own network."""
    return Topology(seed, _KafkaMaker(random.Random(seed), seed, machine, slot).document(), machine)


class _KafkaMaker(Maker):
    """Adds the settings of a real cluster. The addresses that clients meet stay random."""

    image = IMAGE
    modes = ("",)

    def document(self) -> Document:
        compose_document = super().document()
        compose_document["networks"][QUORUM] = {
            "ipam": {"config": [{"subnet": f"10.{SUBNET}.{self.slot}.0/24"}]}
        }
        compose_document["services"]["machine"] = self.client(
            "machine", len(self.clients) + 1, "host"
        )
        return compose_document

    def advertised(self, name: str, service: Document, bind: int, outside: int) -> tuple[str, int]:
        """An address that works in half of all cases. Otherwise hardly a record would arrive."""
        if self.random.random() < RIGHT:
            return ("localhost", outside) if outside and bind != FIRST_PORT else (name, bind)
        return super().advertised(name, service, bind, outside)

    def client(self, name: str, number: int, mode: str | None = None) -> Document:
        service = super().client(name, number, mode)
        if self.random.random() < RIGHT:
            bootstrap = f"{self.random.choice(self.brokers)}:{FIRST_PORT}"
            outside = [
                address
                for listener_addresses in self.listeners.values()
                for address in listener_addresses
                if address[0] == "localhost"
            ]
            if service.get("network_mode") == "host" and outside:
                bootstrap = f"localhost:{self.random.choice(outside)[1]}"
            service["environment"] = {"KAFKA_BOOTSTRAP_SERVERS": bootstrap}
        return service

    def broker(self, name: str, number: int) -> Document:
        service = super().broker(name, number)
        networks = service.get("networks") or {"default": {}}
        service["networks"] = {**networks, QUORUM: {"aliases": [_alias(number)]}}
        variables: dict[str, str] = service["environment"]
        del variables["KAFKA_ZOOKEEPER_CONNECT"]
        repl, quorum = f"REPL://:{REPLICATION_PORT}", f"CONTROLLER://:{CONTROLLER_PORT}"
        advertised = f"REPL://{_alias(number)}:{REPLICATION_PORT}"
        ids = range(1, len(self.brokers) + 1)
        variables |= {
            "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
            "KAFKA_PROCESS_ROLES": "broker,controller",
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": ",".join(
                f"{id}@{_alias(id)}:{CONTROLLER_PORT}" for id in ids
            ),
            "KAFKA_LISTENERS": f"{variables['KAFKA_LISTENERS']},{repl},{quorum}",
            "KAFKA_ADVERTISED_LISTENERS": f"{variables['KAFKA_ADVERTISED_LISTENERS']},{advertised}",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
                f"{variables['KAFKA_LISTENER_SECURITY_PROTOCOL_MAP']},REPL:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "KAFKA_INTER_BROKER_LISTENER_NAME": "REPL",
            "KAFKA_NUM_PARTITIONS": str(len(self.brokers)),
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        }
        return service


def _alias(number: int) -> str:
    return f"q{number}"


def compare_with_kafka(running: Running) -> Outcome:
    """Compares each client's walk, by each address to each broker, with a record that it sends.

    A partition is led by one broker alone: a record arrives where the client came back to it.
    """
    model, outcome = model_of(text_of(running.topology)), Outcome()
    leaders = _leaders(running)
    walks = [
        (client.service, connection, second_connection)
        for client in model.bootstraps
        for connection in walk(model, client).connections
        for second_connection in connection.sent or (None,)
    ]

    def sends(service: str, bootstrap: str, partition: int) -> bool:
        command = (
            f"echo x | timeout {3 * MESSAGE_SECONDS} kcat -P -b {bootstrap} -t {TOPIC}"
            f" -p {partition} -X message.timeout.ms={MESSAGE_SECONDS * 1000} 2>&1"
        )
        for _ in range(ATTEMPTS):
            code, output = running.run(service, command)
            # kcat gives up where the first address of a host refuses; librdkafka tries the others
            if ALL_DOWN not in output:
                return code == 0
        return False

    with ThreadPoolExecutor(AT_ONCE) as pool:
        arrivals = list(
            pool.map(
                lambda hop: sends(
                    hop[0],
                    str(hop[1].trace.address),
                    leaders[hop[2].broker.id] if hop[2] is not None else 0,
                ),
                walks,
            )
        )
    for (service, connection, second_connection), arrives in zip(walks, arrivals, strict=True):
        hops = (
            *connection.hops,
            *(second_connection.hops if second_connection is not None else ()),
        )
        # kcat speaks PLAINTEXT, as all listeners here: the file need not say so
        expected = worst(hop for hop in hops if hop.kind is not HopKind.PROTOCOL)
        if second_connection is None and expected is Answer.YES:
            expected = Answer.NO  # a controller answers no client
        if expected is Answer.UNKNOWN:
            outcome.unknown["kafka: " + cause_of(hops)] += 1
        elif (expected is Answer.YES) != arrives:
            broker = second_connection.broker.service if second_connection else "any broker"
            outcome.differences.append(
                f"record of {service} by {connection.trace.address} to {broker}: model {expected},"
                f" {[f'{hop.kind} {hop.answer}: {hop.because}' for hop in hops]};"
                f" {'arrived' if arrives else 'did not arrive'}"
            )
        else:
            outcome.agreed[f"record, {expected}"] += 1
    return outcome


def _leaders(running: Running) -> Mapping[int | None, int]:
    """Waits for all brokers. Returns the partition that each leads, by broker id."""
    services = running.topology.document["services"]
    brokers = [
        service for service in services if "KAFKA_PROCESS_ROLES" in services[service]["environment"]
    ]
    query = f"kcat -J -L -b {_alias(1)}:{REPLICATION_PORT} -m 5"
    end, output, are_up = time.monotonic() + READY_SECONDS, "", False
    while time.monotonic() < end:
        # the first question for the topic makes it, on the brokers that are there
        code, output = running.run(brokers[0], f"{query} -t {TOPIC}" if are_up else query)
        # kcat may end without an output
        has_answered = code == 0 and output.startswith("{")
        metadata: Mapping[str, Any] = (
            json.loads(output) if has_answered else {"brokers": (), "topics": ()}
        )
        leaders = _partition_by_leader(metadata["topics"])
        if are_up and len(leaders) == len(brokers):
            return leaders
        are_up = are_up or len(metadata["brokers"]) == len(brokers)
        time.sleep(0.3)
    logs = "\n".join(running.logs(service)[-2000:] for service in brokers)
    raise TimeoutError(
        f"seed {running.topology.seed}: no topic with a leader each: {output}\n{logs}"
    )


def _partition_by_leader(topics: Sequence[Mapping[str, Any]]) -> dict[int | None, int]:
    """A partition of the topic, by its leader."""
    partitions = [
        partition
        for topic in topics
        if topic["topic"] == TOPIC
        for partition in topic["partitions"]
    ]
    return {
        partition["leader"]: partition["partition"]
        for partition in partitions
        if partition["leader"] > 0
    }
