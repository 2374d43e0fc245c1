"""The observation of one target: all that the doctor saw of a broker through one listener."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from earshot.doctor.asking import NOT_ASKED, AnsweringBrokers, ReachableAddress
from earshot.doctor.probe import Contact
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol, Scope
from earshot.validation.client import Failure
from earshot.validation.metadata import MetadataAnswer
from earshot.validation.result import Cause


@dataclass(frozen=True)
class CellTarget:
    """A broker to examine through one listener."""

    listener: str
    protocol: Protocol
    broker: int
    address: Address
    """The address in the contract, or in the metadata if there is no contract."""
    scopes: tuple[Scope, ...] = ()


@dataclass(frozen=True)
class SentRecord:
    """An acknowledged record."""

    partition: int
    offset: int
    latency_ms: float
    value: bytes
    """Random bytes, by which the record is recognised when it comes back."""
    large: SentRecord | None = None
    """The large record after this one; None if the brokers' size limit refused it."""


@dataclass(frozen=True)
class Observation:
    """All observations of one target. Parts that were not reached are None."""

    target: CellTarget
    contact: Contact | None = None
    own_answer: MetadataAnswer | Failure | None = None
    """The answer of the target's own address to a metadata request."""
    other_answer: MetadataAnswer | None = None
    """The answer of another address of the same listener, if the own address gave none."""
    inconclusive_reason: str = ""
    """Why the cell is inconclusive, such as a deadline that expired before an answer."""
    answering_brokers: AnsweringBrokers = NOT_ASKED
    """The brokers that answered at the target's own address."""
    peer: ReachableAddress | None = None
    """The connection settings of the own address, for further requests."""
    cluster_id: str = ""
    """The expected cluster id: the contract's, else that of most answers."""
    contract_names_cluster: bool = False
    """True if `cluster_id` is from the contract."""
    other_listeners: tuple[str, ...] = ()
    """Other listeners whose metadata lists this broker."""
    answering_listener: str = ""
    """The other listener whose addresses the own answer lists; empty if there is none."""
    conflicting_answers: tuple[MetadataAnswer, ...] = ()
    """Answers of the same listener that lack the broker, or list it at another address."""
    is_unexpected: bool = False
    """True if the contract lacks this broker. Then only `other_answer` is set."""
    skip: str = ""
    """Why no record is exchanged, if the user asked for none."""
    no_record_reason: str = ""
    """Why the doctor could not exchange records, for a cause outside this cell."""
    refusal: Cause | None = None
    """The cluster's reason for refusing the topic, if it did."""
    produced: SentRecord | Failure | None = None
    consumed: float | Failure | None = None
    """Seconds until the record was read back, or the failure."""

    @property
    def own_answer_error(self) -> str | None:
        """Why the own address gave no answer: an error, or "" if it gave one; None if unknown."""
        if isinstance(self.own_answer, MetadataAnswer):
            return ""
        if isinstance(self.own_answer, Failure):
            return self.own_answer.error
        return self.contact.attempts[-1].error if self.contact and self.contact.attempts else None


def first_cluster_id(facts: Sequence[Observation]) -> str:
    """The first cluster id in the answers, or an empty text."""
    return next((fact.cluster_id for fact in facts if fact.cluster_id), "")
