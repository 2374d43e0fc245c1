"""Three brokers on free ports of the loopback, for the time of one bench."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from components.local import process, quorum, readiness
from earshot.config.document import read_spec
from earshot.jvm.jars import kafka_broker_jars
from earshot.jvm.java import find_java
from earshot.listeners.render import server_properties
from earshot.placement import plan_stack
from earshot.validation.contract import Contract

BROKERS = 3
CLUSTER_ID = "ZWFyc2hvdC1iZW5jaC0xIQ"


@contextlib.contextmanager
def three_brokers() -> Iterator[Contract]:
    """The contract of a cluster that serves; stopped and its data removed at the end."""
    root = Path(tempfile.mkdtemp(prefix="earshot-bench-"))
    ports = _free_ports(3)
    listeners = [
        {"name": "INTERNAL", "port": ports[0], "scopes": ["internal"]},
        {"name": "EXTERNAL", "port": ports[1], "scopes": ["host"]},
    ]
    document = {"placement": "local", "brokers": BROKERS, "listeners": listeners}
    spec = read_spec(document | {"controllers": {"port": ports[2]}}, "bench")
    plan = plan_stack(spec, "bench", root).plan
    java, jars = find_java().executable, kafka_broker_jars(plan.kafka_version)
    try:
        for node in plan.nodes:
            directory = quorum.node_directory(root, node.id)
            properties = server_properties(plan, node)
            version = plan.kafka_version
            launch = process.Launch(node.id, directory, properties, "256m", version, java, jars)
            process.start(launch, CLUSTER_ID)
        inner = {
            node.id: str(item.advertised)
            for node in plan.brokers
            if (item := node.listener(plan.inter_broker)) is not None
        }
        readiness.wait_for(root, list(inner), inner, CLUSTER_ID)
        yield Contract.of(plan, "bench", "local", CLUSTER_ID)
    finally:
        for node in plan.nodes:
            process.stop(quorum.node_directory(root, node.id), grace=2.0)
        shutil.rmtree(root, ignore_errors=True)


def _free_ports(blocks: int) -> list[int]:
    """The first ports of runs of free ports, one run per listener."""
    found: list[int] = []
    candidate = 20_000
    while len(found) < blocks:
        if all(_is_free(candidate + index) for index in range(BROKERS)):
            found.append(candidate)
        candidate += 10
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
