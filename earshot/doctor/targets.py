"""Derives the targets of a run from the contract, or from the answers if there is no contract."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from earshot.doctor.observation import CellTarget, Observation
from earshot.doctor.survey import MAX_UNEXPECTED, AddressResult, ListenerAddress
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation.contract import Contract
from earshot.validation.metadata import MetadataAnswer, majority_cluster, unexpected_brokers
from earshot.validation.result import Cell
from earshot.validation.terms import Verdict

NO_ID = -1
"""The broker id of a bootstrap address whose answer lists no broker, as in librdkafka."""


def targets_of(contract: Contract) -> list[CellTarget]:
    """A target per listener and broker of ``contract``, listeners in order, brokers by id."""
    return [
        CellTarget(listener.name, listener.protocol, id, address, listener.scopes)
        for listener, id, address in contract.places
    ]


def bootstraps_of(contract: Contract) -> list[CellTarget]:
    """One target for each bootstrap address that is not a broker's own address."""
    return [
        CellTarget(listener.name, listener.protocol, NO_ID, address, listener.scopes)
        for listener, address in contract.bootstraps
    ]


def targets_reached(contract: Contract, cells: Iterable[Cell]) -> list[CellTarget]:
    """The targets of ``contract`` whose ``cells`` passed."""
    passed_cells = {(cell.listener, cell.broker) for cell in cells if cell.verdict is Verdict.PASS}
    return [
        target
        for target in targets_of(contract)
        if (target.listener, target.broker) in passed_cells
    ]


def targets_without_contract(
    seeds: Sequence[Address], protocol: Protocol, answers: Sequence[MetadataAnswer]
) -> list[CellTarget]:
    """The targets of a run without a contract: one per broker that ``answers`` advertise.

    If the answers of two bootstrap addresses share a broker, both belong to one listener, named
    after both. A bootstrap address without such an answer is a target itself.
    """
    groups: list[tuple[list[Address], dict[int, Address], set[tuple[str, int, Address]]]] = []
    for answer in answers:
        own_brokers = {(answer.cluster_id, *broker) for broker in answer.brokers.items()}
        for asked_addresses, brokers, known_brokers in groups:
            if own_brokers & known_brokers:
                asked_addresses.append(answer.asked)
                brokers.update({**answer.brokers, **brokers})
                known_brokers |= own_brokers
                break
        else:
            groups.append(([answer.asked], dict(answer.brokers), own_brokers))
    targets = []
    for asked_addresses, brokers, _ in groups:
        name = ",".join(map(str, asked_addresses))
        targets += [
            CellTarget(name, protocol, id, address) for id, address in sorted(brokers.items())
        ]
    answered_seeds = {answer.asked for answer in answers if answer.brokers}
    silent_seeds = [seed for seed in seeds if seed not in answered_seeds]
    return targets + [CellTarget(str(seed), protocol, NO_ID, seed) for seed in silent_seeds]


def new_targets_of(
    targets: Sequence[CellTarget], results: Mapping[ListenerAddress, AddressResult]
) -> list[CellTarget]:
    """New targets for the brokers that only the answers at ``targets`` list; at most
    `MAX_UNEXPECTED` per listener.

    Two kinds of answers add no target, because the cell of their broker fails: those without their
    own broker at their own address, and those of another cluster than most.
    """
    models = {target.listener: target for target in reversed(targets)}
    new_targets = []
    for name, model in models.items():
        own_targets = [target for target in targets if target.listener == name]
        own_answers = [
            answer
            for target in own_targets
            if (answer := results[target.address, target.protocol].answer) is not None
            and answer.brokers.get(target.broker) == target.address
        ]
        cluster = majority_cluster(own_answers)
        cluster_answers = [answer for answer in own_answers if answer.cluster_id == cluster]
        brokers = unexpected_brokers(cluster_answers, [target.broker for target in own_targets])
        new_targets += [
            replace(model, broker=id, address=address)
            for id, address in islice(brokers.items(), MAX_UNEXPECTED)
        ]
    return new_targets


def addresses_to_ask_again(
    facts: Sequence[Observation], results: Mapping[ListenerAddress, AddressResult]
) -> list[ListenerAddress]:
    """The addresses whose answers lack a broker that answers itself, list it elsewhere, or differ
    between connections; at most `MAX_UNEXPECTED`."""
    addresses = {
        answer.asked
        for fact in facts
        if isinstance(fact.own_answer, MetadataAnswer)
        for answer in fact.conflicting_answers
    }
    addresses |= {place[0] for place in results if results[place].answering_brokers.moved_brokers}
    return [place for place in results if place[0] in addresses][:MAX_UNEXPECTED]
