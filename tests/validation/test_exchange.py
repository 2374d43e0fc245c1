"""One record to a broker and back, on librdkafka's mock cluster."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from earshot.validation.client import Failure, configuration
from earshot.validation.deadline import Deadline
from earshot.validation.diagnosis import Sent
from earshot.validation.exchange import PAYLOAD, consume, produce

RUN = "0a1b2c3d"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    producer = Producer({"test.mock.num.brokers": 3, "log_level": 0})
    brokers = producer.list_topics(timeout=5).brokers.values()
    yield ",".join(f"{item.host}:{item.port}" for item in brokers)


@pytest.fixture
def values(bootstrap: str) -> dict[str, object]:
    # the mock cluster creates topics on demand only
    return configuration(bootstrap, None, {}) | {"allow.auto.create.topics": True}


def test_a_record_goes_and_comes_back(values: dict[str, object]) -> None:
    for partition in (0, 1):
        sent = produce(values, "there-and-back", partition, {"run": RUN}, Deadline(10))
        assert isinstance(sent, Sent), sent
        assert sent.partition == partition and sent.latency_ms > 0
        back = consume(values, "there-and-back", sent, RUN, Deadline(10))
        assert isinstance(back, float), back


def test_a_record_of_another_run_is_not_taken_for_ours(values: dict[str, object]) -> None:
    sent = produce(values, "foreign", 0, {"run": "ffffffff"}, Deadline(10))
    assert isinstance(sent, Sent)
    back = consume(values, "foreign", sent, RUN, Deadline(10))
    assert isinstance(back, Failure) and back.error == "corrupt"
    assert "ffffffff" in back.text and RUN in back.text


def test_a_changed_record_is_corrupt(values: dict[str, object]) -> None:
    sent = produce(values, "changed", 0, {"run": RUN}, Deadline(10))
    assert isinstance(sent, Sent)
    other = replace(sent, checksum=zlib.crc32(b"x" * PAYLOAD))
    back = consume(values, "changed", other, RUN, Deadline(10))
    assert isinstance(back, Failure) and back.error == "corrupt"
    assert f"{sent.checksum:08x} came back" in back.text


def test_a_partition_nobody_leads_ends_with_the_deadline(values: dict[str, object]) -> None:
    sent = produce(values, "narrow", 99, {"run": RUN}, Deadline(1.0))
    assert isinstance(sent, Failure)


def test_a_record_that_is_not_there_ends_with_the_deadline(values: dict[str, object]) -> None:
    sent = produce(values, "short", 0, {"run": RUN}, Deadline(10))
    assert isinstance(sent, Sent)
    back = consume(values, "short", replace(sent, offset=sent.offset + 1), RUN, Deadline(0.5))
    assert isinstance(back, Failure) and back.error == "timeout"
