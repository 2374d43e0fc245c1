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
from tests.e2e.box.stack import RECORDS, passed
from tests.e2e.box.ways import BELIEVED_SECONDS

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def given(
    box: CloudBox, kafka_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OtherBrokers]:
    with others(box, kafka_image, tmp_path_factory.mktemp("others")) as made:
        yield made


def test_the_matrix_passes_from_every_vantage(given: OtherBrokers) -> None:
    for vantage, listener in (("vpc", INTERNAL), ("outside", EXTERNAL)):
        report = given.asked("validate", vantage, "--vantage", vantage, *RECORDS)
        assert passed(report) == {(vantage, listener, id) for id in IDS}
        assert {delivery.verdict for delivery in report.delivery} == {Verdict.PASS}
    seen = {cell.broker: str(cell.address) for cell in given.asked("doctor", "outside").cells}
    assert seen == {id: f"kafka.{PUBLIC}:{port}" for id, port in PORTS.items()}
    assert "unchanged" in given.project.up("--expect-no-changes")


@pytest.mark.parametrize(
    ("changes", "said"),
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
    given: OtherBrokers, changes: dict[str, Any], said: tuple[str, ...]
) -> None:
    output = given.refused(**changes)
    assert all(it in output for it in said), output


def test_a_port_that_leads_to_another_broker_or_to_none_is_named(given: OtherBrokers) -> None:
    with given.mapped(b2=3):
        assert given.failures("outside") == {2: (Stage.METADATA, "misrouted")}
    with given.mapped(b1=0):
        assert given.failures("outside") == {1: (Stage.TCP, "refused")}
    assert given.failures("outside") == {}


def test_a_record_that_leads_to_another_broker_is_named(given: OtherBrokers) -> None:
    for address, expected in (
        (given.addresses[3], {2: (Stage.METADATA, "misrouted")}),
        (given.addresses[2], {}),
    ):
        given.record(2, address)
        time.sleep(BELIEVED_SECONDS)
        assert given.failures("vpc") == expected


def test_brokers_that_have_not_taken_over_a_new_address_are_named(given: OtherBrokers) -> None:
    """The program says another port, and broker 2 was not restarted with it."""
    given.configure(given.inputs(b2=f"kafka.{PUBLIC}:30503"))
    given.project.up()
    assert given.failures("outside") == {2: (Stage.METADATA, "drift")}
    given.configure(given.inputs())
    given.project.up()
    assert given.failures("outside") == {}
