"""Connects to every address in parallel, and derives from the results what is known of each broker.

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
    MOST_IPS,
    NOT_ASKED,
    NOT_TOLD,
    AnsweringBrokers,
    ReachableAddress,
    ask_address,
)
from earshot.doctor.diagnosis import CellTarget, Observation
from earshot.doctor.probe import (
    CONNECT_LIMIT,
    EXPLAIN_LIMIT,
    RESOLVE_LIMIT,
    Contact,
    explained,
    reach,
    resolve,
    tls_context,
)
from earshot.doctor.spoken import SpokenSecurity, spoken
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
    unexpected,
)
from earshot.validation.result import Cell
from earshot.validation.terms import Verdict

ASK_LIMIT = 4.0
"""Seconds that a connected broker may take for its metadata."""
USUAL_DEADLINE = 10.0
"""The deadline, in seconds, for which the limits of resolving, connecting and asking are meant."""
MOST_TIMES = 6.0
"""The largest factor by which a longer deadline raises these limits."""
SPOKEN_LIMIT = 2.0
"""Seconds to detect the protocol of a listener that returned no metadata."""
NATIVE_AT_ONCE = 2
"""Clients of librdkafka that ask at the same time, each with a thread per broker that it learns of.
They are used only for SASL mechanisms that earshot does not implement."""
NATIVE_CONNECTIONS = 3
"""Clients of librdkafka that ask one address which broker it is."""
MOST_UNEXPECTED = 200
"""The maximum number of unexpected brokers of a listener that get a cell."""
PATIENCE = 1.0
"""If fewer seconds than this were left, a missing answer proves nothing."""

ListenerAddress = tuple[Address, Protocol]


@dataclass(frozen=True)
class AddressResult:
    """The result for one address: the connection to it, and what it answered."""

    contact: Contact
    reply: MetadataAnswer | Failure | None
    waited: float = math.inf
    """Seconds that were left for the last step: resolving, connecting or answering."""
    answering: AnsweringBrokers = NOT_ASKED
    peer: ReachableAddress | None = None
    """To ask again; None if earshot does not implement the SASL mechanism."""

    @property
    def undecided(self) -> str:
        """Why the answer, or the missing answer, proves nothing; empty if it proves something."""
        contact = self.contact
        if isinstance(self.reply, Failure) and self.reply.error == "too-many":
            return f"{contact.address} was not looked at: {self.reply.text}"
        answers = [contact.security, self.reply]
        silent = (
            contact.lookup.diagnosis is Diagnosis.TIMEOUT
            or (
                not contact.connected
                and any(attempt.error == "timeout" for attempt in contact.attempts)
            )
            or any(isinstance(answer, Failure) and answer.error == "timeout" for answer in answers)
        )
        if not silent or self.waited >= PATIENCE:
            return ""
        return f"the deadline left {self.waited:.1f} s for {contact.address}, which was silent"

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
    turns: Semaphore = field(default_factory=lambda: Semaphore(NATIVE_AT_ONCE))

    def run(self, listener_address: ListenerAddress) -> AddressResult:
        address, protocol = listener_address
        if not self.end.left():
            return AddressResult(
                Contact(address, unanswered(address.host, SYSTEM_LABEL, 0.0)), None, 0.0
            )
        context = self.context if protocol.tls else None
        times = min(MOST_TIMES, max(1.0, self.end.seconds / USUAL_DEADLINE))
        left = self.end.left(RESOLVE_LIMIT * times)
        lookup = resolve([address.host], left)[address.host]
        lookup = explained(lookup, self.end.left(EXPLAIN_LIMIT))
        if not lookup.ok:
            return AddressResult(Contact(address, lookup), None, left)
        left = self.end.left(CONNECT_LIMIT * times)
        contact = reach(address, lookup, context, max(0.05, left), self.end)
        answer: MetadataAnswer | Failure | None = None
        answering, peer = NOT_ASKED, None
        if contact.connected and not isinstance(contact.security, Failure):
            ips = lookup.addresses[len(contact.attempts) - 1 :][:MOST_IPS]
            peer = ReachableAddress(address, ips, context, self.login if protocol.sasl else None)
            left = self.end.left(ASK_LIMIT * times)
            native = protocol.sasl and self.login is None
            answer, answering = (
                self._ask_with_librdkafka(listener_address, left)
                if native
                else ask_address(peer, self.end.within(left))
            )
            peer = None if native else peer
        failure = contact.security if isinstance(contact.security, Failure) else answer
        if isinstance(failure, Failure):
            contact, answer = _with_detected_protocol(contact, protocol, failure, answer, self.end)
        return AddressResult(contact, answer, left, answering, peer)

    def _ask_with_librdkafka(
        self, listener_address: ListenerAddress, limit: float
    ) -> tuple[MetadataAnswer | Failure, AnsweringBrokers]:
        """Asks with librdkafka, for SASL mechanisms that earshot does not implement."""
        address, protocol = listener_address
        with self.turns:
            answer = ask(address, protocol, self.client, limit, self.end.stop)
            if isinstance(answer, Failure) or not answer.brokers:
                return answer, NOT_ASKED
            own = (id for id, at in answer.brokers.items() if at == address)
            candidate = next(own, min(answer.brokers))
            left = self.end.left(IDENTIFY_LIMIT)
            ids = [
                identify(address, candidate, protocol, self.client, left)
                for _ in range(NATIVE_CONNECTIONS)
            ]
        known = tuple(id for id in ids if id is not None)
        return answer, AnsweringBrokers(known, unknown="" if known else NOT_TOLD)


def _with_detected_protocol(
    contact: Contact,
    protocol: Protocol,
    failure: Failure,
    answer: MetadataAnswer | Failure | None,
    end: Deadline,
) -> tuple[Contact, MetadataAnswer | Failure | None]:
    """``contact`` and ``answer``, with the protocol of the server if it is not ``protocol``."""
    if (
        failure.error == "no-login"
    ):  # the protocol is known, and a probe may fail without a certificate
        return _speaks(contact, protocol, SpokenSecurity(protocol.tls, ())), answer
    left = end.left(SPOKEN_LIMIT)
    # after these errors the server's protocol is known to be right, or cannot be detected
    known = "certificate" in failure.error or failure.error in ("mechanism", "too-many", "http")
    if known or left < PATIENCE:
        return contact, answer
    ip = contact.lookup.addresses[len(contact.attempts) - 1]
    actual = spoken((ip, contact.address.port), left)
    if actual.foreign is not None:
        return replace(contact, security=None), actual.foreign
    return _speaks(contact, protocol, actual), answer


def _speaks(contact: Contact, protocol: Protocol, actual: SpokenSecurity) -> Contact:
    other = actual.other_than(protocol)
    if not other:
        return contact
    return replace(contact, security=Failure("protocol", f"{other}, and this client {protocol}"))


def targets_of(contract: Contract) -> list[CellTarget]:
    """A target per listener and broker of ``contract``, listeners in order, brokers by id."""
    return [
        CellTarget(it.name, it.protocol, id, address, it.scopes)
        for it, id, address in contract.places
    ]


def bootstraps_of(contract: Contract) -> list[CellTarget]:
    """One target for each bootstrap address that is not a broker's own address."""
    return [
        CellTarget(it.name, it.protocol, NO_ID, address, it.scopes)
        for it, address in contract.bootstraps
    ]


def targets_reached(contract: Contract, cells: Iterable[Cell]) -> list[CellTarget]:
    """The targets of ``contract`` whose ``cells`` passed."""
    passed = {(cell.listener, cell.broker) for cell in cells if cell.verdict is Verdict.PASS}
    return [it for it in targets_of(contract) if (it.listener, it.broker) in passed]


def targets_seen(
    seeds: Sequence[Address], protocol: Protocol, answers: Sequence[MetadataAnswer]
) -> list[CellTarget]:
    """Without a contract: a target per broker that ``answers`` advertise.

    If the answers of two bootstrap addresses share a broker, both belong to one listener, named
    after both. A bootstrap address without such an answer is a target itself.
    """
    groups: list[tuple[list[Address], dict[int, Address], set[tuple[str, int, Address]]]] = []
    for answer in answers:
        own = {(answer.cluster_id, *item) for item in answer.brokers.items()}
        for asked, brokers, known in groups:
            if own & known:
                asked.append(answer.asked)
                brokers.update({**answer.brokers, **brokers})
                known |= own
                break
        else:
            groups.append(([answer.asked], dict(answer.brokers), own))
    targets = []
    for asked, brokers, _ in groups:
        name = ",".join(map(str, asked))
        targets += [CellTarget(name, protocol, id, it) for id, it in sorted(brokers.items())]
    listing = {answer.asked for answer in answers if answer.brokers}
    rest = [seed for seed in seeds if seed not in listing]
    return targets + [CellTarget(str(seed), protocol, NO_ID, seed) for seed in rest]


NO_ID = -1
"""The broker id of a seed that named no broker, as librdkafka writes it."""


def facts_of(
    targets: Sequence[CellTarget],
    results: Mapping[ListenerAddress, AddressResult],
    seeds: Mapping[str, Sequence[MetadataAnswer]],
    contract: Contract | None,
) -> list[Observation]:
    """One observation for each target and each unexpected broker. No input or output.

    ``seeds`` holds further answers by listener name, from addresses that the user gave.
    """
    answers: dict[str, list[MetadataAnswer]] = {target.listener: [] for target in targets}
    strange: set[Address] = set()
    for target in targets:
        answer = results[target.address, target.protocol].answer
        if answer is not None and not _answers_as(contract, target, answer):
            answers[target.listener].append(answer)
            if answer.brokers.get(target.broker) != target.address:
                strange.add(answer.asked)  # the cell of this broker reports the difference
    for name, given in seeds.items():
        answers.setdefault(name, []).extend(given)
    expected = contract.cluster_id if contract is not None else None
    # answers of other listeners decide the cluster id only if this listener has none
    answered = [answer for it in results.values() if (answer := it.answer) is not None]
    cluster = expected or majority_cluster(chain(*answers.values())) or majority_cluster(answered)
    ours = {
        name: [answer for answer in group if answer.cluster_id == cluster]
        for name, group in answers.items()
    }
    listing = {
        name: {id for answer in group for id in answer.brokers} for name, group in ours.items()
    }
    comparable = {
        name: {it.asked: it for it in group if it.brokers and it.asked not in strange}
        for name, group in ours.items()
    }
    facts = []
    for target in targets:
        result = results[target.address, target.protocol]
        own, name = result.answer, target.listener
        seen = Observation(
            target,
            contact=result.contact,
            own=result.reply,
            via=_best(ours[target.listener], target.broker) if own is None else None,
            late=result.undecided,
            answering=result.answering,
            peer=result.peer,
            cluster_id=cluster,
            promised=expected is not None,
            elsewhere=tuple(it for it in listing if it != name and target.broker in listing[it]),
            answers_as=_answers_as(contract, target, own) if own else "",
            disputed=tuple(
                answer
                for answer in comparable[name].values()
                if answer.brokers.get(target.broker) != target.address
            ),
        )
        facts.append(seen)
    return facts + (_unexpected_brokers(contract, targets, ours) if contract is not None else [])


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
        if not fact.surplus
        and (
            not isinstance(fact.own, MetadataAnswer)
            or fact.answers_as
            or fact.own.cluster_id != fact.cluster_id
        )
    ]


def _best(answers: Sequence[MetadataAnswer], broker: int) -> MetadataAnswer | None:
    """An answer of the listener that lists ``broker``, or any."""
    listing = [answer for answer in answers if broker in answer.brokers]
    return next(iter(listing or answers), None)


def _answers_as(contract: Contract | None, target: CellTarget, answer: MetadataAnswer) -> str:
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
    problems = []
    models = {target.listener: target for target in reversed(targets)}
    for name, group in answers.items():
        known = [broker.id for broker in contract.brokers if name in broker.advertised]
        for id, address in islice(unexpected(group, known).items(), MOST_UNEXPECTED):
            target = replace(models[name], broker=id, address=address)
            problems.append(Observation(target, via=_best(group, id), surplus=True))
    return problems
