"""Records to brokers and back, on librdkafka's mock cluster."""

import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from earshot.doctor import exchange
from earshot.doctor.asking import ReachableAddress, fetched
from earshot.doctor.exchange import (
    LARGE_LOST,
    LARGE_PAYLOAD,
    PAYLOAD,
    UNDECIDED,
    Destination,
)
from earshot.doctor.observation import SentRecord
from earshot.listeners.address import Address, read_address
from earshot.validation.client import Failure, configuration
from earshot.validation.deadline import Deadline
from earshot.validation.wire import find_coordinator, negotiate_versions
from tests.doubles.closed_port import closed_port

RUN = "0a1b2c3d"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    producer = Producer({"test.mock.num.brokers": 3, "log_level": 0})
    brokers = producer.list_topics(timeout=60).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)


@pytest.fixture
def values(bootstrap: str) -> dict[str, object]:
    # the mock cluster creates topics on demand only
    return configuration(bootstrap, None, {}) | {"allow.auto.create.topics": True}


def address(bootstrap: str, broker: int = 0) -> Address:
    return read_address(bootstrap.split(",")[broker])


def leader_of(values: dict[str, object], topic: str, partition: int) -> Address:
    """The address of the partition's leader; the mock cluster creates the topic."""
    producer = Producer(dict(values))
    while True:
        metadata = producer.list_topics(topic, timeout=60)
        if partitions := metadata.topics[topic].partitions:
            leader = metadata.brokers[partitions[partition].leader]
            return Address(str(leader.host), int(leader.port or 0))
        time.sleep(0.01)


def sent_to(
    values: dict[str, object], topic: str, *partitions: int, run: str = RUN
) -> dict[int, SentRecord | Failure]:
    places = [Destination(it, leader_of(values, topic, it), {"run": run}) for it in partitions]
    return dict(exchange.produce(values, topic, places, Deadline(60)))


def one_sent(values: dict[str, object], topic: str, run: str = RUN) -> SentRecord:
    sent = sent_to(values, topic, 0, run=run)[0]
    assert isinstance(sent, SentRecord), sent
    return sent


def read_back(
    values: dict[str, object], topic: str, *records: SentRecord
) -> dict[int, float | Failure]:
    places = [(address(str(values["bootstrap.servers"])), record) for record in records]
    return dict(exchange.consume(values, topic, places, RUN, Deadline(60)))


def test_records_go_and_come_back(values: dict[str, object]) -> None:
    sent = sent_to(values, "there-and-back", 0, 1, 2)
    assert sent.keys() == {0, 1, 2}
    records = [it for it in sent.values() if isinstance(it, SentRecord)]
    assert sorted(it.partition for it in records) == [0, 1, 2]
    # the first record of each is not timed
    assert all(record.offset >= 1 and record.latency_ms > 0 for record in records)
    back = read_back(values, "there-and-back", *records)
    assert back.keys() == {0, 1, 2} and all(isinstance(it, float) for it in back.values())


def test_a_record_of_another_run_is_not_taken_for_ours(values: dict[str, object]) -> None:
    sent = one_sent(values, "foreign", run="ffffffff")
    reported = f"offset {sent.offset} holds a record of run b'ffffffff', not {RUN}"
    assert read_back(values, "foreign", sent) == {0: Failure("corrupt", reported)}


def test_a_changed_record_is_corrupt(values: dict[str, object]) -> None:
    sent = one_sent(values, "changed")
    other = replace(sent, value=b"x" * PAYLOAD)
    checksums = f"checksum {zlib.crc32(sent.value):08x} came back, {zlib.crc32(other.value):08x}"
    reported = f"{checksums} was sent"
    assert read_back(values, "changed", other) == {0: Failure("corrupt", reported)}


def test_only_a_partition_without_a_leader_times_out(values: dict[str, object]) -> None:
    leader, end = leader_of(values, "narrow", 0), Deadline(60)
    places = [Destination(partition, leader, {"run": RUN}) for partition in (99, 0)]
    outcomes = exchange.produce(values, "narrow", places, end)
    partition, record = next(outcomes)
    assert partition == 0 and isinstance(record, SentRecord)
    end.stop.set()
    ((partition, failure),) = outcomes
    assert partition == 99 and isinstance(failure, Failure)


def test_only_a_missing_record_times_out(values: dict[str, object]) -> None:
    first, second = (
        record
        for record in sent_to(values, "short", 0, 1).values()
        if isinstance(record, SentRecord)
    )
    assert first.large is not None
    missing = replace(first, offset=first.large.offset + 1)
    leader, end = address(str(values["bootstrap.servers"])), Deadline(60)
    outcomes = exchange.consume(values, "short", [(leader, missing), (leader, second)], RUN, end)
    partition, seconds = next(outcomes)
    assert partition == second.partition and isinstance(seconds, float)
    end.stop.set()
    ((partition, failure),) = outcomes
    assert partition == first.partition
    assert isinstance(failure, Failure) and failure.error == "timeout"


class SlowDouble:
    """A producer whose records are acknowledged when it is told to, and then without a time."""

    takes = 2
    leader = 1

    def __init__(self, values: object) -> None:
        self.acknowledged = 0

    def list_topics(self, topic: str, timeout: float) -> object:
        partitions = {3: SimpleNamespace(leader=self.leader)}
        brokers = {1: SimpleNamespace(host="b", port=9092), 2: SimpleNamespace(host="c", port=9092)}
        topics = {topic: SimpleNamespace(partitions=partitions)}
        return SimpleNamespace(topics=topics, brokers=brokers)

    def produce(self, topic: str, value: bytes, **rest: Any) -> None:
        self.checksum = dict(rest["headers"])["checksum"]
        assert str(zlib.crc32(value)) == self.checksum
        self.is_large = len(value) == LARGE_PAYLOAD
        assert self.is_large or len(value) == PAYLOAD
        self._on_delivery = rest["on_delivery"]

    def poll(self, seconds: float) -> None:
        if self.acknowledged < self.takes:
            self.acknowledge(None, self.acknowledged or None)
        else:
            time.sleep(0.01)

    def acknowledge(
        self, latency: float | None, offset: int | None, error: KafkaError | None = None
    ) -> None:
        self.acknowledged += 1
        message = SimpleNamespace(latency=lambda: latency, offset=lambda: offset)
        self._on_delivery(error, message)

    def purge(self) -> None:
        pass


def produced(
    double: type[SlowDouble], monkeypatch: pytest.MonkeyPatch, end: Deadline | None = None
) -> SentRecord | Failure:
    """The outcome of a record to partition 3 through ``double``."""
    monkeypatch.setattr(exchange, "Producer", double)
    place = Destination(3, Address("b", 9092), {"run": RUN})
    ((partition, record),) = exchange.produce({}, "t", [place], end or Deadline(60))
    assert partition == 3
    return record


@pytest.mark.parametrize(
    ("leader", "text"),
    [
        (2, "the cluster has c:9092 lead partition 3, which was placed here"),
        (7, "a record was acknowledged, but the metadata has no leader of partition 3"),
    ],
)
def test_a_record_that_another_broker_may_have_proves_nothing(
    leader: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(SlowDouble):
        def poll(self, seconds: float) -> None:
            if hasattr(self, "_on_delivery"):
                super().poll(seconds)

    monkeypatch.setattr(Elsewhere, "leader", leader)
    monkeypatch.setattr(exchange, "STAGE_LIMIT", 1.5)
    outcome = produced(Elsewhere, monkeypatch)
    assert isinstance(outcome, Failure) and outcome.error == UNDECIDED
    assert outcome.text.startswith(text)


def test_a_leader_that_the_metadata_has_only_after_the_record_proves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Late(SlowDouble):
        leader = 7

        def poll(self, seconds: float) -> None:
            if hasattr(self, "_on_delivery"):
                self.leader = 1
                super().poll(seconds)

    monkeypatch.setattr(exchange, "STAGE_LIMIT", 1.5)
    assert isinstance(produced(Late, monkeypatch), SentRecord)


def test_what_librdkafka_does_not_say_is_nought(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hasty(SlowDouble):
        def poll(self, seconds: float) -> None:
            self.acknowledge(None, None)

    sent = produced(Hasty, monkeypatch)
    assert isinstance(sent, SentRecord)
    assert (sent.partition, sent.offset, sent.latency_ms) == (3, 0, 0.0)
    assert sent.large is not None and sent.large.offset == 0


@pytest.mark.parametrize(
    ("seconds", "counts"),
    [
        ([0.001, 0.003], 1),
        ([0.2, 0.137, 0.004, 0.001], 2),
        ([0.3, 0.05, 0.02, 0.04, 0.03, 0.001], 2),
        ([0.3, 0.05, 0.04, 0.03, 0.02, 0.001], 4),
        ([0.001, 0.0101, 0.2, 0.2, 0.2], 1),
        ([0.001, 0.01, 0.005], 2),
    ],
)
def test_quickest_record(
    seconds: list[float], counts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once one is quick, or there were enough, no more are sent."""

    class Timed(SlowDouble):
        def poll(self, _: float) -> None:
            latency = 9.0 if self.is_large else seconds[self.acknowledged]
            self.acknowledge(latency, self.acknowledged)

    sent = produced(Timed, monkeypatch)
    assert isinstance(sent, SentRecord) and sent.offset == counts
    assert sent.large is not None and sent.large.offset > counts
    assert sent.latency_ms == pytest.approx(1000 * seconds[counts])


def test_a_further_record_that_is_refused_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)

    class Refusing(SlowDouble):
        def poll(self, _: float) -> None:
            self.acknowledge(1.0, 0, refused if self.acknowledged == 2 else None)

    failure = produced(Refusing, monkeypatch)
    assert isinstance(failure, Failure) and failure.error == "authorization"


@pytest.mark.parametrize(("untimed", "taken"), [(60.0, True), (0.0, False)])
def test_a_first_record_counts_where_no_time_is_left_for_another(
    untimed: float, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = Deadline(60)

    class Once(SlowDouble):
        takes = 1

        def poll(self, seconds: float) -> None:
            if self.acknowledged == self.takes and not self.is_large:
                end.stop.set()
            self.takes += self.is_large
            super().poll(seconds)

    monkeypatch.setattr(exchange, "ANOTHER_RECORD_SECONDS", untimed)
    record = produced(Once, monkeypatch, end)
    assert isinstance(record, SentRecord) is taken
    assert taken or (isinstance(record, Failure) and record.error == "timeout")


class LargeDouble(SlowDouble):
    """A producer whose small records are acknowledged; the large one has the result ``error``."""

    error: int | None = None

    def poll(self, seconds: float) -> None:
        if not self.is_large:
            self.acknowledge(0.001, 0)
        elif self.error is not None:
            self.acknowledge(None, None, KafkaError(self.error))
        else:
            time.sleep(0.01)


NOT_PASSED = "small records pass, a record of 16,384 bytes does not: {} within 0.2 s"
LEFT = "the deadline left 0.0 s for a record of 16,384 bytes: no acknowledgement"


@pytest.mark.parametrize(
    ("limit", "deadline", "failure"),
    [
        (0.2, 60.0, Failure(LARGE_LOST, NOT_PASSED.format("no acknowledgement"))),
        (60.0, 0.05, Failure(UNDECIDED, LEFT)),
    ],
)
def test_a_large_record_without_an_acknowledgement_fails(
    limit: float, deadline: float, failure: Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that carries small packets and swallows large ones."""
    monkeypatch.setattr(exchange, "LARGE_LIMIT", limit)
    monkeypatch.setattr(exchange, "RECORD_PATIENCE", limit if limit < 1 else 4.0)
    assert produced(LargeDouble, monkeypatch, Deadline(deadline)) == failure


def test_the_clients_error_explains_a_lost_large_record(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = KafkaError(KafkaError._TRANSPORT, "b:9092/1: Connection refused")

    class Explaining(LargeDouble):
        error = KafkaError._MSG_TIMED_OUT

        def __init__(self, values: dict[str, Any]) -> None:
            super().__init__(values)
            values["error_cb"](refused)

    outcome = produced(Explaining, monkeypatch)
    assert isinstance(outcome, Failure) and outcome.error == LARGE_LOST
    assert outcome.text.endswith(" (b:9092/1: Connection refused)")


@pytest.mark.parametrize(("broker", "error", "reason"), [
    ("b:9092/3", UNDECIDED, "a quota of this user or client delays its requests (2.5 s): small "),
    ("other:9092/3", LARGE_LOST, "small records pass"),
])  # fmt: skip
def test_a_record_that_a_quota_delays_proves_nothing(
    broker: str, error: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Delayed(LargeDouble):
        error = KafkaError._MSG_TIMED_OUT

        def __init__(self, values: dict[str, Any]) -> None:
            super().__init__(values)
            for seconds in (0.5, 2.5, 1.5):
                event = SimpleNamespace(broker_name=broker, throttle_time=seconds)
                values["throttle_cb"](event)

    outcome = produced(Delayed, monkeypatch)
    assert isinstance(outcome, Failure)
    assert outcome.error == error and outcome.text.startswith(reason)


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, None),
        (KafkaError.RECORD_LIST_TOO_LARGE, None),
        (KafkaError._MSG_TIMED_OUT, LARGE_LOST),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "authorization"),
    ],
)
def test_a_large_record_is_not_needed_if_the_brokers_limit_refuses_it(
    code: int, word: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Answering(LargeDouble):
        error = code

    outcome = produced(Answering, monkeypatch)
    if word is None:
        assert isinstance(outcome, SentRecord) and outcome.large is None
    else:
        assert isinstance(outcome, Failure) and outcome.error == word


def test_a_large_record_that_the_client_refuses_is_not_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refusing(LargeDouble):
        def produce(self, topic: str, value: bytes, **rest: Any) -> None:
            if len(value) == LARGE_PAYLOAD:
                raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
            super().produce(topic, value, **rest)

    outcome = produced(Refusing, monkeypatch)
    assert isinstance(outcome, SentRecord) and outcome.large is None


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"value": b"x"}, "corrupt", "checksum "),
        ({"offset": 10**6}, LARGE_LOST, NOT_PASSED.format("it did not come back")),
    ],
)
def test_the_large_record_is_read_too(
    change: dict[str, Any],
    error: str,
    text: str,
    values: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = f"large-{error}"
    sent = one_sent(values, topic)
    assert sent.large is not None
    monkeypatch.setattr(exchange, "LARGE_LIMIT", 0.2)
    monkeypatch.setattr(exchange, "RECORD_PATIENCE", 0.1)
    record = replace(sent, large=replace(sent.large, **change))
    outcome = read_back(values, topic, record)[0]
    assert isinstance(outcome, Failure)
    assert outcome.error == error and outcome.text.startswith(text)


class LatecomerDouble:
    """A consumer that may not see its group, and gets no record in time."""

    CODES: tuple[tuple[int, int | None], ...] = ()

    def __init__(self, values: object) -> None:
        bystanders = (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._ALL_BROKERS_DOWN)
        self._events = iter([*((it, None) for it in bystanders), *self.CODES])

    def assign(self, partitions: object) -> None:
        pass

    def poll(self, seconds: float) -> object:
        code, partition = next(self._events, (None, None))
        error = code and KafkaError(code)
        return code and SimpleNamespace(error=lambda: error, partition=lambda: partition)

    def close(self) -> None:
        pass


def test_the_reading_of_the_large_record_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def message(offset: int) -> object:
        return SimpleNamespace(
            error=lambda: None,
            partition=lambda: 0,
            offset=lambda: offset,
            headers=lambda: [("run", RUN.encode())],
            value=lambda: b"",
        )

    class Reading(LatecomerDouble):
        def __init__(self, values: object) -> None:
            self._offsets = iter(range(3))

        def poll(self, seconds: float) -> object:
            offset = next(self._offsets)
            time.sleep(0.3 * offset)
            return message(offset)

    monkeypatch.setattr(exchange, "Consumer", Reading)
    record = SentRecord(0, 0, 1.0, b"", large=SentRecord(0, 2, 0.0, b""))
    ((_, seconds),) = exchange.consume({}, "t", [(Address("b", 1), record)], RUN, Deadline(60))
    assert isinstance(seconds, float) and seconds < 0.3


def test_own_requests_are_those_of_clients(values: dict[str, object], bootstrap: str) -> None:
    sent = one_sent(values, "fetched")
    assert sent.large is not None
    batches: list[bytes] = []
    for number in range(3):
        peer = ReachableAddress(address(bootstrap, number), ("127.0.0.1",), None, None)
        with peer.connect_again(0, Deadline(60)) as connection:
            negotiate_versions(connection)
        with peer.connect_again(0, Deadline(60)) as connection:
            assert find_coordinator(connection, "group") == 0
        batches += [
            fetched(peer, "fetched", 0, offset, Deadline(60))
            for offset in (sent.offset, sent.large.offset)
        ]
    small, large = filter(None, batches)  # of the leader
    assert sent.value in small
    assert sent.large.value in large and len(large) > LARGE_PAYLOAD


@pytest.mark.parametrize(
    ("partition", "words"),
    [(None, ("authorization", "authorization")), (1, ("timeout", "authorization"))],
)
def test_what_keeps_a_record_back_is_told_of_its_own_partition(
    partition: int | None, words: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(LatecomerDouble):
        CODES = (
            (KafkaError.TOPIC_AUTHORIZATION_FAILED, partition),
            (KafkaError._TIMED_OUT, partition),
        )

    monkeypatch.setattr(exchange, "Consumer", Refused)
    places = [(Address("b", 9092), SentRecord(it, 0, 1.0, b"")) for it in (0, 1)]
    back = dict(exchange.consume({}, "t", places, RUN, Deadline(0.1)))
    assert tuple(it.error for it in back.values() if isinstance(it, Failure)) == words


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "authorization"),
        (KafkaError._TIMED_OUT, UNDECIDED),
    ],
)
def test_an_error_after_the_small_record_is_reported(
    code: int, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small: SimpleNamespace | None = SimpleNamespace(
        error=lambda: None,
        partition=lambda: 0,
        headers=lambda: [("run", RUN.encode())],
        value=lambda: b"",
    )

    class Interrupted(LatecomerDouble):
        CODES = ((code, 0),)

        def poll(self, seconds: float) -> object:
            nonlocal small
            message, small = small, None
            return message or super().poll(seconds)

    monkeypatch.setattr(exchange, "Consumer", Interrupted)
    record = SentRecord(0, 0, 1.0, b"", large=SentRecord(0, 1, 0.0, b""))
    places = [(Address("b", 9092), record)]
    ((_, failure),) = exchange.consume({}, "t", places, RUN, Deadline(0.1))
    assert isinstance(failure, Failure) and failure.error == error


def test_reading_that_a_quota_delays_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The double also reports an error about its group, which the client does not use."""

    class Delayed(LatecomerDouble):
        def __init__(self, values: dict[str, Any]) -> None:
            super().__init__(values)
            values["throttle_cb"](SimpleNamespace(broker_name="b:9092/1", throttle_time=2.5))

    monkeypatch.setattr(exchange, "Consumer", Delayed)
    places = [(Address(host, 9092), SentRecord(id, 0, 1.0, b"")) for id, host in enumerate("bc")]
    back = dict(exchange.consume({}, "t", places, RUN, Deadline(0.1)))
    late = "the record did not come back in time"
    assert back == {
        0: Failure(
            UNDECIDED, f"a quota of this user or client delays its requests (2.5 s): {late}"
        ),
        1: Failure("timeout", late),
    }


def test_a_time_out_tells_what_the_client_ran_into_at_that_broker_alone() -> None:
    with closed_port() as refusing:
        places = [
            Destination(0, refusing, {"run": RUN}),
            Destination(1, Address("127.0.0.1", 1), {"run": RUN}),
        ]
        values = configuration(str(refusing), None, {})
        found = dict(exchange.produce(values, "t", places, Deadline(3.0)))
    words = [it.error for it in found.values() if isinstance(it, Failure)]
    assert words == ["refused", "timeout"]
