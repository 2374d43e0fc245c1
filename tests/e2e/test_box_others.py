"""Brokers that others run, in a box: their names and ports are given by hand (strategy `given`).

The tests go on from each other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from earshot.validation.terms import Stage, Verdict
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.others import (
    EXTERNAL,
    IDS,
    INTERNAL,
    PORT,
    PORTS,
    PUBLIC,
    OtherBrokers,
    name_of,
    others,
)
from tests.e2e.box.stack import RECORDS, passed_cells
from tests.e2e.box.ways import BELIEVED_SECONDS

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def other_brokers(
    box: CloudBox, kafka_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OtherBrokers]:
    with others(box, kafka_image, tmp_path_factory.mktemp("others")) as new_brokers:
        yield new_brokers


def test_the_matrix_passes_from_every_vantage(other_brokers: OtherBrokers) -> None:
    for vantage, listener in (("vpc", INTERNAL), ("outside", EXTERNAL)):
        report = other_brokers.report_at("validate", vantage, "--vantage", vantage, *RECORDS)
        assert passed_cells(report) == {(vantage, listener, id) for id in IDS}
        assert {delivery.verdict for delivery in report.delivery} == {Verdict.PASS}
    address_by_broker = {
        cell.broker: str(cell.address)
        for cell in other_brokers.report_at("doctor", "outside").cells
    }
    assert address_by_broker == {id: f"kafka.{PUBLIC}:{port}" for id, port in PORTS.items()}
    assert "unchanged" in other_brokers.project.up("--expect-no-changes")


@pytest.mark.parametrize(
    ("changes", "error_parts"),
    [
        ({"b3": ""}, ("has no address for broker 3",)),
        ({"b3": f"kafka.{PUBLIC}:{PORTS[2]}"}, ("KL004", f"kafka.{PUBLIC}:{PORTS[2]}")),
        ({"b3": "kafka.nowhere.test:443"}, ("KL011", "kafka.nowhere.test")),
        ({"b3": f"{name_of(3)}:{PORT}"}, ("KL011", name_of(3))),  # a name of the VPC alone
        ({"b3": "localhost:443"}, ("KL003", "localhost")),
        ({"b3": "kafka.others.test:70000"}, ("70000",)),
        # one name for all is no broker's own, unless something forwards it
        ({"path": False}, ("KL012", f"kafka.{PUBLIC}")),
    ],
)
def test_addresses_that_cannot_work_are_refused_in_the_preview(
    other_brokers: OtherBrokers, changes: dict[str, Any], error_parts: tuple[str, ...]
) -> None:
    output = other_brokers.refusal(**changes)
    assert all(error_part in output for error_part in error_parts), output


def test_a_port_that_leads_to_another_broker_or_to_none_is_named(
    other_brokers: OtherBrokers,
) -> None:
    with other_brokers.with_ports(b2=3):
        assert other_brokers.failures("outside") == {2: (Stage.METADATA, "misrouted")}
    with other_brokers.with_ports(b1=0):
        assert other_brokers.failures("outside") == {1: (Stage.TCP, "refused")}
    assert other_brokers.failures("outside") == {}


def test_a_record_that_leads_to_another_broker_is_named(other_brokers: OtherBrokers) -> None:
    for address, expected in (
        (other_brokers.addresses[3], {2: (Stage.METADATA, "misrouted")}),
        (other_brokers.addresses[2], {}),
    ):
        other_brokers.record(2, address)
        time.sleep(BELIEVED_SECONDS)
        assert other_brokers.failures("vpc") == expected


def test_brokers_that_have_not_taken_over_a_new_address_are_named(
    other_brokers: OtherBrokers,
) -> None:
    """The program has another port, and broker 2 was not restarted with it."""
    other_brokers.configure(other_brokers.inputs(b2=f"kafka.{PUBLIC}:30503"))
    other_brokers.project.up()
    assert other_brokers.failures("outside") == {2: (Stage.METADATA, "drift")}
    other_brokers.configure(other_brokers.inputs())
    other_brokers.project.up()
    assert other_brokers.failures("outside") == {}
