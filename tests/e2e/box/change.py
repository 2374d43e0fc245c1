"""Listeners of three secured brokers on AWS that change in steps under running producers, in a box.

Run by `make test-box`; `make test` has such changes on `local`, `make test-all` on Docker, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from earshot.placement.aws import report_parameter
from earshot.user_data.boot import NodeReport
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.secured import (
    BROKERS,
    EXTERNAL,
    INTERNAL,
    NODES,
    PORT,
    SecuredBox,
    cluster,
    secured_box,
)
from tests.e2e.distant_producer import DistantProducer
from tests.e2e.project import STACK
from tests.e2e.steady_producer import assert_all_read, longest_wait, longest_wait_of_a_partition
from tests.measured import MEASURED
from toolchain.state_files import recover

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

META = "/var/lib/kafka/data/meta.properties"
PATIENCE = 300.0
NEW = 9192
"""EXTERNAL's port after the change."""
REPL = "REPL"


@pytest.fixture(scope="module")
def secured(box: CloudBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBox]:
    with secured_box(box, tmp_path_factory.mktemp("secure") / "stack") as new_secured_box:
        yield new_secured_box
        new_secured_box.stack.destroy()


@dataclass(frozen=True)
class Identity:
    """Properties of a broker that must not change."""

    private: str
    elastic: str
    volume: str
    device: str
    """The disk below the volume."""
    meta: str
    """The file that Kafka wrote when it formatted its storage, with a random id of the folder."""


def identities(box: CloudBox) -> dict[str, Identity]:
    box.settle()
    identities, instances = {}, box.instances()
    for machine in box.moto_state().machines.values():
        (volume,) = machine.volumes
        identities[machine.name] = Identity(
            machine.private,
            machine.elastic,
            volume,
            str(box.fleet.disk(volume).device),
            instances[machine.name].run("cat", META),
        )
    return identities


def ids(box: CloudBox) -> dict[str, str]:
    """Instances by name."""
    return {machine.name: id for id, machine in box.moto_state().machines.items()}


def power_and_sync_events(box: CloudBox, since: float) -> list[tuple[str, str]]:
    """Instances that were switched on or off, and nodes that reported to be in sync, in order."""
    events: list[tuple[float, str, str]] = [
        (change.when, change.action, change.name)
        for change in box.fleet.power_changes
        if change.when > since
    ]
    ssm, seen_boots = box.server.client("ssm"), set[tuple[str, int | None]]()
    for id, name in BROKERS.items():
        parameter = report_parameter(STACK, f"broker-{id}")
        for version in ssm.get_parameter_history(Name=parameter)["Parameters"]:
            report, when = (
                NodeReport.read(version["Value"]),
                version["LastModifiedDate"].timestamp(),
            )
            if report is not None and report.serves:
                boot = (report.instance, report.booted)
                if boot in seen_boots:
                    continue  # it may say so again and again
                seen_boots.add(boot)
                events.append((when, report.state.value, name))
    return [(action, name) for when, action, name in sorted(events) if when > since]


def rolling_events(ids: tuple[int, ...]) -> list[tuple[str, str]]:
    return [(action, BROKERS[id]) for id in ids for action in ("off", "on", "in-sync")]


@contextlib.contextmanager
def update_with_replaced(secured: SecuredBox, id: int) -> Iterator[subprocess.Popen[str]]:
    """An update, once the broker ``id`` has another instance, which boots; it ends within."""
    since, end = time.time(), time.monotonic() + PATIENCE
    with secured.stack.project.updating() as child:
        while ("on", BROKERS[id]) not in power_and_sync_events(secured.box, since):
            assert child.poll() is None and time.monotonic() < end
            time.sleep(0.2)
        yield child
    recover(secured.stack.project.environment, STACK)  # as `make up` does before it calls the CLI


@dataclass
class Traffic:
    """A producer on each listener that is kept: EXTERNAL, and REPL once it exists."""

    producers: dict[str, DistantProducer]
    producer_contexts: contextlib.ExitStack
    """Ends both producers."""


@pytest.fixture(scope="module")
def traffic() -> Iterator[Traffic]:
    with contextlib.ExitStack() as contexts:
        yield Traffic({}, contexts)


def start_producer(
    traffic: Traffic, secured: SecuredBox, side: Any, listener: str, folder: Path
) -> None:
    """Starts a producer of the user on ``listener``, which gets no other address later."""
    file = folder / f"{listener}.json"
    file.write_text(json.dumps(secured.client("app", listener)))
    place = traffic.producer_contexts.enter_context(secured.box.place(side))
    producer = DistantProducer(place.command, file, f"app-through-{listener}")
    traffic.producers[listener] = traffic.producer_contexts.enter_context(producer)


def leaving_by_listener(secured: SecuredBox) -> dict[str, bool]:
    """The listeners of the contract, and which of them are leaving."""
    contract = secured.stack.project.outputs()["contract"]
    return {listener["name"]: listener["leaving"] for listener in contract["listeners"]}


def test_a_listener_comes_and_another_one_moves_with_its_clients(
    secured: SecuredBox, traffic: Traffic, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The first of three steps, ended by Ctrl-C: INTERNAL is to become REPL, EXTERNAL gets another
    port."""
    box, folder = secured.box, tmp_path_factory.mktemp("clients")
    start_producer(traffic, secured, "outside", EXTERNAL, folder)
    client = secured.client("app", EXTERNAL)
    old_identities, instance_ids = identities(box), ids(box)
    new_settings = cluster(box)
    internal, external = new_settings["listeners"]
    assert (internal["name"], external["name"], external["port"]) == (INTERNAL, EXTERNAL, PORT)
    new_settings["listeners"] = [
        {**internal, "name": REPL, "port": 19192},
        {**external, "port": NEW},
    ]
    secured.stack.configure(new_settings)
    start_time = time.time()
    with update_with_replaced(secured, 1) as child:
        late_clients = {"app": (client, "app-orders")}
        write_results = secured.write_results(secured.laptop, folder / "late.json", late_clients)
        assert write_results == {"app": "written"}, "through the brokers that have not moved"
        os.killpg(child.pid, signal.SIGINT)
        child.communicate(timeout=PATIENCE)
        assert child.returncode != 0
    output = secured.stack.up()
    assert "step 1 of 3: REPL added next to INTERNAL; EXTERNAL at other" in output
    assert power_and_sync_events(box, start_time) == rolling_events((1, 2, 3))
    assert identities(box) == old_identities
    assert {name for name, id in ids(box).items() if instance_ids[name] == id} == {NODES[10001]}
    for name in BROKERS.values():
        assert "since clean shutdown file" in box.instances()[name].journal("kafka"), name
    assert leaving_by_listener(secured) == {INTERNAL: True, EXTERNAL: False, REPL: False}
    start_producer(traffic, secured, "inside", REPL, folder)


def test_brokers_reach_each_other_by_the_new_one(secured: SecuredBox) -> None:
    """The second step, in which a broker is killed."""
    start_time = time.time()
    with update_with_replaced(secured, 1) as child:
        secured.box.instances()[BROKERS[3]].run("systemctl", "kill", "--signal=KILL", "kafka")
        output, _ = child.communicate(timeout=PATIENCE)
    if child.returncode:
        output = secured.stack.up()
    assert "step 2 of 3: brokers reach each other through REPL; run again" in output
    assert power_and_sync_events(secured.box, start_time) == rolling_events((1, 2, 3))


def test_an_unused_listener_is_removed_and_no_acknowledged_record_is_lost(
    secured: SecuredBox, traffic: Traffic, record_property: Callable[[str, object], None]
) -> None:
    """The third step, in which the CLI is killed."""
    box, instance_ids = secured.box, ids(secured.box)
    broker = next(
        machine for machine in box.moto_state().machines.values() if machine.name == BROKERS[2]
    )
    with box.place("inside") as vpc_place:
        command = vpc_place.command(
            "bash", "-c", f"exec 3<>/dev/tcp/{broker.private}/19092; sleep 600"
        )
        with subprocess.Popen(command) as client:
            output = " ".join(secured.stack.project.failed_output().split())
            client.kill()
        reason = (
            "listener INTERNAL would be removed, and has 1 connection of clients: "
            f"1 from {vpc_place.address}"
        )
        assert reason in output, output
    assert ids(box) == instance_ids
    with update_with_replaced(secured, 1) as child:
        child_processes = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGKILL)
        psutil.wait_procs(child_processes, 60)
    assert "step 3 of 3: INTERNAL removed" in secured.stack.up("--refresh")
    assert leaving_by_listener(secured) == {REPL: False, EXTERNAL: False}
    traffic.producer_contexts.close()
    outputs = secured.stack.project.outputs()
    for name, producer in traffic.producers.items():
        assert producer.failed == [] and len(producer.acknowledged) == producer.sent > 0
        assert_all_read(producer.acknowledged, producer.records)
        assert len(producer.records) == producer.sent, "and none was written twice"
        # it was told no new address: it has learned them from the brokers that it still knew
        bootstrap = outputs[f"bootstrap_{name}"].split(",")
        assert producer.known_brokers == dict(zip(BROKERS, bootstrap, strict=True))
        worst = longest_wait_of_a_partition(producer.acknowledged)
        record_property(
            MEASURED,
            f"producer on {name}, INTERNAL renamed to REPL and EXTERNAL at another port in three "
            f"steps, each interrupted, on three instances: {producer.sent} records acknowledged, "
            f"none lost; longest time without an acknowledgement "
            f"{longest_wait(producer.acknowledged):.2f} s (of one partition {worst:.2f} s)",
        )
