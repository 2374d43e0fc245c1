"""Every option with every naming, and what else depends on them, in a box: `make test-box`.

Not collected by itself, for it takes minutes; what every run shows is in `tests/e2e/test_box*.py`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from earshot.listeners.terms import Scope
from earshot.report.json import read_report
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.stack import OPTION_1, passed_cells

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

OPTION_2: dict[str, Any] = {}
SIDES = {
    "option 1": (OPTION_1, {("internal", "PLAINTEXT"), ("external", "PLAINTEXT")}),
    "option 2": (OPTION_2, {("internal", "INTERNAL"), ("external", "EXTERNAL")}),
}
IDS = (1, 2, 3)


@pytest.mark.parametrize("naming", ["aws", "zone"])
@pytest.mark.parametrize("option", SIDES)
def test_it_is_proved_from_both_sides(
    box: CloudBox, tmp_path: Path, option: str, naming: str
) -> None:
    settings, sides = SIDES[option]
    stack = box.stack(tmp_path / "stack")
    stack.configure(box.cluster(3, **settings, **naming_settings(box, naming)))
    stack.up()
    assert passed_cells(stack.validate(tmp_path)) == {(*side, id) for side in sides for id in IDS}
    assert "unchanged" in stack.up("--expect-no-changes")
    stack.destroy()
    box.settle()
    assert box.fleet.remaining == []


def naming_settings(box: CloudBox, naming: str) -> dict[str, Any]:
    if naming == "aws":
        return {}
    zone = {"name": "kafka.example.com", "public_zone_id": box.public_zone("example.com")}
    return {"naming": "zone", "zone": zone}


def test_controllers_of_their_own_in_private_subnets(box: CloudBox, tmp_path: Path) -> None:
    stack = box.stack(tmp_path / "stack")
    apart = {"mode": "separate", "count": 3, "port": 29092}
    stack.configure(box.cluster(1, controllers=apart, controller_volume={"size_gib": 1}))
    stack.up()
    machines = box.moto_state().machines.values()
    assert sorted(bool(machine.elastic) for machine in machines) == [False, False, False, True]
    _, sides = SIDES["option 2"]
    assert passed_cells(stack.validate(tmp_path)) == {(*side, 1) for side in sides}
    stack.destroy()


def test_one_listener_for_both_sides_proved_by_the_update_too(
    box: CloudBox, tmp_path: Path
) -> None:
    """The update itself runs outside, as on a laptop: `prove: here`."""
    with box.place("outside") as laptop:
        stack = box.stack(tmp_path / "stack", laptop)
        stack.configure(box.cluster(**OPTION_1, prove="here"))
        stack.up()
        report = stack.validate(tmp_path)
        assert passed_cells(report) == {(side, "PLAINTEXT", 1) for side in ("internal", "external")}
        (advertised,) = {cell.address for cell in report.cells}
        assert advertised.host.startswith("ec2-"), "which inside is the private address"
        stack.destroy()


def test_names_of_a_zone_with_a_split_horizon(box: CloudBox, tmp_path: Path) -> None:
    public = box.public_zone("example.com")
    zone = {"name": "kafka.example.com", "public_zone_id": public}
    stack = box.stack(tmp_path / "stack")
    stack.configure(box.cluster(2, naming="zone", zone=zone))
    stack.up()
    sides = {("internal", "INTERNAL"), ("external", "EXTERNAL")}
    assert passed_cells(stack.validate(tmp_path)) == {
        (*side, id) for side in sides for id in (1, 2)
    }

    name = "broker-2.kafka.example.com"
    broker = next(
        machine for machine in box.moto_state().machines.values() if machine.name == "test-broker-2"
    )
    route53 = box.server.client("route53")
    other_record = {"Name": "other.kafka.example.com", "Type": "A", "TTL": 60}
    change = {"ResourceRecordSet": {**other_record, "ResourceRecords": [{"Value": "198.18.0.1"}]}}
    with box.place("inside") as inside, box.place("outside") as outside:
        assert inside.lookup(name) == [broker.private]
        assert outside.lookup(name) == [broker.elastic]
        for action, expected_addresses in (("CREATE", ["198.18.0.1"]), ("DELETE", [])):
            route53.change_resource_record_sets(
                HostedZoneId=public, ChangeBatch={"Changes": [{"Action": action, **change}]}
            )
            assert inside.lookup("other.kafka.example.com") == [], "the private zone hides it"
            assert outside.lookup("other.kafka.example.com") == expected_addresses
    stack.destroy()


def test_an_internal_balancer_with_a_name_of_the_zone(box: CloudBox, tmp_path: Path) -> None:
    """Its clients are in a range of the VPC without brokers, as behind a peering."""
    address = {"strategy": "port", "base_port": 9100}
    listeners = [
        {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
        {"name": "EXTERNAL", "port": 9094, "scopes": ["external"], "address": address},
    ]
    clients = {"ranges": {"apps": str(box.ground.vpc.clients)}}
    stack = box.stack(tmp_path / "stack")
    settings = {"listeners": listeners, "place": "private", "expose": "nlb", "clients": clients}
    stack.configure(box.cluster(2, **settings, **naming_settings(box, "zone")))
    stack.up()
    name, (forwarding,) = "kafka.kafka.example.com", box.moto_state().balancers
    contract = tmp_path / "contract.json"
    contract.write_text(stack.contract().for_scope(Scope.EXTERNAL).to_json())
    words = ["doctor", "--contract", str(contract), "--format", "json"]
    with box.place("inside") as apps, box.place("outside") as outside:
        for place in (apps, outside):
            assert sorted(place.lookup(name)) == sorted(forwarding.balancer.private)
        command = apps.command(sys.executable, "-m", "earshot", *words)
        completed = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    report = read_report(completed.stdout.encode(), "doctor")
    assert {str(cell.address) for cell in report.cells} == {f"{name}:910{id}" for id in (1, 2)}
    stack.destroy()
    box.settle()
    assert box.moto_state().balancers == ()
