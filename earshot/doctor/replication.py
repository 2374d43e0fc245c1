"""Replication: whether every broker gets records from the others, by the listener between brokers.

A record in a partition with one follower, which a leader acknowledges only when the follower has
it too, proves the way from that follower to that leader. Clients never take this way, and on a
cluster without data nothing else does.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from earshot.doctor.diagnosis import CellTarget
from earshot.doctor.probe import connects
from earshot.doctor.run_topic import Partitions, ReachedBrokers, RunTopic
from earshot.doctor.survey import targets_reached
from earshot.listeners.address import Address
from earshot.validation.client import EachErrors, Errors, Failure, configuration, failure_of
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.refusals import refusal
from earshot.validation.result import Cause, Cell, Replication
from earshot.validation.terms import Verdict

WHOLE: Final = 6
"""Brokers of which every pair is tried."""
FOLLOWERS: Final = 2
"""Followers of each of more brokers that are tried: three replicas is what most topics have."""
LIMIT: Final = 20.0
"""Seconds for all records together; an idle follower asks for more twice a second."""
KIND: Final = "not-replicated"
"""What its failures are called."""
CONNECT_SECONDS: Final = 1.0
CONNECTIONS: Final = 32
"""Brokers that are looked at again at the same time."""
_PATIENCE: Final = 0.05
"""Seconds of one poll, short, so that a run stops soon when asked to."""
_UNCOPIED: Final = frozenset({"not-copied", "replicas"})
"""Errors of a record that its leader took and did not acknowledge."""

Pair = tuple[int, int]
"""A leader and its follower."""


@dataclass(frozen=True)
class Proof:
    """What is known of replication, and notes for the report."""

    results: tuple[Replication, ...] = ()
    notes: tuple[str, ...] = ()


def ring(brokers: Sequence[int]) -> list[Pair]:
    """Each of ``brokers`` as the leader of all others, or of many brokers as the leader of the next
    two, the first coming after the last."""
    ids = sorted(set(brokers))
    others = len(ids) - 1
    steps = range(1, (others if len(ids) <= WHOLE else min(FOLLOWERS, others)) + 1)
    return [(id, ids[(at + step) % len(ids)]) for step in steps for at, id in enumerate(ids)]


@contextlib.contextmanager
def proving(
    contract: Contract, cells: Sequence[Cell], client: Mapping[str, str], run: str, end: Deadline
) -> Iterator[Future[Proof]]:
    """Within, records go to the brokers of those ``cells`` that passed, beside all that is done.

    The result has an entry for each pair of the `ring`, none for a single broker. It comes within
    ``end``, but for the time that it takes to delete the topic, which is gone afterwards also
    where this is left early.
    """
    mine = Deadline(end.left())
    with ThreadPoolExecutor(1, thread_name_prefix="replication") as pool:
        try:
            yield pool.submit(_prove, contract, cells, client, run, mine)
        finally:
            mine.stop.set()


def _prove(
    contract: Contract, cells: Sequence[Cell], client: Mapping[str, str], run: str, end: Deadline
) -> Proof:
    living = targets_reached(contract, cells)
    pairs = ring([target.broker for target in living])
    if not pairs:
        return Proof()
    access = ReachedBrokers.widest(living, client)
    topic = RunTopic(contract.cluster, run, end.seconds, access, end, suffix="-copies")
    try:
        created = topic.create(pairs)
        if isinstance(created, Failure):
            reason = f"no topic with two replicas could be created: {created.text}"
            unknown = (Verdict.INCONCLUSIVE, refusal(created), reason)
            results = tuple(_result(pair, contract, *unknown) for pair in pairs)
        else:
            outcomes = _send(pairs, created, living, client, end)
            outcomes |= gone(outcomes, {target.broker: target.address for target in living})
            results = check_replication(outcomes, contract, cells)
    finally:
        note = topic.delete()
    return Proof(results, (note,) if note else ())


def _result(
    pair: Pair, contract: Contract, verdict: Verdict, cause: Cause | None = None, reason: str = ""
) -> Replication:
    return Replication(
        leader=pair[0],
        follower=pair[1],
        listener=contract.inter_broker or "",
        verdict=verdict,
        cause=cause,
        reason=reason,
    )


def _send(
    pairs: Sequence[Pair],
    partitions: Partitions,
    reached: Sequence[CellTarget],
    client: Mapping[str, str],
    end: Deadline,
) -> dict[Pair, Failure | None]:
    """What became of a record for each of ``pairs``: None where it was acknowledged."""
    ways = {target.broker: target for target in reversed(reached)}
    numbers = dict(zip(pairs, partitions.numbers, strict=True))
    patience = Deadline(end.left(LIMIT))
    outcomes: dict[Pair, Failure | None] = {}
    senders = []
    for group in turns(pairs, {id: target.listener for id, target in ways.items()}):
        sender = _Sender([ways[leader] for leader, _ in group], client, outcomes)
        senders.append(sender)
        for pair in group:
            sender.send(partitions.topic, numbers[pair], pair)
    while len(outcomes) < len(pairs) and patience.left() and end.left():
        for sender in senders:
            sender.producer.poll(_PATIENCE / len(senders))
    late = Failure("not-copied", f"no acknowledgement within {LIMIT:g} s")
    if patience.seconds < LIMIT or patience.left():
        late = Failure("stopped", "the deadline passed before it was acknowledged")
    for sender in senders:
        sender.producer.purge()
        for pair in sender.pairs:
            outcomes.setdefault(pair, sender.met(pair) or late)
    return outcomes


def turns(pairs: Sequence[Pair], listeners: Mapping[int, str]) -> list[list[Pair]]:
    """``pairs`` by the listener of their leader, and no two of one leader together.

    A broker answers the requests of a connection one after the other: one that waits for a
    follower would hold up the next.
    """
    turns: dict[tuple[str, int], list[Pair]] = {}
    seen = Counter[int]()
    for leader, follower in pairs:
        turns.setdefault((listeners[leader], seen[leader]), []).append((leader, follower))
        seen[leader] += 1
    return list(turns.values())


def gone(
    outcomes: Mapping[Pair, Failure | None], addresses: Mapping[int, Address]
) -> dict[Pair, Failure | None]:
    """Those uncopied of ``outcomes`` with a broker that died meanwhile: they tell nothing."""
    uncopied = [
        pair
        for pair, outcome in outcomes.items()
        if outcome is not None and outcome.error in _UNCOPIED
    ]
    ids = sorted({id for pair in uncopied for id in pair})
    if not ids:
        return {}
    with ThreadPoolExecutor(min(CONNECTIONS, len(ids)), thread_name_prefix="replication") as pool:
        alive = pool.map(lambda id: connects(addresses[id], CONNECT_SECONDS), ids)
        dead = [id for id, is_alive in zip(ids, alive, strict=True) if not is_alive]
    return {
        pair: Failure("gone", f"broker {id} accepts no connection any more")
        for id in dead
        for pair in uncopied
        if id in pair
    }


class _Sender:
    """A producer of which each record goes to another leader, through one listener."""

    def __init__(
        self,
        leaders: Sequence[CellTarget],
        client: Mapping[str, str],
        outcomes: dict[Pair, Failure | None],
    ) -> None:
        self.pairs: list[Pair] = []
        self._outcomes = outcomes
        # what is met at another broker says nothing about this one
        self._errors = EachErrors((leader.broker, Errors(leader.address)) for leader in leaders)
        bootstrap = ",".join(str(target.address) for target in leaders)
        settings = {
            "acks": "all",
            "linger.ms": 0,
            # longer than the outcome is waited for
            "message.timeout.ms": int(2000 * LIMIT),
            "error_cb": self._errors,
        }
        self.producer = Producer(configuration(bootstrap, leaders[0].protocol, client) | settings)

    def met(self, pair: Pair) -> Failure | None:
        """What the client ran into on its way to the leader of ``pair``."""
        return self._errors[pair[0]].first()

    def send(self, topic: str, partition: int, pair: Pair) -> None:
        self.pairs.append(pair)

        def ended(error: KafkaError | None, message: Message) -> None:
            self._outcomes.setdefault(pair, None if error is None else failure_of(error))

        try:
            self.producer.produce(topic, os.urandom(16), partition=partition, on_delivery=ended)
        except KafkaException as error:
            self._outcomes[pair] = failure_of(error)


def check_replication(
    outcomes: Mapping[Pair, Failure | None], contract: Contract, cells: Sequence[Cell] = ()
) -> tuple[Replication, ...]:
    """A result for each pair of ``outcomes``; failures with one explanation have one cause. Pure.

    A leader that none of its followers gets records from is to blame, else a follower that gets
    them from no leader, else the pair alone. Where clients of that listener (``cells``) failed
    to reach the leader as well, that is where to begin.
    """
    known = {
        cell.broker: f"{cell.failed_stage} ({cell.cause.kind})"
        for cell in cells
        if cell.listener == contract.inter_broker and cell.cause is not None
    }
    uncopied = {
        pair
        for pair, outcome in outcomes.items()
        if outcome is not None and outcome.error in _UNCOPIED
    }

    def cause(pair: Pair) -> Cause:
        leader, follower = pair
        led = {outcome for outcome in outcomes if outcome[0] == leader}
        followed = {outcome for outcome in outcomes if outcome[1] == follower}
        if led <= uncopied and len(led) > 1:
            return _unreplicated(sorted(led), contract, known)
        return _unreplicated(sorted(followed) if followed <= uncopied else [pair], contract, known)

    def result(pair: Pair, failure: Failure | None) -> Replication:
        if pair in uncopied:
            return _result(pair, contract, Verdict.FAIL, cause(pair))
        if failure is None:
            return _result(pair, contract, Verdict.PASS)
        reason = f"nothing is known: {failure.text}"
        return _result(pair, contract, Verdict.INCONCLUSIVE, reason=reason)

    return tuple(result(*outcome) for outcome in sorted(outcomes.items()))


def _unreplicated(pairs: Sequence[Pair], contract: Contract, known: Mapping[int, str]) -> Cause:
    """The cause of ``pairs``, which have one leader, or one follower, or are a single one.

    ``known`` says at which stage a client failed to reach a broker through the same listener.
    """
    leaders = sorted({leader for leader, _ in pairs})
    followers = sorted({follower for _, follower in pairs})
    name = contract.inter_broker or "the inter-broker listener"
    advertised = {id: f" ({at})" for place, id, at in contract.places if place.name == name}
    whence = " and ".join(f"broker {id}{advertised.get(id, '')}" for id in leaders)
    those, copy = _brokers(followers), "copies" if len(followers) == 1 else "copy"
    if len(leaders) > 1:
        remedy = f"see what keeps {those} from the other brokers' {name}: its resolver, its routes,"
        remedy += " firewalls, its credentials"
    elif failed := known.get(leaders[0]):
        remedy = f"begin with {name} of broker {leaders[0]}, which failed for clients at {failed}"
    else:
        remedy = f"see that {those} can connect to what broker {leaders[0]} advertises for {name}:"
        remedy += " the name, the port, firewalls, the security protocol"
    return Cause(
        kind=KIND,
        observed=f"{_brokers(leaders)} acknowledged no record within {LIMIT:g} s that {those} had "
        "to copy",
        expected=f"{those} {copy} from {whence} through {name}",
        remedy=f"{remedy}; the log of {those} says more (ReplicaFetcher)",
    )


def _brokers(ids: Sequence[int]) -> str:
    """`broker 1`, `brokers 1 and 2`, `brokers 1, 2 and 3`."""
    *first, last = map(str, ids)
    return f"brokers {', '.join(first)} and {last}" if first else f"broker {last}"
