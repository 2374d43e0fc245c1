"""Creates and deletes the topic of a run, on a cluster whose brokers may be dead or die meanwhile.

Each run has its own topic. If the cluster does not allow topics to be deleted, all runs share one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from earshot.doctor.observation import CellTarget
from earshot.doctor.probe import connects
from earshot.listeners.address import Address
from earshot.listeners.listed import listed
from earshot.listeners.terms import Protocol
from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from earshot.validation.metadata import NO_TOPIC, admin_client, steer
from earshot.validation.refusals import UNANSWERED
from earshot.validation.shared_topic import (
    SETTLE,
    TRIES,
    end_offsets,
    layout,
    share_topic,
    shared_name,
)
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
"""Time limits (s) of the attempts to create the topic: the asked broker may die meanwhile.
A working quorum needs a fraction of a second."""
STEER_LIMIT: Final = 1.0
"""Seconds for finding a broker to ask."""
LIST_LIMIT: Final = 2.0
"""Seconds for asking which brokers the cluster lists."""
CLEAN_UP_LIMIT: Final = 3.0
"""Seconds for deleting the topic, also after the deadline."""


@dataclass(frozen=True)
class ReachedBrokers:
    """The reachable brokers of one listener, for requests that change the cluster."""

    protocol: Protocol
    brokers: Mapping[int, Address]
    client: Mapping[str, str]

    @classmethod
    def widest(cls, targets: Iterable[CellTarget], client: Mapping[str, str]) -> ReachedBrokers:
        """The brokers of the listener that reaches most of ``targets`` (at least one)."""
        by_listener: dict[str, list[CellTarget]] = {}
        for target in targets:
            by_listener.setdefault(target.listener, []).append(target)
        listener_targets = max(by_listener.values(), key=len)
        return cls(
            listener_targets[0].protocol,
            {target.broker: target.address for target in listener_targets},
            client,
        )

    def steered_client(self, admin: AdminClient | None) -> AdminClient:
        """``admin``, or a new client, steered to a broker that accepts connections now."""
        if admin is None:
            bootstrap = ",".join(map(str, self.brokers.values()))
            admin = admin_client(bootstrap, self.protocol, self.client)

        def reachable(broker: int) -> bool:
            return broker in self.brokers and connects(self.brokers[broker], STEER_LIMIT)

        steer(admin, reachable, STEER_LIMIT)
        return admin


@dataclass(frozen=True)
class Partitions:
    """The partitions for the records of a run, and the first offset of the run in each."""

    topic: str
    numbers: tuple[int, ...]
    begin: Mapping[int, int]


@dataclass
class RunTopic:
    """The topic of one run. No method raises for a cluster's failure."""

    cluster: str
    run: str
    lifetime: float
    """The longest duration of the run, in seconds."""
    access: ReachedBrokers
    end: Deadline
    suffix: Literal["", "-copies"] = ""
    _outcome: Partitions | Failure | None = None
    _undeletable: Failure | None = None
    """Why topics cannot be deleted on this cluster; None if they can."""
    _is_deletion_known: bool = False
    _may_exist: bool = False
    """True if a request to create the topic was sent and not refused."""
    _admin: AdminClient | None = None

    def __post_init__(self) -> None:
        self._name = topic_name(self.cluster, self.run, self.lifetime) + self.suffix
        self._shared_name = shared_name(self.cluster) + self.suffix

    def create(self, replicas: Sequence[Replicas]) -> Partitions | Failure:
        """Creates a topic with a partition for each of ``replicas``.

        A failure with the error `timeout` means that the cluster has no quorum.
        """
        self._outcome = Failure("timeout", "the deadline passed before the topic was created")
        for limit in CREATE_TRIES:
            seconds_left = self.end.left(limit)
            if seconds_left < 0.1:
                break
            try:
                self._outcome = self._create(replicas, seconds_left)
                break
            except TopicError as error:
                self._outcome = error.failure
                if error.failure.error not in UNANSWERED:
                    break
                self._admin = None  # its brokers did not answer
        return self._outcome

    def listed_brokers(self) -> frozenset[int]:
        """The ids of the brokers that the cluster lists now, which leaves out fenced ones; empty
        if no broker answers."""
        try:
            limit = max(0.1, self.end.left(LIST_LIMIT))
            metadata = self._steered_client().list_topics(NO_TOPIC, timeout=limit)
        except KafkaException:
            return frozenset()
        return frozenset(metadata.brokers)

    def misplaced(self, replicas: Sequence[Replicas]) -> list[str]:
        """For each of ``replicas``, after `create` made their partitions: why its partition may
        have other brokers; empty if it has these.

        Kafka places partitions as requested. Services that only use its protocol may not.
        """
        assert isinstance(self._outcome, Partitions)
        name, shown = self._outcome.topic, dict[int, Replicas]()
        for _ in range(TRIES):
            try:
                shown = layout(self._steered_client(), name, max(1.0, self.end.left(LIST_LIMIT)))
            except TopicError:
                break
            is_shown = shown.keys() >= {*self._outcome.numbers}
            if is_shown or not self.end.left() or self.end.stop.wait(SETTLE):
                break
        texts = []
        for wanted, number in zip(replicas, self._outcome.numbers, strict=True):
            brokers = shown.get(number)
            seen = "no brokers" if brokers is None else f"brokers {listed(brokers)}"
            text = f"the metadata shows {seen} for a partition on brokers {listed(wanted)}"
            texts.append("" if brokers == wanted else text)
        return texts

    def _steered_client(self) -> AdminClient:
        """The admin client, shared because a login takes time, steered to a reachable broker."""
        self._admin = self.access.steered_client(self._admin)
        return self._admin

    def _create(self, replicas: Sequence[Replicas], limit: float) -> Partitions:
        admin = self._steered_client()
        if not self._is_deletion_known:
            self._undeletable = undeletable(admin, self._name, limit)
            self._is_deletion_known = True
        if self._undeletable is None:
            may_have_existed, self._may_exist = self._may_exist, True
            try:
                create_topic(admin, self._name, replicas, limit)
            except TopicError as error:
                if error.failure.error not in UNANSWERED:
                    self._may_exist = may_have_existed
                raise
            numbers = tuple(range(len(replicas)))
            return Partitions(self._name, numbers, dict.fromkeys(numbers, 0))
        numbers = share_topic(admin, self._shared_name, replicas, limit)
        return Partitions(
            self._shared_name, numbers, end_offsets(admin, self._shared_name, numbers)
        )

    def sweep(self) -> list[str]:
        """Deletes expired topics of killed runs against this cluster. Returns their names."""
        if self._undeletable is not None:
            return []
        limit = max(0.1, self.end.left(CLEAN_UP_LIMIT))
        return delete_leftovers(self._steered_client(), self.cluster, limit)

    def delete(self) -> str:
        """Deletes the topic. Returns a note for the report if the topic remains, else "".

        After a creation without an answer the request may still be pending, so the topic may appear
        after the first attempt to delete it. Therefore a second attempt follows.
        """
        if self._undeletable is not None:
            kept_topic = f"topic {self._shared_name} stays and every run uses it again"
            reason = f"as no topic can be deleted here ({self._undeletable.text})"
            is_used = isinstance(self._outcome, Partitions)
            return f"{kept_topic}, {reason}; its records are gone after an hour" if is_used else ""
        if not self._may_exist:
            return ""  # it was never created
        is_unsure = not isinstance(self._outcome, Partitions)
        failure = delete_topic(
            self._steered_client(), self._name, 1.0 if is_unsure else CLEAN_UP_LIMIT
        )
        if is_unsure and failure is None:
            time.sleep(0.5)  # for the pending request
            failure = delete_topic(self._steered_client(), self._name, 1.0)
        if failure is None:
            return ""
        next_deletion = "the next run removes it when it has expired"
        doubt = "may have been created, and " if is_unsure else ""
        return f"topic {self._name} {doubt}could not be deleted ({failure.text}); {next_deletion}"
