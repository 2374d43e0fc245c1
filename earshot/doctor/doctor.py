"""The doctor: examines every broker through every listener, up to records, in under a second.

`survey` connects to the addresses, `records` sends and reads the records, and `diagnosis` derives
the cells. This module runs them in order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from earshot.doctor.asking import version_failure
from earshot.doctor.control import LIMIT, mark_broken_vantage
from earshot.doctor.diagnosis import diagnose, ready_for_records
from earshot.doctor.draft import Draft
from earshot.doctor.missing_topic import FENCED, newly_fenced, silent_brokers, without_topic
from earshot.doctor.notes import (
    expiry_notes,
    seed_note,
    unanswered_notes,
    uncompared_cluster,
    unknown_broker_notes,
)
from earshot.doctor.observation import CellTarget, Observation, first_cluster_id
from earshot.doctor.probe import vantage_resolves
from earshot.doctor.records import Records
from earshot.doctor.run_topic import CLEAN_UP_LIMIT, ReachedBrokers, RunTopic
from earshot.doctor.survey import (
    MAX_UNEXPECTED,
    USUAL_DEADLINE,
    AddressResult,
    ListenerAddress,
    connect_to_all,
    facts_of,
    failed_bootstraps,
)
from earshot.doctor.targets import (
    NO_ID,
    addresses_to_ask_again,
    bootstraps_of,
    new_targets_of,
    targets_of,
    targets_without_contract,
)
from earshot.errors import EarshotError
from earshot.files.open_files import raise_limit
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation.client import Failure, protocol_of
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline, unwinding_on_sigterm
from earshot.validation.metadata import MetadataAnswer, match_listener
from earshot.validation.result import Cell, Report
from earshot.validation.terms import Verdict

WORKERS: Final = 16
"""Cells checked in parallel. Each client of librdkafka starts a thread per broker."""
MANY_FILES: Final = 10_000
"""Open files for the clients of a thousand brokers. A process often has only 256 or 1024."""
AGREE_AFTER: Final = (0.3, 1.0)
"""Pauses (s) before each new request to addresses whose answers disagree."""
NOT_ASKED: Final = "records were not asked for"
NOTHING_RESOLVES: Final = "nothing resolves here, not even localhost: no name can be checked"

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

    ``target`` is the contract, or bootstrap addresses. Without a contract, a listener is named
    after its bootstrap address, and its metadata is compared only with itself. ``bootstrap`` adds
    bootstrap addresses to a contract. ``client`` are Kafka's client properties (security only; the
    contract defines the protocol). ``deadline`` bounds the whole run in seconds, except the control
    probe after a failure; a value above `USUAL_DEADLINE` raises the time limits of each address.
    ``on_cell`` is called with each decided cell, before that probe. ``draft`` is filled during the
    run, so that another thread can read a partial report. If ``produce`` is False, nothing is
    written to the cluster. Raises EarshotError for another target, and for client properties that
    cannot be used.

    The topic is deleted at the end, also after KeyboardInterrupt and SIGTERM.
    """
    _check_target(target)
    draft = draft or Draft()
    draft.vantage = vantage
    raise_limit(MANY_FILES)
    end = Deadline(deadline)
    with unwinding_on_sigterm(), _workers(end) as pool:
        run = _Examination(dict(client or {}), end, pool, draft, on_cell)
        if isinstance(target, Contract):
            draft.contract, draft.targets = target, targets_of(target)
            facts = run.observe_contract(target, bootstrap)
        else:
            draft.targets = targets_without_contract(target, protocol_of(run.client), [])
            facts = run.observe_addresses(target)
            draft.cluster_id = first_cluster_id(facts)
        draft.targets = [fact.target for fact in facts]
        draft.brokers = max([0, *map(_broker_count, facts)])
        if _resolves_nothing(facts):
            draft.vantage_failure = NOTHING_RESOLVES
        else:
            cluster = target.cluster if isinstance(target, Contract) else draft.cluster_id
            run.decide(facts, produce, cluster or "unknown")
        probe_limit = max(1.0, end.left(LIMIT))
    report = mark_broken_vantage(draft.report(draft.vantage_failure), vantage, probe_limit)
    return report.model_copy(update={"seconds": draft.seconds})


def _check_target(target: object) -> None:
    if isinstance(target, Contract) or (
        isinstance(target, Sequence)
        and not isinstance(target, str)
        and all(isinstance(seed, Address) for seed in target)
    ):
        return
    raise EarshotError(
        "examine",
        observed=f"found a {type(target).__name__}",
        allowed="a Contract, or a list of Address objects",
        remedy="for a document, Contract.model_validate(document)",
    )


def _broker_count(facts: Observation) -> int:
    """The number of brokers that the answers about one target list."""
    answers = (facts.own_answer, facts.other_answer)
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


def _seed_protocol(contract: Contract, address: Address, client: Mapping[str, str]) -> Protocol:
    """The protocol for a bootstrap address of the user: that of its listener if it has one, else
    that of all listeners if they have one protocol, else that of the client properties."""
    name = match_listener(contract, address, None)
    if name is not None:
        return contract.listener(name).protocol
    protocols = {listener.protocol for listener in contract.listeners}
    return protocols.pop() if len(protocols) == 1 else protocol_of(client)


def _resolves_nothing(facts: Sequence[Observation]) -> bool:
    """True if no name resolved and this machine resolves nothing at all."""
    lookups = [fact.contact.lookup for fact in facts if fact.contact is not None]
    return bool(lookups) and not any(lookup.ok for lookup in lookups) and not vantage_resolves()


@dataclass
class _Examination:
    """One run: creates a topic, exchanges a record per cell, and deletes the topic."""

    client: Mapping[str, str]
    end: Deadline
    pool: ThreadPoolExecutor
    draft: Draft
    on_cell: OnCell | None
    passed_observations: list[Observation] = field(default_factory=list)
    """The observations of the cells that passed."""
    records: Records | None = None
    """The exchange of records, once it has begun."""

    def observe_contract(
        self, contract: Contract, bootstrap: Sequence[Address]
    ) -> list[Observation]:
        """The observations at the addresses of ``contract`` and ``bootstrap``."""
        targets = targets_of(contract)
        addresses: list[ListenerAddress] = [(target.address, target.protocol) for target in targets]
        seed_places = [
            (address, _seed_protocol(contract, address, self.client)) for address in bootstrap
        ]
        bootstrap_targets = bootstraps_of(contract)
        addresses += [
            (bootstrap_target.address, bootstrap_target.protocol)
            for bootstrap_target in bootstrap_targets
        ]
        results = connect_to_all([*addresses, *seed_places], self.client, self.end, self.pool)
        for place in seed_places:
            name = match_listener(contract, place[0], results[place].answer)
            note = seed_note(place[0], name, results[place], contract.cluster_id)
            self.draft.notes.append(note)

        def observations(results: Mapping[ListenerAddress, AddressResult]) -> list[Observation]:
            seeds: dict[str, list[MetadataAnswer]] = {}
            for place in seed_places:
                answer = results[place].answer
                name = match_listener(contract, place[0], answer)
                if name is not None and answer is not None:
                    seeds.setdefault(name, []).append(answer)
            for bootstrap_target in bootstrap_targets:
                answer = results[bootstrap_target.address, bootstrap_target.protocol].answer
                if (
                    answer
                    and match_listener(contract, bootstrap_target.address, answer)
                    == bootstrap_target.listener
                ):
                    seeds.setdefault(bootstrap_target.listener, []).append(answer)
            facts = facts_of(targets, results, seeds, contract)
            return facts + failed_bootstraps(bootstrap_targets, results, contract)

        facts = self._settled_observations(results, observations)
        self.draft.notes += uncompared_cluster(contract, facts)
        return facts

    def observe_addresses(self, seeds: Sequence[Address]) -> list[Observation]:
        """The observations at ``seeds``, and at the advertised addresses of all brokers that an
        answer lists."""
        protocol = protocol_of(self.client)
        places = [(seed, protocol) for seed in seeds]
        results = connect_to_all(places, self.client, self.end, self.pool)
        answers = [result.answer for result in results.values() if result.answer is not None]
        targets = targets_without_contract(seeds, protocol, answers)
        own_addresses = {target.address for target in targets}
        targets += [
            CellTarget(str(seed), protocol, NO_ID, seed)
            for seed in dict.fromkeys(seeds)
            if results[seed, protocol].answering_brokers.is_contradictory
            and seed not in own_addresses
        ]
        seed_count = len(targets)
        while True:
            new_places = [
                place for target in targets if (place := (target.address, protocol)) not in results
            ]
            results |= connect_to_all(new_places, self.client, self.end, self.pool)
            new_targets = new_targets_of(targets, results)[
                : seed_count + MAX_UNEXPECTED - len(targets)
            ]
            if not new_targets:
                break
            targets += new_targets

        def observations(results: Mapping[ListenerAddress, AddressResult]) -> list[Observation]:
            groups = {
                name: [
                    answer
                    for seed in places
                    if (answer := results[seed].answer) and str(seed[0]) in name.split(",")
                ]
                for name in (target.listener for target in targets)
            }
            return facts_of(targets, results, groups, None)

        return self._settled_observations(results, observations)

    def _settled_observations(
        self,
        results: dict[ListenerAddress, AddressResult],
        observations: Callable[[Mapping[ListenerAddress, AddressResult]], list[Observation]],
    ) -> list[Observation]:
        """The ``observations`` of ``results``, after new requests to addresses whose answer lacks a
        broker that answers itself: the others list a broker that just joined a moment later."""
        facts = observations(results)
        for pause in AGREE_AFTER:
            places = addresses_to_ask_again(facts, results)
            if not places or self.end.left() < pause or self.end.stop.wait(pause):
                break
            new_results = connect_to_all(places, self.client, self.end, self.pool)
            results |= {
                place: result for place, result in new_results.items() if result.answer is not None
            }
            facts = observations(results)
        return facts

    def decide(self, facts: Sequence[Observation], produce: bool, cluster: str) -> None:
        """Adds a cell per entry of ``facts`` to the draft; ``cluster`` is for the topic name."""
        waiting: dict[int, Observation] = {}
        for index, fact in enumerate(facts):
            if produce and ready_for_records(fact):
                waiting[index] = fact
            else:
                self._decide(index, fact if produce else replace(fact, skip=NOT_ASKED))
        silent = silent_brokers(facts)
        with contextlib.closing(self._exchange(waiting, cluster, silent)) as exchanged_facts:
            for index, fact in exchanged_facts:
                self._decide(index, fact)
        self.draft.notes += unknown_broker_notes(self.passed_observations)
        self.draft.notes += unanswered_notes(self.passed_observations)
        self.draft.notes += expiry_notes(self.passed_observations)
        if self.records is not None:
            self.draft.notes += self.records.group_notes()

    def _decide(self, index: int, facts: Observation) -> None:
        cell = diagnose(facts, self.draft.vantage)
        self.draft.cells[index] = cell
        if cell.verdict is Verdict.PASS:
            self.passed_observations.append(facts)
        if self.on_cell is not None:
            self.on_cell(cell)

    def _exchange(
        self, waiting: Mapping[int, Observation], cluster: str, silent: Sequence[int]
    ) -> Generator[tuple[int, Observation], None, None]:
        if not waiting:
            return
        access = ReachedBrokers.widest((fact.target for fact in waiting.values()), self.client)
        lifetime = self.end.seconds + CLEAN_UP_LIMIT
        topic = RunTopic(cluster, self.draft.run, lifetime, access, self.end)
        try:
            brokers = sorted({fact.target.broker for fact in waiting.values()})
            seconds_left = self.end.left()
            partitions = topic.create([(broker,) for broker in brokers])
            if fenced_brokers := newly_fenced(topic, brokers, partitions):
                brokers = [broker for broker in brokers if broker not in fenced_brokers]
                for index, fact in waiting.items():
                    if fact.target.broker in fenced_brokers:
                        yield index, replace(fact, produced=FENCED)
                waiting = {
                    index: fact for index, fact in waiting.items() if fact.target.broker in brokers
                }
                partitions = topic.create([(broker,) for broker in brokers])
            if isinstance(partitions, Failure):
                silences = self._api_versions_failures(waiting, partitions)
                for index, fact in waiting.items():
                    yield index, without_topic(fact, partitions, seconds_left, silences, silent)
                return
            sweep = self.pool.submit(topic.sweep)
            numbers = dict(zip(brokers, partitions.numbers, strict=True))
            self.records = Records(partitions.topic, numbers, self.draft.run, self.client, self.end)
            yield from self.records.exchange(waiting, self.pool)
            if deleted_topics := sweep.result():
                self.draft.notes.append(f"deleted {len(deleted_topics)} topic(s) of killed runs")
        finally:
            if note := topic.delete():
                self.draft.notes.append(note)

    def _api_versions_failures(
        self, waiting: Mapping[int, Observation], failure: Failure
    ) -> dict[Address, Failure]:
        """The failure of ApiVersions at each address that answers metadata requests, if the
        creation of a topic ended with ``failure`` because nothing answered in time.

        Clients send ApiVersions first on each connection, the doctor's own requests need none.
        """
        if failure.error != "timeout":
            return {}
        peers = [fact.peer for fact in waiting.values() if fact.peer is not None]
        failures = self.pool.map(lambda peer: version_failure(peer, self.end), peers)
        return {
            peer.address: failure
            for peer, failure in zip(peers, failures, strict=True)
            if failure is not None
        }
