"""Records of a run by one client for each listener: in which order, and whose failure it is."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from earshot.doctor import exchange, group_lookup, records
from earshot.doctor.asking import AnsweringBrokers, ReachableAddress
from earshot.doctor.diagnosis import diagnose
from earshot.doctor.exchange import LARGE_LOST, RECORD_PATIENCE, UNDECIDED, Destination
from earshot.doctor.observation import CellTarget, Observation, SentRecord
from earshot.doctor.records import Records, cut_short
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from earshot.validation.terms import Verdict


def observed(listener: str, broker: int) -> Observation:
    at = Address(f"{listener.lower()}{broker}", 9092)
    return Observation(CellTarget(listener, Protocol.PLAINTEXT, broker, at))


FOUR = dict(enumerate([observed("A", 1), observed("A", 2), observed("B", 1), observed("B", 2)]))
Done = list[tuple[Any, ...]]


@pytest.fixture
def slow() -> threading.Event:
    """Until then A's broker 2 takes nothing."""
    return threading.Event()


@pytest.fixture
def done(slow: threading.Event, monkeypatch: pytest.MonkeyPatch) -> Done:
    """What clients do, in order; B's broker 2 takes nothing, and A's is slow: until what its
    broker 1 took is read, if not sooner."""
    seen: Done = []

    def produce(
        values: Mapping[str, Any], topic: str, places: Sequence[Destination], end: Deadline
    ) -> Iterator[tuple[int, SentRecord | Failure]]:
        for it in places:
            if str(it.leader) == "a2:9092":
                slow.wait(60)
            seen.append(("sent", str(it.leader), values["bootstrap.servers"]))
            refused = str(it.leader) == "b2:9092"
            yield (
                it.partition,
                Failure("x", "no") if refused else SentRecord(it.partition, 1, 2.0, b"7"),
            )

    def consume(
        values: Mapping[str, Any],
        topic: str,
        sent: Sequence[tuple[Address, SentRecord]],
        run: str,
        end: Deadline,
    ) -> Iterator[tuple[int, float | Failure]]:
        seen.append(("read", *(str(leader) for leader, _ in sent), values["bootstrap.servers"]))
        if str(sent[0][0]) == "a1:9092":
            slow.set()
        for _, it in sent:
            yield it.partition, 0.1

    monkeypatch.setattr(exchange, "produce", produce)
    monkeypatch.setattr(exchange, "consume", consume)
    monkeypatch.setattr(records, "SEND_SECONDS", 60.0)
    return seen


def exchanged(
    workers: int = 4, waiting: Mapping[int, Observation] = FOUR
) -> dict[int, Observation]:
    with ThreadPoolExecutor(workers) as pool:
        run = Records("t", {1: 10, 2: 20}, "0a1b2c3d", {}, Deadline(60))
        return dict(run.exchange(waiting, pool))


@pytest.mark.parametrize("workers", [1, 4])
def test_all_is_sent_before_it_is_read(workers: int, done: Done, slow: threading.Event) -> None:
    """A first consumer has a new cluster make a topic, which is not what a record is timed for."""
    threading.Timer(0.1, slow.set).start()
    observations = exchanged(workers)
    a, b = "a1:9092,a2:9092", "b1:9092,b2:9092"
    assert sorted(done[:4]) == [
        ("sent", "a1:9092", a),
        ("sent", "a2:9092", a),
        ("sent", "b1:9092", b),
        ("sent", "b2:9092", b),
    ]
    assert sorted(done[4:]) == [("read", "a1:9092", "a2:9092", a), ("read", "b1:9092", "b1:9092")]
    assert {n: item.consumed for n, item in observations.items()} == {
        0: 0.1,
        1: 0.1,
        2: 0.1,
        3: None,
    }
    assert observations[3].produced == Failure("x", "no")
    assert [observations[n].produced for n in range(3)] == [
        SentRecord(p, 1, 2.0, b"7") for p in (10, 20, 10)
    ]


def test_a_slow_record_is_read_later(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "SEND_SECONDS", 0.02)
    observations = exchanged()
    assert done.index(("read", "a1:9092", "a1:9092")) < done.index(
        ("sent", "a2:9092", "a1:9092,a2:9092")
    )
    assert done[-1] == ("read", "a2:9092", "a2:9092")
    assert observations[1].consumed == 0.1


PEER = ReachableAddress(Address("a1", 9092), ("192.0.2.1",), None, None)


@pytest.mark.parametrize(("others", "produced", "ids"), [
    ((0, 5), SentRecord(10, 1, 2.0, b"7"), (1,) * 5),
    ((0, 0), SentRecord(10, 1, 2.0, b"7"), ()),
    ((2, 5),
     Failure("misrouted", "2 of 5 connections to a1:9092 reached another broker than broker 1"),
     ()),
])  # fmt: skip
def test_a_broker_that_did_not_tell_who_it_is_is_known_by_what_it_leads(
    others: tuple[int, int],
    produced: SentRecord | Failure,
    ids: tuple[int, ...],
    done: Done,
    slow: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    def wrong_brokers(
        peer: ReachableAddress, topic: str, partition: int, end: Deadline
    ) -> tuple[int, int]:
        asked.append((peer, topic, partition))
        return others

    slow.set()
    monkeypatch.setattr(records, "wrong_brokers", wrong_brokers)
    silent = replace(
        FOUR[0], peer=PEER, answering_brokers=AnsweringBrokers(unknown_reason="not told")
    )
    known = replace(FOUR[1], peer=PEER, answering_brokers=AnsweringBrokers((2, 2)))
    observations = exchanged(waiting={0: silent, 1: known})
    assert asked == [(PEER, "t", 10)]
    assert (observations[0].produced, observations[0].answering_brokers.ids) == (produced, ids)
    assert isinstance(observations[1].produced, SentRecord)


@pytest.mark.parametrize("part", ["produced", "consumed"])
@pytest.mark.parametrize("answers", [True, False])
def test_a_lost_large_record_is_the_paths_only_if_small_requests_are_still_answered(
    part: str, answers: bool, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = Failure(LARGE_LOST, "lost")

    def failing(*given: object) -> Iterator[tuple[int, Failure]]:
        yield 10, lost

    monkeypatch.setattr(exchange, part[:-1], failing)
    monkeypatch.setattr(records, "answers_again", lambda peer, end: answers)
    monkeypatch.setattr(group_lookup, "failed_lookup", lambda peer, end: "")
    cell = replace(FOUR[0], peer=PEER, answering_brokers=AnsweringBrokers((1,)))
    outcome = getattr(exchanged(waiting={0: cell})[0], part)
    assert isinstance(outcome, Failure)
    if answers:
        assert outcome == lost
    else:
        assert outcome == Failure("timeout", "lost; small requests get no answer any more")


@pytest.mark.parametrize(
    ("reason", "error", "returned", "passes"),
    [
        ("no answer", "timeout", {1: b"7", 2: b"8"}, True),
        ("no answer", "corrupt", {1: b"7", 2: b"8"}, False),
        ("no answer", LARGE_LOST, {1: b"7", 2: b"8"}, True),
        ("no answer", LARGE_LOST, {1: b"7", 2: b"7"}, False),
        ("", LARGE_LOST, {1: b"7", 2: b"8"}, True),
        ("", LARGE_LOST, {1: b"7", 2: b"7"}, False),
        ("", "timeout", {1: b"7", 2: b"8"}, False),
    ],
)
def test_a_lookup_that_hangs_keeps_no_record_back(
    reason: str,
    error: str,
    returned: Mapping[int, bytes],
    passes: bool,
    done: Done,
    slow: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """librdkafka looks up the coordinator on the connection that it reads from."""
    sent = SentRecord(10, 1, 2.0, b"7", large=SentRecord(10, 2, 0.0, b"8"))
    monkeypatch.setattr(exchange, "produce", lambda *given: iter([(10, sent)]))
    monkeypatch.setattr(exchange, "consume", lambda *given: iter([(10, Failure(error, "x"))]))
    monkeypatch.setattr(group_lookup, "failed_lookup", lambda peer, end: reason)
    monkeypatch.setattr(
        records, "fetched", lambda peer, topic, partition, offset, end: returned[offset]
    )
    monkeypatch.setattr(records, "answers_again", lambda *given: True)
    cell = replace(FOUR[0], peer=PEER, answering_brokers=AnsweringBrokers((1,)))
    run = Records("t", {1: 10}, "0a1b2c3d", {}, Deadline(60))
    with ThreadPoolExecutor(1) as pool:
        ((_, found),) = run.exchange({0: cell}, pool)
    assert isinstance(found.consumed, float) is passes
    assert passes or found.consumed == Failure(error, "x")
    assert len(run.group_notes()) == bool(reason)


def test_a_mistake_of_ours_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def produce(*given: object) -> Iterator[object]:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(exchange, "produce", produce)
    with pytest.raises(RuntimeError, match="a mistake"):
        exchanged()


@pytest.mark.parametrize(
    ("error", "given", "late"),
    [
        ("timeout", 0.3, "the deadline left 0.3 s for a record: none came"),
        ("timeout", 3.9, "the deadline left 3.9 s for a record: none came"),
        ("timeout", RECORD_PATIENCE, None),
        ("authorization", 0.3, None),
        (LARGE_LOST, 0.3, None),
        (UNDECIDED, 9.0, "none came"),
    ],
)
def test_a_record_without_time_blames_no_broker(error: str, given: float, late: str | None) -> None:
    facts = Observation(CellTarget("L", Protocol.PLAINTEXT, 1, Address("127.0.0.1", 9092)), None)
    found = cut_short(facts, Failure(error, "none came"), given)
    assert (found and found.inconclusive_reason) == late
    if found is not None:
        cell = diagnose(found, "host")
        assert (cell.verdict, cell.reason, cell.cause) == (Verdict.INCONCLUSIVE, late, None)
