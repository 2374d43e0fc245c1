"""Three brokers on AWS with a listener for each side, in a box: proved, changed under running
producers, destroyed. The tests go on from each other."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from earshot.placement.aws import report_parameter
from earshot.user_data.node_report import NodeReport, NodeState
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.place import Place
from tests.e2e.box.stack import BoxStack, passed
from tests.e2e.distant_producer import DistantProducer
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
def before(box: CloudBox) -> set[str]:
    """What there was before the stack."""
    return box.server.holdings()


@pytest.fixture(scope="module")
def stack(box: CloudBox, before: set[str], tmp_path_factory: pytest.TempPathFactory) -> BoxStack:
    """Up, with replication factor 3 and two replicas in sync at least."""
    made = box.stack(tmp_path_factory.mktemp("three") / "stack")
    made.configure(cluster(box))
    made.up()
    return made


def cluster(box: CloudBox) -> dict[str, Any]:
    return box.cluster(3, replication_factor=3, min_insync_replicas=2)


def loop_devices() -> str:
    return subprocess.run(["losetup", "--list"], check=True, capture_output=True, text=True).stdout


def test_every_broker_is_proved_from_both_sides(
    box: CloudBox, stack: BoxStack, tmp_path: Path
) -> None:
    running = {it.name: it for it in box.held().machines.values()}
    assert sorted(running) == list(BROKERS.values())

    report = stack.validate(tmp_path)
    sides = {("internal", "INTERNAL"), ("external", "EXTERNAL")}
    assert passed(report) == {(*side, id) for side in sides for id in BROKERS}

    assert "unchanged" in stack.up("--expect-no-changes")
    assert {it.name: it for it in box.held().machines.values()} == running


def test_only_who_is_meant_comes_in(box: CloudBox, stack: BoxStack) -> None:
    """Names mean on each side what they should, and the groups let in whom they name."""
    names = stack.project.outputs()["names"]["2"]
    broker = next(it for it in box.held().machines.values() if it.name == BROKERS[2])
    with (
        box.place("inside") as inside,
        box.place("outside") as outside,
        box.place("outside", box.stranger) as stranger,
    ):
        assert inside.lookup(names["internal"]) == [broker.private]
        assert inside.lookup(names["external"]) == [broker.private]
        assert outside.lookup(names["external"]) == [broker.elastic]
        assert outside.lookup(names["internal"]) == []

        assert inside.opens(broker.private, 19092)
        assert outside.opens(broker.elastic, 9092)
        assert not outside.opens(broker.elastic, 19092), "INTERNAL is for the VPC"
        assert not outside.opens(broker.private, 19092), "no way leads there"
        assert not outside.opens(broker.elastic, 29092), "controllers are for brokers"
        assert not inside.opens(broker.private, 29092), "controllers are for brokers"
        assert not inside.opens(broker.private, 9092), "EXTERNAL is for the office"
        assert not stranger.opens(broker.elastic, 9092), "EXTERNAL is for the office"


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
            if when > since and report is not None and report.state is NodeState.IN_SYNC:
                found.append((when, NodeState.IN_SYNC, name))
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
    box: CloudBox, stack: BoxStack, record_property: Callable[[str, object], None]
) -> None:
    first, replaced, outputs = kept(box), instances(box), stack.project.outputs()
    assert sorted(first) == list(BROKERS.values())

    changed = cluster(box)
    (external,) = (it for it in changed["listeners"] if it["name"] == "EXTERNAL")
    assert external["port"] == OLD
    external["port"] = NEW
    stack.configure(changed)
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
    assert kept(box) == first and not now.keys() & replaced.keys()
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


def test_nothing_is_left_when_it_is_destroyed(
    box: CloudBox, stack: BoxStack, before: set[str]
) -> None:
    """The last one."""
    volumes = [id for it in box.held().machines.values() for id in it.volumes]
    disks = [str(box.fleet.disk(id).device) for id in volumes]
    assert len(disks) == 3 and all(device in loop_devices() for device in disks)
    stack.destroy()
    box.settle()
    assert box.server.holdings() == before
    assert box.fleet.left == []
    assert not any(device in loop_devices() for device in disks)
