"""Three brokers on free ports of the loopback, for the time of one bench."""

import contextlib
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from earshot_pulumi.local import cluster_memory, process
from earshot_pulumi.local.preflight import started_with
from earshot_pulumi.local.readiness import RunningCluster
from earshot_pulumi.local.users import access_inputs

from earshot.certificates.authority import Subject
from earshot.certificates.client import client_properties
from earshot.certificates.store import Store
from earshot.certificates.target import TargetCertificates
from earshot.config.document import read_spec
from earshot.jvm.jars import kafka_broker_jars
from earshot.jvm.java import find_java
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import read_properties
from earshot.listeners.render import server_properties
from earshot.listeners.security import NODE, NODES, VALIDATOR, VALIDATOR_FILE, node_name, own_access
from earshot.listeners.terms import Mechanism, Protocol
from earshot.placement import plan_stack
from earshot.users.access import grants
from earshot.users.order import UsersOrder, carry_out
from earshot.validation.client import translate
from earshot.validation.contract import Contract

BROKERS = 3
CLUSTER_ID = "ZWFyc2hvdC1iZW5jaC0xIQ"


@contextlib.contextmanager
def three_brokers() -> Iterator[Contract]:
    """The contract of a cluster that serves; stopped and its data removed at the end."""
    with _running_brokers({}) as (contract, _):
        yield contract


@contextlib.contextmanager
def secured_brokers() -> Iterator[tuple[Contract, Path]]:
    """Three brokers with `security`, and the properties with which the validator logs in."""
    with _running_brokers({"security": {}}) as brokers:
        yield brokers


@contextlib.contextmanager
def _running_brokers(extra_keys: Mapping[str, Any]) -> Iterator[tuple[Contract, Path]]:
    """``extra_keys`` are further keys of the spec."""
    root = Path(tempfile.mkdtemp(prefix="earshot-bench-"))
    ports = _free_ports(3)
    listeners = [
        {"name": "INTERNAL", "port": ports[0], "scopes": ["internal"]},
        {"name": "EXTERNAL", "port": ports[1], "scopes": ["host"]},
    ]
    document = {"placement": "local", "brokers": BROKERS, "listeners": listeners, **extra_keys}
    spec = read_spec(document | {"controllers": {"port": ports[2]}}, "bench")
    plan = plan_stack(spec, "bench", root).plan
    validator = Path(plan.security.folder if plan.security else root) / VALIDATOR_FILE
    java, jars = find_java().executable, kafka_broker_jars(plan.kafka_version)
    try:
        if plan.security is not None:
            _issue(plan, Store(validator.parent))
        for node in plan.nodes:
            directory = cluster_memory.node_directory(root, node.id)
            properties = server_properties(plan, node)
            version = plan.kafka_version
            launch = process.Launch(node.id, directory, properties, "256m", version, java, jars)
            process.start(launch, CLUSTER_ID)
        RunningCluster(root, CLUSTER_ID).wait_for(node.id for node in plan.brokers)
        if plan.security is not None:
            _admit(plan, root, Store(validator.parent))
        yield Contract.of(plan, "bench", "local", CLUSTER_ID), validator
    finally:
        for node in plan.nodes:
            process.stop(cluster_memory.node_directory(root, node.id), grace=2.0)
        shutil.rmtree(root, ignore_errors=True)


def _issue(plan: ClusterPlan, store: Store) -> None:
    """Certificates of the nodes and of the validator, and its password."""
    nodes = {
        node_name(node.id): tuple({listener.advertised.host for listener in node.listeners})
        for node in plan.nodes
    }
    target_certificates = TargetCertificates(
        "bench", nodes, Subject(NODE, NODES), (VALIDATOR,), days=90, renew_days=30
    )
    store.fill(target_certificates, datetime.now(UTC))
    text = client_properties(store, VALIDATOR, Mechanism.SCRAM_SHA_512)
    (store.folder / VALIDATOR_FILE).write_text(text)


def _admit(plan: ClusterPlan, root: Path, store: Store) -> None:
    """The validator can log in, and may do what a validation needs."""
    directory = cluster_memory.node_directory(root, plan.brokers[0].id)
    mechanism, at = Mechanism.SCRAM_SHA_512, access_inputs(plan)
    values = read_properties(client_properties(store, VALIDATOR, mechanism, Protocol.SASL_SSL))
    carry_out(
        UsersOrder(
            bootstrap=",".join(at["brokers"].values()),
            access=own_access(read_properties(started_with(directory)).values),
            allowed=tuple(grants({})),
            mechanisms=(mechanism,),
            passwords={VALIDATOR: store.password(VALIDATOR)},
            logins=at["logins"],
            client=translate(values.values),
        )
    )


def _free_ports(blocks: int) -> list[int]:
    """The first ports of runs of free ports, one run per listener."""
    first_ports: list[int] = []
    candidate = 20_000
    while len(first_ports) < blocks:
        if all(_is_free(candidate + index) for index in range(BROKERS)):
            first_ports.append(candidate)
        candidate += 10
    return first_ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
