"""One record to a broker and back, on librdkafka's mock cluster."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from earshot.doctor import exchange
from earshot.doctor.diagnosis import Sent
from earshot.doctor.exchange import PAYLOAD, consume, produce
from earshot.validation.client import Failure, configuration
from earshot.validation.deadline import Deadline

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
        # the second record: the first one is not timed
        assert (sent.partition, sent.offset) == (partition, 1) and sent.latency_ms > 0
        back = consume(values, "there-and-back", sent, RUN, Deadline(10))
        assert isinstance(back, float), back


def test_a_record_of_another_run_is_not_taken_for_ours(values: dict[str, object]) -> None:
    sent = produce(values, "foreign", 0, {"run": "ffffffff"}, Deadline(10))
    assert isinstance(sent, Sent)
    back = consume(values, "foreign", sent, RUN, Deadline(10))
    assert isinstance(back, Failure) and back.error == "corrupt"
    assert back.text == f"offset {sent.offset} holds a record of run b'ffffffff', not {RUN}"


def test_a_changed_record_is_corrupt(values: dict[str, object]) -> None:
    sent = produce(values, "changed", 0, {"run": RUN}, Deadline(10))
    assert isinstance(sent, Sent)
    other = replace(sent, checksum=zlib.crc32(b"x" * PAYLOAD))
    back = consume(values, "changed", other, RUN, Deadline(10))
    assert isinstance(back, Failure) and back.error == "corrupt"
    assert back.text == (f"checksum {sent.checksum:08x} came back, {other.checksum:08x} was sent")


def test_a_partition_nobody_leads_ends_with_the_deadline(values: dict[str, object]) -> None:
    sent = produce(values, "narrow", 99, {"run": RUN}, Deadline(1.0))
    assert isinstance(sent, Failure)


def test_a_record_that_is_not_there_ends_with_the_deadline(values: dict[str, object]) -> None:
    sent = produce(values, "short", 0, {"run": RUN}, Deadline(10))
    assert isinstance(sent, Sent)
    back = consume(values, "short", replace(sent, offset=sent.offset + 1), RUN, Deadline(0.5))
    assert isinstance(back, Failure) and back.error == "timeout"


@pytest.mark.parametrize(("seconds", "taken"), [(0.5, True), (5.0, False)])
def test_a_first_record_counts_where_no_time_is_left_for_a_second(
    values: dict[str, object], monkeypatch: pytest.MonkeyPatch, seconds: float, taken: bool
) -> None:
    first = Sent(0, 0, 12.5, 7)
    answers = iter([first, None])
    monkeypatch.setattr(exchange, "_send", lambda *given: next(answers))
    found = produce(values, "late", 0, {"run": RUN}, Deadline(seconds))
    assert (found == first) is taken
    assert taken or (isinstance(found, Failure) and found.error == "timeout")


class HastyDouble:
    """A producer whose records have no time and no offset when they are acknowledged."""

    def __init__(self, values: object) -> None:
        pass

    def list_topics(self, topic: str, timeout: float) -> object:
        partitions = {3: SimpleNamespace(leader=0)}
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=partitions)})

    def produce(self, topic: str, value: bytes, **rest: Any) -> None:
        self.checksum = dict(rest["headers"])["checksum"]
        assert len(value) == PAYLOAD and str(zlib.crc32(value)) == self.checksum
        self._acknowledged = rest["on_delivery"]

    def poll(self, seconds: float) -> None:
        self._acknowledged(None, SimpleNamespace(latency=lambda: None, offset=lambda: None))

    def purge(self) -> None:
        pass


def test_what_librdkafka_does_not_say_is_nought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "Producer", HastyDouble)
    sent = produce({}, "t", 3, {"run": RUN}, Deadline(5))
    assert isinstance(sent, Sent)
    assert (sent.partition, sent.offset, sent.latency_ms) == (3, 0, 0.0)


class LatecomerDouble:
    """A consumer that may not see its group, and gets no record in time."""

    def __init__(self, values: object) -> None:
        self._events = iter([KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._ALL_BROKERS_DOWN])

    def assign(self, partitions: object) -> None:
        pass

    def poll(self, seconds: float) -> object:
        code = next(self._events, None)
        return code and SimpleNamespace(error=lambda: KafkaError(code))

    def close(self) -> None:
        pass


def test_the_consumers_group_keeps_no_record_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "Consumer", LatecomerDouble)
    back = consume({}, "t", Sent(0, 0, 1.0, 0), RUN, Deadline(0.1))
    assert back == Failure("timeout", "the record did not come back in time")


def test_what_keeps_a_record_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(LatecomerDouble):
        def __init__(self, values: object) -> None:
            codes = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._TIMED_OUT)
            self._events = iter([KafkaError.GROUP_AUTHORIZATION_FAILED, *codes])

    monkeypatch.setattr(exchange, "Consumer", Refused)
    back = consume({}, "t", Sent(0, 0, 1.0, 0), RUN, Deadline(0.1))
    assert isinstance(back, Failure) and back.error == "authorization"


def test_a_time_out_tells_what_the_client_ran_into() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        values = configuration(f"127.0.0.1:{nobody.getsockname()[1]}", None, {})
        found = produce(values, "t", 0, {"run": RUN}, Deadline(1.0))
    assert isinstance(found, Failure) and found.error == "refused"
