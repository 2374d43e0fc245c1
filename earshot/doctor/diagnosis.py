"""Derives the cell of a target from its observation: the passed stages, the failed one, the cause.

The stages are checked in order, with one exception. If a broker's own address does not answer but
another address of the listener does, bootstrap passes: a real client can start there. Metadata is
compared with that other answer, and the stage that fails at the own address (resolve, TCP,
security) is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from earshot.certificates.names import SubjectNames
from earshot.doctor.exchange import LARGE_PAYLOAD
from earshot.doctor.observation import CellTarget, Observation, SentRecord
from earshot.doctor.probe import MAX_ATTEMPTS, Contact, Handshake, OtherCertificate, names_listed
from earshot.listeners.listed import briefly, numbered, shortened
from earshot.names.kinds import is_name, kind_of
from earshot.names.lookup import Diagnosis, Lookup
from earshot.names.reachability import TABLE as VANTAGES
from earshot.validation.causes import FailedStage, explain
from earshot.validation.client import Failure
from earshot.validation.failure import refuses_parameter
from earshot.validation.metadata import NO_CLUSTER_ID, MetadataAnswer
from earshot.validation.result import Cell, StageResult
from earshot.validation.terms import Stage, Verdict

EXPIRES_SOON = 30
"""The report warns of certificates with fewer days left than this."""
_SECURITY_ERRORS = frozenset({"authentication", "client-certificate", "mechanism", "tls"})
"""Errors of a connected client that belong to the security stage."""
_DIAGNOSES = {
    Diagnosis.NXDOMAIN: "does not exist",
    Diagnosis.NO_ANSWER: "has no address record",
    Diagnosis.SERVER_FAILURE: "could not be looked up, the resolver failed",
    Diagnosis.TIMEOUT: "could not be looked up in time",
}


@dataclass
class _StageResults:
    """The results of the stages up to the first failure."""

    results: list[StageResult] = field(default_factory=list)
    failed_stage: FailedStage | None = None

    def add_pass(self, stage: Stage, detail: str, seconds: float | None = None) -> None:
        self._add(stage=stage, verdict=Verdict.PASS, detail=detail, seconds=seconds)

    def add_skips(self, reason: str, *stages: Stage) -> None:
        for stage in stages:
            self._add(stage=stage, verdict=Verdict.SKIP, detail=reason)

    def add_failure(self, failed_stage: FailedStage) -> None:
        self._add(stage=failed_stage.stage, verdict=Verdict.FAIL, detail=failed_stage.observed)
        self.failed_stage = self.failed_stage or failed_stage

    def _add(self, **result: Any) -> None:
        if self.failed_stage is None:  # results after a failure prove nothing
            self.results.append(StageResult(**result))

    def complete(self) -> tuple[StageResult, ...]:
        """The results of all seven stages; those after the failed one are skipped."""
        results = {result.stage: result for result in self.results}
        reason = f"{self.failed_stage.stage} failed" if self.failed_stage else "not reached"
        return tuple(
            results.get(stage) or StageResult(stage=stage, verdict=Verdict.SKIP, detail=reason)
            for stage in Stage
        )


def ready_for_records(facts: Observation) -> bool:
    """True if every stage before produce has passed."""
    return not facts.inconclusive_reason and _stages_before_records(facts).failed_stage is None


def diagnose(facts: Observation, vantage: str) -> Cell:
    """The cell of ``facts``, for the vantage of this name."""
    stages = _stages_before_records(facts)
    failed_stage, target = stages.failed_stage, facts.target
    # the result of another address of the listener counts, even if there was no time for this one
    if facts.inconclusive_reason and (
        failed_stage is None or failed_stage.stage is not Stage.METADATA
    ):
        return undecided(target, vantage, facts.inconclusive_reason, Verdict.INCONCLUSIVE)
    if failed_stage is None:
        _add_records(stages, facts)
        failed_stage = stages.failed_stage
    if failed_stage is not None:
        cause = explain(failed_stage, target.listener, target.broker, target.address, target.scopes)
        outcome = {"verdict": Verdict.FAIL, "cause": cause}
    elif facts.no_record_reason:
        outcome = {
            "verdict": Verdict.SKIP,
            "cause": facts.refusal,
            "reason": facts.no_record_reason,
        }
    else:
        outcome = {"verdict": Verdict.PASS}
    latency = facts.produced.latency_ms if isinstance(facts.produced, SentRecord) else None
    return _cell(target, vantage, stages=stages.complete(), latency_ms=latency, **outcome)


def undecided(target: CellTarget, vantage: str, reason: str, verdict: Verdict) -> Cell:
    """The cell of an unchecked target: ``verdict`` (skip or inconclusive) for ``reason``."""
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


def _stages_before_records(facts: Observation) -> _StageResults:
    """The results of bootstrap, metadata, resolve, TCP and security."""
    stages = _StageResults()
    answer = (
        facts.own_answer if isinstance(facts.own_answer, MetadataAnswer) else facts.other_answer
    )
    obstacle = _obstacle(facts.contact, facts) if facts.contact is not None else None
    if obstacle is not None and obstacle.stage is Stage.BOOTSTRAP:
        stages.add_failure(obstacle)
    elif answer is not None:
        _add_metadata(stages, facts, answer)
    elif facts.contact is not None:
        reason = f"no address of {facts.target.listener} answered"
        stages.add_skips(reason, Stage.BOOTSTRAP, Stage.METADATA)
    if facts.contact is not None:
        _add_connection(stages, facts.contact, facts.target, obstacle)
    return stages


def _add_metadata(stages: _StageResults, facts: Observation, answer: MetadataAnswer) -> None:
    """Adds the results of bootstrap and metadata, from ``answer``."""
    target = facts.target
    detail = f"{answer.asked} answered"
    if answer is not facts.own_answer and not facts.is_unexpected:
        detail += f", {target.address} did not"
    stages.add_pass(Stage.BOOTSTRAP, detail, answer.seconds)
    failed_stage = _failed_metadata(facts, answer)
    if failed_stage is not None:
        stages.add_failure(failed_stage)
    elif target.broker in answer.brokers:
        count = len(answer.brokers)
        place = f"broker {target.broker} at {answer.brokers[target.broker]}"
        stages.add_pass(
            Stage.METADATA,
            f"{place}, of {count} broker{'' if count == 1 else 's'}{_answer_count(facts)}",
        )
    else:
        # the broker is down: the stages of its own address show the cause
        stages.add_skips(f"no listener lists broker {target.broker} any more", Stage.METADATA)


def _answer_count(facts: Observation) -> str:
    count = len(facts.answering_brokers.ids)
    if not count or not isinstance(facts.own_answer, MetadataAnswer):
        return ""
    unanswered = facts.answering_brokers.unanswered_count
    return f"; it answers on {count} of {count + unanswered} connections to {facts.target.address}"


def _failed_metadata(facts: Observation, answer: MetadataAnswer) -> FailedStage | None:
    target, is_own_answer = facts.target, answer is facts.own_answer
    name, broker = target.listener, target.broker
    live_address = answer.brokers.get(broker)
    if is_own_answer and (wrong_cluster := _wrong_cluster(facts, answer)):
        return wrong_cluster
    if facts.is_unexpected:
        error, observed = "unexpected", f"{name} lists broker {broker} at {target.address}"
    elif is_own_answer and (crossed := _crossed(facts, answer)):
        error, observed = "crossed", crossed
    elif live_address is None and (facts.other_listeners or is_own_answer):
        error = "missing" if facts.other_listeners else "unlisted"
        listed_brokers = f"{answer.brokers_text}, and no broker {broker}"
        observed = f"{name} lists {listed_brokers if answer.brokers else 'no broker at all'}"
        if facts.other_listeners:
            observed += f"; {', '.join(facts.other_listeners)} lists it"
    elif live_address is not None and live_address != target.address:
        error, observed = "drift", f"broker {broker} advertises {live_address} to clients of {name}"
    elif live_address is not None and (sharing_ids := answer.brokers_at_same_address(broker)):
        brokers = numbered("broker", (broker, *sharing_ids))
        error, observed = "shared", f"{brokers} advertise one address to {name}: {live_address}"
    elif (
        is_own_answer
        and live_address is not None
        and (other_brokers := facts.answering_brokers.other_brokers(target.address, broker))
    ):
        error, observed = "misrouted", other_brokers
    elif is_own_answer and facts.conflicting_answers:
        error, observed = "disputed", _conflict_text(facts)
    elif is_own_answer and (unanswered := facts.answering_brokers.unanswered(target.address)):
        error, observed = "unsteady", unanswered
    else:
        return None
    return FailedStage(Stage.METADATA, error, observed)


def _crossed(facts: Observation, answer: MetadataAnswer) -> str:
    """Text about connections to the own address that another listener answers; empty if none."""
    if not facts.answering_listener:
        return facts.answering_brokers.other_addresses(answer.asked)
    listener = f"listener {facts.answering_listener}"
    return f"{answer.asked} is answered by {listener}: {answer.brokers_text}"


def _wrong_cluster(facts: Observation, answer: MetadataAnswer) -> FailedStage | None:
    """The failure if another cluster gave the address's ``answer``, or answers there at times."""
    error = "not-the-contracts" if facts.contract_names_cluster else "foreign"
    if answer.cluster_id == facts.cluster_id or facts.is_unexpected:
        observed = facts.answering_brokers.other_cluster(answer.asked)
    elif answer.cluster_id == NO_CLUSTER_ID:
        error, observed = "no-cluster", f"{answer.asked} names no cluster id"
    else:
        observed = f"{answer.asked} belongs to cluster {answer.cluster_id}"
    if not observed:
        return None
    origin = (
        " of the contract"
        if facts.contract_names_cluster
        else ", which the other addresses belong to"
    )
    return FailedStage(Stage.METADATA, error, observed, f"cluster {facts.cluster_id}{origin}")


def _conflict_text(facts: Observation) -> str:
    """The address of the broker in each of the conflicting answers, as text."""
    target = facts.target
    texts = []
    for answer in facts.conflicting_answers:
        address = answer.brokers.get(target.broker)
        texts.append(
            f"{answer.asked} {f'lists it at {address}' if address else 'does not list it'}"
        )
    own_text = f"{target.address} lists broker {target.broker} of {target.listener}"
    return f"answers disagree: {own_text}, and {shortened(texts)}"


def _obstacle(contact: Contact, facts: Observation) -> FailedStage | None:
    """The stage that fails at the target's own address, with the error; None if none fails."""
    target, own_answer = facts.target, facts.own_answer
    if not contact.lookup.ok:
        return _resolve_failure(target, contact.lookup)
    if not contact.connected:
        attempts = [str(attempt) for attempt in contact.attempts]
        if untried_ips := contact.lookup.addresses[len(attempts) :]:
            attempts.append(f"{len(untried_ips)} more addresses were not tried")
        attempt_text = "; ".join(attempts)
        # `localhost` resolves to ::1 even without IPv6: prefer the last address that has a route
        routed_attempts = [attempt for attempt in contact.attempts if attempt.error != "no-route"]
        error = (routed_attempts or contact.attempts)[-1].error
        return FailedStage(Stage.TCP, error, f"{target.address}: {attempt_text}")
    security_failure = contact.security
    if not isinstance(security_failure, Failure) and isinstance(own_answer, Failure):
        if own_answer.error not in _SECURITY_ERRORS:
            observed = f"{target.address} connects, but gives no metadata: {own_answer.text}"
            return FailedStage(Stage.BOOTSTRAP, own_answer.error, observed)
        security_failure = own_answer
    if not isinstance(security_failure, Failure):
        return None
    observed, error = (
        f"{target.address} ({target.protocol}): {security_failure.text}",
        security_failure.error,
    )
    if error == "authentication" and facts.other_answer is not None:
        error = "lost-users"  # another broker accepts the same credentials
        observed += f"; {facts.other_answer.asked} accepts the same credentials"
    is_parameter = error == "tls" and refuses_parameter(security_failure.text)
    if is_parameter and "_" in target.address.host:
        error = "underscore"  # Java's TLS refuses the name
    if isinstance(security_failure, OtherCertificate) and (
        other_ids := _brokers_of_certificate(security_failure, facts)
    ):
        error = "misrouted"
        observed += f", as that of {numbered('broker', other_ids)}"
    return FailedStage(Stage.SECURITY, error, observed)


def _brokers_of_certificate(certificate: OtherCertificate, facts: Observation) -> list[int]:
    """The ids of other brokers of the listener whose host the certificate covers."""
    brokers = facts.other_answer.brokers if facts.other_answer is not None else {}
    names = SubjectNames.of_hosts(certificate.names)
    return [
        id
        for id, address in brokers.items()
        if id != facts.target.broker and names.covers(address.host)
    ]


def _resolve_failure(target: CellTarget, lookup: Lookup) -> FailedStage:
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
        advertised = f"broker {target.broker} advertises {target.address}"
        observed = f"{advertised} to clients of {target.listener}, and {observed}"
    return FailedStage(Stage.RESOLVE, error, observed)


def _add_connection(
    stages: _StageResults, contact: Contact, target: CellTarget, obstacle: FailedStage | None
) -> None:
    """Adds the results of resolve, TCP and security: passed up to ``obstacle``."""
    stage = obstacle.stage if obstacle is not None else None
    if stage is not Stage.RESOLVE:
        addresses = contact.lookup.addresses
        ips = briefly(addresses, MAX_ATTEMPTS)
        observed = f"{target.address.host} is {ips}"
        stages.add_pass(Stage.RESOLVE, observed, contact.lookup.seconds)
    if stage not in (Stage.RESOLVE, Stage.TCP) and contact.attempts:
        stages.add_pass(Stage.TCP, _connection_text(contact), contact.attempts[-1].seconds)
    if obstacle is not None:
        stages.add_failure(obstacle)
    elif isinstance(contact.security, Handshake):
        handshake = contact.security
        stages.add_pass(Stage.SECURITY, _certificate_text(handshake, target), handshake.seconds)
    else:
        login = "authenticated" if target.protocol.sasl else "none asked for"
        stages.add_pass(Stage.SECURITY, f"{target.protocol}, {login}")


def _connection_text(contact: Contact) -> str:
    text = contact.attempts[-1].address
    if contact.dead_first:
        failed_attempts = "; ".join(map(str, contact.dead_first))
        text += f" connected, but only after {failed_attempts}: some clients try only the first"
    return text


def _certificate_text(handshake: Handshake, target: CellTarget) -> str:
    text = ", ".join(filter(None, (str(target.protocol), handshake.version, handshake.cipher)))
    traits = [f"is for {names_listed(handshake.names)}"] if handshake.names else []
    if handshake.days_left is not None:
        verb = "expires in" if handshake.days_left < EXPIRES_SOON else "lasts"
        traits.append(f"{verb} {handshake.days_left} days")
    text = f"{text}; the certificate {' and '.join(traits)}" if traits else text
    if handshake.names and not SubjectNames.of_hosts(handshake.names).covers(target.address.host):
        # this client compares no names, or less strictly
        text += f"; it does not cover {target.address.host}: clients that compare names refuse it"
    return text


def _add_records(stages: _StageResults, facts: Observation) -> None:
    """Adds the results of produce and consume."""
    sent_record, seconds = facts.produced, facts.consumed
    if reason := facts.skip or facts.no_record_reason:
        return stages.add_skips(reason, Stage.PRODUCE, Stage.CONSUME)
    if not isinstance(sent_record, SentRecord):
        failure = sent_record or Failure("timeout", "the deadline passed before it was sent")
        return stages.add_failure(FailedStage(Stage.PRODUCE, failure.error, failure.text))
    place = f"partition {sent_record.partition}, led by broker {facts.target.broker}"
    detail = f"{place}, offset {sent_record.offset}"
    same = "the same record, checksum equal"
    if sent_record.large is not None:
        detail += f"; and a record of {LARGE_PAYLOAD:,} bytes"
        same = "the same records, checksums equal"
    stages.add_pass(Stage.PRODUCE, detail, sent_record.latency_ms / 1000)
    if isinstance(seconds, float):
        return stages.add_pass(Stage.CONSUME, same, seconds)
    failure = seconds or Failure("timeout", "the deadline passed before it was read")
    stages.add_failure(FailedStage(Stage.CONSUME, failure.error, failure.text))
