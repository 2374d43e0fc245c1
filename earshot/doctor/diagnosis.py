"""From facts to a cell: which stages passed, which one failed, and what that means. Pure.

The stages are checked in their order, with one turn: a broker whose own address cannot be reached
is not blamed on bootstrap when another address of the listener answers, for that is how real
clients come in. Then metadata is compared from that answer, and the stage that really fails
(resolve, TCP, security) is the one named.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from earshot.certificates.names import SubjectNames
from earshot.doctor.asking import NOT_ASKED, AnsweringBrokers, ReachableAddress
from earshot.doctor.probe import MOST_ATTEMPTS, Contact, Handshake, OtherCertificate, names_listed
from earshot.listeners.address import Address
from earshot.listeners.listed import numbered, shortened
from earshot.listeners.terms import Protocol, Scope
from earshot.names.kinds import is_name, kind_of
from earshot.names.lookup import Diagnosis, Lookup
from earshot.names.reachability import TABLE as VANTAGES
from earshot.validation.causes import FailedStage, explain
from earshot.validation.client import Failure
from earshot.validation.metadata import NOT_SAID, MetadataAnswer
from earshot.validation.result import Cause, Cell, StageResult
from earshot.validation.terms import Stage, Verdict

EXPIRES_SOON = 30
"""Days of a certificate's remaining life below which the report says so."""
_OF_SECURITY = frozenset({"authentication", "client-certificate", "mechanism", "tls"})
"""Errors of a client that has connected."""
_DIAGNOSES = {
    Diagnosis.NXDOMAIN: "does not exist",
    Diagnosis.NO_ANSWER: "has no address record",
    Diagnosis.SERVER_FAILURE: "could not be looked up, the resolver failed",
    Diagnosis.TIMEOUT: "could not be looked up in time",
}


@dataclass(frozen=True)
class CellTarget:
    """A cell to be: one broker through one listener."""

    listener: str
    protocol: Protocol
    broker: int
    address: Address
    """What the contract says, or what the metadata says where there is none."""
    scopes: tuple[Scope, ...] = ()


@dataclass(frozen=True)
class SentRecord:
    """An acknowledged record."""

    partition: int
    offset: int
    latency_ms: float
    checksum: int


@dataclass(frozen=True)
class Observation:
    """All that was observed about one target; a part that was not reached is None."""

    target: CellTarget
    contact: Contact | None = None
    own: MetadataAnswer | Failure | None = None
    """What the target's own address said when asked for metadata."""
    via: MetadataAnswer | None = None
    """Another address of the same listener that answered."""
    late: str = ""
    """Why nothing can be said: the deadline came before it could answer, or it was not asked."""
    answering: AnsweringBrokers = NOT_ASKED
    """Which brokers answered at the target's own address."""
    peer: ReachableAddress | None = None
    """The way to ask there again."""
    cluster_id: str = ""
    """The cluster that the target should belong to: the contract's, else that of most addresses."""
    promised: bool = False
    """Whether it is the contract that names the cluster."""
    elsewhere: tuple[str, ...] = ()
    """Other listeners whose metadata lists this broker."""
    answers_as: str = ""
    """The listener that the own answer is of, where that is another one."""
    disputed: tuple[MetadataAnswer, ...] = ()
    """Answers of the same listener that do not list the broker at the target's address."""
    surplus: bool = False
    """The contract knows no such broker; nothing but metadata (`via`) is looked at."""
    skip: str = ""
    """Why no record is exchanged although no stage failed: the user asked for none."""
    prevented: str = ""
    """What kept the doctor from exchanging records, which is not the cell's fault."""
    refusal: Cause | None = None
    """Why the cluster refused the topic, where that is what prevented it."""
    produced: SentRecord | Failure | None = None
    consumed: float | Failure | None = None
    """Seconds until the record came back."""


@dataclass
class _StageResults:
    """The stages so far."""

    results: list[StageResult] = field(default_factory=list)
    failed_stage: FailedStage | None = None

    def passed(self, stage: Stage, detail: str, seconds: float | None = None) -> None:
        self._add(stage=stage, verdict=Verdict.PASS, detail=detail, seconds=seconds)

    def skipped(self, reason: str, *stages: Stage) -> None:
        for stage in stages:
            self._add(stage=stage, verdict=Verdict.SKIP, detail=reason)

    def failed(self, failed: FailedStage) -> None:
        self._add(stage=failed.stage, verdict=Verdict.FAIL, detail=failed.observed)
        self.failed_stage = self.failed_stage or failed

    def _add(self, **result: Any) -> None:
        if self.failed_stage is None:  # whatever follows a failure says nothing
            self.results.append(StageResult(**result))

    def complete(self) -> tuple[StageResult, ...]:
        """All seven stages; those after the failed one are skipped for that reason."""
        done = {result.stage: result for result in self.results}
        reason = f"{self.failed_stage.stage} failed" if self.failed_stage else "not reached"
        return tuple(
            done.get(stage) or StageResult(stage=stage, verdict=Verdict.SKIP, detail=reason)
            for stage in Stage
        )


def ready(facts: Observation) -> bool:
    """Whether every stage before the records has passed."""
    return not facts.late and _approach(facts).failed_stage is None


def diagnose(facts: Observation, vantage: str) -> Cell:
    """The cell of ``facts`` as seen from ``vantage``."""
    course = _approach(facts)
    failed, target = course.failed_stage, facts.target
    # the result of another address of the listener counts, even if there was no time for this one
    if facts.late and (failed is None or failed.stage is not Stage.METADATA):
        return undecided(target, vantage, facts.late, Verdict.INCONCLUSIVE)
    if failed is None:
        _exchange(course, facts)
        failed = course.failed_stage
    if failed is not None:
        cause = explain(failed, target.listener, target.broker, target.address, target.scopes)
        outcome = {"verdict": Verdict.FAIL, "cause": cause}
    elif facts.prevented:
        outcome = {"verdict": Verdict.SKIP, "cause": facts.refusal, "reason": facts.prevented}
    else:
        outcome = {"verdict": Verdict.PASS}
    latency = facts.produced.latency_ms if isinstance(facts.produced, SentRecord) else None
    return _cell(target, vantage, stages=course.complete(), latency_ms=latency, **outcome)


def undecided(target: CellTarget, vantage: str, reason: str, verdict: Verdict) -> Cell:
    """The cell of a target that could not be checked: skipped or inconclusive, for ``reason``."""
    stages = tuple(StageResult(stage=stage, verdict=Verdict.SKIP, detail=reason) for stage in Stage)
    return _cell(target, vantage, verdict=verdict, stages=stages, reason=reason)


def _cell(target: CellTarget, vantage: str, **outcome: Any) -> Cell:
    return Cell(
        vantage=vantage,
        listener=target.listener,
        broker=target.broker,
        scopes=target.scopes,
        address=target.address,
        **outcome,
    )


def _approach(facts: Observation) -> _StageResults:
    """Bootstrap, metadata, resolve, TCP, security."""
    course = _StageResults()
    answer = facts.own if isinstance(facts.own, MetadataAnswer) else facts.via
    obstacle = _obstacle(facts.contact, facts) if facts.contact is not None else None
    if obstacle is not None and obstacle.stage is Stage.BOOTSTRAP:
        course.failed(obstacle)
    elif answer is not None:
        _metadata(course, facts, answer)
    elif facts.contact is not None:
        reason = f"no address of {facts.target.listener} answered"
        course.skipped(reason, Stage.BOOTSTRAP, Stage.METADATA)
    if facts.contact is not None:
        _way(course, facts.contact, facts.target, obstacle)
    return course


def _metadata(course: _StageResults, facts: Observation, answer: MetadataAnswer) -> None:
    """Bootstrap and metadata, by ``answer``."""
    target = facts.target
    detail = f"{answer.asked} answered"
    if answer is not facts.own and not facts.surplus:
        detail += f", {target.address} did not"
    course.passed(Stage.BOOTSTRAP, detail, answer.seconds)
    failed_stage = _failed_metadata(facts, answer)
    if failed_stage is not None:
        course.failed(failed_stage)
    elif target.broker in answer.brokers:
        count = len(answer.brokers)
        listed = f"broker {target.broker} at {answer.brokers[target.broker]}"
        course.passed(
            Stage.METADATA,
            f"{listed}, of {count} broker{'' if count == 1 else 's'}{_proved(facts)}",
        )
    else:
        # neither listed nor answering: it is down, and its own address says how
        course.skipped(f"no listener lists broker {target.broker} any more", Stage.METADATA)


def _proved(facts: Observation) -> str:
    count = len(facts.answering.ids)
    if not count or not isinstance(facts.own, MetadataAnswer):
        return ""
    lost = facts.answering.broken
    return f"; it answers on {count} of {count + lost} connections to {facts.target.address}"


def _failed_metadata(facts: Observation, answer: MetadataAnswer) -> FailedStage | None:
    target, own = facts.target, answer is facts.own
    name, broker = target.listener, target.broker
    live = answer.brokers.get(broker)
    if own and not facts.surplus and answer.cluster_id != facts.cluster_id:
        return _of_another_cluster(facts, answer)
    if facts.surplus:
        error, seen = "unexpected", f"{name} lists broker {broker} at {target.address}"
    elif own and facts.answers_as:
        error = "crossed"
        seen = f"{answer.asked} is answered by listener {facts.answers_as}: {answer.listed}"
    elif live is None and (facts.elsewhere or own):
        error = "missing" if facts.elsewhere else "unlisted"
        listed = f"{answer.listed}, and no broker {broker}"
        seen = f"{name} lists {listed if answer.brokers else 'no broker at all'}"
        if facts.elsewhere:
            seen += f"; {', '.join(facts.elsewhere)} lists it"
    elif live is not None and live != target.address:
        error, seen = "drift", f"broker {broker} advertises {live} to clients of {name}"
    elif live is not None and (sharing := answer.sharing(broker)):
        together = numbered("broker", (broker, *sharing))
        error, seen = "shared", f"{together} advertise one address to {name}: {live}"
    elif (
        own
        and live is not None
        and (others := facts.answering.other_brokers(target.address, broker))
    ):
        error, seen = "misrouted", others
    elif own and facts.disputed:
        error, seen = "disputed", _disputed(facts)
    elif own and (unanswered := facts.answering.unanswered(target.address)):
        error, seen = "unsteady", unanswered
    else:
        return None
    return FailedStage(Stage.METADATA, error, seen)


def _of_another_cluster(facts: Observation, answer: MetadataAnswer) -> FailedStage:
    whose = " of the contract" if facts.promised else ", which the other addresses belong to"
    error = "not-the-contracts" if facts.promised else "foreign"
    seen = f"{answer.asked} belongs to cluster {answer.cluster_id}"
    if answer.cluster_id == NOT_SAID:
        error, seen = "no-cluster", f"{answer.asked} names no cluster id"
    return FailedStage(Stage.METADATA, error, seen, f"cluster {facts.cluster_id}{whose}")


def _disputed(facts: Observation) -> str:
    """What the other answers say of the broker in place of the target's address."""
    target = facts.target
    texts = []
    for answer in facts.disputed:
        listed = answer.brokers.get(target.broker)
        texts.append(f"{answer.asked} {f'lists it at {listed}' if listed else 'does not list it'}")
    own = f"{target.address} lists broker {target.broker} of {target.listener}"
    return f"answers disagree: {own}, and {shortened(texts)}"


def _obstacle(contact: Contact, facts: Observation) -> FailedStage | None:
    """What keeps the target's own address from answering, at the stage where it shows."""
    target, own = facts.target, facts.own
    if not contact.lookup.ok:
        return _unresolved(target, contact.lookup)
    if not contact.connected:
        tried = [str(attempt) for attempt in contact.attempts]
        if untried := contact.lookup.addresses[len(tried) :]:
            tried.append(f"{len(untried)} more addresses were not tried")
        seen = "; ".join(tried)
        # without IPv6 `localhost` still leads to [::1] too: the last that had a route says most
        routed = [attempt for attempt in contact.attempts if attempt.error != "no-route"]
        error = (routed or contact.attempts)[-1].error
        return FailedStage(Stage.TCP, error, f"{target.address}: {seen}")
    insecure = contact.security
    if not isinstance(insecure, Failure) and isinstance(own, Failure):
        if own.error not in _OF_SECURITY:
            observed = f"{target.address} connects, but gives no metadata: {own.text}"
            return FailedStage(Stage.BOOTSTRAP, own.error, observed)
        insecure = own
    if not isinstance(insecure, Failure):
        return None
    observed, error = f"{target.address} ({target.protocol}): {insecure.text}", insecure.error
    if error == "authentication" and facts.via is not None:
        error = "lost-users"  # another broker accepts the same credentials
        observed += f"; {facts.via.asked} accepts the same credentials"
    if isinstance(insecure, OtherCertificate) and (others := _named_by(insecure, facts)):
        error = "misrouted"
        observed += f", as that of {numbered('broker', others)}"
    return FailedStage(Stage.SECURITY, error, observed)


def _named_by(shown: OtherCertificate, facts: Observation) -> list[int]:
    """The other brokers of the listener that the certificate is for."""
    brokers = facts.via.brokers if facts.via is not None else {}
    names = SubjectNames.of_hosts(shown.names)
    return [
        id
        for id, address in brokers.items()
        if id != facts.target.broker and names.cover(address.host)
    ]


def _unresolved(target: CellTarget, lookup: Lookup) -> FailedStage:
    host = target.address.host
    if is_name(host):
        kind = kind_of(host)
        error: str = lookup.diagnosis
        detail = f" ({lookup.detail})" if lookup.detail else ""
        observed = f"{host} {_DIAGNOSES[lookup.diagnosis]} for {lookup.resolver}{detail}; "
        observed += f"it is {kind}: {VANTAGES[kind].note}"
    else:
        error = "no-name"
        observed = f"{repr(host) if host else 'an empty text'} is neither a name nor an address"
    if target.broker >= 0:
        who = f"broker {target.broker} advertises {target.address}"
        observed = f"{who} to clients of {target.listener}, and {observed}"
    return FailedStage(Stage.RESOLVE, error, observed)


def _way(
    course: _StageResults, contact: Contact, target: CellTarget, obstacle: FailedStage | None
) -> None:
    """Resolve, TCP and security: passed up to the obstacle."""
    stage = obstacle.stage if obstacle is not None else None
    if stage is not Stage.RESOLVE:
        addresses = contact.lookup.addresses
        listed = shortened(addresses) if len(addresses) > MOST_ATTEMPTS else ", ".join(addresses)
        observed = f"{target.address.host} is {listed}"
        course.passed(Stage.RESOLVE, observed, contact.lookup.seconds)
    if stage not in (Stage.RESOLVE, Stage.TCP) and contact.attempts:
        course.passed(Stage.TCP, _connected(contact), contact.attempts[-1].seconds)
    if obstacle is not None:
        course.failed(obstacle)
    elif isinstance(contact.security, Handshake):
        secured = contact.security
        course.passed(Stage.SECURITY, _certificate(secured, target), secured.seconds)
    else:
        how = "authenticated" if target.protocol.sasl else "none asked for"
        course.passed(Stage.SECURITY, f"{target.protocol}, {how}")


def _connected(contact: Contact) -> str:
    text = contact.attempts[-1].address
    if contact.dead_first:
        dead = "; ".join(map(str, contact.dead_first))
        text += f" connected, but only after {dead}: some clients try the first address alone"
    return text


def _certificate(secured: Handshake, target: CellTarget) -> str:
    text = ", ".join(filter(None, (str(target.protocol), secured.version, secured.cipher)))
    traits = [f"is for {names_listed(secured.names)}"] if secured.names else []
    if secured.days_left is not None:
        verb = "expires in" if secured.days_left < EXPIRES_SOON else "lasts"
        traits.append(f"{verb} {secured.days_left} days")
    text = f"{text}; the certificate {' and '.join(traits)}" if traits else text
    if secured.names and not SubjectNames.of_hosts(secured.names).cover(target.address.host):
        # this client is set to compare no names, or does it with less care
        text += f"; it is not for {target.address.host}: clients that compare names refuse it"
    return text


def _exchange(course: _StageResults, facts: Observation) -> None:
    """Produce and consume."""
    sent, back = facts.produced, facts.consumed
    if not_sent := facts.skip or facts.prevented:
        return course.skipped(not_sent, Stage.PRODUCE, Stage.CONSUME)
    if not isinstance(sent, SentRecord):
        failure = sent or Failure("timeout", "the deadline passed before it was sent")
        return course.failed(FailedStage(Stage.PRODUCE, failure.error, failure.text))
    where = f"partition {sent.partition}, led by broker {facts.target.broker}, offset {sent.offset}"
    course.passed(Stage.PRODUCE, where, sent.latency_ms / 1000)
    if isinstance(back, float):
        return course.passed(Stage.CONSUME, "the same record, checksum equal", back)
    failure = back or Failure("timeout", "the deadline passed before it was read")
    course.failed(FailedStage(Stage.CONSUME, failure.error, failure.text))
