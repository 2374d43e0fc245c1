"""Brokers that only a later answer lists, and answers that are asked for again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from earshot.doctor.diagnosis import CellTarget, Observation
from earshot.doctor.survey import MOST_UNEXPECTED, AddressResult, ListenerAddress
from earshot.validation.metadata import MetadataAnswer, majority_cluster, unexpected


def targets_added(
    targets: Sequence[CellTarget], results: Mapping[ListenerAddress, AddressResult]
) -> list[CellTarget]:
    """The targets that answers at ``targets`` list and that are none of them yet; at most
    `MOST_UNEXPECTED` for each listener.

    An answer that does not list its own broker at its own address, or is of another cluster than
    most, adds none: the cell of that broker fails for it.
    """
    models = {target.listener: target for target in reversed(targets)}
    added = []
    for name, model in models.items():
        own = [target for target in targets if target.listener == name]
        group = [
            answer
            for target in own
            if (answer := results[target.address, target.protocol].answer) is not None
            and answer.brokers.get(target.broker) == target.address
        ]
        cluster = majority_cluster(group)
        ours = [answer for answer in group if answer.cluster_id == cluster]
        more = unexpected(ours, [target.broker for target in own])
        added += [
            replace(model, broker=id, address=address)
            for id, address in islice(more.items(), MOST_UNEXPECTED)
        ]
    return added


def to_ask_again(
    facts: Sequence[Observation], results: Mapping[ListenerAddress, AddressResult]
) -> list[ListenerAddress]:
    """The places whose answers do not list a broker that answers itself; at most
    `MOST_UNEXPECTED`."""
    addresses = {
        answer.asked
        for fact in facts
        if isinstance(fact.own, MetadataAnswer)
        for answer in fact.disputed
    }
    return [place for place in results if place[0] in addresses][:MOST_UNEXPECTED]
