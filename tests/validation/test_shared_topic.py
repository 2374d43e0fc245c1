"""The partitions of a topic that runs share: used again where they fit, added where none does."""

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from earshot.validation import shared_topic
from earshot.validation.client import Failure
from earshot.validation.shared_topic import TRIES, assign, end_offsets, share_topic, shared_name
from earshot.validation.topic import Replicas, TopicError, leftovers
from tests.raised import raised

REPLICAS = st.lists(st.integers(1, 4), min_size=1, max_size=2, unique=True).map(tuple)


def test_the_name_is_no_leftover() -> None:
    assert shared_name("dev") == "__earshot-dev-shared"
    assert shared_name("dev one") == "__earshot-dev-one-shared"
    assert leftovers([shared_name("dev")], "dev", 1e12) == []


def test_a_partition_is_used_once() -> None:
    there = {0: (1,), 1: (2,), 2: (1,)}
    assert assign(there, [(1,), (1,), (2,)]) == ((0, 2, 1), [])
    assert assign(there, [(1,), (1,), (1,), (3,)]) == ((0, 2), [(1,), (3,)])


def test_a_leader_that_handed_over_leads_no_more() -> None:
    # leader first: partition 1 was made for broker 2, and broker 1 leads it since 2 was restarted
    assert assign({0: (1, 2), 1: (1, 2)}, [(1, 2), (2, 1)]) == ((0,), [(2, 1)])


@given(st.lists(REPLICAS, max_size=8), st.lists(REPLICAS, max_size=8))
def test_only_missing_partitions_are_added(there: list[Replicas], wanted: list[Replicas]) -> None:
    chosen, missing = assign(dict(enumerate(there)), wanted)
    assert len(set(chosen)) == len(chosen)
    again, nothing = assign(dict(enumerate([*there, *missing])), wanted)
    assert nothing == [] and len(again) == len(wanted)
    for partition, replicas in zip(again, wanted, strict=True):
        held = [*there, *missing][partition]
        assert held[0] == replicas[0] and set(held) == set(replicas)


class AdminDouble:
    """A cluster that keeps a shared topic with these replicas, the leader first."""

    def __init__(self, *partitions: tuple[int, ...]) -> None:
        self.there = list(partitions)
        self.grows = False
        self.asked = 0

    def list_topics(self, name: str, timeout: float) -> Any:
        self.asked += 1
        found = {
            id: SimpleNamespace(leader=held[0], replicas=[it for it in held if it >= 0])
            for id, held in enumerate(self.there)
        }
        return SimpleNamespace(topics={name: SimpleNamespace(partitions=found, error=None)})

    def create_partitions(self, new: Any, **limits: float) -> dict[str, Future[None]]:
        (asked,) = new
        if self.grows:
            self.there += map(tuple, asked.replica_assignment)
        done: Future[None] = Future()
        done.set_result(None)
        return {asked.topic: done}

    def poll(self, seconds: float) -> None:
        pass


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_topic, "SETTLE", 0)


def test_partitions_that_are_there_are_taken_and_others_added() -> None:
    admin = AdminDouble((1,), (2,))
    assert shared(admin, (2,), (1,)) == (1, 0)
    admin.grows = True
    assert shared(admin, (2,), (3,)) == (1, 2)


def shared(admin: object, *replicas: Replicas, seconds: float = 1.0) -> tuple[int, ...]:
    return share_topic(cast(Any, admin), "t", replicas, seconds)


def test_a_partition_without_a_leader_is_no_lost_quorum() -> None:
    error = raised(TopicError, shared, AdminDouble((1,), (-1, 2)), (1,), (2,))
    reason = "t has no leader; its replicas are on brokers 2"
    assert error.failure == Failure("no-leader", reason)


def test_nothing_more_is_tried_when_the_time_is_over() -> None:
    admin = AdminDouble((1,))
    with pytest.raises(TopicError, match="shows no partitions"):
        shared(admin, (1,), (2,), seconds=0.0)
    assert admin.asked == 1


def test_partitions_that_are_added_and_never_show() -> None:
    error = raised(TopicError, shared, AdminDouble((1,)), (1,), (2,))
    assert error.failure == Failure("timeout", "topic t shows no partitions on brokers 2")


class OffsetsDouble:
    """A cluster that answers a request for offsets with one of ``rounds`` after the other."""

    def __init__(self, *rounds: int | Exception) -> None:
        self._rounds = list(rounds)

    def list_offsets(
        self, asked: Mapping[TopicPartition, object], request_timeout: float
    ) -> dict[TopicPartition, Future[object]]:
        reported = self._rounds.pop(0)
        found: dict[TopicPartition, Future[object]] = {}
        for item in asked:
            found[item] = Future()
            if isinstance(reported, Exception) and item.partition == 1:
                found[item].set_exception(reported)
            else:
                found[item].set_result(SimpleNamespace(offset=10 * item.partition + len(asked)))
        return found


def answered(code: int) -> KafkaException:
    return KafkaException(KafkaError(code, "its words"))


def offsets(admin: OffsetsDouble) -> object:
    return end_offsets(cast(Any, admin), "t", [0, 1])


def test_offsets_of_partitions_that_are_new_to_a_broker_are_asked_for_again() -> None:
    new = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.NOT_LEADER_FOR_PARTITION)
    assert offsets(OffsetsDouble(*map(answered, new), 0)) == {0: 2, 1: 12}


@pytest.mark.parametrize(
    ("code", "rounds", "word"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, 1, "authorization"),  # refused: not asked again
        (KafkaError.LEADER_NOT_AVAILABLE, TRIES, "no-leader"),  # new for ever: given up
    ],
)
def test_requests_for_offsets_end(code: int, rounds: int, word: str) -> None:
    admin = OffsetsDouble(*[answered(code)] * rounds)
    assert raised(TopicError, offsets, admin).failure == Failure(word, "its words")


def test_a_topic_that_may_not_be_seen_is_no_lost_quorum() -> None:
    """Its partitions never show to that user."""
    error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not authorized")
    topics = SimpleNamespace(topics={"t": SimpleNamespace(partitions={}, error=error)})
    admin = SimpleNamespace(list_topics=lambda name, timeout: topics)
    assert raised(TopicError, shared, admin, (1,)).failure.error == "authorization"
