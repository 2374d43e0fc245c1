"""The doctor: every broker through every listener, up to one record, in well under a second.

Nothing is judged here: addresses are looked at (`survey`), records go out and come back
(`exchange`), and `diagnosis` says what that means.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from earshot.listeners.address import Address
from earshot.listeners.model import Protocol
from earshot.validation import exchange
from earshot.validation.client import Failure, configuration, protocol_of
from earshot.validation.contract import Contract
from earshot.validation.control import LIMIT, excused
from earshot.validation.deadline import Deadline, unwinding_on_sigterm
from earshot.validation.diagnosis import Facts, Sent, judge, ready, undecided
from earshot.validation.ephemeral import CLEAN_UP_LIMIT, Access, EphemeralTopic
from earshot.validation.metadata import Answer, identify, match_listener
from earshot.validation.probe import nameservers, vantage_resolves
from earshot.validation.result import Cell, Report, Vantage, Verdict
from earshot.validation.survey import Place, Sighting, facts_of, look, targets_of, targets_seen
from earshot.validation.topic import run_id, topic_name

WORKERS: Final = 16
"""Cells at a time: every client of librdkafka has a thread per broker of its cluster."""
IDENTIFY_LIMIT: Final = 1.0
QUORUM_PATIENCE: Final = 2.0
"""Seconds of a run below which a topic that was not created proves nothing."""
NOT_ASKED: Final = "records were not asked for"

OnCell = Callable[[Cell], None]


def examine(
    target: Contract | Sequence[Address],
    *,
    client: Mapping[str, str] | None = None,
    bootstrap: Sequence[Address] = (),
    deadline: float = 10.0,
    vantage: str = "host",
    produce: bool = True,
    on_cell: OnCell | None = None,
) -> Report:
    """Examines a cluster from this machine and reports a cell per listener and broker.

    ``target`` is the contract, or bootstrap addresses where there is none: then a listener is
    named after the address that led to it, and what its metadata advertises is judged by itself.
    ``bootstrap`` adds addresses to come in by to a contract. ``client`` are Kafka's client
    properties (security only; the contract says which protocol). ``deadline`` bounds the whole run
    in seconds, but for the control probe of what failed; ``on_cell`` gets each cell when it is
    decided, before that probe. Without ``produce`` nothing is written to the cluster. Raises
    EarshotError for client properties that cannot be used.

    The topic is deleted at the end, also after KeyboardInterrupt and SIGTERM.
    """
    started, begun = datetime.now(UTC), time.monotonic()
    properties = dict(client or {})
    end = Deadline(deadline)
    notes: list[str] = []
    with unwinding_on_sigterm(), _workers(end) as pool:
        if isinstance(target, Contract):
            facts = _by_contract(target, bootstrap, properties, end, pool, notes)
            cluster, seen_as = target.cluster, target
        else:
            facts = _by_address(target, properties, end, pool)
            cluster = next((item.cluster_id for item in facts if item.cluster_id), "unknown")
            seen_as = None
        place = Vantage(name=vantage, where=socket.gethostname(), resolvers=nameservers())
        if _blind(facts):
            reason = "nothing resolves here, not even localhost: no name can be judged"
            cells = [
                undecided(item.target, vantage, reason, Verdict.INCONCLUSIVE) for item in facts
            ]
            place = place.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "reason": reason})
            run = run_id()
        else:
            examination = _Examination(cluster, vantage, properties, end, pool, notes, on_cell)
            cells = examination.run(facts, produce)
            run = examination.run_id
        left = max(1.0, end.left(LIMIT))
    report = Report(
        kind="doctor",
        run=run,
        cluster=cluster,
        placement=seen_as.placement if seen_as else "",
        kafka_version=seen_as.kafka_version if seen_as else "",
        started=started,
        seconds=time.monotonic() - begun,
        cells=tuple(cells),
        vantages=(place,),
        notes=tuple(notes),
    )
    report = excused(report, vantage, left)
    return report.model_copy(update={"seconds": time.monotonic() - begun})


@contextlib.contextmanager
def _workers(end: Deadline) -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="doctor")
    try:
        yield pool
    finally:
        end.stop.set()
        pool.shutdown(cancel_futures=True)


def _by_contract(
    contract: Contract,
    bootstrap: Sequence[Address],
    client: Mapping[str, str],
    end: Deadline,
    pool: ThreadPoolExecutor,
    notes: list[str],
) -> list[Facts]:
    targets = targets_of(contract)
    places: list[Place] = [(item.address, item.protocol) for item in targets]
    given = [(address, _seed_protocol(contract, address, client)) for address in bootstrap]
    sightings = look([*places, *given], client, end, pool)
    seeds: dict[str, list[Answer]] = {}
    for place in given:
        answer = sightings[place].answer
        name = match_listener(contract, place[0], answer)
        notes.append(_seed_note(place[0], name, sightings[place]))
        if name is not None and answer is not None:
            seeds.setdefault(name, []).append(answer)
    return facts_of(targets, sightings, seeds, contract)


def _seed_protocol(contract: Contract, address: Address, client: Mapping[str, str]) -> Protocol:
    """The protocol to try at an address that the user gave: its listener's, or what all speak."""
    name = match_listener(contract, address, None)
    if name is not None:
        return contract.listener(name).protocol
    spoken = {item.protocol for item in contract.listeners}
    return spoken.pop() if len(spoken) == 1 else protocol_of(client)


def _seed_note(address: Address, name: str | None, sighting: Sighting) -> str:
    if sighting.answer is None:
        return f"{address} gave no metadata" + (f"; it belongs to {name}" if name else "")
    listed = ", ".join(f"{id} at {it}" for id, it in sorted(sighting.answer.brokers.items()))
    led = f"is listener {name}" if name else "is none of the contract's listeners"
    return f"{address} {led}; it advertises broker {listed}"


def _by_address(
    seeds: Sequence[Address], client: Mapping[str, str], end: Deadline, pool: ThreadPoolExecutor
) -> list[Facts]:
    protocol = protocol_of(client)
    sightings = look([(seed, protocol) for seed in seeds], client, end, pool)
    answers = [item.answer for item in sightings.values() if item.answer is not None]
    targets = targets_seen(seeds, protocol, answers)
    new = [(item.address, protocol) for item in targets]
    sightings |= look([place for place in new if place not in sightings], client, end, pool)
    groups: dict[str, list[Answer]] = {}
    for target in targets:
        asked = set(target.listener.split(","))
        groups[target.listener] = [item for item in answers if str(item.asked) in asked]
    return facts_of(targets, sightings, groups, None)


def _blind(facts: Sequence[Facts]) -> bool:
    """Whether no name resolved and this machine is to blame."""
    lookups = [item.contact.lookup for item in facts if item.contact is not None]
    return bool(lookups) and not any(item.ok for item in lookups) and not vantage_resolves()


class _Examination:
    """The records of one run: one topic, a record per cell, and the topic gone at the end."""

    def __init__(
        self,
        cluster: str,
        vantage: str,
        client: Mapping[str, str],
        end: Deadline,
        pool: ThreadPoolExecutor,
        notes: list[str],
        on_cell: OnCell | None,
    ) -> None:
        self.run_id = run_id()
        self._cluster = cluster
        self._vantage = vantage
        self._client = client
        self._end = end
        self._pool = pool
        self._notes = notes
        self._on_cell = on_cell or (lambda cell: None)

    def run(self, facts: Sequence[Facts], produce: bool) -> list[Cell]:
        """A cell per entry of ``facts``, in the same order."""
        cells: list[Cell | None] = [None] * len(facts)
        waiting: dict[int, Facts] = {}
        for index, item in enumerate(facts):
            if produce and ready(item):
                waiting[index] = item
            else:
                cells[index] = self._decide(item if produce else replace(item, skip=NOT_ASKED))
        with contextlib.closing(self._exchange(waiting)) as exchanged:
            for index, item in exchanged:
                cells[index] = self._decide(item)
        return [cell for cell in cells if cell is not None]

    def _decide(self, facts: Facts) -> Cell:
        cell = judge(facts, self._vantage)
        self._on_cell(cell)
        return cell

    def _exchange(self, waiting: Mapping[int, Facts]) -> Generator[tuple[int, Facts], None, None]:
        if not waiting:
            return
        access = Access.widest((item.target for item in waiting.values()), self._client)
        name = topic_name(self._cluster, self.run_id, self._end.seconds + CLEAN_UP_LIMIT)
        topic = EphemeralTopic(name, self._cluster, access, self._end)
        try:
            created = topic.create(sorted({item.target.broker for item in waiting.values()}))
            if isinstance(created, Failure):
                given = self._end.seconds
                for index, item in waiting.items():
                    yield index, without_topic(item, created, given)
                return
            sweep = self._pool.submit(topic.sweep)
            futures = {
                self._pool.submit(self._one, item, name, created[item.target.broker]): index
                for index, item in waiting.items()
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
            if gone := sweep.result():
                self._notes.append(f"deleted {len(gone)} topic(s) of killed runs")
        finally:
            if note := topic.delete():
                self._notes.append(note)

    def _one(self, facts: Facts, topic: str, partition: int) -> Facts:
        target = facts.target
        values = configuration(str(target.address), target.protocol, self._client)
        headers = {
            "run": self.run_id,
            "listener": target.listener,
            "broker": str(target.broker),
            "sequence": "0",
        }
        sent = exchange.produce(values, topic, partition, headers, self._end)
        if not isinstance(sent, Sent):
            return replace(facts, produced=self._misrouted(facts, sent))
        back = exchange.consume(values, topic, sent, self.run_id, self._end)
        return replace(facts, produced=sent, consumed=back)

    def _misrouted(self, facts: Facts, failure: Failure) -> Failure:
        """``failure``, or who answers in that broker's place."""
        target = facts.target
        who = identify(target.address, target.broker, target.protocol, self._client, IDENTIFY_LIMIT)
        if who is None or who == target.broker:
            return failure
        text = f"{target.address} leads to broker {who}, not to broker {target.broker}"
        return Failure("misrouted", text)


def without_topic(facts: Facts, failure: Failure, given: float) -> Facts:
    """``facts`` where no topic could be created within a run of ``given`` seconds.

    Only a cluster that had time to answer is said to have no quorum.
    """
    if failure.error == "timeout" and given >= QUORUM_PATIENCE:
        text = f"brokers answer, but no topic can be created: {failure.text}"
        return replace(facts, produced=Failure("no-quorum", text))
    return replace(facts, prevented=f"no topic could be created here: {failure.text}")
