"""Checks that every broker replicates records from the others through the inter-broker listener.

With acks=all, a leader acknowledges a record only when its follower has copied it. So a record in a
partition with one follower proves that this follower can connect to this leader. Clients never use
that connection, and in a cluster without data nothing else does.
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

from earshot.doctor.observation import CellTarget
from earshot.doctor.probe import connects
from earshot.doctor.run_topic import Partitions, ReachedBrokers, RunTopic
from earshot.doctor.targets import targets_reached
from earshot.listeners.address import Address
from earshot.validation.client import EachErrors, Errors, Failure, configuration, failure_of
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.refusals import refusal
from earshot.validation.result import Cause, Cell, Replication
from earshot.validation.terms import Verdict

MAX_FULL_MESH: Final = 6
"""The maximum number of brokers for which every pair is checked."""
FOLLOWERS: Final = 2
"""The followers checked per leader in a larger cluster: most topics have three replicas."""
LIMIT: Final = 20.0
"""Seconds for all records together. An idle follower fetches twice a second."""
KIND: Final = "not-replicated"
"""The cause of failures in reports."""
CONNECT_SECONDS: Final = 1.0
CONNECTIONS: Final = 32
"""The maximum number of brokers that are connected to in parallel."""
_PATIENCE: Final = 0.05
"""Seconds of one poll, short, so that a run stops soon when asked to."""
_UNCOPIED_ERRORS: Final = frozenset({"not-copied", "replicas"})
"""Errors of a record that reached its leader and was not acknowledged."""

Pair = tuple[int, int]
"""The broker ids of a leader and its follower."""


@dataclass(frozen=True)
class Proof:
    """The results of the replication check, and notes for the report."""

    results: tuple[Replication, ...] = ()
    notes: tuple[str, ...] = ()


def ring(brokers: Sequence[int]) -> list[Pair]:
    """The pairs to check. Each of ``brokers`` leads all others; beyond `MAX_FULL_MESH` brokers, the
    next `FOLLOWERS` in the order of ids, where the first follows the last."""
    ids = sorted(set(brokers))
    other_count = len(ids) - 1
    steps = range(
        1, (other_count if len(ids) <= MAX_FULL_MESH else min(FOLLOWERS, other_count)) + 1
    )
    return [(id, ids[(index + step) % len(ids)]) for step in steps for index, id in enumerate(ids)]


@contextlib.contextmanager
def replication_proof(
    contract: Contract, cells: Sequence[Cell], client: Mapping[str, str], run: str, end: Deadline
) -> Iterator[Future[Proof]]:
    """Checks replication between the brokers of the passed ``cells``, in a thread of its own.

    The proof has a result for each pair of the `ring`, and none for a single broker. It is done by
    ``end``, except for the deletion of the topic. Leaving the context early stops the check and
    deletes the topic.
    """
    deadline = Deadline(end.left())
    with ThreadPoolExecutor(1, thread_name_prefix="replication") as pool:
        try:
            yield pool.submit(_prove, contract, cells, client, run, deadline)
        finally:
            deadline.stop.set()


def _prove(
    contract: Contract, cells: Sequence[Cell], client: Mapping[str, str], run: str, end: Deadline
) -> Proof:
    live_targets = targets_reached(contract, cells)
    pairs = ring([target.broker for target in live_targets])
    if not pairs:
        return Proof()
    access = ReachedBrokers.widest(live_targets, client)
    topic = RunTopic(contract.cluster, run, end.seconds, access, end, suffix="-copies")
    try:
        partitions = topic.create(pairs)
        if isinstance(partitions, Failure):
            reason = f"no topic with two replicas could be created: {partitions.text}"
            result_parts = (Verdict.INCONCLUSIVE, refusal(partitions), reason)
            results = tuple(_result(pair, contract, *result_parts) for pair in pairs)
        else:
            outcomes = _send_all(pairs, partitions, live_targets, client, end)
            outcomes |= dead_broker_failures(
                outcomes, {target.broker: target.address for target in live_targets}
            )
            if None in outcomes.values():
                outcomes |= _misplaced(outcomes, pairs, topic.misplaced(pairs))
            results = check_replication(outcomes, contract, cells)
    finally:
        note = topic.delete()
    return Proof(results, (note,) if note else ())


def _misplaced(
    outcomes: Mapping[Pair, Failure | None], pairs: Sequence[Pair], reasons: Sequence[str]
) -> dict[Pair, Failure | None]:
    """New failures for acknowledged records that prove nothing about their pair: the reason, which
    is empty for other pairs, is that other brokers may have the partition."""
    return {
        pair: Failure("misplaced", reason)
        for pair, reason in zip(pairs, reasons, strict=True)
        if reason and outcomes[pair] is None
    }


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


def _send_all(
    pairs: Sequence[Pair],
    partitions: Partitions,
    live_targets: Sequence[CellTarget],
    client: Mapping[str, str],
    end: Deadline,
) -> dict[Pair, Failure | None]:
    """The failure of the record of each of ``pairs``; None if it was acknowledged."""
    leaders = {target.broker: target for target in reversed(live_targets)}
    numbers = dict(zip(pairs, partitions.numbers, strict=True))
    patience = Deadline(end.left(LIMIT))
    outcomes: dict[Pair, Failure | None] = {}
    senders = []
    for group in batches(pairs, {id: target.listener for id, target in leaders.items()}):
        sender = _Sender([leaders[leader] for leader, _ in group], client, outcomes)
        senders.append(sender)
        for pair in group:
            sender.send(partitions.topic, numbers[pair], pair)
    while len(outcomes) < len(pairs) and patience.left() and end.left():
        for sender in senders:
            sender.producer.poll(_PATIENCE / len(senders))
    timeout = Failure("not-copied", f"no acknowledgement within {LIMIT:g} s")
    if patience.seconds < LIMIT or patience.left():
        timeout = Failure("stopped", "the deadline passed before it was acknowledged")
    for sender in senders:
        sender.producer.purge()
        for pair in sender.pairs:
            outcomes.setdefault(pair, sender.client_error(pair) or timeout)
    return outcomes


def batches(pairs: Sequence[Pair], listeners: Mapping[int, str]) -> list[list[Pair]]:
    """Groups ``pairs`` by their leader's listener. Each group has a leader at most once.

    A broker answers the requests of one connection in order, so a request that waits for a
    follower would delay the next. ``listeners`` maps broker ids to listener names.
    """
    by_leader: dict[tuple[str, int], list[Pair]] = {}
    batch_count = Counter[int]()
    for leader, follower in pairs:
        by_leader.setdefault((listeners[leader], batch_count[leader]), []).append(
            (leader, follower)
        )
        batch_count[leader] += 1
    return list(by_leader.values())


def dead_broker_failures(
    outcomes: Mapping[Pair, Failure | None], addresses: Mapping[int, Address]
) -> dict[Pair, Failure | None]:
    """New failures for uncopied pairs with a broker that has died: they prove nothing about
    replication."""
    uncopied_pairs = [
        pair
        for pair, outcome in outcomes.items()
        if outcome is not None and outcome.error in _UNCOPIED_ERRORS
    ]
    ids = sorted({id for pair in uncopied_pairs for id in pair})
    if not ids:
        return {}
    with ThreadPoolExecutor(min(CONNECTIONS, len(ids)), thread_name_prefix="replication") as pool:
        live_flags = pool.map(lambda id: connects(addresses[id], CONNECT_SECONDS), ids)
        dead_ids = [id for id, is_alive in zip(ids, live_flags, strict=True) if not is_alive]
    return {
        pair: Failure("gone", f"broker {id} accepts no connection any more")
        for id in dead_ids
        for pair in uncopied_pairs
        if id in pair
    }


class _Sender:
    """A producer for one listener. Each of its records goes to another leader."""

    def __init__(
        self,
        leaders: Sequence[CellTarget],
        client: Mapping[str, str],
        outcomes: dict[Pair, Failure | None],
    ) -> None:
        self.pairs: list[Pair] = []
        self._outcomes = outcomes
        # errors count for the broker at which they occurred
        self._errors = EachErrors((leader.broker, Errors(leader.address)) for leader in leaders)
        bootstrap = ",".join(str(target.address) for target in leaders)
        settings = {
            "acks": "all",
            "linger.ms": 0,
            # longer than `_send_all` waits
            "message.timeout.ms": int(2000 * LIMIT),
            "error_cb": self._errors,
        }
        self.producer = Producer(configuration(bootstrap, leaders[0].protocol, client) | settings)

    def client_error(self, pair: Pair) -> Failure | None:
        """The client's first error at the leader of ``pair``."""
        return self._errors[pair[0]].first()

    def send(self, topic: str, partition: int, pair: Pair) -> None:
        self.pairs.append(pair)

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            self._outcomes.setdefault(pair, None if error is None else failure_of(error))

        try:
            self.producer.produce(
                topic, os.urandom(16), partition=partition, on_delivery=on_delivery
            )
        except KafkaException as error:
            self._outcomes[pair] = failure_of(error)


def check_replication(
    outcomes: Mapping[Pair, Failure | None], contract: Contract, cells: Sequence[Cell] = ()
) -> tuple[Replication, ...]:
    """A result for each pair of ``outcomes``. Pairs with the same explanation share a cause.

    The cause is the leader if none of its followers copies; else the follower if it copies from no
    leader; else the pair. If clients of the same listener failed to reach the leader too
    (``cells``), the remedy says to begin there.
    """
    client_failures = {
        cell.broker: f"{cell.failed_stage} ({cell.cause.kind})"
        for cell in cells
        if cell.listener == contract.inter_broker and cell.cause is not None
    }
    uncopied_pairs = {
        pair
        for pair, outcome in outcomes.items()
        if outcome is not None and outcome.error in _UNCOPIED_ERRORS
    }

    def cause(pair: Pair) -> Cause:
        leader, follower = pair
        leader_pairs = {outcome for outcome in outcomes if outcome[0] == leader}
        follower_pairs = {outcome for outcome in outcomes if outcome[1] == follower}
        if leader_pairs <= uncopied_pairs and len(leader_pairs) > 1:
            return _replication_cause(sorted(leader_pairs), contract, client_failures)
        return _replication_cause(
            sorted(follower_pairs) if follower_pairs <= uncopied_pairs else [pair],
            contract,
            client_failures,
        )

    def result(pair: Pair, failure: Failure | None) -> Replication:
        if pair in uncopied_pairs:
            return _result(pair, contract, Verdict.FAIL, cause(pair))
        if failure is None:
            return _result(pair, contract, Verdict.PASS)
        reason = f"nothing is known: {failure.text}"
        return _result(pair, contract, Verdict.INCONCLUSIVE, reason=reason)

    return tuple(result(*outcome) for outcome in sorted(outcomes.items()))


def _replication_cause(
    pairs: Sequence[Pair], contract: Contract, client_failures: Mapping[int, str]
) -> Cause:
    """The cause of ``pairs``, which share a leader or a follower.

    ``client_failures`` maps broker ids to the stage at which a client of the same listener failed.
    """
    leaders = sorted({leader for leader, _ in pairs})
    followers = sorted({follower for _, follower in pairs})
    name = contract.inter_broker or "the inter-broker listener"
    advertised = {
        id: f" ({address})" for place, id, address in contract.places if place.name == name
    }
    sources = " and ".join(f"broker {id}{advertised.get(id, '')}" for id in leaders)
    follower_text, verb = _brokers(followers), "copies" if len(followers) == 1 else "copy"
    if len(leaders) > 1:
        remedy = f"see what keeps {follower_text} from the other brokers' {name}: its resolver,"
        remedy += " its routes, firewalls, its credentials"
    elif client_failure := client_failures.get(leaders[0]):
        remedy = f"begin with {name} of broker {leaders[0]}, which failed for clients at "
        remedy += client_failure
    else:
        remedy = f"see that {follower_text} can connect to what broker {leaders[0]} advertises for "
        remedy += f"{name}: the name, the port, firewalls, the security protocol"
    return Cause(
        kind=KIND,
        observed=f"{_brokers(leaders)} acknowledged no record within {LIMIT:g} s that "
        f"{follower_text} had to copy",
        expected=f"{follower_text} {verb} from {sources} through {name}",
        remedy=f"{remedy}; the log of {follower_text} has more (ReplicaFetcher)",
    )


def _brokers(ids: Sequence[int]) -> str:
    """`broker 1`, `brokers 1 and 2`, `brokers 1, 2 and 3`."""
    *first_ids, last_id = map(str, ids)
    return f"brokers {', '.join(first_ids)} and {last_id}" if first_ids else f"broker {last_id}"
