"""The notes of a report: what the doctor saw that fails no cell."""

from collections.abc import Sequence

from earshot.doctor.observation import Observation, first_cluster_id
from earshot.doctor.probe import Handshake
from earshot.doctor.survey import AddressResult
from earshot.listeners.address import Address
from earshot.listeners.listed import shortened
from earshot.validation.contract import Contract
from earshot.validation.metadata import NO_CLUSTER_ID

NOTED_DAYS = 7
"""A note names the certificates with fewer days left than this."""


def uncompared_cluster(contract: Contract, facts: Sequence[Observation]) -> list[str]:
    cluster_id = first_cluster_id(facts)
    if contract.cluster_id is not None or not cluster_id:
        return []
    text = f"cluster {cluster_id} answers; the contract names no cluster_id, so it is not known"
    return [f"{text} whether these are its brokers or another cluster's at the same addresses"]


def seed_note(
    address: Address, name: str | None, result: AddressResult, expected: str | None
) -> str:
    if result.answer is None:
        return f"{address} gave no metadata{f'; it belongs to {name}' if name else ''}"
    cluster_id = result.answer.cluster_id
    if expected is not None and cluster_id == NO_CLUSTER_ID:
        return f"{address} names no cluster id, and the contract is of cluster {expected}"
    if expected is not None and cluster_id != expected:
        return f"{address} belongs to cluster {cluster_id}, not to {expected} of the contract"
    listed_brokers = result.answer.brokers_text
    advertised = f"broker {listed_brokers}" if listed_brokers else "no broker"
    listener = f"is listener {name}" if name else "is not a listener of the contract"
    return f"{address} {listener}; it advertises {advertised}"


def unanswered_notes(facts: Sequence[Observation]) -> list[str]:
    """A note for each passed address with some unanswered connections: fewer than fail a cell."""
    counts = [fact.answering_brokers.few_unanswered(fact.target.address) for fact in facts]
    return [
        f"{count}: see what forwards it (one of its targets may be dead), and max.connections"
        for count in counts
        if count
    ]


def unknown_broker_notes(facts: Sequence[Observation]) -> list[str]:
    """A note about addresses at which the answering broker's id is unknown, or no note."""
    unknown_facts = [fact for fact in facts if fact.answering_brokers.unknown_reason]
    if not unknown_facts:
        return []
    places = shortened([str(fact.target.address) for fact in unknown_facts])
    reason = unknown_facts[0].answering_brokers.unknown_reason
    return [f"which broker answers is not known at {places}: {reason}"]


def expiry_notes(facts: Sequence[Observation]) -> list[str]:
    """A note about the certificates that expire within days, those that expire first at the
    beginning; or no note."""
    days_left = {
        str(fact.target.address): days
        for fact in facts
        if fact.contact is not None
        and isinstance(handshake := fact.contact.security, Handshake)
        and (days := handshake.days_left) is not None
        and days < NOTED_DAYS
    }
    if not days_left:
        return []
    places = shortened(sorted(days_left, key=lambda place: days_left[place]))
    days = min(days_left.values())
    when = f"in {days} day{'s' if days > 1 else ''}" if days else "within a day"
    text = f"certificates that expire soon, the first {when}: {places}"
    return [f"{text}. Clients refuse them from then on: renew them"]
