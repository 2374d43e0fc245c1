"""Every address looked at once, at the same time; then, purely, what that says of each broker."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from earshot.listeners.address import Address
from earshot.listeners.model import Protocol
from earshot.validation.client import Failure, translate
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.diagnosis import Facts, Target
from earshot.validation.metadata import Answer, ask, majority_cluster, match_listener, unexpected
from earshot.validation.probe import (
    CONNECT_LIMIT,
    RESOLVE_LIMIT,
    Contact,
    reach,
    resolve,
    tls_context,
)

ASK_LIMIT = 4.0
"""Seconds that a connected broker may take for its metadata."""

Place = tuple[Address, Protocol]


@dataclass(frozen=True)
class Sighting:
    """One address: the way to it, and what it said when it could be reached."""

    contact: Contact
    said: Answer | Failure | None

    @property
    def answer(self) -> Answer | None:
        return self.said if isinstance(self.said, Answer) else None


def look(
    places: Iterable[Place], client: Mapping[str, str], end: Deadline, pool: Executor
) -> dict[Place, Sighting]:
    """A sighting of every place, each once, all at the same time and bounded by ``end``.

    Raises EarshotError for client properties that cannot be used.
    """
    wanted = list(dict.fromkeys(places))
    tls = any(protocol.tls for _, protocol in wanted)
    context = tls_context(translate(client)) if tls else None
    futures = {place: pool.submit(_look, place, client, context, end) for place in wanted}
    return {place: future.result() for place, future in futures.items()}


def _look(
    place: Place, client: Mapping[str, str], context: ssl.SSLContext | None, end: Deadline
) -> Sighting:
    address, protocol = place
    lookup = resolve([address.host], end.left(RESOLVE_LIMIT))[address.host]
    contact = reach(
        address, lookup, context if protocol.tls else None, max(0.05, end.left(CONNECT_LIMIT))
    )
    if not contact.connected or isinstance(contact.security, Failure):
        return Sighting(contact, None)
    return Sighting(contact, ask(address, protocol, client, end.left(ASK_LIMIT), end.stop))


def targets_of(contract: Contract) -> list[Target]:
    """A target per listener and broker of ``contract``, listeners in order, brokers by id."""
    return [
        Target(
            listener.name,
            listener.protocol,
            broker.id,
            broker.advertised[listener.name].address,
            listener.scopes,
        )
        for listener in contract.listeners
        for broker in contract.brokers
        if listener.name in broker.advertised
    ]


def targets_seen(
    seeds: Sequence[Address], protocol: Protocol, answers: Sequence[Answer]
) -> list[Target]:
    """Without a contract: a target per broker that ``answers`` advertise.

    Seeds that answer with the same addresses lead to one listener, named after them.
    """
    groups: dict[tuple[tuple[int, Address], ...], list[Answer]] = {}
    for answer in answers:
        groups.setdefault(tuple(sorted(answer.brokers.items())), []).append(answer)
    found = []
    for brokers, group in groups.items():
        name = ",".join(str(answer.asked) for answer in group)
        found += [Target(name, protocol, id, address) for id, address in brokers]
    answered = {answer.asked for answer in answers}
    silent = [seed for seed in seeds if seed not in answered]
    return found + [Target(str(seed), protocol, UNKNOWN, seed) for seed in silent]


UNKNOWN = -1
"""The broker id of a seed that gave no metadata, as librdkafka writes it."""


def facts_of(
    targets: Sequence[Target],
    sightings: Mapping[Place, Sighting],
    seeds: Mapping[str, Sequence[Answer]],
    contract: Contract | None,
) -> list[Facts]:
    """What was observed about each target, and about brokers that should not be there. Pure.

    ``seeds`` holds further answers by listener name, from addresses that the user gave.
    """
    answers: dict[str, list[Answer]] = {}
    for target in targets:
        answers.setdefault(target.listener, [])
        answer = sightings[target.address, target.protocol].answer
        if answer is not None and not _answers_as(contract, target, answer):
            answers[target.listener].append(answer)
    for name, given in seeds.items():
        answers.setdefault(name, []).extend(given)
    cluster = majority_cluster(answer for group in answers.values() for answer in group)
    ours = {
        name: [answer for answer in group if answer.cluster_id == cluster]
        for name, group in answers.items()
    }
    listing = {
        name: {id for answer in group for id in answer.brokers} for name, group in ours.items()
    }
    found = []
    for target in targets:
        sighting = sightings[target.address, target.protocol]
        own = sighting.answer
        found.append(
            Facts(
                target,
                contact=sighting.contact,
                own=sighting.said,
                via=_best(ours[target.listener], target.broker) if own is None else None,
                cluster_id=cluster,
                elsewhere=tuple(
                    name
                    for name, ids in listing.items()
                    if name != target.listener and target.broker in ids
                ),
                answers_as=_answers_as(contract, target, own) if own else "",
            )
        )
    if contract is not None:
        found += _surplus(contract, targets, ours)
    return found


def _best(answers: Sequence[Answer], broker: int) -> Answer | None:
    """An answer of the listener that lists ``broker``, or any."""
    listing = [answer for answer in answers if broker in answer.brokers]
    return next(iter(listing or answers), None)


def _answers_as(contract: Contract | None, target: Target, answer: Answer) -> str:
    """Another listener of ``contract`` whose addresses ``answer`` gives, else an empty text."""
    if contract is None or not answer.brokers:
        return ""
    matched = match_listener(contract, target.address, answer)
    return matched if matched is not None and matched != target.listener else ""


def _surplus(
    contract: Contract, targets: Sequence[Target], answers: Mapping[str, Sequence[Answer]]
) -> list[Facts]:
    known = [broker.id for broker in contract.brokers]
    found = []
    models = {target.listener: target for target in reversed(targets)}
    for name, group in answers.items():
        for id, address in unexpected(group, known).items():
            target = replace(models[name], broker=id, address=address)
            found.append(Facts(target, via=_best(group, id), surplus=True))
    return found
