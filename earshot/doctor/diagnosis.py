"""From facts to a cell: which stages passed, which one failed, and what that means. Pure.

The stages are checked in their order, with one turn: a broker whose own address cannot be reached
is not blamed on bootstrap when another address of the listener answers, for that is how real
clients come in. Then metadata is compared from that answer, and the stage that really fails
(resolve, TCP, security) is the one named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from earshot.certificates.names import SubjectNames
from earshot.doctor.probe import PHRASES, Attempt, Contact, Handshake
from earshot.listeners.address import Address
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
class Sent:
    """An acknowledged record."""

    partition: int
    offset: int
    latency_ms: float
    checksum: int


@dataclass(frozen=True)
class Observed:
    """All that was observed about one target; a part that was not reached is None."""

    target: CellTarget
    contact: Contact | None = None
    own: MetadataAnswer | Failure | None = None
    """What the target's own address said when asked for metadata."""
    via: MetadataAnswer | None = None
    """Another address of the same listener that answered."""
    late: str = ""
    """Why nothing can be said: the deadline came before anybody could answer."""
    cluster_id: str = ""
    """The cluster that the target should belong to: the contract's, else that of most addresses."""
    promised: bool = False
    """Whether it is the contract that names the cluster."""
    elsewhere: tuple[str, ...] = ()
    """Other listeners whose metadata lists this broker."""
    answers_as: str = ""
    """The listener that the own answer is of, where that is another one."""
    surplus: bool = False
    """The contract knows no such broker; nothing but metadata (`via`) is looked at."""
    skip: str = ""
    """Why no record is exchanged although nobody failed: the user asked for none."""
    prevented: str = ""
    """What kept the doctor from exchanging records, which is not the cell's fault."""
    refusal: Cause | None = None
    """Why the cluster refused the topic, where that is what prevented it."""
    produced: Sent | Failure | None = None
    consumed: float | Failure | None = None
    """Seconds until the record came back."""


@dataclass
class _Course:
    """The stages so far."""

    results: list[StageResult] = field(default_factory=list)
    failed_stage: FailedStage | None = None

    def passed(self, stage: Stage, detail: str, seconds: float | None = None) -> None:
        self._add(stage, Verdict.PASS, detail, seconds)

    def skipped(self, stage: Stage, reason: str) -> None:
        self._add(stage, Verdict.SKIP, reason)

    def failed(self, failed_stage: FailedStage) -> None:
        self._add(failed_stage.stage, Verdict.FAIL, failed_stage.observed)
        self.failed_stage = self.failed_stage or failed_stage

    def _add(
        self, stage: Stage, verdict: Verdict, detail: str, seconds: float | None = None
    ) -> None:
        if self.failed_stage is None:  # whatever follows a failure says nothing
            self.results.append(
                StageResult(stage=stage, verdict=verdict, detail=detail, seconds=seconds)
            )

    def complete(self) -> tuple[StageResult, ...]:
        """All seven stages; those after the failed one are skipped for that reason."""
        done = {item.stage: item for item in self.results}
        reason = f"{self.failed_stage.stage} failed" if self.failed_stage else "not reached"
        return tuple(
            done.get(stage) or StageResult(stage=stage, verdict=Verdict.SKIP, detail=reason)
            for stage in Stage
        )


def ready(facts: Observed) -> bool:
    """Whether every stage before the records has passed."""
    return not facts.late and _approach(facts).failed_stage is None


def diagnose(facts: Observed, vantage: str) -> Cell:
    """The cell of ``facts`` as seen from ``vantage``."""
    course = _approach(facts)
    # what another address of the listener showed stands, whether or not there was time for this one
    if facts.late and (
        course.failed_stage is None or course.failed_stage.stage is not Stage.METADATA
    ):
        return undecided(facts.target, vantage, facts.late, Verdict.INCONCLUSIVE)
    if course.failed_stage is None:
        _exchange(course, facts)
    target = facts.target
    prevented = facts.prevented if course.failed_stage is None else ""
    cause = (
        explain(course.failed_stage, target.listener, target.broker, target.address, target.scopes)
        if course.failed_stage
        else facts.refusal
    )
    return Cell(
        vantage=vantage,
        listener=target.listener,
        broker=target.broker,
        scopes=target.scopes,
        address=target.address,
        verdict=Verdict.FAIL
        if course.failed_stage
        else Verdict.SKIP
        if prevented
        else Verdict.PASS,
        stages=course.complete(),
        cause=cause,
        reason=prevented,
        latency_ms=facts.produced.latency_ms if isinstance(facts.produced, Sent) else None,
    )


def undecided(target: CellTarget, vantage: str, reason: str, verdict: Verdict) -> Cell:
    """The cell of a target that could not be checked: skipped or inconclusive, for ``reason``."""
    stages = tuple(StageResult(stage=stage, verdict=Verdict.SKIP, detail=reason) for stage in Stage)
    return Cell(
        vantage=vantage,
        listener=target.listener,
        broker=target.broker,
        scopes=target.scopes,
        address=target.address,
        verdict=verdict,
        stages=stages,
        reason=reason,
    )


def _approach(facts: Observed) -> _Course:
    """Bootstrap, metadata, resolve, TCP, security."""
    course = _Course()
    answer = facts.own if isinstance(facts.own, MetadataAnswer) else facts.via
    if facts.contact is None:
        if answer is not None:
            _bootstrap(course, facts, answer)
            _metadata(course, facts, answer)
        return course
    obstacle = _obstacle(facts)
    if obstacle is not None and obstacle.stage is Stage.BOOTSTRAP:
        course.failed(obstacle)
    elif answer is None:
        reason = f"no address of {facts.target.listener} answered"
        course.skipped(Stage.BOOTSTRAP, reason)
        course.skipped(Stage.METADATA, reason)
    else:
        _bootstrap(course, facts, answer)
        _metadata(course, facts, answer)
    _way(course, facts.contact, facts.target, obstacle)
    return course


def _bootstrap(course: _Course, facts: Observed, answer: MetadataAnswer) -> None:
    detail = f"{answer.asked} answered"
    if answer is not facts.own and not facts.surplus:
        detail += f", {facts.target.address} did not"
    course.passed(Stage.BOOTSTRAP, detail, answer.seconds)


def _metadata(course: _Course, facts: Observed, answer: MetadataAnswer) -> None:
    target = facts.target
    failed_stage = _failed_metadata(facts)
    if failed_stage is not None:
        course.failed(failed_stage)
    elif target.broker in answer.brokers:
        listed = f"broker {target.broker} at {answer.brokers[target.broker]}"
        course.passed(Stage.METADATA, f"{listed}, of {_count(len(answer.brokers))}")
    else:
        # neither listed nor answering: it is down, and its own address says how
        course.skipped(Stage.METADATA, f"no listener lists broker {target.broker} any more")


def _failed_metadata(facts: Observed) -> FailedStage | None:
    target = facts.target
    own = isinstance(facts.own, MetadataAnswer)
    answer = facts.own if isinstance(facts.own, MetadataAnswer) else facts.via
    if answer is None:
        return None

    def failed(error: str, observed: str, expected: str = "") -> FailedStage:
        return FailedStage(Stage.METADATA, error, observed, expected)

    if facts.surplus:
        return failed(
            "unexpected", f"{target.listener} lists broker {target.broker} at {target.address}"
        )
    if own and answer.cluster_id not in (facts.cluster_id, NOT_SAID):
        seen = f"{answer.asked} belongs to cluster {answer.cluster_id}"
        if facts.promised:
            return failed("not-the-contracts", seen, f"cluster {facts.cluster_id} of the contract")
        return failed(
            "foreign", seen, f"cluster {facts.cluster_id}, which the other addresses belong to"
        )
    if own and facts.answers_as:
        return failed(
            "crossed", f"{answer.asked} is answered by listener {facts.answers_as}: {_list(answer)}"
        )
    live = answer.brokers.get(target.broker)
    if live is None:
        seen = f"{target.listener} lists {_list(answer)}, and no broker {target.broker}"
        if facts.elsewhere:
            return failed("missing", f"{seen}; {', '.join(facts.elsewhere)} lists it")
        return failed("unlisted", seen) if own else None
    if live != target.address:
        return failed(
            "drift", f"broker {target.broker} advertises {live} to clients of {target.listener}"
        )
    sharing = answer.sharing(target.broker)
    if sharing:
        together = " and ".join(str(id) for id in sorted((target.broker, *sharing)))
        return failed(
            "shared", f"brokers {together} advertise one address to {target.listener}: {live}"
        )
    return None


def _obstacle(facts: Observed) -> FailedStage | None:
    """What keeps the target's own address from answering, at the stage where it shows."""
    contact, target = facts.contact, facts.target
    assert contact is not None
    lookup = contact.lookup
    if not lookup.ok:
        return _unresolved(target, lookup)
    if not contact.connected:
        seen = "; ".join(str(item) for item in contact.attempts)
        return FailedStage(Stage.TCP, _telling(contact.attempts).error, f"{target.address}: {seen}")
    if isinstance(contact.security, Failure):
        return _security(target, contact.security)
    if isinstance(facts.own, Failure):
        if facts.own.error in _OF_SECURITY:
            return _security(target, facts.own)
        return FailedStage(
            Stage.BOOTSTRAP,
            facts.own.error,
            f"{target.address} connects, but gives no metadata: {facts.own.text}",
        )
    return None


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


def _security(target: CellTarget, failure: Failure) -> FailedStage:
    return FailedStage(
        Stage.SECURITY, failure.error, f"{target.address} ({target.protocol}): {failure.text}"
    )


def _telling(attempts: Sequence[Attempt]) -> Attempt:
    """The failed attempt that says most: the last one that had a route, if any had.

    Where there is no IPv6, `localhost` still leads to [::1] too.
    """
    routed = [item for item in attempts if item.error != "no-route"]
    return (routed or attempts)[-1]


def _way(
    course: _Course, contact: Contact, target: CellTarget, obstacle: FailedStage | None
) -> None:
    """Resolve, TCP and security: passed up to the obstacle."""
    stage = obstacle.stage if obstacle is not None else None
    if obstacle is not None and stage is Stage.RESOLVE:
        return course.failed(obstacle)
    addresses = ", ".join(contact.lookup.addresses)
    course.passed(Stage.RESOLVE, f"{target.address.host} is {addresses}", contact.lookup.seconds)
    if obstacle is not None and stage is Stage.TCP:
        return course.failed(obstacle)
    if contact.attempts:
        last = contact.attempts[-1]
        course.passed(Stage.TCP, _connected(contact), last.seconds)
    if obstacle is not None:
        return course.failed(obstacle)
    if isinstance(contact.security, Handshake):
        secured = contact.security
        course.passed(Stage.SECURITY, _certificate(secured, target), secured.seconds)
    else:
        how = "authenticated" if target.protocol.sasl else "none asked for"
        course.passed(Stage.SECURITY, f"{target.protocol}, {how}")
    return None


def _connected(contact: Contact) -> str:
    text = contact.attempts[-1].address
    if contact.dead_first:
        dead = "; ".join(
            f"{item.address} {PHRASES.get(item.error, item.error)}" for item in contact.dead_first
        )
        text += f" connected, but only after {dead}: some clients try the first address alone"
    return text


def _certificate(secured: Handshake, target: CellTarget) -> str:
    text = ", ".join(filter(None, (str(target.protocol), secured.version, secured.cipher)))
    traits = [f"is for {', '.join(secured.names)}"] if secured.names else []
    if secured.days_left is not None:
        verb = "expires in" if secured.days_left < EXPIRES_SOON else "lasts"
        traits.append(f"{verb} {secured.days_left} days")
    text = f"{text}; the certificate {' and '.join(traits)}" if traits else text
    if secured.names and not SubjectNames.of_hosts(secured.names).cover(target.address.host):
        # this client is set to compare no names, or does it with less care
        text += f"; it is not for {target.address.host}: clients that compare names refuse it"
    return text


def _exchange(course: _Course, facts: Observed) -> None:
    """Produce and consume."""
    target = facts.target
    if not_sent := facts.skip or facts.prevented:
        course.skipped(Stage.PRODUCE, not_sent)
        course.skipped(Stage.CONSUME, not_sent)
        return
    if not isinstance(facts.produced, Sent):
        failure = facts.produced or Failure("timeout", "the deadline passed before it was sent")
        course.failed(FailedStage(Stage.PRODUCE, failure.error, failure.text))
        return
    sent = facts.produced
    course.passed(
        Stage.PRODUCE,
        f"partition {sent.partition}, led by broker {target.broker}, offset {sent.offset}",
        sent.latency_ms / 1000,
    )
    if isinstance(facts.consumed, float):
        course.passed(Stage.CONSUME, "the same record, checksum equal", facts.consumed)
        return
    failure = facts.consumed or Failure("timeout", "the deadline passed before it was read")
    course.failed(FailedStage(Stage.CONSUME, failure.error, failure.text))


def _count(number: int) -> str:
    return f"{number} broker" + ("" if number == 1 else "s")


def _list(answer: MetadataAnswer) -> str:
    return ", ".join(f"{id} at {address}" for id, address in sorted(answer.brokers.items()))
