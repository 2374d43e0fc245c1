"""Replication between brokers: the causes that a record which was not copied shows."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

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
from earshot.doctor.run_topic import Partitions
from earshot.doctor.targets import targets_of
from earshot.listeners.address import Address
from earshot.validation import client
from earshot.validation.client import FAST, Failure
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.refusals import refusal
from earshot.validation.result import Cause, Cell, Replication
from earshot.validation.terms import Verdict
from tests.doubles.answers import contract
from tests.doubles.closed_port import closed_port
from tests.report import samples

LATE = Failure("not-copied", "no acknowledgement within 20 s")
NOT_COPIED = "{} acknowledged no record within 20 s that {} had to copy"
CONTRACT = contract(
    INTERNAL=["kafka-1:9092", "kafka-2:9092", "kafka-3:9092"], EXTERNAL=["a:1", "a:2", "a:3"]
)
PAIRS = ring([1, 2, 3])
BROKERS = st.sets(st.integers(0, 50), max_size=12).map(sorted)


def checked(*failed: Pair, failure: Failure = LATE) -> dict[Pair, Replication]:
    outcomes = {pair: failure if pair in failed else None for pair in PAIRS}
    results = check_replication(outcomes, CONTRACT)
    return {(result.leader, result.follower): result for result in results}


def cause_of(result: Replication) -> Cause:
    assert result.cause is not None
    return result.cause


@pytest.mark.parametrize(
    ("brokers", "pairs"),
    [
        ([], []),
        ([7, 7], []),
        ([1, 2], [(1, 2), (2, 1)]),
        ([1, 2, 3], [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]),
        ([1, 2, 3, 4], [(a, b) for a in range(1, 5) for b in range(1, 5) if a != b]),
    ],
)
def test_the_pairs_of_few_brokers_are_all_pairs(brokers: list[int], pairs: list[Pair]) -> None:
    assert sorted(ring(brokers)) == pairs


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
    turns = batches(pairs, {id: f"L{id % 2}" for id in brokers})
    assert sorted(pair for turn in turns for pair in turn) == sorted(pairs)
    for turn in turns:
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
    results = {(it.verdict, it.listener, it.cause, it.reason) for it in checked().values()}
    assert results == {(Verdict.PASS, "INTERNAL", None, "")}


def test_a_leader_without_a_copying_follower_is_one_cause() -> None:
    results = checked((3, 1), (3, 2))
    failed = [pair for pair, result in results.items() if result.verdict is Verdict.FAIL]
    assert failed == [(3, 1), (3, 2)]
    cause = cause_of(results[3, 1])
    assert cause == results[3, 2].cause
    assert cause.model_dump() == {
        "kind": "not-replicated",
        "observed": "broker 3 acknowledged no record within 20 s that brokers 1 and 2 had to copy",
        "expected": "brokers 1 and 2 copy from broker 3 (kafka-3:9092) through INTERNAL",
        "remedy": "see that brokers 1 and 2 can connect to what broker 3 advertises for INTERNAL: "
        "the name, the port, firewalls, the security protocol; the log of brokers 1 and 2 has "
        "more (ReplicaFetcher)",
    }


def test_a_failure_of_clients_at_the_leader_comes_first() -> None:
    outcomes = {pair: LATE if pair[0] == 3 else None for pair in PAIRS}
    elsewhere = samples.drift().cells[5]
    drift = elsewhere.model_copy(update={"listener": "INTERNAL"})
    for cells, begins in (([drift], True), ([elsewhere], False)):
        results = check_replication(outcomes, CONTRACT, cells)
        remedies = [result.cause.remedy for result in results if result.cause is not None]
        reported = "begin with INTERNAL of broker 3, which failed for clients at metadata (drift); "
        assert [remedy.startswith(reported) for remedy in remedies] == [begins, begins]


def test_other_cells_of_clients_change_nothing() -> None:
    passed = samples.cell("INTERNAL", 3)
    outcomes = {pair: LATE if pair[0] == 3 else None for pair in PAIRS}
    assert check_replication(outcomes, CONTRACT, [passed]) == check_replication(outcomes, CONTRACT)
    # a follower's failure does not begin at a leader where clients failed
    drift = samples.drift().cells[5].model_copy(update={"listener": "INTERNAL", "broker": 1})
    outcomes = {pair: LATE if pair[1] == 3 else None for pair in PAIRS}
    assert check_replication(outcomes, CONTRACT, [drift]) == check_replication(outcomes, CONTRACT)


def test_a_follower_that_copies_from_no_leader_is_one_cause() -> None:
    results = checked((1, 3), (2, 3))
    cause = cause_of(results[1, 3])
    assert cause == results[2, 3].cause
    assert cause.observed == NOT_COPIED.format("brokers 1 and 2", "broker 3")
    assert cause.expected == (
        "broker 3 copies from broker 1 (kafka-1:9092) and broker 2 (kafka-2:9092) through INTERNAL"
    )
    assert cause.remedy == (
        "see what keeps broker 3 from the other brokers' INTERNAL: its resolver, its routes, "
        "firewalls, its credentials; the log of broker 3 has more (ReplicaFetcher)"
    )


def test_a_single_pair_is_its_own_cause() -> None:
    cause = cause_of(checked((2, 1))[2, 1])
    assert cause.observed == NOT_COPIED.format("broker 2", "broker 1")


def test_if_no_follower_copies_every_leader_is_a_cause() -> None:
    assert {cause_of(result).observed for result in checked(*PAIRS).values()} == {
        NOT_COPIED.format(f"broker {leader}", f"brokers {followers}")
        for leader, followers in ((1, "2 and 3"), (2, "1 and 3"), (3, "1 and 2"))
    }


def test_a_follower_in_two_failures_is_blamed_before_a_leader_with_one_follower() -> None:
    """Broker 2 leads for broker 3 alone: the failure of 3 at both leaders explains that, too."""
    results = check_replication({(1, 3): LATE, (2, 3): LATE, (1, 2): None}, CONTRACT)
    observed = [result.cause.observed for result in results if result.cause is not None]
    assert observed == [NOT_COPIED.format("brokers 1 and 2", "broker 3")] * 2


def test_of_two_brokers_the_leader_is_a_cause() -> None:
    both = contract(INTERNAL=["kafka-1:9092", "kafka-2:9092"])
    failed, passed = check_replication({(1, 2): LATE, (2, 1): None}, both)
    assert (failed.verdict, passed.verdict) == (Verdict.FAIL, Verdict.PASS)
    cause = cause_of(failed)
    assert cause.observed == NOT_COPIED.format("broker 1", "broker 2")
    assert cause.expected == "broker 2 copies from broker 1 (kafka-1:9092) through INTERNAL"
    assert cause.remedy == (
        "see that broker 2 can connect to what broker 1 advertises for INTERNAL: the name, the "
        "port, firewalls, the security protocol; the log of broker 2 has more (ReplicaFetcher)"
    )


@pytest.mark.parametrize("error", ["not-copied", "replicas"])
def test_a_record_that_no_follower_copied_fails(error: str) -> None:
    results = checked((1, 2), failure=Failure(error, "x"))
    assert (results[1, 2].verdict, results[1, 2].reason) == (Verdict.FAIL, "")
    assert results[1, 3].verdict is Verdict.PASS


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


def test_a_leader_that_could_not_be_reached_proves_nothing() -> None:
    gone = Failure("refused", "localhost:9093: connection refused")
    result = checked((1, 2), failure=gone)[1, 2]
    assert (result.verdict, result.cause) == (Verdict.INCONCLUSIVE, None)
    assert result.reason == "nothing is known: localhost:9093: connection refused"


@pytest.mark.parametrize(("part", "listener", "through"), [
    (CONTRACT.model_copy(update={"inter_broker": None}), "", "the inter-broker listener"),
    (CONTRACT.with_listeners(["EXTERNAL"]), "INTERNAL", "INTERNAL"),
], ids=["looked at", "a part of the contract"])  # fmt: skip
def test_without_a_known_address_none_is_named(part: Contract, listener: str, through: str) -> None:
    (result,) = check_replication({(1, 2): LATE}, part)
    assert result.listener == listener
    assert cause_of(result).expected == f"broker 2 copies from broker 1 through {through}"


class TopicDouble:
    """Stands for the run's topic, on a cluster that makes topics of four partitions on demand."""

    made: ClassVar[list[TopicDouble]]
    refused: Failure | None = None
    note = ""
    elsewhere = ""

    def __init__(self, *given: Any, suffix: str) -> None:
        cluster, run, _, self.access, _ = given
        self.named = (cluster, run, suffix)
        self.deleted = False
        self.made.append(self)

    def create(self, replicas: Sequence[Pair]) -> Partitions | Failure:
        return self.refused or Partitions("copies", tuple(n % 4 for n in range(len(replicas))), {})

    def misplaced(self, replicas: Sequence[Pair]) -> list[str]:
        return [self.elsewhere if pair == (1, 2) else "" for pair in replicas]

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
    yield [f"{broker.host}:{broker.port}" for broker in brokers]


@contextlib.contextmanager
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def cells_of(contract: Contract, *failed: tuple[str, int]) -> list[Cell]:
    """A cell for all that ``contract`` names."""
    cells = [samples.cell(target.listener, target.broker) for target in targets_of(contract)]
    failure = {"verdict": Verdict.FAIL}
    return [
        cell.model_copy(update=failure) if (cell.listener, cell.broker) in failed else cell
        for cell in cells
    ]


def proof(contract: Contract, cells: Sequence[Cell], end: Deadline | None = None) -> Proof:
    with replication_proof(contract, cells, {}, "0a1b", end or Deadline(30)) as proven:
        return proven.result(30)


def ways(proven: Proof) -> list[tuple[int, int, Verdict, str]]:
    return [
        (result.leader, result.follower, result.verdict, result.reason) for result in proven.results
    ]


@contextlib.contextmanager
def silent_pair() -> Iterator[Contract]:
    """Two brokers that accept connections and answer nothing."""
    with silent() as one, silent() as two:
        yield contract(INTERNAL=[one, two])


def test_acknowledgements_prove_replication(three: list[str], topics: type[TopicDouble]) -> None:
    topics.note = "topic copies could not be deleted"
    named = contract(INTERNAL=three)
    proven = proof(named, cells_of(named))
    assert ways(proven) == [(*pair, Verdict.PASS, "") for pair in sorted(PAIRS)]
    (topic,) = topics.made
    assert topic.named == ("dev", "0a1b", "-copies") and topic.deleted
    assert list(topic.access.brokers) == [1, 2, 3]
    assert proven.notes == ("topic copies could not be deleted",)
    topics.note = ""
    assert proof(named, cells_of(named)).notes == ()


def test_a_record_on_other_brokers_proves_nothing(
    three: list[str], topics: type[TopicDouble]
) -> None:
    topics.elsewhere = "it is on brokers 3, 2"
    named = contract(INTERNAL=three)
    first, *others = ways(proof(named, cells_of(named)))
    assert first == (1, 2, Verdict.INCONCLUSIVE, "nothing is known: it is on brokers 3, 2")
    assert {verdict for _, _, verdict, _ in others} == {Verdict.PASS}


def test_only_reached_brokers_get_records(three: list[str], topics: type[TopicDouble]) -> None:
    named = contract(INTERNAL=three, EXTERNAL=three)
    unreached = cells_of(named, ("INTERNAL", 1), ("INTERNAL", 3), ("EXTERNAL", 3))
    proven = proof(named, unreached)
    assert ways(proven) == [(1, 2, Verdict.PASS, ""), (2, 1, Verdict.PASS, "")]
    assert {result.listener for result in proven.results} == {"INTERNAL"}
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
    proven = proof(named, cells_of(named))
    why = f"no topic with two replicas could be created: {refused.text}"
    assert ways(proven) == [(*pair, Verdict.INCONCLUSIVE, why) for pair in PAIRS]
    cause = refusal(refused) if is_cause else None
    assert {it.cause for it in proven.results} == {cause} and (cause is not None) is is_cause
    assert {result.listener for result in proven.results} == {"INTERNAL"}
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
        proven = proof(named, cells_of(named), Deadline(2.0))
    (refused, unanswered) = proven.results
    assert refused.verdict is unanswered.verdict is Verdict.INCONCLUSIVE
    assert refused.reason.startswith("nothing is known: ") and "refused" in refused.reason
    assert unanswered.reason == ("nothing is known: the deadline passed before it was acknowledged")
    assert topics.made[0].deleted


def test_late_records_are_not_copied(
    topics: type[TopicDouble], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "LIMIT", 0.2)
    with silent_pair() as named:
        results = proof(named, cells_of(named)).results
    assert {result.verdict for result in results} == {Verdict.FAIL}
    observed = NOT_COPIED.format("broker 1", "broker 2").replace("20 s", "0.2 s")
    assert cause_of(results[0]).observed == observed


def test_a_dead_broker_is_no_cause(
    topics: type[TopicDouble], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "LIMIT", 0.2)
    with silent() as one, silent() as two, closed_port() as three:
        named = contract(INTERNAL=[one, two, str(three)])
        results = proof(named, cells_of(named)).results
    found = {(result.leader, result.follower): result for result in results}
    assert found[1, 3].reason == "nothing is known: broker 3 accepts no connection any more"
    assert found[1, 2].verdict is Verdict.FAIL


def test_leaving_early_waits_for_nothing(
    topics: type[TopicDouble], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "LIMIT", 3600.0)  # longer than a test may take
    with (
        silent_pair() as named,
        replication_proof(named, cells_of(named), {}, "0a1b", Deadline(3600)) as proven,
    ):
        pass
    assert {result.reason for result in proven.result(0).results} == {
        "nothing is known: the deadline passed before it was acknowledged"
    }
    assert topics.made[0].deleted
