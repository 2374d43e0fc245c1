"""A changed listener replaces brokers on AWS one by one, under running producers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from earshot.placement.aws import report_parameter
from earshot.user_data.node_report import NodeReport, State
from tests.e2e.box.cloud_box import CloudBox, cloud_box
from tests.e2e.box.place import Place
from tests.e2e.distant_producer import DistantProducer
from tests.e2e.docker_engine import Engine
from tests.e2e.project import STACK
from tests.e2e.steady_producer import all_there, longest_wait, longest_wait_of_a_partition
from tests.measured import MEASURED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

BROKERS = {id: f"{STACK}-broker-{id}" for id in (1, 2, 3)}
META = "/var/lib/kafka/data/meta.properties"
IPV4 = ("-X", "broker.address.family=v4")
OLD, NEW = 9092, 9192
"""EXTERNAL's port."""


@pytest.fixture(scope="module")
def box(
    docker_engine: Engine, client_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CloudBox]:
    with cloud_box(docker_engine, tmp_path_factory.mktemp("box")) as made:
        yield made


@dataclass(frozen=True)
class Kept:
    """What a broker must have before and after."""

    private: str
    elastic: str
    volume: str
    device: str
    """The disk below the volume."""
    meta: str
    """What Kafka wrote when it formatted its storage, a random id of the folder included."""


def kept(box: CloudBox) -> dict[str, Kept]:
    box.settle()
    found, running = {}, box.instances()
    for machine in box.held().machines.values():
        (volume,) = machine.volumes
        found[machine.name] = Kept(
            machine.private,
            machine.elastic,
            volume,
            str(box.fleet.disk(volume).device),
            running[machine.name].run("cat", META),
        )
    return found


def instances(box: CloudBox) -> dict[str, str]:
    """Names by instance id."""
    return {id: machine.name for id, machine in box.held().machines.items()}


def happened(box: CloudBox, names: dict[str, str], since: float) -> list[tuple[float, str, str]]:
    """What was done with the brokers, whose ``names`` are by instance, and when they said that they
    were in sync, in its order."""
    found: list[tuple[float, str, str]] = [
        (it.when, it.what, names[it.id]) for it in box.fleet.doings if it.when > since
    ]
    ssm = box.server.client("ssm")
    for name in BROKERS.values():
        parameter = report_parameter(STACK, name.removeprefix(f"{STACK}-"))
        for item in ssm.get_parameter_history(Name=parameter)["Parameters"]:
            report, when = NodeReport.read(item["Value"]), item["LastModifiedDate"].timestamp()
            if when > since and report is not None and report.state is State.IN_SYNC:
                found.append((when, State.IN_SYNC, name))
    return sorted(found)


def in_the_middle(box: CloudBox, updating: Future[str], since: float) -> None:
    """Returns when an instance was replaced and is not back yet."""
    while not any(it.what == "on" and it.when > since for it in box.fleet.doings):
        assert not updating.done(), updating.result()
        time.sleep(0.2)


def listing(place: Place, bootstrap: str) -> str:
    return place.run("kcat", *IPV4, "-b", bootstrap, "-L", "-m", "20")


def read_all(place: Place, bootstrap: str, topic: str) -> dict[tuple[int, int], bytes]:
    """Every record of ``topic`` by partition and offset, as kcat finds them from there."""
    words = ["-b", bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q"]
    told = place.run("kcat", *IPV4, *words, "-f", "%p %o %s\\n")
    found = {}
    for line in told.splitlines():
        partition, offset, body = line.split(" ", 2)
        found[int(partition), int(offset)] = body.encode()
    return found


def test_no_acknowledged_record_is_lost_while_instances_are_replaced(
    box: CloudBox, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    stack = box.stack(tmp_path / "stack")
    cluster = box.cluster(3, replication_factor=3, min_insync_replicas=2)
    stack.configure(cluster)
    stack.up()
    before, replaced, outputs = kept(box), instances(box), stack.project.outputs()
    assert sorted(before) == list(BROKERS.values())

    (external,) = (it for it in cluster["listeners"] if it["name"] == "EXTERNAL")
    assert external["port"] == OLD
    external["port"] = NEW
    stack.configure(cluster)
    with (
        box.place("inside") as inside,
        box.place("outside") as outside,
        ThreadPoolExecutor(1) as apart,
    ):
        places = {"INTERNAL": inside, "EXTERNAL": outside}
        producers = {
            name: DistantProducer(place.command, outputs[f"bootstrap_{name}"], f"through-{name}")
            for name, place in places.items()
        }
        with producers["INTERNAL"], producers["EXTERNAL"]:
            began, clock = time.time(), time.monotonic()
            updating = apart.submit(stack.up)
            in_the_middle(box, updating, began)
            late = listing(outside, outputs["bootstrap_EXTERNAL"])
            updating.result()
            ended = time.monotonic()
        after = stack.project.outputs()
        found = {
            name: read_all(place, after[f"bootstrap_{name}"], f"through-{name}")
            for name, place in places.items()
        }

    assert f":{OLD}" in late, "who comes in the middle still finds those that have not moved"
    now = instances(box)
    events = happened(box, replaced | now, began)
    one_by_one = [(what, it) for it in BROKERS.values() for what in ("off", "on", "in-sync")]
    assert [(what, name) for _, what, name in events] == one_by_one, events
    assert kept(box) == before and not now.keys() & replaced.keys()
    for name, instance in box.instances().items():
        assert "since clean shutdown file was found" in instance.journal("kafka"), name

    for name, producer in producers.items():
        assert producer.failed == [] and len(producer.acknowledged) == producer.sent
        times = [it.when for it in producer.acknowledged]
        assert min(times) < clock and max(times) > ended, "before, all the while, and after"
        all_there(producer.acknowledged, found[name])
        assert len(found[name]) == producer.sent, "and none was written twice"
        # it was told no new address: it has learned them from the brokers that it still knew
        bootstrap = after[f"bootstrap_{name}"]
        assert producer.known_brokers == dict(zip(BROKERS, bootstrap.split(","), strict=True))
        assert (bootstrap != outputs[f"bootstrap_{name}"]) == (name == "EXTERNAL")
        record_property(
            MEASURED,
            f"producer on {name}, EXTERNAL changed on three instances: {producer.sent} records "
            f"acknowledged in {ended - clock:.0f} s, none lost; longest time without an "
            f"acknowledgement {longest_wait(producer.acknowledged):.2f} s "
            f"(of one partition {longest_wait_of_a_partition(producer.acknowledged):.2f} s)",
        )
