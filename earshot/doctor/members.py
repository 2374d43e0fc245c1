"""Targets for brokers that only a later answer lists, and addresses to ask again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from earshot.doctor.diagnosis import CellTarget, Observation
from earshot.doctor.survey import MOST_UNEXPECTED, AddressResult, ListenerAddress
from earshot.validation.metadata import MetadataAnswer, majority_cluster, unexpected_brokers


def new_targets_of(
    targets: Sequence[CellTarget], results: Mapping[ListenerAddress, AddressResult]
) -> list[CellTarget]:
    """New targets for the brokers that only the answers at ``targets`` list; at most
    `MOST_UNEXPECTED` per listener.

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
            for id, address in islice(brokers.items(), MOST_UNEXPECTED)
        ]
    return new_targets


def addresses_to_ask_again(
    facts: Sequence[Observation], results: Mapping[ListenerAddress, AddressResult]
) -> list[ListenerAddress]:
    """The addresses whose answers lack a broker that answers itself, or list it elsewhere; at most
    `MOST_UNEXPECTED`."""
    addresses = {
        answer.asked
        for fact in facts
        if isinstance(fact.own_answer, MetadataAnswer)
        for answer in fact.conflicting_answers
    }
    return [place for place in results if place[0] in addresses][:MOST_UNEXPECTED]
