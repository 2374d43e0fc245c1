"""Connects to every address in parallel, and derives an observation per broker from the results.

Only `connect_to_all` does input and output.
"""

import math
import ssl
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from threading import Semaphore

from earshot.doctor.asking import (
    IDENTIFY_LIMIT,
    MAX_IPS,
    NOT_ASKED,
    NOT_TOLD,
    AnsweringBrokers,
    ReachableAddress,
    ask_address,
)
from earshot.doctor.observation import CellTarget, Observation
from earshot.doctor.probe import (
    CONNECT_LIMIT,
    EXPLAIN_LIMIT,
    RESOLVE_LIMIT,
    Contact,
    reach,
    resolve,
    tls_context,
    with_server_answers,
)
from earshot.doctor.protocol_detection import DetectedProtocol, detect_protocol
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.names.lookup import Diagnosis, unanswered
from earshot.names.resolvers import SYSTEM_LABEL
from earshot.validation.client import Failure, translate
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.login import Login
from earshot.validation.metadata import (
    MetadataAnswer,
    admin_client,
    ask,
    identify,
    majority_cluster,
    match_listener,
    unexpected_brokers,
)

ASK_LIMIT = 4.0
"""Seconds that a connected broker may take for its metadata."""
USUAL_DEADLINE = 10.0
"""The deadline (s) for which the limits of resolving, connecting and asking are chosen."""
MAX_FACTOR = 6.0
"""The largest factor by which a longer deadline raises these limits."""
DETECT_LIMIT = 2.0
"""Seconds to detect the protocol of a listener that returned no metadata."""
NATIVE_CLIENTS = 2
"""The maximum number of librdkafka clients at the same time, each with a thread per broker. They
are used only for SASL mechanisms that earshot does not implement."""
NATIVE_CONNECTIONS = 3
"""The number of librdkafka clients that ask one address for its broker's id."""
MAX_UNEXPECTED = 200
"""The maximum number of unexpected brokers of a listener that get a cell."""
PATIENCE = 1.0
"""If fewer seconds than this were left, a missing answer proves nothing."""

ListenerAddress = tuple[Address, Protocol]


@dataclass(frozen=True)
class AddressResult:
    """The result for one address: the connection to it, and what it answered."""

    contact: Contact
    reply: MetadataAnswer | Failure | None
    seconds_left: float = math.inf
    """Seconds that were left for the last step: resolving, connecting or answering."""
    answering_brokers: AnsweringBrokers = NOT_ASKED
    peer: ReachableAddress | None = None
    """To ask again; None if earshot does not implement the SASL mechanism."""

    @property
    def inconclusive_reason(self) -> str:
        """Why the answer, or the missing answer, proves nothing; empty if it proves something."""
        contact = self.contact
        if isinstance(self.reply, Failure) and self.reply.error == "too-many":
            return f"{contact.address} was not checked: {self.reply.text}"
        answers = [contact.security, self.reply]
        is_silent = (
            contact.lookup.diagnosis is Diagnosis.TIMEOUT
            or (
                not contact.connected
                and any(attempt.error == "timeout" for attempt in contact.attempts)
            )
            or any(isinstance(answer, Failure) and answer.error == "timeout" for answer in answers)
        )
        if not is_silent or self.seconds_left >= PATIENCE:
            return ""
        return (
            f"the deadline left {self.seconds_left:.1f} s for {contact.address}, which was silent"
        )

    @property
    def answer(self) -> MetadataAnswer | None:
        return self.reply if isinstance(self.reply, MetadataAnswer) else None


def connect_to_all(
    addresses: Iterable[ListenerAddress], client: Mapping[str, str], end: Deadline, pool: Executor
) -> dict[ListenerAddress, AddressResult]:
    """The result for every address, each once. All are tried in parallel, until ``end``.

    Raises EarshotError for client properties that cannot be used.
    """
    distinct = list(dict.fromkeys(addresses))
    values = translate(client)
    tls = any(protocol.tls for _, protocol in distinct)
    if client and distinct:  # the doctor's other clients would refuse them later
        admin_client("", distinct[0][1], client)
    check = _AddressCheck(client, Login.of(values), tls_context(values) if tls else None, end)
    futures = {address: pool.submit(check.run, address) for address in distinct}
    return {address: future.result() for address, future in futures.items()}


@dataclass(frozen=True)
class _AddressCheck:
    """Connects to an address and asks for metadata, with the same client properties for all."""

    client: Mapping[str, str]
    login: Login | None
    context: ssl.SSLContext | None
    end: Deadline
    native_clients: Semaphore = field(default_factory=lambda: Semaphore(NATIVE_CLIENTS))

    def run(self, listener_address: ListenerAddress) -> AddressResult:
        address, protocol = listener_address
        if not self.end.left():
            return AddressResult(
                Contact(address, unanswered(address.host, SYSTEM_LABEL, 0.0)), None, 0.0
            )
        context = self.context if protocol.tls else None
        factor = min(MAX_FACTOR, max(1.0, self.end.seconds / USUAL_DEADLINE))
        limit = self.end.left(RESOLVE_LIMIT * factor)
        lookup = resolve([address.host], limit)[address.host]
        lookup = with_server_answers(lookup, self.end.left(EXPLAIN_LIMIT))
        if not lookup.ok:
            return AddressResult(Contact(address, lookup), None, limit)
        limit = self.end.left(CONNECT_LIMIT * factor)
        contact = reach(address, lookup, context, max(0.05, limit), self.end)
        answer: MetadataAnswer | Failure | None = None
        answering_brokers, peer = NOT_ASKED, None
        if contact.connected and not isinstance(contact.security, Failure):
            ips = lookup.addresses[len(contact.attempts) - 1 :][:MAX_IPS]
            peer = ReachableAddress(address, ips, context, self.login if protocol.sasl else None)
            limit = self.end.left(ASK_LIMIT * factor)
            uses_librdkafka = protocol.sasl and self.login is None
            answer, answering_brokers = (
                self._ask_with_librdkafka(listener_address, limit)
                if uses_librdkafka
                else ask_address(peer, self.end.within(limit))
            )
            peer = None if uses_librdkafka else peer
        failure = contact.security if isinstance(contact.security, Failure) else answer
        if isinstance(failure, Failure):
            contact, answer = _with_detected_protocol(contact, protocol, failure, answer, self.end)
        return AddressResult(contact, answer, limit, answering_brokers, peer)

    def _ask_with_librdkafka(
        self, listener_address: ListenerAddress, limit: float
    ) -> tuple[MetadataAnswer | Failure, AnsweringBrokers]:
        """Asks with librdkafka, for SASL mechanisms that earshot does not implement."""
        address, protocol = listener_address
        with self.native_clients:
            answer = ask(address, protocol, self.client, limit, self.end.stop)
            if isinstance(answer, Failure) or not answer.brokers:
                return answer, NOT_ASKED
            own_ids = (
                id for id, listed_address in answer.brokers.items() if listed_address == address
            )
            candidate = next(own_ids, min(answer.brokers))
            identify_limit = self.end.left(IDENTIFY_LIMIT)
            answers = [
                identify(address, candidate, protocol, self.client, identify_limit)
                for _ in range(NATIVE_CONNECTIONS)
            ]
        ids = tuple(id for id in answers if id is not None)
        return answer, AnsweringBrokers(ids, unknown_reason="" if ids else NOT_TOLD)


def _with_detected_protocol(
    contact: Contact,
    protocol: Protocol,
    failure: Failure,
    answer: MetadataAnswer | Failure | None,
    end: Deadline,
) -> tuple[Contact, MetadataAnswer | Failure | None]:
    """``contact`` and ``answer``, with the protocol of the server if it is not ``protocol``."""
    # the protocol is known then, and a probe may fail without a client certificate
    if failure.error == "no-login":
        return _with_protocol_failure(contact, protocol, DetectedProtocol(protocol.tls, ())), answer
    detect_limit = end.left(DETECT_LIMIT)
    # after these errors the server's protocol is known to be right, or cannot be detected
    is_certain = "certificate" in failure.error or failure.error in (
        "mechanism",
        "too-many",
        "http",
    )
    if is_certain or detect_limit < PATIENCE:
        return contact, answer
    ip = contact.lookup.addresses[len(contact.attempts) - 1]
    detected = detect_protocol((ip, contact.address.port), detect_limit)
    if detected.foreign is not None:
        return replace(contact, security=None), detected.foreign
    return _with_protocol_failure(contact, protocol, detected), answer


def _with_protocol_failure(
    contact: Contact, protocol: Protocol, detected: DetectedProtocol
) -> Contact:
    difference = detected.other_than(protocol)
    if not difference:
        return contact
    return replace(
        contact, security=Failure("protocol", f"{difference}, and this client {protocol}")
    )


def facts_of(
    targets: Sequence[CellTarget],
    results: Mapping[ListenerAddress, AddressResult],
    seeds: Mapping[str, Sequence[MetadataAnswer]],
    contract: Contract | None,
) -> list[Observation]:
    """One observation for each target and each unexpected broker. No input or output.

    ``seeds`` maps listener names to further answers, from addresses that the user gave.
    """
    answers: dict[str, list[MetadataAnswer]] = {target.listener: [] for target in targets}
    strange_addresses: set[Address] = set()
    for target in targets:
        answer = results[target.address, target.protocol].answer
        if answer is not None and not _other_listener(contract, target, answer):
            answers[target.listener].append(answer)
            if answer.brokers.get(target.broker) != target.address:
                # the cell of this broker reports the difference
                strange_addresses.add(answer.asked)
    for name, seed_answers in seeds.items():
        answers.setdefault(name, []).extend(seed_answers)
    contract_cluster = contract.cluster_id if contract is not None else None
    # answers of other listeners decide the cluster id only if this listener has none
    all_answers = [result.answer for result in results.values() if result.answer is not None]
    cluster = (
        contract_cluster
        or majority_cluster(chain(*answers.values()))
        or majority_cluster(all_answers)
    )
    cluster_answers = {
        name: [answer for answer in group if answer.cluster_id == cluster]
        for name, group in answers.items()
    }
    listed_ids = {
        name: {id for answer in group for id in answer.brokers}
        for name, group in cluster_answers.items()
    }
    comparable_answers = {
        name: {
            answer.asked: answer
            for answer in group
            if answer.brokers and answer.asked not in strange_addresses
        }
        for name, group in cluster_answers.items()
    }
    facts = []
    for target in targets:
        result = results[target.address, target.protocol]
        own_answer, name = result.answer, target.listener
        observation = Observation(
            target,
            contact=result.contact,
            own_answer=result.reply,
            other_answer=_best_answer(cluster_answers[target.listener], target.broker)
            if own_answer is None
            else None,
            inconclusive_reason=result.inconclusive_reason,
            answering_brokers=result.answering_brokers,
            peer=result.peer,
            cluster_id=cluster,
            contract_names_cluster=contract_cluster is not None,
            other_listeners=tuple(
                listener
                for listener, ids in listed_ids.items()
                if listener != name and target.broker in ids
            ),
            answering_listener=_other_listener(contract, target, own_answer) if own_answer else "",
            conflicting_answers=tuple(
                answer
                for answer in comparable_answers[name].values()
                if answer.brokers.get(target.broker) != target.address
            ),
        )
        facts.append(observation)
    return facts + (
        _unexpected_brokers(contract, targets, cluster_answers) if contract is not None else []
    )


def failed_bootstraps(
    targets: Sequence[CellTarget],
    results: Mapping[ListenerAddress, AddressResult],
    contract: Contract,
) -> list[Observation]:
    """The observations of bootstrap addresses that do not lead to their listener.

    A bootstrap address that works gets no cell. Only brokers get cells.
    """
    facts = facts_of(targets, results, {}, contract)
    return [
        fact
        for fact in facts
        if not fact.is_unexpected
        and (
            not isinstance(fact.own_answer, MetadataAnswer)
            or fact.answering_listener
            or fact.own_answer.cluster_id != fact.cluster_id
            or fact.answering_brokers.is_contradictory
        )
    ]


def _best_answer(answers: Sequence[MetadataAnswer], broker: int) -> MetadataAnswer | None:
    """An answer of the listener that lists ``broker``, or any."""
    listing_answers = [answer for answer in answers if broker in answer.brokers]
    return next(iter(listing_answers or answers), None)


def _other_listener(contract: Contract | None, target: CellTarget, answer: MetadataAnswer) -> str:
    """Another listener of ``contract`` whose addresses ``answer`` gives, else an empty text."""
    if contract is None or not answer.brokers:
        return ""
    matched = match_listener(contract, target.address, answer)
    return "" if matched in (None, target.listener) else str(matched)


def _unexpected_brokers(
    contract: Contract,
    targets: Sequence[CellTarget],
    answers: Mapping[str, Sequence[MetadataAnswer]],
) -> list[Observation]:
    observations = []
    models = {target.listener: target for target in reversed(targets)}
    for name, group in answers.items():
        known_ids = [broker.id for broker in contract.brokers if name in broker.advertised]
        for id, address in islice(unexpected_brokers(group, known_ids).items(), MAX_UNEXPECTED):
            target = replace(models[name], broker=id, address=address)
            observations.append(
                Observation(target, other_answer=_best_answer(group, id), is_unexpected=True)
            )
    return observations
