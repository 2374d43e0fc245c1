"""Asking a validator through a bucket: waits, messages, and the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from earshot.errors import EarshotError
from earshot.listeners.address import read_address
from earshot.listeners.terms import Scope
from earshot.placement.standpoint import Kind, Standpoint
from earshot.remote.bucket import Bucket
from earshot.remote.instance import ask
from earshot.remote.orders import ORDER, STATUS, Status, answer_to, digest, read_order
from earshot.report.json import json
from earshot.spark.run import ValidationOptions
from earshot.validation.deadline import Deadline
from earshot.validation.result import Report, Vantage
from tests.remote.contracts import docker_contract
from tests.report import samples

CONTRACT = docker_contract(Scope.INTERNAL)
PLACE = Standpoint(
    name="internal", scope=Scope.INTERNAL, kind=Kind.INSTANCE, bucket="b", instance="i-1"
)


def answer(address: str = "internal.example:9092") -> str:
    cell = samples.cell("INTERNAL", 0, "internal")
    answer_cell = cell.model_copy(update={"listener": "BOB", "address": read_address(address)})
    vantages = [Vantage(name="internal", where="ip-10-0-0-9")]
    return json(samples.report([answer_cell], cluster="dev", vantages=vantages))


class BucketDouble:
    """A double of a bucket in memory. ``act`` is the validator's action at each look."""

    name = "b"

    def __init__(self, act: Callable[[BucketDouble, int], None] = lambda bucket, look: None):
        self.objects: dict[str, bytes] = {}
        self._act, self._looks = act, 0

    def get(self, key: str) -> bytes | None:
        if key == STATUS:
            self._looks += 1
            self._act(self, self._looks)
        return self.objects.get(key)

    def put(self, key: str, content: bytes) -> None:
        self.objects[key] = content

    @property
    def order(self) -> str:
        return self.objects[ORDER].decode()

    def answers(self, text: str) -> None:
        self.put(answer_to(self.order), text.encode())

    def put_status(
        self, state: str, detail: str = "", order: str = "", instance: str = "i-1"
    ) -> None:
        status = {"instance": instance, "state": state, "order": order, "detail": detail, "at": "-"}
        self.put(STATUS, Status.model_validate(status).model_dump_json().encode())


def ask_instance(bucket: BucketDouble, deadline: float = 30, end: Deadline | None = None) -> Report:
    options = ValidationOptions(records=7, deadline=deadline, incarnations={"1": "i-9"})
    messages: list[str] = []
    return ask(
        cast(Bucket, bucket), PLACE, CONTRACT, options, end or Deadline(1), messages.append, poll=0
    )


def test_the_order_says_what_to_prove_and_the_answer_is_of_elsewhere() -> None:
    bucket = BucketDouble(lambda bucket, look: bucket.answers(answer()) if look == 3 else None)
    report = ask_instance(bucket)
    stored_order = read_order(bucket.order, "order")
    assert (stored_order.contract, stored_order.vantage, stored_order.records) == (
        CONTRACT,
        "internal",
        7,
    )
    assert stored_order.incarnations == {"1": "i-9"}
    assert [(vantage.name, vantage.kind, vantage.where) for vantage in report.vantages] == [
        ("internal", "remote", "ip-10-0-0-9")
    ]


def test_an_answer_to_an_earlier_order_is_none() -> None:
    bucket = BucketDouble(lambda bucket, look: bucket.answers(answer()))
    ask_instance(bucket)
    bucket._act = lambda bucket, look: None
    with pytest.raises(EarshotError, match="did not answer within"):
        ask_instance(bucket, deadline=0.05)


def test_a_validator_that_gave_up_is_not_waited_for() -> None:
    def gives_up(bucket: BucketDouble, look: int) -> None:
        bucket.put_status("failed", "no Java", digest(bucket.order))

    with pytest.raises(EarshotError, match=r"cannot answer; last status: failed: no Java"):
        ask_instance(BucketDouble(gives_up), deadline=3600)


def test_what_another_instance_or_order_failed_at_is_no_reason_to_stop() -> None:
    def turns(bucket: BucketDouble, look: int) -> None:
        if look == 1:
            bucket.put_status("failed", "gone", instance="i-0")
        elif look == 2:
            bucket.put_status("failed", "old", order="of another time")
        else:
            bucket.answers(answer())

    assert ask_instance(BucketDouble(turns), deadline=3600).cells


@pytest.mark.parametrize(
    ("state", "reported"), [("", "none"), ("preparing", r"preparing: fetching \(i-1, -\)")]
)
def test_silence_is_reported_with_the_last_status(state: str, reported: str) -> None:
    bucket = BucketDouble()
    if state:
        bucket.put_status(state, "fetching")
    with pytest.raises(EarshotError, match=f"did not answer within 0 s; last status: {reported}"):
        ask_instance(bucket, deadline=0.001)


def test_an_interrupt_ends_the_wait() -> None:
    end = Deadline(3600)
    end.stop.set()
    with pytest.raises(EarshotError, match="did not answer"):
        ask_instance(BucketDouble(), deadline=3600, end=end)


@pytest.mark.parametrize(
    ("text", "error_pattern"),
    [
        (answer("elsewhere.example:9092"), r"has no cell for BOB of broker 0 \(internal.example"),
        ("{", "is not JSON"),
    ],
)
def test_an_answer_that_is_none_is_refused(text: str, error_pattern: str) -> None:
    with pytest.raises(EarshotError, match=error_pattern):
        ask_instance(BucketDouble(lambda bucket, look: bucket.answers(text)))
