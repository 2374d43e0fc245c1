"""The doctor: every broker through every listener, up to one record, in well under a second.

Nothing is checked here: addresses are looked at (`survey`), records go out and come back
(`records`), and `diagnosis` says what that means.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from earshot.doctor.control import LIMIT, mark_inconclusive
from earshot.doctor.diagnosis import Observation, diagnose, ready
from earshot.doctor.draft import Draft
from earshot.doctor.members import targets_added, to_ask_again
from earshot.doctor.probe import vantage_resolves
from earshot.doctor.records import Records
from earshot.doctor.run_topic import CLEAN_UP_LIMIT, ReachedBrokers, RunTopic
from earshot.doctor.survey import (
    MOST_UNEXPECTED,
    USUAL_DEADLINE,
    AddressResult,
    ListenerAddress,
    bootstraps_of,
    connect_to_all,
    facts_of,
    failed_bootstraps,
    targets_of,
    targets_seen,
)
from earshot.listeners.address import Address
from earshot.listeners.listed import shortened
from earshot.listeners.terms import Protocol
from earshot.validation.client import Failure, protocol_of
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline, unwinding_on_sigterm
from earshot.validation.metadata import NOT_SAID, MetadataAnswer, match_listener
from earshot.validation.refusals import refusal
from earshot.validation.result import Cell, Report
from earshot.validation.terms import Verdict

WORKERS: Final = 16
"""Cells at a time: every client of librdkafka has a thread per broker of its cluster."""
QUORUM_PATIENCE: Final = 2.0
"""Seconds below which a topic that was not created in them proves nothing."""
AGREE_AFTER: Final = (0.3, 1.0)
"""Seconds before answers that disagree are asked for again: twice at most."""
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
    draft: Draft | None = None,
) -> Report:
    """Examines a cluster from this machine and reports a cell per listener and broker.

    ``target`` is the contract, or bootstrap addresses where there is none: then a listener is
    named after the address that led to it, and what its metadata advertises is checked by itself.
    ``bootstrap`` adds addresses to come in by to a contract. ``client`` are Kafka's client
    properties (security only; the contract says which protocol). ``deadline`` bounds the whole run
    in seconds, but for the control probe of what failed; one above `USUAL_DEADLINE` gives each
    address longer to answer. ``on_cell`` gets each cell when it is decided, before that probe.
    ``draft`` has the report as far as it has come. Without ``produce`` nothing is written to the
    cluster. Raises EarshotError for client properties that cannot be used.

    The topic is deleted at the end, also after KeyboardInterrupt and SIGTERM.
    """
    draft = draft or Draft()
    draft.vantage = vantage
    end = Deadline(deadline)
    with unwinding_on_sigterm(), _workers(end) as pool:
        run = _Examination(dict(client or {}), end, pool, draft, on_cell)
        if isinstance(target, Contract):
            draft.contract, draft.targets = target, targets_of(target)
            facts = run.by_contract(target, bootstrap)
        else:
            draft.targets = targets_seen(target, protocol_of(run.client), [])
            facts = run.by_address(target)
            draft.cluster_id = _cluster_id(facts)
        draft.targets = [fact.target for fact in facts]
        draft.brokers = max([0, *map(_listed, facts)])
        if _blind(facts):
            draft.broken = BLIND
        else:
            cluster = target.cluster if isinstance(target, Contract) else draft.cluster_id
            run.decide(facts, produce, cluster or "unknown")
        left = max(1.0, end.left(LIMIT))
    report = mark_inconclusive(draft.report(draft.broken), vantage, left)
    return report.model_copy(update={"seconds": draft.seconds})


def _listed(facts: Observation) -> int:
    """How many brokers the answers about one target list."""
    answers = (facts.own, facts.via)
    return max(
        len(answer.brokers) if isinstance(answer, MetadataAnswer) else 0 for answer in answers
    )


@contextlib.contextmanager
def _workers(end: Deadline) -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="doctor")
    try:
        yield pool
    finally:
        end.stop.set()
        pool.shutdown(cancel_futures=True)


def _cluster_id(facts: Sequence[Observation]) -> str:
    return next((fact.cluster_id for fact in facts if fact.cluster_id), "")


def _not_compared(contract: Contract, facts: Sequence[Observation]) -> list[str]:
    cluster_id = _cluster_id(facts)
    if contract.cluster_id is not None or not cluster_id:
        return []
    what = f"cluster {cluster_id} answers; the contract names no cluster_id, so it is not known"
    return [f"{what} whether these are its brokers or another cluster's at the same addresses"]


def _seed_protocol(contract: Contract, address: Address, client: Mapping[str, str]) -> Protocol:
    """The protocol to try at an address that the user gave: its listener's, or what all speak."""
    name = match_listener(contract, address, None)
    if name is not None:
        return contract.listener(name).protocol
    spoken = {listener.protocol for listener in contract.listeners}
    return spoken.pop() if len(spoken) == 1 else protocol_of(client)


def _seed_note(
    address: Address, name: str | None, result: AddressResult, expected: str | None
) -> str:
    if result.answer is None:
        return f"{address} gave no metadata{f'; it belongs to {name}' if name else ''}"
    cluster_id = result.answer.cluster_id
    if expected is not None and cluster_id == NOT_SAID:
        return f"{address} names no cluster id, and the contract is of cluster {expected}"
    if expected is not None and cluster_id != expected:
        return f"{address} belongs to cluster {cluster_id}, not to {expected} of the contract"
    listed = result.answer.listed
    named = f"broker {listed}" if listed else "no broker"
    led = f"is listener {name}" if name else "is none of the contract's listeners"
    return f"{address} {led}; it advertises {named}"


def _blind(facts: Sequence[Observation]) -> bool:
    """Whether no name resolved and this machine is to blame."""
    lookups = [fact.contact.lookup for fact in facts if fact.contact is not None]
    return bool(lookups) and not any(lookup.ok for lookup in lookups) and not vantage_resolves()


@dataclass
class _Examination:
    """One run: one topic, a record per cell, and the topic gone at the end."""

    client: Mapping[str, str]
    end: Deadline
    pool: ThreadPoolExecutor
    draft: Draft
    on_cell: OnCell | None
    passed: list[Observation] = field(default_factory=list)
    """By what the cells that passed were decided."""

    def by_contract(self, contract: Contract, bootstrap: Sequence[Address]) -> list[Observation]:
        """What is seen at the addresses of ``contract``, and at those of ``bootstrap``."""
        targets = targets_of(contract)
        addresses: list[ListenerAddress] = [(target.address, target.protocol) for target in targets]
        given = [(address, _seed_protocol(contract, address, self.client)) for address in bootstrap]
        shared = bootstraps_of(contract)
        addresses += [(item.address, item.protocol) for item in shared]
        results = connect_to_all([*addresses, *given], self.client, self.end, self.pool)
        for place in given:
            name = match_listener(contract, place[0], results[place].answer)
            note = _seed_note(place[0], name, results[place], contract.cluster_id)
            self.draft.notes.append(note)

        def judged(results: Mapping[ListenerAddress, AddressResult]) -> list[Observation]:
            seeds: dict[str, list[MetadataAnswer]] = {}
            for place in given:
                answer = results[place].answer
                name = match_listener(contract, place[0], answer)
                if name is not None and answer is not None:
                    seeds.setdefault(name, []).append(answer)
            for item in shared:
                answer = results[item.address, item.protocol].answer
                if answer and match_listener(contract, item.address, answer) == item.listener:
                    seeds.setdefault(item.listener, []).append(answer)
            facts = facts_of(targets, results, seeds, contract)
            return facts + failed_bootstraps(shared, results, contract)

        facts = self._settled(results, judged)
        self.draft.notes += _not_compared(contract, facts)
        return facts

    def by_address(self, seeds: Sequence[Address]) -> list[Observation]:
        """What is seen at ``seeds``, at the addresses that they advertise, and at those of brokers
        that only the answers there list."""
        protocol = protocol_of(self.client)
        places = [(seed, protocol) for seed in seeds]
        results = connect_to_all(places, self.client, self.end, self.pool)
        answers = [result.answer for result in results.values() if result.answer is not None]
        targets = targets_seen(seeds, protocol, answers)
        seen = len(targets)
        while True:
            new = [it for target in targets if (it := (target.address, protocol)) not in results]
            results |= connect_to_all(new, self.client, self.end, self.pool)
            added = targets_added(targets, results)[: seen + MOST_UNEXPECTED - len(targets)]
            if not added:
                break
            targets += added

        def judged(results: Mapping[ListenerAddress, AddressResult]) -> list[Observation]:
            groups = {
                name: [
                    answer
                    for seed in places
                    if (answer := results[seed].answer) and str(seed[0]) in name.split(",")
                ]
                for name in (target.listener for target in targets)
            }
            return facts_of(targets, results, groups, None)

        return self._settled(results, judged)

    def _settled(
        self,
        results: dict[ListenerAddress, AddressResult],
        judged: Callable[[Mapping[ListenerAddress, AddressResult]], list[Observation]],
    ) -> list[Observation]:
        """What ``judged`` makes of ``results``, once answers that do not list a broker have been
        asked for again: a broker that just joined reaches the others' metadata within a moment."""
        facts = judged(results)
        for pause in AGREE_AFTER:
            places = to_ask_again(facts, results)
            if not places or self.end.left() < pause or self.end.stop.wait(pause):
                break
            again = connect_to_all(places, self.client, self.end, self.pool)
            results |= {place: it for place, it in again.items() if it.answer is not None}
            facts = judged(results)
        return facts

    def decide(self, facts: Sequence[Observation], produce: bool, cluster: str) -> None:
        """Puts a cell per entry of ``facts`` into the draft; ``cluster`` is in the topic's name."""
        waiting: dict[int, Observation] = {}
        for index, fact in enumerate(facts):
            if produce and ready(fact):
                waiting[index] = fact
            else:
                self._decide(index, fact if produce else replace(fact, skip=NOT_ASKED))
        with contextlib.closing(self._exchange(waiting, cluster)) as exchanged:
            for index, fact in exchanged:
                self._decide(index, fact)
        self.draft.notes += _untold(self.passed)

    def _decide(self, index: int, facts: Observation) -> None:
        cell = diagnose(facts, self.draft.vantage)
        self.draft.cells[index] = cell
        if cell.verdict is Verdict.PASS:
            self.passed.append(facts)
        if self.on_cell is not None:
            self.on_cell(cell)

    def _exchange(
        self, waiting: Mapping[int, Observation], cluster: str
    ) -> Generator[tuple[int, Observation], None, None]:
        if not waiting:
            return
        access = ReachedBrokers.widest((item.target for item in waiting.values()), self.client)
        lifetime = self.end.seconds + CLEAN_UP_LIMIT
        topic = RunTopic(cluster, self.draft.run, lifetime, access, self.end)
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
            records = Records(created.topic, partitions, self.draft.run, self.client, self.end)
            yield from records.exchange(waiting, self.pool)
            if gone := sweep.result():
                self.draft.notes.append(f"deleted {len(gone)} topic(s) of killed runs")
        finally:
            if note := topic.delete():
                self.draft.notes.append(note)


def _untold(passed: Sequence[Observation]) -> list[str]:
    """A note where addresses answered, and which broker answers there is not known."""
    unknown = [it for it in passed if it.answering.unknown]
    if not unknown:
        return []
    where = shortened([str(it.target.address) for it in unknown])
    reason = unknown[0].answering.unknown
    return [f"which broker answers is not known at {where}: {reason}"]


def without_topic(facts: Observation, failure: Failure, given: float) -> Observation:
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
