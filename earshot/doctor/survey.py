"""Every address looked at once, at the same time; then, purely, what that says of each broker."""

import math
import ssl
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import chain
from threading import Semaphore

from earshot.doctor.diagnosis import CellTarget, Observed
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
from earshot.doctor.spoken import Spoken, spoken
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.names.lookup import Diagnosis
from earshot.validation.client import Failure, translate
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.metadata import (
    NOT_SAID,
    MetadataAnswer,
    ask,
    majority_cluster,
    match_listener,
    unexpected,
)
from earshot.validation.result import Cell
from earshot.validation.terms import Verdict

ASK_LIMIT = 4.0
"""Seconds that a connected broker may take for its metadata."""
USUAL_DEADLINE = 10.0
"""Seconds of a run that the limits of resolving, connecting and asking are made for."""
MOST_TIMES = 6.0
"""How many times these limits a run with a longer deadline has at most."""
SPOKEN_LIMIT = 2.0
"""Seconds for finding out what a listener speaks that gave none."""
THREADS = 2000
"""Of clients that ask at the same time: each has one for every broker that it learns of."""
PATIENCE = 1.0
"""Seconds below which silence says nothing of who is silent."""

ListenerAddress = tuple[Address, Protocol]


@dataclass(frozen=True)
class Sighting:
    """One address: the way to it, and what it said when it could be reached."""

    contact: Contact
    said: MetadataAnswer | Failure | None
    waited: float = math.inf
    """Seconds that were left for what last happened, be it resolving, connecting or answering."""

    @property
    def cut_short(self) -> str:
        """Why its silence says nothing; empty where it was not silent, or had time to answer."""
        contact = self.contact
        answers = [contact.security, self.said]
        silent = (
            contact.lookup.diagnosis is Diagnosis.TIMEOUT
            or (not contact.connected and any(it.error == "timeout" for it in contact.attempts))
            or any(isinstance(it, Failure) and it.error == "timeout" for it in answers)
        )
        if not silent or self.waited >= PATIENCE:
            return ""
        return f"the deadline left {self.waited:.1f} s for {contact.address}, which was silent"

    @property
    def answer(self) -> MetadataAnswer | None:
        return self.said if isinstance(self.said, MetadataAnswer) else None


def look(
    addresses: Iterable[ListenerAddress], client: Mapping[str, str], end: Deadline, pool: Executor
) -> dict[ListenerAddress, Sighting]:
    """A sighting of every place, each once, all at the same time and bounded by ``end``.

    Raises EarshotError for client properties that cannot be used.
    """
    wanted = list(dict.fromkeys(addresses))
    tls = any(protocol.tls for _, protocol in wanted)
    context = tls_context(translate(client)) if tls else None
    turns = Semaphore(max(2, THREADS // max(1, len(wanted))))
    futures = {it: pool.submit(_look, it, client, context, end, turns) for it in wanted}
    return {address: future.result() for address, future in futures.items()}


def _look(
    asked: ListenerAddress,
    client: Mapping[str, str],
    context: ssl.SSLContext | None,
    end: Deadline,
    turns: Semaphore,
) -> Sighting:
    address, protocol = asked
    times = min(MOST_TIMES, max(1.0, end.seconds / USUAL_DEADLINE))
    left = end.left(RESOLVE_LIMIT * times)
    lookup = explained(resolve([address.host], left)[address.host], end.left(EXPLAIN_LIMIT))
    if not lookup.ok:
        return Sighting(Contact(address, lookup), None, left)
    left = end.left(CONNECT_LIMIT * times)
    contact = reach(address, lookup, context if protocol.tls else None, max(0.05, left))
    if isinstance(contact.security, Failure):
        return Sighting(_understood(contact, protocol, contact.security, end), None, left)
    if not contact.connected:
        return Sighting(contact, None, left)
    with turns:
        left = end.left(ASK_LIMIT * times)
        said = ask(address, protocol, client, left, end.stop)
    if isinstance(said, Failure):
        contact = _understood(contact, protocol, said, end)
    return Sighting(contact, said, left)


def _understood(contact: Contact, protocol: Protocol, met: Failure, end: Deadline) -> Contact:
    """``contact``, with what its listener speaks instead of ``protocol`` where it does."""
    if met.error == "no-login":  # it need not be asked, and may want to see a certificate first
        return _speaks(contact, protocol, Spoken(protocol.tls, ()))
    left = end.left(SPOKEN_LIMIT)
    # these errors come from a server that speaks the expected protocol
    if "certificate" in met.error or met.error == "mechanism" or left < PATIENCE:
        return contact
    ip = contact.lookup.addresses[len(contact.attempts) - 1]
    return _speaks(contact, protocol, spoken((ip, contact.address.port), left))


def _speaks(contact: Contact, protocol: Protocol, actual: Spoken) -> Contact:
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


def targets_reached(contract: Contract, cells: Iterable[Cell]) -> list[CellTarget]:
    """The targets of ``contract`` whose ``cells`` passed."""
    passed = {(cell.listener, cell.broker) for cell in cells if cell.verdict is Verdict.PASS}
    return [it for it in targets_of(contract) if (it.listener, it.broker) in passed]


def targets_seen(
    seeds: Sequence[Address], protocol: Protocol, answers: Sequence[MetadataAnswer]
) -> list[CellTarget]:
    """Without a contract: a target per broker that ``answers`` advertise.

    Seeds that answer with the same addresses lead to one listener, named after them. One that
    names no broker, or does not answer, is a target itself.
    """
    groups: dict[tuple[tuple[int, Address], ...], list[Address]] = {}
    for answer in answers:
        groups.setdefault(tuple(sorted(answer.brokers.items())), []).append(answer.asked)
    found = []
    for brokers, asked in groups.items():
        name = ",".join(map(str, asked))
        found += [CellTarget(name, protocol, id, address) for id, address in brokers]
    listing = {answer.asked for answer in answers if answer.brokers}
    rest = [seed for seed in seeds if seed not in listing]
    return found + [CellTarget(str(seed), protocol, UNKNOWN, seed) for seed in rest]


UNKNOWN = -1
"""The broker id of a seed that named no broker, as librdkafka writes it."""


def facts_of(
    targets: Sequence[CellTarget],
    sightings: Mapping[ListenerAddress, Sighting],
    seeds: Mapping[str, Sequence[MetadataAnswer]],
    contract: Contract | None,
) -> list[Observed]:
    """What was observed about each target, and about brokers that should not be there. Pure.

    ``seeds`` holds further answers by listener name, from addresses that the user gave.
    """
    answers: dict[str, list[MetadataAnswer]] = {target.listener: [] for target in targets}
    for target in targets:
        answer = sightings[target.address, target.protocol].answer
        if answer is not None and not _answers_as(contract, target, answer):
            answers[target.listener].append(answer)
    for name, given in seeds.items():
        answers.setdefault(name, []).extend(given)
    expected = contract.cluster_id if contract is not None else None
    # an answer of another listener counts only where there is no other
    answered = [answer for it in sightings.values() if (answer := it.answer) is not None]
    cluster = expected or majority_cluster(chain(*answers.values())) or majority_cluster(answered)
    ours = {
        name: [answer for answer in group if answer.cluster_id in (cluster, NOT_SAID)]
        for name, group in answers.items()
    }
    listing = {
        name: {id for answer in group for id in answer.brokers} for name, group in ours.items()
    }
    found = []
    for target in targets:
        sighting = sightings[target.address, target.protocol]
        own, name = sighting.answer, target.listener
        seen = Observed(
            target,
            contact=sighting.contact,
            own=sighting.said,
            via=_best(ours[target.listener], target.broker) if own is None else None,
            late=sighting.cut_short,
            cluster_id=cluster,
            promised=expected is not None,
            elsewhere=tuple(it for it in listing if it != name and target.broker in listing[it]),
            answers_as=_answers_as(contract, target, own) if own else "",
        )
        found.append(seen)
    return found + (_surplus(contract, targets, ours) if contract is not None else [])


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


def _surplus(
    contract: Contract,
    targets: Sequence[CellTarget],
    answers: Mapping[str, Sequence[MetadataAnswer]],
) -> list[Observed]:
    found = []
    models = {target.listener: target for target in reversed(targets)}
    for name, group in answers.items():
        known = [broker.id for broker in contract.brokers if name in broker.advertised]
        for id, address in unexpected(group, known).items():
            target = replace(models[name], broker=id, address=address)
            found.append(Observed(target, via=_best(group, id), surplus=True))
    return found
