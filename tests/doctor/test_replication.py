"""Replication between brokers: the causes that a record which was not copied shows."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from earshot.doctor import replication
from earshot.doctor.replication import (
    FOLLOWERS,
    MAX_FULL_MESH,
    Pair,
    Proof,
    batches,
    check_replication,
    dead_broker_failures,
    replication_proof,
    ring,
)
from earshot.doctor.run_topic import Partitions, ReachedBrokers
from earshot.doctor.targets import targets_of
from earshot.listeners.address import Address
from earshot.validation import client
from earshot.validation.client import FAST, Failure
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.refusals import refusal
from earshot.validation.result import Cell, Replication
from earshot.validation.terms import Verdict
from tests.doubles.answers import contract
from tests.doubles.closed_port import closed_port
from tests.report import samples

LATE = Failure("not-copied", "no acknowledgement within 20 s")
CONTRACT = contract(
    INTERNAL=["kafka-1:9092", "kafka-2:9092", "kafka-3:9092"], EXTERNAL=["a:1", "a:2", "a:3"]
)
PAIRS = ring([1, 2, 3])
BROKERS = st.sets(st.integers(0, 50), max_size=12).map(sorted)


def checked(*failed: Pair, failure: Failure = LATE) -> dict[Pair, Replication]:
    outcomes = {pair: failure if pair in failed else None for pair in PAIRS}
    return {(it.leader, it.follower): it for it in check_replication(outcomes, CONTRACT)}


def test_three_brokers_copy_from_each_other() -> None:
    assert sorted(PAIRS) == [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]


@pytest.mark.parametrize(
    ("brokers", "expected"), [([], []), ([7, 7], []), ([1, 2], [(1, 2), (2, 1)])]
)
def test_a_single_broker_copies_nothing(brokers: list[int], expected: list[Pair]) -> None:
    assert ring(brokers) == expected


def test_every_pair_of_four_brokers_is_tried() -> None:
    assert len(ring([1, 2, 3, 4])) == 12
    assert set(ring([1, 2, 3, 4])) == {(a, b) for a in range(1, 5) for b in range(1, 5) if a != b}


def test_of_many_brokers_each_leads_the_next_two() -> None:
    assert ring([10, 20, 30, 40, 50, 60, 70]) == [
        *((10, 20), (20, 30), (30, 40), (40, 50), (50, 60), (60, 70), (70, 10)),
        *((10, 30), (20, 40), (30, 50), (40, 60), (50, 70), (60, 10), (70, 20)),
    ]


@given(BROKERS)
def test_every_broker_leads_and_follows_as_often(brokers: list[int]) -> None:
    pairs = ring(brokers)
    often = max(len(brokers) - 1, 0) if len(brokers) <= MAX_FULL_MESH else FOLLOWERS
    assert len(set(pairs)) == len(pairs) == often * len(brokers)
    assert all(leader != follower for leader, follower in pairs)
    for side in (0, 1):
        assert set(Counter(pair[side] for pair in pairs).values()) <= {often}


@given(BROKERS)
def test_no_connection_has_to_carry_two_records(brokers: list[int]) -> None:
    pairs = ring(brokers)
    found = batches(pairs, {id: f"L{id % 2}" for id in brokers})
    assert sorted(pair for turn in found for pair in turn) == sorted(pairs)
    for turn in found:
        assert len({leader for leader, _ in turn}) == len(turn)
        assert len({leader % 2 for leader, _ in turn}) == 1


def test_records_of_one_leader_and_of_two_listeners_go_apart() -> None:
    pairs = [(1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2)]
    assert batches(pairs, {1: "A", 2: "A", 3: "B"}) == [
        [(1, 2), (2, 3)],
        [(3, 1)],
        [(1, 3), (2, 1)],
        [(3, 2)],
    ]


def test_what_is_acknowledged_is_proven() -> None:
    found = checked()
    assert {it.verdict for it in found.values()} == {Verdict.PASS}
    assert {it.listener for it in found.values()} == {"INTERNAL"}
    assert all(it.cause is None and it.reason == "" for it in found.values())


def test_a_leader_without_a_copying_follower_is_one_cause() -> None:
    found = checked((3, 1), (3, 2))
    assert [pair for pair, it in found.items() if it.verdict is Verdict.FAIL] == [(3, 1), (3, 2)]
    cause = found[3, 1].cause
    assert cause is not None and cause == found[3, 2].cause
    assert cause.model_dump() == {
        "kind": "not-replicated",
        "observed": "broker 3 acknowledged no record within 20 s that brokers 1 and 2 had to copy",
        "expected": "brokers 1 and 2 copy from broker 3 (kafka-3:9092) through INTERNAL",
        "remedy": "see that brokers 1 and 2 can connect to what broker 3 advertises for INTERNAL: "
        "the name, the port, firewalls, the security protocol; the log of brokers 1 and 2 has "
        "more (ReplicaFetcher)",
    }


def test_where_clients_failed_at_the_leader_too_that_comes_first() -> None:
    drift = samples.drift().cells[5].model_copy(update={"listener": "INTERNAL"})
    elsewhere = samples.drift().cells[5]
    outcomes = {pair: LATE if pair[0] == 3 else None for pair in PAIRS}
    for cells, begins in (([drift], True), ([elsewhere], False)):
        causes = [
            it.cause for it in check_replication(outcomes, CONTRACT, cells) if it.cause is not None
        ]
        reported = "begin with INTERNAL of broker 3, which failed for clients at metadata (drift); "
        assert [it.remedy.startswith(reported) for it in causes] == [begins, begins]


def test_a_client_that_passed_says_nothing_of_a_leader() -> None:
    passed = samples.cell("INTERNAL", 3)
    outcomes = {pair: LATE if pair[0] == 3 else None for pair in PAIRS}
    assert check_replication(outcomes, CONTRACT, [passed]) == check_replication(outcomes, CONTRACT)


def test_what_a_follower_lacks_begins_at_no_leader_where_clients_failed() -> None:
    drift = samples.drift().cells[5].model_copy(update={"listener": "INTERNAL", "broker": 1})
    outcomes = {pair: LATE if pair[1] == 3 else None for pair in PAIRS}
    assert check_replication(outcomes, CONTRACT, [drift]) == check_replication(outcomes, CONTRACT)


def test_a_follower_that_copies_from_no_leader_is_one_cause() -> None:
    found = checked((1, 3), (2, 3))
    cause = found[1, 3].cause
    assert cause is not None and cause == found[2, 3].cause
    assert cause.observed == (
        "brokers 1 and 2 acknowledged no record within 20 s that broker 3 had to copy"
    )
    assert cause.expected == (
        "broker 3 copies from broker 1 (kafka-1:9092) and broker 2 (kafka-2:9092) through INTERNAL"
    )
    assert cause.remedy == (
        "see what keeps broker 3 from the other brokers' INTERNAL: its resolver, its routes, "
        "firewalls, its credentials; the log of broker 3 has more (ReplicaFetcher)"
    )


def test_a_single_pair_is_its_own_cause() -> None:
    cause = checked((2, 1))[2, 1].cause
    assert cause is not None
    assert cause.observed == "broker 2 acknowledged no record within 20 s that broker 1 had to copy"


def test_if_no_follower_copies_every_leader_is_a_cause() -> None:
    causes = {it.cause.observed for it in checked(*PAIRS).values() if it.cause is not None}
    assert causes == {
        f"broker {leader} acknowledged no record within 20 s that brokers {followers} had to copy"
        for leader, followers in ((1, "2 and 3"), (2, "1 and 3"), (3, "1 and 2"))
    }


def test_a_follower_in_two_failures_is_blamed_before_a_leader_with_one_follower() -> None:
    """Broker 2 leads for broker 3 alone: the failure of 3 at everybody explains that, too."""
    outcomes = {(1, 3): LATE, (2, 3): LATE, (1, 2): None}
    observed = [
        it.cause.observed for it in check_replication(outcomes, CONTRACT) if it.cause is not None
    ]
    assert (
        observed
        == ["brokers 1 and 2 acknowledged no record within 20 s that broker 3 had to copy"] * 2
    )


def test_of_two_brokers_the_leader_is_a_cause() -> None:
    both = contract(INTERNAL=["kafka-1:9092", "kafka-2:9092"])
    outcomes: dict[Pair, Failure | None] = {(1, 2): LATE, (2, 1): None}
    passed = check_replication(outcomes, both)
    assert [it.verdict for it in passed] == [Verdict.FAIL, Verdict.PASS]
    cause = passed[0].cause
    assert cause is not None
    assert cause.observed == "broker 1 acknowledged no record within 20 s that broker 2 had to copy"
    assert cause.expected == "broker 2 copies from broker 1 (kafka-1:9092) through INTERNAL"
    assert cause.remedy == (
        "see that broker 2 can connect to what broker 1 advertises for INTERNAL: the name, the "
        "port, firewalls, the security protocol; the log of broker 2 has more (ReplicaFetcher)"
    )


@pytest.mark.parametrize("error", ["not-copied", "replicas"])
def test_a_record_that_no_follower_copied_fails(error: str) -> None:
    found = checked((1, 2), failure=Failure(error, "x"))
    assert (found[1, 2].verdict, found[1, 2].reason) == (Verdict.FAIL, "")
    assert found[1, 3].verdict is Verdict.PASS


def test_a_broker_that_died_meanwhile_says_nothing_of_replication() -> None:
    with socket.create_server(("127.0.0.1", 0)) as living, closed_port() as dead:
        addresses = {1: Address(*living.getsockname()), 2: dead}
        outcomes = {(1, 2): LATE, (2, 1): None}
        reported = Failure("gone", "broker 2 accepts no connection any more")
        assert dead_broker_failures(outcomes, addresses) == {(1, 2): reported}
        assert dead_broker_failures({(1, 2): LATE}, addresses | {2: addresses[1]}) == {}


def test_only_brokers_of_records_that_were_not_copied_are_checked_again() -> None:
    refused = Failure("refused", "localhost:9093: connection refused")
    assert dead_broker_failures({(1, 2): refused, (2, 1): None}, {}) == {}


def test_brokers_are_checked_again_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(3, timeout=30)

    def connects(address: Address, limit: float) -> bool:
        together.wait()  # one after the other, they would never meet here
        return address.port == 1

    monkeypatch.setattr(replication, "connects", connects)
    addresses = {id: Address("kafka", id) for id in (1, 2, 3)}
    assert dead_broker_failures({(1, 2): LATE, (1, 3): LATE}, addresses) == {
        (1, id): Failure("gone", f"broker {id} accepts no connection any more") for id in (2, 3)
    }


def test_a_leader_that_could_not_be_reached_says_nothing() -> None:
    gone = Failure("refused", "localhost:9093: connection refused")
    found = checked((1, 2), failure=gone)[1, 2]
    assert (found.verdict, found.cause) == (Verdict.INCONCLUSIVE, None)
    assert found.reason == "nothing is known: localhost:9093: connection refused"


def test_without_a_contract_the_listener_has_no_name() -> None:
    unnamed = CONTRACT.model_copy(update={"inter_broker": None})
    (found,) = check_replication({(1, 2): LATE}, unnamed)
    assert found.listener == "" and found.cause is not None
    assert found.cause.expected == "broker 2 copies from broker 1 through the inter-broker listener"


def test_in_a_part_of_the_contract_its_address_is_not_known() -> None:
    (found,) = check_replication({(1, 2): LATE}, CONTRACT.with_listeners(["EXTERNAL"]))
    assert found.listener == "INTERNAL" and found.cause is not None
    assert found.cause.expected == "broker 2 copies from broker 1 through INTERNAL"


class TopicDouble:
    """Stands for the run's topic, on a cluster that makes topics of four partitions on demand."""

    made: ClassVar[list[TopicDouble]]
    refused: Failure | None = None
    note = ""

    def __init__(
        self,
        cluster: str,
        run: str,
        seconds: float,
        access: ReachedBrokers,
        end: Deadline,
        suffix: str,
    ) -> None:
        self.named = (cluster, run, suffix)
        self.access = access
        self.deleted = False
        self.made.append(self)

    def create(self, replicas: Sequence[Pair]) -> Partitions | Failure:
        return self.refused or Partitions("copies", tuple(n % 4 for n in range(len(replicas))), {})

    def delete(self) -> str:
        self.deleted = True
        return self.note


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> type[TopicDouble]:
    class Double(TopicDouble):
        made: ClassVar[list[TopicDouble]] = []

    monkeypatch.setattr(replication, "RunTopic", Double)
    # a double of a topic leaves it to the cluster
    monkeypatch.setattr(client, "FAST", {**client.FAST, "allow.auto.create.topics": True})
    return Double


@pytest.fixture(scope="module")
def three() -> Iterator[list[str]]:
    """Addresses of brokers that take records."""
    producer = Producer({"test.mock.num.brokers": 3, "log_level": 0})
    brokers = producer.list_topics(timeout=60).brokers.values()
    yield [f"{item.host}:{item.port}" for item in brokers]


@contextlib.contextmanager
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def cells_of(contract: Contract, *failed: tuple[str, int]) -> list[Cell]:
    """A cell for all that ``contract`` names."""
    good = samples.cell("INTERNAL", 1)
    return [
        good.model_copy(
            update={
                "listener": it.listener,
                "broker": it.broker,
                "verdict": Verdict.FAIL if (it.listener, it.broker) in failed else Verdict.PASS,
            }
        )
        for it in targets_of(contract)
    ]


def proof(contract: Contract, cells: Sequence[Cell], end: Deadline | None = None) -> Proof:
    with replication_proof(contract, cells, {}, "0a1b", end or Deadline(30)) as proven:
        return proven.result(30)


def ways(found: Proof) -> list[tuple[int, int, Verdict, str]]:
    return [(it.leader, it.follower, it.verdict, it.reason) for it in found.results]


def test_acknowledged_records_prove_replication(
    three: list[str], topics: type[TopicDouble]
) -> None:
    named = contract(INTERNAL=three)
    found = proof(named, cells_of(named))
    assert ways(found) == [(*pair, Verdict.PASS, "") for pair in sorted(PAIRS)]
    assert found.notes == ()
    (topic,) = topics.made
    assert topic.named == ("dev", "0a1b", "-copies") and topic.deleted
    assert list(topic.access.brokers) == [1, 2, 3]


def test_what_is_left_of_the_topic_is_noted(three: list[str], topics: type[TopicDouble]) -> None:
    topics.note = "topic copies could not be deleted"
    named = contract(INTERNAL=three)
    assert proof(named, cells_of(named)).notes == ("topic copies could not be deleted",)


def test_only_reached_brokers_get_records(three: list[str], topics: type[TopicDouble]) -> None:
    named = contract(INTERNAL=three, EXTERNAL=three)
    unreached = cells_of(named, ("INTERNAL", 1), ("INTERNAL", 3), ("EXTERNAL", 3))
    found = proof(named, unreached)
    assert ways(found) == [(1, 2, Verdict.PASS, ""), (2, 1, Verdict.PASS, "")]
    assert {it.listener for it in found.results} == {"INTERNAL"}
    # the widest way: both of them were reached through EXTERNAL
    assert list(topics.made[0].access.brokers) == [1, 2]


def test_a_single_broker_needs_no_topic(three: list[str], topics: type[TopicDouble]) -> None:
    named = contract(INTERNAL=three)
    assert proof(named, cells_of(named, ("INTERNAL", 1), ("INTERNAL", 2))) == Proof()
    assert topics.made == []


@pytest.mark.parametrize(
    ("refused", "is_cause"),
    [
        (Failure("timeout", "too late"), False),
        (Failure("authorization", "Cluster authorization failed"), True),
    ],
)
def test_without_a_topic_nothing_is_known(
    refused: Failure, is_cause: bool, three: list[str], topics: type[TopicDouble]
) -> None:
    topics.refused = refused
    named = contract(INTERNAL=three)
    found = proof(named, cells_of(named))
    why = f"no topic with two replicas could be created: {refused.text}"
    assert ways(found) == [(*pair, Verdict.INCONCLUSIVE, why) for pair in PAIRS]
    cause = refusal(refused) if is_cause else None
    assert {it.cause for it in found.results} == {cause} and (cause is not None) is is_cause
    assert {it.listener for it in found.results} == {"INTERNAL"}
    assert topics.made[0].deleted
    unnamed = proof(named.model_copy(update={"inter_broker": None}), cells_of(named))
    assert {it.listener for it in unnamed.results} == {""}


def test_records_are_sent_at_once_with_acks_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its leader's listener; the producer does not give up before who waits for it."""
    reported: dict[str, object] = {}
    monkeypatch.setattr(replication, "Producer", lambda values: reported.update(values))
    named = contract(INTERNAL=["one:1", "two:2"])
    sender = replication._Sender(targets_of(named), {"ssl.key.password": "x"}, {})
    assert {key: it for key, it in reported.items() if key not in FAST} == {
        "bootstrap.servers": "one:1,two:2",
        "security.protocol": "PLAINTEXT",
        "ssl.key.password": "x",
        "acks": "all",
        "linger.ms": 0,
        "message.timeout.ms": 40_000,
        "error_cb": sender._errors,
    }


def test_each_leader_answers_for_what_was_met_at_it(topics: type[TopicDouble]) -> None:
    with closed_port() as one, silent() as two:
        named = contract(INTERNAL=[str(one), two])
        found = proof(named, cells_of(named), Deadline(2.0))
    (refused, unanswered) = found.results
    assert refused.verdict is unanswered.verdict is Verdict.INCONCLUSIVE
    assert refused.reason.startswith("nothing is known: ") and "refused" in refused.reason
    assert unanswered.reason == ("nothing is known: the deadline passed before it was acknowledged")
    assert topics.made[0].deleted


def test_a_record_that_is_not_acknowledged_in_time_was_not_copied(
    topics: type[TopicDouble], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "LIMIT", 0.2)
    with silent() as one, silent() as two:
        named = contract(INTERNAL=[one, two])
        found = proof(named, cells_of(named))
    assert {it.verdict for it in found.results} == {Verdict.FAIL}
    cause = found.results[0].cause
    assert cause is not None and cause.observed == (
        "broker 1 acknowledged no record within 0.2 s that broker 2 had to copy"
    )


def test_a_broker_that_died_meanwhile_is_told_from_one_that_does_not_copy(
    topics: type[TopicDouble], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "LIMIT", 0.2)
    with silent() as one, silent() as two, closed_port() as three:
        named = contract(INTERNAL=[one, two, str(three)])
        results = proof(named, cells_of(named)).results
    found = {(it.leader, it.follower): it for it in results}
    assert found[1, 3].reason == "nothing is known: broker 3 accepts no connection any more"
    assert found[1, 2].verdict is Verdict.FAIL


def test_leaving_early_waits_for_nothing(
    topics: type[TopicDouble], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "LIMIT", 3600.0)  # longer than a test may take
    with silent() as one, silent() as two:
        named = contract(INTERNAL=[one, two])
        with replication_proof(named, cells_of(named), {}, "0a1b", Deadline(3600)) as proven:
            pass
    assert {it.reason for it in proven.result(0).results} == {
        "nothing is known: the deadline passed before it was acknowledged"
    }
    assert topics.made[0].deleted
