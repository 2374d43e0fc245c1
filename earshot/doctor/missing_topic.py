"""What a topic that was not created means for the cells whose records it was for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from earshot.doctor.observation import Observation
from earshot.doctor.run_topic import Partitions, RunTopic
from earshot.listeners.address import Address
from earshot.listeners.listed import numbered, shortened
from earshot.validation.client import Failure
from earshot.validation.refusals import refusal

QUORUM_PATIENCE: Final = 2.0
"""Minimum wait (s) before a topic that was not created counts as a lost quorum."""
FENCED: Final = Failure(
    "fenced", "it answered a metadata request, but the cluster does not list it any more"
)
"""The failure of a record to a broker that was fenced before the topic was created."""
NO_TOPIC: Final = "the cluster refused a topic for the records, so none were sent"


def newly_fenced(
    topic: RunTopic, brokers: Sequence[int], partitions: Partitions | Failure
) -> frozenset[int]:
    """The ids of ``brokers`` that the cluster no longer lists, if they are the reason why
    ``partitions`` is a refusal. Empty if it lists none of ``brokers``: then all cells share it.

    Controllers refuse a topic if one of its partitions has fenced brokers only.
    """
    if not isinstance(partitions, Failure) or partitions.error != "invalid-replica-assignment":
        return frozenset()
    listed_brokers = topic.listed_brokers()
    return frozenset(brokers) - listed_brokers if listed_brokers & set(brokers) else frozenset()


def silent_brokers(facts: Sequence[Observation]) -> list[int]:
    """Ids of brokers that neither answer nor refuse connections, as if suspended; empty unless a
    majority of all brokers answers."""
    ids = {fact.target.broker for fact in facts}
    answering = {fact.target.broker for fact in facts if fact.own_answer_error == ""}
    silent = {fact.target.broker for fact in facts if fact.own_answer_error == "timeout"}
    return sorted(silent - answering) if len(answering) * 2 > len(ids) else []


def without_topic(
    facts: Observation,
    failure: Failure,
    seconds_left: float,
    silences: Mapping[Address, Failure] = MappingProxyType({}),
    silent: Sequence[int] = (),
) -> Observation:
    """``facts`` with the failure to create a topic within ``seconds_left`` seconds.

    A time-out means a lost quorum only if at least `QUORUM_PATIENCE` seconds were left, if the
    requests of clients are answered (``silences`` has the failures of ApiVersions by address), and
    if no broker is ``silent``: brokers wait half a minute for an active controller that hangs.
    """
    silence = silences.get(facts.target.address)
    if silence is not None:
        text = f"{facts.target.address} answers metadata requests, but not ApiVersions"
        return replace(facts, produced=Failure("no-api-versions", f"{text}: {silence.text}"))
    if silences:
        places = shortened([str(address) for address in silences])
        text = f"no topic could be created here: ApiVersions got no answer at {places}"
        return replace(facts, no_record_reason=text)
    if failure.error == "timeout" and silent:
        names = numbered("broker", silent)
        text = (
            f"no topic could be created here while {names} gives no answer: if it is the active "
            "controller, other brokers wait for it (controller.socket.timeout.ms, 30 s)"
        )
        return replace(facts, no_record_reason=text)
    if failure.error == "timeout" and seconds_left >= QUORUM_PATIENCE:
        text = f"brokers answer, but no topic can be created: {failure.text}"
        return replace(facts, produced=Failure("no-quorum", text))
    cause = refusal(failure)
    if cause is None:
        return replace(facts, no_record_reason=f"no topic could be created here: {failure.text}")
    return replace(facts, no_record_reason=NO_TOPIC, refusal=cause)
