"""Brokers in private subnets behind the balancer of `expose: nlb`, in a box.

The tests go on from each other. The balancer is a double (`box/balancers.py`).
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from earshot.report.json import read_report
from earshot.validation.result import Report
from earshot.validation.terms import Stage
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.place import Place
from tests.e2e.box.stack import BoxStack, failures, passed_cells
from tests.e2e.distant_producer import DistantProducer
from tests.e2e.steady_producer import assert_all_read, longest_wait
from tests.measured import MEASURED

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(1200)]

IDS = (1, 2, 3)
PORT, BASE = 9094, 9100
LEAST_IDLE = 60
"""Seconds, of a listener of a Network Load Balancer."""
TURN_SECONDS = 60.0
"""Maximum seconds until a target becomes healthy or unhealthy: two checks, 10 s apart."""
# connects, is silent for a while, and says what becomes of the next byte
SILENT = """
import socket, sys, time
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as there:
    time.sleep(float(sys.argv[3]))
    there.settimeout(2)
    try:
        there.send(bytes(1))
        print("closed" if not there.recv(1) else "answered")
    except TimeoutError:
        print("open")
    except ConnectionResetError:
        print("reset")
"""

# asks for the versions of requests again and again, until the standard input ends; the failures
ASKS = """
import json, select, socket, sys, time
host, port = sys.argv[1], int(sys.argv[2])
request = b"\\0\\x12\\0\\0\\0\\0\\0\\x01\\xff\\xff"
failed, asked = [], 0
while not select.select([sys.stdin], [], [], 0.05)[0]:
    try:
        for *_, address in socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM):
            place = address[0]
            asked += 1
            with socket.create_connection(address, 3) as there:
                there.sendall(len(request).to_bytes(4, "big") + request)
                if not there.recv(4):
                    raise OSError("closed without an answer")
    except OSError as fault:
        failed.append((time.time(), place, str(fault)))
print(json.dumps([asked, failed]))
"""


def cluster(box: CloudBox, **settings: Any) -> dict[str, Any]:
    """Brokers that clients outside reach by the balancer alone."""
    address = {"strategy": "port", "base_port": BASE}
    listeners = [
        {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
        {"name": "EXTERNAL", "port": PORT, "scopes": ["external"], "address": address},
    ]
    balancer_settings = {
        "listeners": listeners,
        "place": "private",
        "expose": {"scheme": "internet"},
    }
    return box.cluster(len(IDS), **{**balancer_settings, **settings})


@dataclass
class BalancerStack:
    box: CloudBox
    stack: BoxStack
    laptop: Place
    """A place outside, where clients know the balancer only."""

    @property
    def name(self) -> str:
        """The balancer's."""
        (balancer,) = self.box.moto_state().balancers
        return balancer.balancer.name

    def examine(self, folder: Path) -> Report:
        """The report of `earshot doctor` from outside."""
        contract = folder / "contract.json"
        outside = self.stack.contract().listener("EXTERNAL").scopes[0]
        contract.write_text(self.stack.contract().for_scope(outside).to_json())
        words = ["doctor", "--contract", str(contract), "--format", "json"]
        command = self.laptop.command(sys.executable, "-m", "earshot", *words)
        completed = subprocess.run(command, capture_output=True, text=True, timeout=180)
        assert completed.returncode in (0, 1), completed.stderr
        return read_report(completed.stdout.encode(), "doctor")

    def result_of_silence(self, port: int, seconds: float) -> str:
        """The end of a connection without traffic."""
        words = [sys.executable, "-c", SILENT, self.name, str(port), str(seconds)]
        completed = subprocess.run(self.laptop.command(*words), capture_output=True, text=True)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout.strip()

    @contextlib.contextmanager
    def requests_counted(self, port: int) -> Iterator[list[Any]]:
        """Asks whatever broker ``port`` leads to, all the time; how often, and by the end every
        failure with its time, the balancer's address and the error."""
        words = self.laptop.command(sys.executable, "-c", ASKS, self.name, str(port))
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        request_counts: list[Any] = []
        with subprocess.Popen(words, text=True, **pipes) as process:
            yield request_counts
            request_counts += json.loads(process.communicate(timeout=30)[0])

    def addresses(self) -> dict[int, str]:
        """The private addresses of the brokers, by id."""
        address_by_name = {
            machine.name: machine.private for machine in self.box.moto_state().machines.values()
        }
        return {id: address_by_name[f"test-broker-{id}"] for id in IDS}

    def peers(self, id: int) -> set[str]:
        """The addresses that are connected to the listener of broker ``id`` behind the balancer."""
        words = ("ss", "--no-header", "--numeric", "--tcp", f"sport = :{PORT}")
        socket_lines = self.box.instances()[f"test-broker-{id}"].run(*words)
        ends = [line.split()[-1].rpartition(":")[0] for line in socket_lines.splitlines()]
        return {end.strip("[]").rpartition(":")[2] for end in ends}

    def until(self, id: int, state: str) -> float:
        """The seconds until the balancer calls broker ``id`` so, on its port and the bootstrap."""
        start_time, address = time.monotonic(), self.addresses()[id]
        while any(self.box.balancers.health(port)[address] != state for port in (BASE, BASE + id)):
            assert time.monotonic() - start_time < TURN_SECONDS, f"broker {id} is not {state}"
            time.sleep(0.2)
        return time.monotonic() - start_time


@pytest.fixture(scope="module")
def balanced(box: CloudBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BalancerStack]:
    folder = tmp_path_factory.mktemp("balanced")
    stack = box.stack(folder / "stack")
    stack.configure(cluster(box))
    stack.up()
    with box.place("outside") as laptop:
        yield BalancerStack(box, stack, laptop)
    stack.destroy()


def test_private_brokers_are_proved_from_both_sides(
    balanced: BalancerStack, tmp_path: Path
) -> None:
    assert not any(machine.elastic for machine in balanced.box.moto_state().machines.values())
    sides = (("internal", "INTERNAL"), ("external", "EXTERNAL"))
    report = balanced.stack.validate(tmp_path)
    assert passed_cells(report) == {(*side, id) for side in sides for id in IDS}
    advertised = {
        cell.broker: str(cell.address) for cell in report.cells if cell.listener == "EXTERNAL"
    }
    assert advertised == {id: f"{balanced.name}:{BASE + id}" for id in IDS}
    assert failures(balanced.examine(tmp_path)) == {}
    assert "unchanged" in balanced.stack.up("--expect-no-changes")


def test_only_the_balancer_reaches_a_broker_and_only_clients_reach_the_balancer(
    balanced: BalancerStack,
) -> None:
    box = balanced.box
    assert balanced.laptop.opens(balanced.name, BASE + 1)
    with box.place("outside", box.stranger) as stranger, box.place("inside") as inside:
        assert not stranger.opens(balanced.name, BASE + 1)
        assert not inside.opens(balanced.addresses()[1], PORT)
    open_connection = f"exec 3<>/dev/tcp/{balanced.name}/{BASE + 1}; sleep 600"
    with subprocess.Popen(balanced.laptop.command("bash", "-c", open_connection)) as client:
        end = time.monotonic() + TURN_SECONDS
        while not (peers := balanced.peers(1)):
            assert time.monotonic() < end
        client.kill()
    (forwarding,) = box.moto_state().balancers
    assert peers <= {*forwarding.balancer.private}, "of which one holds the client's connection"


def test_crossed_targets_are_named(balanced: BalancerStack, tmp_path: Path) -> None:
    elb, addresses = balanced.box.server.client("elbv2"), balanced.addresses()
    (forwarding,) = balanced.box.moto_state().balancers
    right_target, wrong_target = ([{"Id": addresses[id], "Port": PORT}] for id in (2, 3))
    group = forwarding.ports[BASE + 2].arn
    for old_target, new_target in ((right_target, wrong_target), (wrong_target, right_target)):
        elb.register_targets(TargetGroupArn=group, Targets=new_target)
        elb.deregister_targets(TargetGroupArn=group, Targets=old_target)
        balanced.box.settle()
        time.sleep(2)  # for the rules
        expected = {2: (Stage.METADATA, "misrouted")} if new_target is wrong_target else {}
        assert failures(balanced.examine(tmp_path)) == expected


def test_a_target_that_is_down_is_named_and_the_bootstrap_avoids_it(
    balanced: BalancerStack, tmp_path: Path
) -> None:
    broker = balanced.box.instances()["test-broker-3"]
    broker.run("systemctl", "stop", "kafka")
    balanced.until(3, "unhealthy")
    assert failures(balanced.examine(tmp_path)) == {3: (Stage.TCP, "refused")}
    for _ in range(2 * len(IDS)):
        assert balanced.laptop.opens(balanced.name, BASE)
    broker.run("systemctl", "start", "kafka")
    balanced.until(3, "healthy")
    assert failures(balanced.examine(tmp_path)) == {}


def test_a_time_out_shorter_than_the_clients_silence_cuts_them_off(balanced: BalancerStack) -> None:
    assert balanced.result_of_silence(BASE + 1, 5) == "open"
    balanced.stack.configure(
        cluster(balanced.box, expose={"scheme": "internet", "idle_seconds": LEAST_IDLE})
    )
    output = balanced.stack.up()
    assert "KL025" in output and f"drops them after {LEAST_IDLE} s without traffic" in output
    balanced.box.settle()
    time.sleep(2)
    assert balanced.result_of_silence(BASE + 1, LEAST_IDLE - 10) == "open"
    assert balanced.result_of_silence(BASE + 1, LEAST_IDLE + 5) == "reset"


def test_no_broker_is_touched_before_the_target_of_the_last_is_healthy(
    balanced: BalancerStack, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    box, addresses = balanced.box, balanced.addresses()
    client = tmp_path / "client.json"
    servers = ",".join(f"{balanced.name}:{BASE + id}" for id in IDS)
    client.write_text(json.dumps({"bootstrap.servers": servers}))
    balanced.stack.configure(cluster(box, heap="300m"))
    update_start = time.time()
    with (
        DistantProducer(balanced.laptop.command, client, "rolled") as producer,
        balanced.requests_counted(BASE) as request_counts,
    ):
        balanced.stack.up()
    events = [
        *((change.when, change.action, change.name) for change in box.fleet.power_changes),
        *(
            (health_change.when, health_change.state, health_change.address)
            for health_change in box.balancers.health_changes
        ),
    ]
    names = {address: f"test-broker-{id}" for id, address in addresses.items()}
    assert request_counts[0] > 0 and request_counts[1] == [], (
        f"a broker that is away was asked; {events}"
    )
    story = [
        (action, names.get(broker, broker))
        for when, action, broker in sorted(events)
        if when > update_start
    ]
    assert [broker for action, broker in story if action == "off"] == sorted(names.values())
    failed_checks = Counter[str]()  # a broker may be back before two checks have failed
    for action, broker in story:
        # in the bootstrap's group a target is new, and no more than healthy
        failed_checks[broker] = max(
            0, failed_checks[broker] + {"unhealthy": 1, "healthy": -1}.get(action, 0)
        )
        assert action != "off" or not any(failed_checks.values()), story
    assert producer.failed == [] and len(producer.acknowledged) == producer.sent > 0
    assert_all_read(producer.acknowledged, producer.records)
    record_property(
        MEASURED,
        f"producer through a balancer, three instances replaced: {producer.sent} records "
        f"acknowledged, none lost; longest time without an acknowledgement "
        f"{longest_wait(producer.acknowledged):.2f} s",
    )
