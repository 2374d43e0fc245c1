"""The project's own stacks on AWS, brought up in a box: real brokers from real user data.

Three brokers with a listener for each side are in `test_box_three_brokers.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.stack import OPTION_1, passed

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


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
        assert advertised.host.startswith("ec2-"), "which inside is the private address"
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
