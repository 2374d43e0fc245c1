"""What EC2 changes in place: another type, for which it stops and starts each instance, and larger
volumes, on three brokers under running producers, in a box. And a node that is down.

Run by `make test-box`. The tests go on from each other.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from earshot.placement.aws import report_parameter
from earshot.user_data.boot import NodeReport
from earshot.user_data.render import MOUNT
from tests.e2e.box.change import identities, ids, power_and_sync_events, rolling_events
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.secured import BROKERS
from tests.e2e.box.stack import BoxStack
from tests.e2e.distant_producer import DistantProducer
from tests.e2e.project import STACK
from tests.e2e.steady_producer import assert_all_read, longest_wait, longest_wait_of_a_partition
from tests.measured import MEASURED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

PATIENCE = 300.0
SAFE: dict[str, Any] = {"replication_factor": 3, "min_insync_replicas": 2}


@dataclass
class Brokers:
    """A deployed stack of three brokers."""

    box: CloudBox
    stack: BoxStack

    def configure(self, **settings: Any) -> None:
        self.stack.configure(self.box.cluster(3, **SAFE, **settings))

    def report(self, id: int) -> NodeReport:
        parameter = {"Name": report_parameter(STACK, f"broker-{id}")}
        text = self.box.server.client("ssm").get_parameter(**parameter)["Parameter"]["Value"]
        report = NodeReport.read(text)
        assert report is not None, text
        return report


@pytest.fixture(scope="module")
def brokers(box: CloudBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    new_brokers = Brokers(box, box.stack(tmp_path_factory.mktemp("restart") / "stack"))
    new_brokers.configure()
    new_brokers.stack.up()
    yield new_brokers
    new_brokers.stack.destroy()


@contextlib.contextmanager
def producers(brokers: Brokers, folder: Path) -> Iterator[dict[str, DistantProducer]]:
    """One producer inside on INTERNAL and one outside on EXTERNAL, until the block ends."""
    outputs, producers_by_listener = brokers.stack.project.outputs(), dict[str, DistantProducer]()
    with contextlib.ExitStack() as contexts:
        for side, listener in (("inside", "INTERNAL"), ("outside", "EXTERNAL")):
            file = folder / f"{listener}.json"
            file.write_text(json.dumps({"bootstrap.servers": outputs[f"bootstrap_{listener}"]}))
            place = contexts.enter_context(
                brokers.box.place("inside" if side == "inside" else "outside")
            )
            producer = DistantProducer(place.command, file, f"through-{listener}")
            producers_by_listener[listener] = contexts.enter_context(producer)
        yield producers_by_listener


def test_another_type_restarts_one_broker_at_a_time_and_no_record_is_lost(
    brokers: Brokers, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    box = brokers.box
    old_identities, running = identities(box), ids(box)
    boots = {id: brokers.report(id).booted for id in BROKERS}
    brokers.configure(instance={"type": "t4g.large"})
    with producers(brokers, tmp_path) as contexts:
        since = time.time()
        brokers.stack.up()
        seconds = time.time() - since
        assert power_and_sync_events(box, since) == rolling_events((1, 2, 3))
    assert ids(box) == running, "they are the same instances"
    assert identities(box) == old_identities
    types = {
        instance["InstanceType"]
        for reservation in box.server.client("ec2").describe_instances()["Reservations"]
        for instance in reservation["Instances"]
    }
    assert types == {"t4g.large"}
    assert all((brokers.report(id).booted or 0) > (boots[id] or 0) for id in BROKERS)
    for name, producer in contexts.items():
        assert producer.failed == [] and len(producer.acknowledged) == producer.sent > 0
        assert_all_read(producer.acknowledged, producer.records)
        record_property(
            MEASURED,
            f"producer on {name}, another instance type on three brokers ({seconds:.0f} s): "
            f"{producer.sent} records acknowledged, none lost; longest time without an "
            f"acknowledgement {longest_wait(producer.acknowledged):.2f} s (of one partition "
            f"{longest_wait_of_a_partition(producer.acknowledged):.2f} s)",
        )
    assert "unchanged" in brokers.stack.up("--expect-no-changes")


def test_a_larger_volume_reaches_the_file_system_of_a_broker_that_runs(brokers: Brokers) -> None:
    box, since = brokers.box, time.time()
    assert {brokers.report(id).size_gib for id in BROKERS} == {1}
    brokers.configure(instance={"type": "t4g.large"}, volume={"size_gib": 2})
    brokers.stack.up()
    assert power_and_sync_events(box, since) == [], "without a restart"
    for id, name in BROKERS.items():
        report = brokers.report(id)
        assert (report.size_gib, report.free_gib) == (2, 1)
        file_system = box.instances()[name].run("stat", "-fc", "%b %S", MOUNT).split()
        assert int(file_system[0]) * int(file_system[1]) > 1.8 * 2**30
    brokers.configure(instance={"type": "t4g.large"}, volume={"size_gib": 1})
    output = " ".join(brokers.stack.project.failed_output(command="preview").split())
    assert "the data volume of node 1, 2, 3 would shrink (of node 1 from 2 to 1 GiB)" in output


def test_no_node_is_rolled_past_a_node_that_is_down(brokers: Brokers) -> None:
    box, instance_ids = brokers.box, ids(brokers.box)
    ec2 = box.server.client("ec2")
    second_instance, third_instance = (instance_ids[BROKERS[id]] for id in (2, 3))
    ec2.stop_instances(InstanceIds=[second_instance, third_instance])
    box.settle()
    larger_machine = {"instance": {"type": "t4g.large"}, "volume": {"size_gib": 2}}
    brokers.configure(**larger_machine, heap="300m")
    since = time.time()
    for command in ("preview", "up"):
        output = " ".join(brokers.stack.project.failed_output(command=command).split())
        assert "node 2 would be restarted while node 3 is down" in output, output
        assert f"its instance {third_instance} is stopped" in output, output
    assert power_and_sync_events(box, since) == [] and ids(box) == instance_ids

    old_boot = brokers.report(2).booted
    ec2.start_instances(InstanceIds=[second_instance])
    end = time.monotonic() + PATIENCE
    while not ((report := brokers.report(2)).serves and report.booted != old_boot):
        assert time.monotonic() < end, report
        time.sleep(1)
    update_start = time.time()
    preview = brokers.stack.project.pulumi("preview")
    assert preview.returncode == 0 and "node 3 is down" in preview.stdout, preview.stdout
    brokers.stack.up()
    events = power_and_sync_events(box, update_start)
    assert [event for event in events if event != ("off", BROKERS[3])] == [
        event for event in rolling_events((3, 1, 2)) if event != ("off", BROKERS[3])
    ]
