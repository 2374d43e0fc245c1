"""The project's own stacks on AWS, brought up in a box: real brokers from real user data."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.box.cloud_box import CloudBox, cloud_box
from tests.e2e.box.stack import OPTION_1, passed
from tests.e2e.docker_engine import Engine

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def box(
    docker_engine: Engine, client_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CloudBox]:
    with cloud_box(docker_engine, tmp_path_factory.mktemp("box")) as made:
        yield made
    for kind in (("ps", "--all"), ("network", "ls")):
        assert docker_engine.run(*kind, "--quiet", "--filter", f"name={made.mark}") == ""


def loop_devices() -> str:
    return subprocess.run(["losetup", "--list"], check=True, capture_output=True, text=True).stdout


def test_three_brokers_with_a_listener_for_each_side(box: CloudBox, tmp_path: Path) -> None:
    before = box.server.holdings()
    stack = box.stack(tmp_path / "stack")
    stack.configure(box.cluster(3))
    stack.up()
    running = {it.name: it for it in box.held().machines.values()}
    assert set(running) == {f"test-broker-{id}" for id in (1, 2, 3)}

    report = stack.validate(tmp_path)
    sides = {("internal", "INTERNAL"), ("external", "EXTERNAL")}
    assert passed(report) == {(*side, id) for side in sides for id in (1, 2, 3)}

    assert "unchanged" in stack.up("--expect-no-changes")
    assert {it.name: it for it in box.held().machines.values()} == running

    only_who_is_meant_comes_in(box, stack.project.outputs()["names"]["2"])
    disks = [str(box.fleet.disk(id).device) for it in running.values() for id in it.volumes]
    assert len(disks) == 3 and all(device in loop_devices() for device in disks)

    stack.destroy()
    box.settle()
    assert box.server.holdings() == before
    assert box.fleet.left == []
    assert not any(device in loop_devices() for device in disks)


def only_who_is_meant_comes_in(box: CloudBox, names: dict[str, str]) -> None:
    """Names mean on each side what they should, and the groups let in whom they name."""
    broker = next(it for it in box.held().machines.values() if it.name == "test-broker-2")
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


def test_one_listener_for_both_sides_proved_by_the_update_too(
    box: CloudBox, tmp_path: Path
) -> None:
    """The update itself is run from outside, as from a laptop: `prove: here`."""
    with box.place("outside") as laptop:
        stack = box.stack(tmp_path / "stack", laptop)
        stack.configure(box.cluster(**OPTION_1, prove="here"))
        stack.up()
        report = stack.validate(tmp_path)
        assert passed(report) == {(side, "PLAINTEXT", 1) for side in ("internal", "external")}
        (advertised,) = {it.address for it in report.cells}
        assert advertised.startswith("ec2-"), "which inside is the private address"
        stack.destroy()


def test_names_of_a_zone_with_a_split_horizon(box: CloudBox, tmp_path: Path) -> None:
    public = box.public_zone("example.com")
    zone = {"name": "kafka.example.com", "public_zone_id": public}
    stack = box.stack(tmp_path / "stack")
    stack.configure(box.cluster(2, naming="zone", zone=zone))
    stack.up()
    sides = {("internal", "INTERNAL"), ("external", "EXTERNAL")}
    assert passed(stack.validate(tmp_path)) == {(*side, id) for side in sides for id in (1, 2)}

    name = "broker-2.kafka.example.com"
    broker = next(it for it in box.held().machines.values() if it.name == "test-broker-2")
    route53 = box.server.client("route53")
    other = {"Name": "other.kafka.example.com", "Type": "A", "TTL": 60}
    change = {"ResourceRecordSet": {**other, "ResourceRecords": [{"Value": "198.18.0.1"}]}}
    with box.place("inside") as inside, box.place("outside") as outside:
        assert inside.lookup(name) == [broker.private]
        assert outside.lookup(name) == [broker.elastic]
        for action, found in (("CREATE", ["198.18.0.1"]), ("DELETE", [])):
            route53.change_resource_record_sets(
                HostedZoneId=public, ChangeBatch={"Changes": [{"Action": action, **change}]}
            )
            assert inside.lookup("other.kafka.example.com") == [], "the private zone hides it"
            assert outside.lookup("other.kafka.example.com") == found
    stack.destroy()
