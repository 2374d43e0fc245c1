"""A run's topic on a cluster of which a part may be dead, or die meanwhile.

It is the run's own and gone afterwards, or one that runs share where no topic can be deleted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from confluent_kafka.admin import AdminClient

from earshot.doctor.diagnosis import CellTarget
from earshot.doctor.probe import connects
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from earshot.validation.metadata import admin_client, steer
from earshot.validation.refusals import UNANSWERED
from earshot.validation.shared_topic import ends, share_topic, shared_name
from earshot.validation.topic import (
    Replicas,
    TopicError,
    create_topic,
    delete_leftovers,
    delete_topic,
    topic_name,
    undeletable,
)

CREATE_TRIES: Final = (2.0, 4.0)
"""Seconds of each attempt to create the topic: the broker that was asked may die meanwhile.
A quorum that lives takes a fraction of a second."""
STEER_LIMIT: Final = 1.0
"""Seconds for finding a broker to ask."""
CLEAN_UP_LIMIT: Final = 3.0
"""Seconds for deleting the topic, beyond the deadline if need be."""


@dataclass(frozen=True)
class ReachedBrokers:
    """Brokers that were reached through one listener: who can be asked to change the cluster."""

    protocol: Protocol
    brokers: Mapping[int, Address]
    client: Mapping[str, str]

    @classmethod
    def widest(cls, reached: Iterable[CellTarget], client: Mapping[str, str]) -> ReachedBrokers:
        """By the listener through which most brokers of ``reached`` (at least one) were."""
        by_listener: dict[str, list[CellTarget]] = {}
        for target in reached:
            by_listener.setdefault(target.listener, []).append(target)
        chosen = max(by_listener.values(), key=len)
        return cls(chosen[0].protocol, {target.broker: target.address for target in chosen}, client)

    def steered(self, admin: AdminClient | None) -> AdminClient:
        """``admin``, or a new client of them; its requests go to one that accepts connections."""
        if admin is None:
            bootstrap = ",".join(map(str, self.brokers.values()))
            admin = admin_client(bootstrap, self.protocol, self.client)

        def reachable(broker: int) -> bool:
            return broker in self.brokers and connects(self.brokers[broker], STEER_LIMIT)

        steer(admin, reachable, STEER_LIMIT)
        return admin


@dataclass(frozen=True)
class Partitions:
    """Where the records of a run go, and the offset in each partition that its own begin at."""

    topic: str
    numbers: tuple[int, ...]
    begin: Mapping[int, int]


@dataclass
class RunTopic:
    """One topic from its creation to its end; nothing here raises for what the cluster does."""

    cluster: str
    run: str
    lifetime: float
    """Seconds that the run takes at the most."""
    access: ReachedBrokers
    end: Deadline
    suffix: Literal["", "-copies"] = ""
    _created: Partitions | Failure | None = None
    _kept: Failure | None = None
    """Why topics stay on this cluster."""
    _asked: bool = False
    _sent: bool = False
    """Whether a request to create the topic was sent that no broker has refused."""
    _admin: AdminClient | None = None

    def __post_init__(self) -> None:
        self._name = topic_name(self.cluster, self.run, self.lifetime) + self.suffix
        self._shared_name = shared_name(self.cluster) + self.suffix

    def create(self, replicas: Sequence[Replicas]) -> Partitions | Failure:
        """A partition for each of ``replicas``, or why there is none.

        A failure with the word `timeout` means that nothing changes the cluster at the moment:
        its quorum is lost.
        """
        self._created = Failure("timeout", "the deadline passed before the topic was created")
        for limit in CREATE_TRIES:
            left = self.end.left(limit)
            if left < 0.1:
                break
            try:
                self._created = self._create(replicas, left)
                break
            except TopicError as error:
                self._created = error.failure
                if error.failure.error not in UNANSWERED:
                    break
                self._admin = None  # the brokers that it knows have not answered
        return self._created

    def _steered(self) -> AdminClient:
        """One client for all, as a login costs time; each time to a broker that is there."""
        self._admin = self.access.steered(self._admin)
        return self._admin

    def _create(self, replicas: Sequence[Replicas], limit: float) -> Partitions:
        admin = self._steered()
        if not self._asked:
            self._kept = undeletable(admin, self._name, limit)
            self._asked = True
        if self._kept is None:
            before, self._sent = self._sent, True
            try:
                create_topic(admin, self._name, replicas, limit)
            except TopicError as error:
                if error.failure.error not in UNANSWERED:
                    self._sent = before
                raise
            numbers = tuple(range(len(replicas)))
            return Partitions(self._name, numbers, dict.fromkeys(numbers, 0))
        numbers = share_topic(admin, self._shared_name, replicas, limit)
        return Partitions(self._shared_name, numbers, ends(admin, self._shared_name, numbers))

    def sweep(self) -> list[str]:
        """Deletes what killed runs against this cluster left behind; returns the names."""
        if self._kept is not None:
            return []
        limit = max(0.1, self.end.left(CLEAN_UP_LIMIT))
        return delete_leftovers(self._steered(), self.cluster, limit)

    def delete(self) -> str:
        """Deletes the topic; a note for the report where it stays, else an empty text.

        Also after a creation without an answer: the request may still be on its way, so that the
        topic appears only after a first attempt found none to delete. A creation that was refused,
        or never asked for, leaves nothing.
        """
        if self._kept is not None:
            stays = f"topic {self._shared_name} stays and every run uses it again"
            why = f"as no topic can be deleted here ({self._kept.text})"
            used = isinstance(self._created, Partitions)
            return f"{stays}, {why}; its records are gone after an hour" if used else ""
        if not self._sent:
            return ""  # it was never created
        unsure = not isinstance(self._created, Partitions)
        failure = delete_topic(self._steered(), self._name, 1.0 if unsure else CLEAN_UP_LIMIT)
        if unsure and failure is None:
            time.sleep(0.5)  # in which a request to create, sent before, has been carried out
            failure = delete_topic(self._steered(), self._name, 1.0)
        if failure is None:
            return ""
        later = "the next run removes it when it has expired"
        created = "may have been created, and " if unsure else ""
        return f"topic {self._name} {created}could not be deleted ({failure.text}); {later}"
