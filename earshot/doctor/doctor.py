"""The doctor: every broker through every listener, up to one record, in well under a second.

Nothing is checked here: addresses are looked at (`survey`), records go out and come back
(`records`), and `diagnosis` says what that means.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from earshot.doctor.control import LIMIT, mark_inconclusive
from earshot.doctor.diagnosis import Observed, diagnose, ready, undecided
from earshot.doctor.probe import vantage_resolves
from earshot.doctor.records import Records
from earshot.doctor.run_topic import CLEAN_UP_LIMIT, ReachedBrokers, RunTopic
from earshot.doctor.survey import (
    USUAL_DEADLINE,
    ListenerAddress,
    Sighting,
    facts_of,
    look,
    targets_of,
    targets_seen,
)
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.names.configured import nameservers
from earshot.validation.client import Failure, protocol_of
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline, unwinding_on_sigterm
from earshot.validation.metadata import NOT_SAID, MetadataAnswer, match_listener
from earshot.validation.refusals import refusal
from earshot.validation.result import Cell, Report, Vantage
from earshot.validation.terms import Verdict
from earshot.validation.topic import run_id

WORKERS: Final = 16
"""Cells at a time: every client of librdkafka has a thread per broker of its cluster."""
QUORUM_PATIENCE: Final = 2.0
"""Seconds below which a topic that was not created in them proves nothing."""
NO_TOPIC: Final = "the cluster refused a topic for the records, so none were sent"
NOT_ASKED: Final = "records were not asked for"
BLIND: Final = "nothing resolves here, not even localhost: no name can be checked"

OnCell = Callable[[Cell], None]


def examine(
    target: Contract | Sequence[Address],
    *,
    client: Mapping[str, str] | None = None,
    bootstrap: Sequence[Address] = (),
    deadline: float = USUAL_DEADLINE,
    vantage: str = "host",
    produce: bool = True,
    on_cell: OnCell | None = None,
) -> Report:
    """Examines a cluster from this machine and reports a cell per listener and broker.

    ``target`` is the contract, or bootstrap addresses where there is none: then a listener is
    named after the address that led to it, and what its metadata advertises is checked by itself.
    ``bootstrap`` adds addresses to come in by to a contract. ``client`` are Kafka's client
    properties (security only; the contract says which protocol). ``deadline`` bounds the whole run
    in seconds, but for the control probe of what failed; one above `USUAL_DEADLINE` gives each
    address longer to answer. ``on_cell`` gets each cell when it is decided, before that probe.
    Without ``produce`` nothing is written to the cluster. Raises EarshotError for client
    properties that cannot be used.

    The topic is deleted at the end, also after KeyboardInterrupt and SIGTERM.
    """
    started, begun = datetime.now(UTC), time.monotonic()
    end = Deadline(deadline)
    with unwinding_on_sigterm(), _workers(end) as pool:
        run = _Examination(vantage, dict(client or {}), end, pool, [], on_cell)
        if isinstance(target, Contract):
            facts, cluster = run.by_contract(target, bootstrap), target.cluster
            known: dict[str, Any] = {"cluster_id": target.cluster_id or ""}
            known |= {"placement": target.placement, "kafka_version": target.kafka_version}
        else:
            facts = run.by_address(target)
            known = {"cluster_id": _cluster_id(facts)}
            cluster = known["cluster_id"] or "unknown"
        place = Vantage(name=vantage, where=socket.gethostname(), resolvers=nameservers())
        if _blind(facts):
            reason, unknown = BLIND, Verdict.INCONCLUSIVE
            cells = [undecided(item.target, vantage, reason, unknown) for item in facts]
            place = place.model_copy(update={"verdict": unknown, "reason": reason})
        else:
            cells = run.decided(facts, produce, cluster)
        left = max(1.0, end.left(LIMIT))
    report = Report(
        kind="doctor",
        run=run.run_id,
        cluster=cluster,
        started=started,
        seconds=time.monotonic() - begun,
        cells=tuple(cells),
        vantages=(place,),
        notes=tuple(run.notes),
        **known,
    )
    report = mark_inconclusive(report, vantage, left)
    return report.model_copy(update={"seconds": time.monotonic() - begun})


@contextlib.contextmanager
def _workers(end: Deadline) -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="doctor")
    try:
        yield pool
    finally:
        end.stop.set()
        pool.shutdown(cancel_futures=True)


def _cluster_id(facts: Sequence[Observed]) -> str:
    return next((item.cluster_id for item in facts if item.cluster_id), "")


def _not_compared(contract: Contract, facts: Sequence[Observed]) -> list[str]:
    found = _cluster_id(facts)
    if contract.cluster_id is not None or not found:
        return []
    what = f"cluster {found} answers; the contract names no cluster_id, so it is not known whether"
    return [f"{what} these are its brokers or another cluster's at the same addresses"]


def _seed_protocol(contract: Contract, address: Address, client: Mapping[str, str]) -> Protocol:
    """The protocol to try at an address that the user gave: its listener's, or what all speak."""
    name = match_listener(contract, address, None)
    if name is not None:
        return contract.listener(name).protocol
    spoken = {item.protocol for item in contract.listeners}
    return spoken.pop() if len(spoken) == 1 else protocol_of(client)


def _seed_note(address: Address, name: str | None, sighting: Sighting, expected: str | None) -> str:
    if sighting.answer is None:
        return f"{address} gave no metadata{f'; it belongs to {name}' if name else ''}"
    found = sighting.answer.cluster_id
    if expected is not None and found not in (expected, NOT_SAID):
        return f"{address} belongs to cluster {found}, not to {expected} of the contract"
    listed = sighting.answer.listed
    said = f"broker {listed}" if listed else "no broker"
    led = f"is listener {name}" if name else "is none of the contract's listeners"
    return f"{address} {led}; it advertises {said}"


def _blind(facts: Sequence[Observed]) -> bool:
    """Whether no name resolved and this machine is to blame."""
    lookups = [item.contact.lookup for item in facts if item.contact is not None]
    return bool(lookups) and not any(item.ok for item in lookups) and not vantage_resolves()


@dataclass
class _Examination:
    """One run: one topic, a record per cell, and the topic gone at the end."""

    vantage: str
    client: Mapping[str, str]
    end: Deadline
    pool: ThreadPoolExecutor
    notes: list[str]
    on_cell: OnCell | None
    run_id: str = field(default_factory=lambda: run_id())

    def by_contract(self, contract: Contract, bootstrap: Sequence[Address]) -> list[Observed]:
        """What is seen at the addresses of ``contract``, and at those of ``bootstrap``."""
        targets = targets_of(contract)
        addresses: list[ListenerAddress] = [(item.address, item.protocol) for item in targets]
        given = [(address, _seed_protocol(contract, address, self.client)) for address in bootstrap]
        sightings = look([*addresses, *given], self.client, self.end, self.pool)
        seeds: dict[str, list[MetadataAnswer]] = {}
        for place in given:
            answer = sightings[place].answer
            name = match_listener(contract, place[0], answer)
            self.notes.append(_seed_note(place[0], name, sightings[place], contract.cluster_id))
            if name is not None and answer is not None:
                seeds.setdefault(name, []).append(answer)
        facts = facts_of(targets, sightings, seeds, contract)
        self.notes += _not_compared(contract, facts)
        return facts

    def by_address(self, seeds: Sequence[Address]) -> list[Observed]:
        """What is seen at ``seeds``, and at the addresses that they advertise."""
        protocol = protocol_of(self.client)
        places = [(seed, protocol) for seed in seeds]
        sightings = look(places, self.client, self.end, self.pool)
        answers = [item.answer for item in sightings.values() if item.answer is not None]
        targets = targets_seen(seeds, protocol, answers)
        new = [it for target in targets if (it := (target.address, protocol)) not in sightings]
        sightings |= look(new, self.client, self.end, self.pool)
        groups = {
            name: [item for item in answers if str(item.asked) in name.split(",")]
            for name in (target.listener for target in targets)
        }
        return facts_of(targets, sightings, groups, None)

    def decided(self, facts: Sequence[Observed], produce: bool, cluster: str) -> list[Cell]:
        """A cell per entry of ``facts``, in the same order; ``cluster`` is in the topic's name."""
        cells: list[Cell | None] = [None] * len(facts)
        waiting: dict[int, Observed] = {}
        for index, item in enumerate(facts):
            if produce and ready(item):
                waiting[index] = item
            else:
                cells[index] = self._decide(item if produce else replace(item, skip=NOT_ASKED))
        with contextlib.closing(self._exchange(waiting, cluster)) as exchanged:
            for index, item in exchanged:
                cells[index] = self._decide(item)
        return [cell for cell in cells if cell is not None]

    def _decide(self, facts: Observed) -> Cell:
        cell = diagnose(facts, self.vantage)
        if self.on_cell is not None:
            self.on_cell(cell)
        return cell

    def _exchange(
        self, waiting: Mapping[int, Observed], cluster: str
    ) -> Generator[tuple[int, Observed], None, None]:
        if not waiting:
            return
        access = ReachedBrokers.widest((item.target for item in waiting.values()), self.client)
        lifetime = self.end.seconds + CLEAN_UP_LIMIT
        topic = RunTopic(cluster, self.run_id, lifetime, access, self.end)
        try:
            brokers = sorted({item.target.broker for item in waiting.values()})
            given = self.end.left()
            created = topic.create([(broker,) for broker in brokers])
            if isinstance(created, Failure):
                for index, item in waiting.items():
                    yield index, without_topic(item, created, given)
                return
            sweep = self.pool.submit(topic.sweep)
            partitions = dict(zip(brokers, created.numbers, strict=True))
            records = Records(created.topic, partitions, self.run_id, self.client, self.end)
            yield from records.exchange(waiting, self.pool)
            if gone := sweep.result():
                self.notes.append(f"deleted {len(gone)} topic(s) of killed runs")
        finally:
            if note := topic.delete():
                self.notes.append(note)


def without_topic(facts: Observed, failure: Failure, given: float) -> Observed:
    """``facts`` where no topic could be created, for which ``given`` seconds were left.

    Only a cluster that had time to answer is said to have no quorum.
    """
    if failure.error == "timeout" and given >= QUORUM_PATIENCE:
        text = f"brokers answer, but no topic can be created: {failure.text}"
        return replace(facts, produced=Failure("no-quorum", text))
    cause = refusal(failure)
    if cause is None:
        return replace(facts, prevented=f"no topic could be created here: {failure.text}")
    return replace(facts, prevented=NO_TOPIC, refusal=cause)
