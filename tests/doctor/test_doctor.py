"""The doctor where no broker is: what it says, and that only the user's errors are raised."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from earshot.doctor import doctor, draft, exchange, group_lookup, notes, records, survey
from earshot.doctor.asking import AnsweringBrokers, ReachableAddress
from earshot.doctor.control import LIMIT
from earshot.doctor.doctor import examine
from earshot.doctor.draft import Draft
from earshot.doctor.exchange import Destination
from earshot.doctor.missing_topic import NO_TOPIC, QUORUM_PATIENCE
from earshot.doctor.observation import CellTarget, Observation, SentRecord
from earshot.doctor.probe import Attempt, Contact
from earshot.doctor.run_topic import CLEAN_UP_LIMIT, Partitions, ReachedBrokers
from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.names.lookup import Diagnosis, Lookup
from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from earshot.validation.metadata import NO_CLUSTER_ID
from earshot.validation.result import Cell, Report
from earshot.validation.terms import Stage, Verdict
from tests.doubles.answers import address, answer, contract
from tests.doubles.closed_port import closed_port


@pytest.fixture
def closed() -> Iterator[Address]:
    with closed_port() as address:
        yield address


def test_a_closed_port_is_refused(closed: Address) -> None:
    reported: list[Cell] = []
    report = examine(contract(EXTERNAL=[str(closed)]), on_cell=reported.append)
    (cell,) = report.cells
    assert (report.exit_code, report.kind, report.cluster) == (1, "doctor", "dev")
    assert cell.failed_stage is Stage.TCP
    assert cell.cause is not None and cell.cause.kind == "refused"
    assert reported == [cell]
    assert report.vantages[0].verdict is Verdict.PASS
    assert report.notes == ()


def test_without_a_contract_the_listener_is_the_address(closed: Address) -> None:
    (cell,) = examine([closed]).cells
    assert (cell.listener, cell.broker) == (str(closed), -1)
    assert cell.failed_stage is Stage.TCP


def test_every_cell_is_checked_though_one_name_is_bad(closed: Address) -> None:
    report = examine(contract(EXTERNAL=["nope.invalid:9092", str(closed)]))
    assert [cell.failed_stage for cell in report.cells] == [Stage.RESOLVE, Stage.TCP]


def test_a_silent_bootstrap_address_is_noted(closed: Address) -> None:
    report = examine(contract(EXTERNAL=["nope.invalid:9092"]), bootstrap=[closed])
    assert report.notes == (f"{closed} gave no metadata",)
    assert report.cells[0].failed_stage is Stage.RESOLVE


HERE = Address("localhost", 9092)


@pytest.mark.parametrize(
    ("name", "reported", "expected", "note"),
    [
        ("EXTERNAL", None, "C", "gave no metadata; it belongs to EXTERNAL"),
        (None, None, "C", "gave no metadata"),
        ("EXTERNAL", "C", "C", "is listener EXTERNAL; it advertises broker 1 at a:1, 2 at b:2"),
        (None, "C", None, "is not a listener of the contract; it advertises broker 1 at a:1, 2"),
        ("EXTERNAL", NO_CLUSTER_ID, "C", "names no cluster id, and the contract is of cluster C"),
        ("EXTERNAL", NO_CLUSTER_ID, None, "is listener EXTERNAL; it advertises broker 1 at a:1, 2"),
        ("EXTERNAL", "D", "C", "belongs to cluster D, not to C of the contract"),
    ],
)
def test_seed_note(name: str | None, reported: str | None, expected: str | None, note: str) -> None:
    contact = Contact(HERE, Lookup("localhost", "this machine", Diagnosis.OK))
    said = None if reported is None else answer(str(HERE), "a:1", "b:2", cluster=reported)
    seed_note = notes.seed_note(HERE, name, survey.AddressResult(contact, said), expected)
    assert seed_note.removesuffix(" at b:2") == f"{HERE} {note.removesuffix(' at b:2')}"


FACTS = Observation(CellTarget("L", Protocol.PLAINTEXT, 1, Address("127.0.0.1", 9092)))
NOT_CREATED = "no topic could be created here: said so"


@pytest.mark.parametrize(
    ("errors", "cause"),
    [
        (["", "", "timeout"], None),
        (["", "", "refused"], "no-quorum"),  # its connections have ended, so no broker waits for it
        (["", "timeout", "refused"], "no-quorum"),
        (["", "timeout"], "no-quorum"),
    ],
)
def test_a_broker_that_hangs_may_be_the_active_controller(
    cluster: ClusterDouble, errors: list[str], cause: str | None
) -> None:
    cluster.created = Failure("timeout", "said so")
    lookup = Lookup("b", "this machine", Diagnosis.OK)
    contact = Contact(HERE, lookup, (Attempt("192.0.2.1", "", 0.01),))
    brokers = [f"b{id}:9092" for id in range(1, len(errors) + 1)]
    facts = [
        replace(
            observed(id),
            own_answer=Failure(error, "no") if error else answer(f"b{id}:9092", *brokers),
            contact=contact,
            cluster_id="C",
        )
        for id, error in enumerate(errors, 1)
    ]
    cell = examined(facts)[0]
    assert (cell.cause.kind if cell.cause else None) == cause
    assert (cell.verdict is Verdict.SKIP and "while broker 3 gives no answer" in cell.reason) == (
        cause is None
    )


def test_api_versions_is_asked_for_where_nothing_answered(
    cluster: ClusterDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = ReachableAddress(address("b1:9092"), ("192.0.2.1",), None, None)
    silence = Failure("timeout", "none")
    monkeypatch.setattr(doctor, "version_failure", lambda peer, end: silence)
    for error, kind in (("timeout", "no-api-versions"), ("policy-violation", "topic-policy")):
        cluster.created = Failure(error, "no")
        (cell,) = examined([replace(observed(1), peer=peer)])
        assert cell.cause is not None and cell.cause.kind == kind


def test_the_time_that_others_took_is_no_time_for_a_topic(cluster: ClusterDouble) -> None:
    cluster.created = Failure("timeout", "said so")
    end, begun = Deadline(QUORUM_PATIENCE + 0.05), Draft()
    with ThreadPoolExecutor(1) as pool:
        examination = doctor._Examination({}, end, pool, begun, None)
        end.stop.wait(0.1)  # as long as addresses took
        examination.decide([FACTS], True, "dev")
    (cell,) = begun.cells.values()
    assert (cell.verdict, cell.cause, cell.reason) == (Verdict.SKIP, None, NOT_CREATED)


def test_a_blind_vantage_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(hosts: Sequence[str], limit: float = 1.0) -> dict[str, Lookup]:
        return {host: Lookup(host, "test", Diagnosis.TIMEOUT) for host in hosts}

    monkeypatch.setattr(survey, "resolve", nothing)
    monkeypatch.setattr(doctor, "vantage_resolves", lambda: False)
    report = examine(contract(EXTERNAL=["broker-1.example.com:9092"]))
    assert report.exit_code == 3
    assert report.vantages[0].verdict is Verdict.INCONCLUSIVE
    assert report.vantages[0].reason == report.cells[0].reason
    assert [cell.verdict for cell in report.cells] == [Verdict.INCONCLUSIVE]
    assert "localhost" in report.cells[0].reason


@pytest.mark.parametrize(
    ("client", "named"),
    [
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"sasl.no.such.property": "1"}, "sasl.no.such.property"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/ca.jks"}, "truststore"),
    ],
)
def test_bad_client_properties_are_one_error(client: dict[str, str], named: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        seed = Address("127.0.0.1", server.getsockname()[1])
        with pytest.raises(EarshotError, match=named) as caught:
            examine([seed], client=client)
    assert caught.value.exit_code == 2


@dataclass
class ClusterDouble:
    """A cluster that takes records; what is asked of it in order, and what it answers."""

    asked: list[Any] = field(default_factory=list)
    created: Partitions | Failure | None = None
    refusals: list[Failure] = field(default_factory=list)
    """The answers to the first requests for a topic."""
    listed: frozenset[int] = frozenset()
    swept: Sequence[str] = ()
    left: str = ""
    sent: Mapping[int, Failure] = field(default_factory=dict)
    """By partition; elsewhere a record is acknowledged."""
    back: float | Failure = 0.1
    strange: tuple[int, int] = (0, 0)

    def topic(self, *given: object) -> ClusterDouble:
        self.asked.append(("topic", *given))
        return self

    def create(self, wanted: Sequence[object]) -> Partitions | Failure:
        self.asked.append(("create", wanted))
        if self.refusals:
            return self.refusals.pop(0)
        return self.created or Partitions("t", (4, 7)[: len(wanted)], {})

    def listed_brokers(self) -> frozenset[int]:
        return self.listed

    def sweep(self) -> Sequence[str]:
        return self.swept

    def delete(self) -> str:
        self.asked.append("delete")
        return self.left

    def _note(self, step: str, values: Mapping[str, Any], *given: object) -> None:
        self.asked.append((step, values["bootstrap.servers"], values["security.protocol"], *given))

    def produce(
        self, values: Mapping[str, Any], topic: str, destinations: Sequence[Destination], _: object
    ) -> Iterator[tuple[int, SentRecord | Failure]]:
        self._note("produce", values, topic, destinations)
        for it in destinations:
            yield (
                it.partition,
                self.sent.get(it.partition) or SentRecord(it.partition, 1, 2.0, b"7"),
            )

    def consume(
        self, values: Mapping[str, Any], topic: str, sent: Any, run: str, _: object
    ) -> Iterator[tuple[int, float | Failure]]:
        self._note("consume", values, topic, sent, run)
        for _, record in sent:
            yield record.partition, self.back

    def wrong_brokers(self, *given: object) -> tuple[int, int]:
        self.asked.append(("wrong_brokers", *given[:3]))
        return self.strange


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ClusterDouble:
    double = ClusterDouble()
    monkeypatch.setattr(doctor, "RunTopic", double.topic)
    monkeypatch.setattr(exchange, "produce", double.produce)
    monkeypatch.setattr(exchange, "consume", double.consume)
    monkeypatch.setattr(records, "wrong_brokers", double.wrong_brokers)
    monkeypatch.setattr(group_lookup, "failed_lookup", lambda peer, end: "")
    return double


class Unmoved(Deadline):
    """Of which no time passes."""

    def left(self, limit: float | None = None) -> float:
        return self.seconds if limit is None else min(self.seconds, limit)


def observed(broker: int, inconclusive_reason: str = "") -> Observation:
    at = address(f"b{broker}:9092")
    return Observation(
        CellTarget("L", Protocol.SASL_SSL, broker, at), inconclusive_reason=inconclusive_reason
    )


def examined(
    facts: Sequence[Observation],
    *,
    produce: bool = True,
    seconds: float = 60.0,
    notes: list[str] | None = None,
    reported: list[Cell] | None = None,
) -> list[Cell]:
    on_cell = None if reported is None else reported.append
    begun = Draft(run="0a1b2c3d", notes=[] if notes is None else notes)
    with ThreadPoolExecutor(1) as pool:
        examination = doctor._Examination({}, Unmoved(seconds), pool, begun, on_cell)
        examination.decide(facts, produce, "dev")
    return [begun.cells[index] for index in range(len(facts))]


def test_ready_brokers_get_records_and_the_topic_is_deleted(cluster: ClusterDouble) -> None:
    cluster.swept, cluster.left = ["old-1", "old-2"], "topic t is left"
    facts = [observed(2), observed(3, inconclusive_reason="no time"), observed(1)]
    notes: list[str] = []
    reported: list[Cell] = []
    cells = examined(facts, notes=notes, reported=reported)
    verdicts = [(2, Verdict.PASS), (3, Verdict.INCONCLUSIVE), (1, Verdict.PASS)]
    assert [(cell.broker, cell.verdict) for cell in cells] == verdicts
    assert sorted(reported, key=lambda cell: cell.broker) == [cells[2], cells[0], cells[1]]
    assert reported[0] == cells[1], "what is not waited for is reported first"
    assert notes == ["deleted 2 topic(s) of killed runs", "topic t is left"]
    (name, given, run, lifetime, access, _), *asked = cluster.asked
    assert (name, given, run, lifetime) == ("topic", "dev", "0a1b2c3d", 60.0 + CLEAN_UP_LIMIT)
    two, one = address("b2:9092"), address("b1:9092")
    assert access == ReachedBrokers(Protocol.SASL_SSL, {2: two, 1: one}, {})
    headers = {"run": "0a1b2c3d", "listener": "L"}
    way = ("b2:9092,b1:9092", "SASL_SSL", "t")
    destinations = [
        Destination(7, two, headers | {"broker": "2"}),
        Destination(4, one, headers | {"broker": "1"}),
    ]
    records = [(two, SentRecord(7, 1, 2.0, b"7")), (one, SentRecord(4, 1, 2.0, b"7"))]
    assert asked == [
        ("create", [(1,), (2,)]),
        ("produce", *way, destinations),
        ("consume", *way, records, "0a1b2c3d"),
        "delete",
    ]


def test_where_nothing_was_left_nothing_is_noted(cluster: ClusterDouble) -> None:
    notes: list[str] = []
    (cell,) = examined([observed(1)], notes=notes)
    assert (cell.verdict, notes) == (Verdict.PASS, [])


def test_no_record_is_sent_if_none_is_wanted_or_no_broker_is_ready(cluster: ClusterDouble) -> None:
    (unasked,) = examined([observed(1)], produce=False)
    assert [(stage.stage, stage.verdict, stage.detail) for stage in unasked.stages[-2:]] == [
        (stage, Verdict.SKIP, "records were not asked for")
        for stage in (Stage.PRODUCE, Stage.CONSUME)
    ]
    (late,) = examined([observed(1, inconclusive_reason="no time")])
    assert (late.verdict, late.reason) == (Verdict.INCONCLUSIVE, "no time")
    assert cluster.asked == []


def test_a_topic_that_is_refused_is_deleted_all_the_same(cluster: ClusterDouble) -> None:
    """It may have been made meanwhile."""
    cluster.created = Failure("policy-violation", "no")
    cells = examined([observed(1), observed(2)])
    assert [cell.reason for cell in cells] == [NO_TOPIC] * 2
    assert cluster.asked[1:] == [("create", [(1,), (2,)]), "delete"]


def test_brokers_that_are_fenced_meanwhile_fail_alone(cluster: ClusterDouble) -> None:
    cluster.refusals = [Failure("invalid-replica-assignment", "fenced")]
    cluster.listed = frozenset({1, 3})
    cells = examined([observed(1), observed(2), observed(3)])
    assert [(cell.failed_stage, cell.cause and cell.cause.kind) for cell in cells] == [
        (None, None),
        (Stage.PRODUCE, "fenced"),
        (None, None),
    ]
    assert [asked for asked in cluster.asked if asked[0] == "create"] == [
        ("create", [(1,), (2,), (3,)]),
        ("create", [(1,), (3,)]),
    ]


@pytest.mark.parametrize("listed", [frozenset(), frozenset({1, 2}), frozenset({7})])
def test_an_assignment_refused_for_another_reason_concerns_all_cells(
    listed: frozenset[int], cluster: ClusterDouble
) -> None:
    cluster.created, cluster.listed = Failure("invalid-replica-assignment", "no"), listed
    cells = examined([observed(1), observed(2)])
    assert [cell.cause and cell.cause.kind for cell in cells] == ["topic-replicas"] * 2
    assert cluster.asked[1:] == [("create", [(1,), (2,)]), "delete"]


def test_an_interrupted_examination_deletes_its_topic(cluster: ClusterDouble) -> None:
    class Interrupting(list[Cell]):
        def append(self, cell: Cell) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examined([observed(1)], reported=Interrupting())
    assert cluster.asked[-1] == "delete"


@pytest.mark.parametrize("strange", [(0, 0), (0, 5), (2, 5), (5, 5)])
def test_partitions_identify_brokers(strange: tuple[int, int], cluster: ClusterDouble) -> None:
    peer = ReachableAddress(address("b1:9092"), ("192.0.2.1",), None, None)
    unknown = AnsweringBrokers(unknown_reason="not told")
    facts = replace(observed(1), peer=peer, answering_brokers=unknown)
    cluster.strange = strange
    notes: list[str] = []
    (cell,) = examined([facts], notes=notes)
    assert ("wrong_brokers", peer, "t", 4) in cluster.asked
    if strange[0]:
        assert cell.cause is not None and cell.cause.kind == "misrouted"
        assert f"{strange[0]} of 5 connections to b1:9092 reached another" in cell.cause.observed
    else:
        assert cell.verdict is Verdict.PASS
    unknown_note = "which broker answers is not known at b1:9092: not told"
    assert notes == ([unknown_note] if strange == (0, 0) else [])


@pytest.mark.parametrize("stage", [Stage.PRODUCE, Stage.CONSUME])
@pytest.mark.parametrize(
    ("error", "seconds", "reason"),
    [
        ("timeout", 0.9, "the deadline left 0.9 s for a record: none"),
        ("timeout", 60.0, ""),
        ("authorization", 0.9, ""),
    ],
)
def test_a_record_is_late_only_where_little_time_was_left(
    stage: Stage, error: str, seconds: float, reason: str, cluster: ClusterDouble
) -> None:
    if stage is Stage.PRODUCE:
        cluster.sent = {4: Failure(error, "none")}
    else:
        cluster.back = Failure(error, "none")
    (cell,) = examined([observed(1)], seconds=seconds)
    assert cell.reason == reason
    assert cell.verdict is (Verdict.INCONCLUSIVE if reason else Verdict.FAIL)
    assert cell.failed_stage is (None if reason else stage)


def test_those_who_still_work_are_told_to_stop_and_waited_for() -> None:
    end = Deadline(60)

    def work() -> None:
        end.stop.wait(60)
        time.sleep(0.02)

    with pytest.raises(KeyboardInterrupt), doctor._workers(end) as pool:
        futures = [pool.submit(work) for _ in range(3)]
        assert not end.stop.is_set()
        raise KeyboardInterrupt
    assert end.stop.is_set() and all(future.done() for future in futures)


TWO = contract(INTERNAL=["i:1"], EXTERNAL=["e:1"])
WITH_SSL = tuple(
    listener.model_copy(update={"protocol": Protocol.SSL}) for listener in TWO.listeners
)
SSL_ALONE = TWO.model_copy(update={"listeners": WITH_SSL})
MIXED = TWO.model_copy(update={"listeners": (TWO.listeners[0], WITH_SSL[1])})


@pytest.mark.parametrize(
    ("expected", "at", "spoken"),
    [
        (MIXED, "e:1", Protocol.SSL),
        (MIXED, "i:1", Protocol.PLAINTEXT),
        (MIXED, "x:1", Protocol.SASL_SSL),
        (SSL_ALONE, "x:1", Protocol.SSL),
    ],
)
def test_a_seed_gets_the_protocol_of_its_listener(expected: Any, at: str, spoken: Protocol) -> None:
    client = {"security.protocol": "SASL_SSL"}
    assert doctor._seed_protocol(expected, address(at), client) is spoken


NOT_NAMED = (
    "cluster C answers; the contract names no cluster_id, so it is not known whether these are its "
    "brokers or another cluster's at the same addresses"
)


@pytest.mark.parametrize(
    ("named", "found", "noted"), [(None, "C", True), (None, "", False), ("C", "C", False)]
)
def test_an_unknown_cluster_is_noted(named: str | None, found: str, noted: bool) -> None:
    facts = [observed(1), replace(observed(2), cluster_id=found)]
    expected = TWO if named is None else TWO.identified(named)
    assert notes.uncompared_cluster(expected, facts) == ([NOT_NAMED] if noted else [])


@pytest.mark.parametrize(
    ("lookups", "here", "blind"),
    [
        ((Diagnosis.TIMEOUT, Diagnosis.NXDOMAIN), False, True),
        ((Diagnosis.TIMEOUT, Diagnosis.OK), False, False),
        ((Diagnosis.TIMEOUT,), True, False),
        ((), False, False),
    ],
)
def test_a_machine_resolves_nothing_if_every_lookup_and_the_control_fail(
    lookups: Sequence[Diagnosis], here: bool, blind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "vantage_resolves", lambda: here)
    contacts = [Contact(HERE, Lookup("localhost", "test", lookup)) for lookup in lookups]
    facts = [observed(1), *(replace(observed(2), contact=item) for item in contacts)]
    assert doctor._resolves_nothing(facts) is blind


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is looked at, each time: x and y lead to a and b, where a stranger is at b."""
    looked: list[list[str]] = []
    said = {
        "x:1": answer("x:1", "a:1", "b:1"),
        "y:1": answer("y:1", "a:1", "b:1"),
        "a:1": answer("a:1", "a:1", "b:1"),
        "b:1": answer("b:1", "b:1", cluster="D"),
    }

    def look(
        places: Sequence[survey.ListenerAddress], *rest: object
    ) -> dict[Any, survey.AddressResult]:
        looked.append([str(at) for at, _ in places])
        assert {protocol for _, protocol in places} <= {Protocol.PLAINTEXT}
        there = Lookup("there", "test", Diagnosis.OK)
        made, refused = Attempt("there", "", 0.0), Attempt("there", "refused", 0.0)
        return {
            place: survey.AddressResult(
                Contact(place[0], there, (refused if place[0].host == "gone" else made,)),
                said.get(str(place[0]), Failure("timeout", "silent")),
            )
            for place in places
        }

    monkeypatch.setattr(doctor, "connect_to_all", look)
    monkeypatch.setattr(draft, "nameservers", tuple)
    monkeypatch.setattr(doctor, "mark_broken_vantage", lambda report, *rest: report)
    return looked


def test_each_listed_address_is_examined_once_without_contract(answers: list[list[str]]) -> None:
    seeds = [address("x:1"), address("y:1"), address("a:1"), address("z:1")]
    report = examine(seeds, produce=False)
    assert answers == [["x:1", "y:1", "a:1", "z:1"], ["b:1"]]
    assert (report.cluster, report.cluster_id) == ("C", "C")
    assert [(cell.listener, cell.broker, str(cell.address)) for cell in report.cells] == [
        ("x:1,y:1,a:1", 1, "a:1"),
        ("x:1,y:1,a:1", 2, "b:1"),
        ("z:1", -1, "z:1"),
    ]
    assert report.notes == ()
    assert examine([address("z:1")], produce=False).cluster == "unknown"


def test_answers_of_seeds_count_for_their_listener(answers: list[list[str]]) -> None:
    expected = contract(EXTERNAL=["a:1", "gone:1"])
    report = examine(expected, bootstrap=[address("x:1"), address("z:1")], produce=False)
    assert answers == [["a:1", "gone:1", "x:1", "z:1"]]
    assert report.notes == (
        "x:1 is listener EXTERNAL; it advertises broker 1 at a:1, 2 at b:1",
        "z:1 gave no metadata; it belongs to EXTERNAL",
        NOT_NAMED,
    )
    reported = (report.cluster, report.cluster_id, report.placement, report.kafka_version)
    assert reported == ("dev", "", "local", "4.1.1")
    assert [cell.cause and cell.cause.kind for cell in report.cells] == [None, "drift"]
    lost = contract(EXTERNAL=["gone:1"])
    (alone,) = examine(lost, bootstrap=[address("x:1")], produce=False).cells[:1]
    assert alone.cause is not None and alone.cause.kind == "drift"


def test_a_seed_of_no_listener_adds_nothing(answers: list[list[str]]) -> None:
    expected = contract(INTERNAL=["gone:91"], EXTERNAL=["gone:92"]).identified("C")
    report = examine(expected, bootstrap=[address("x:1")], produce=False)
    assert report.notes == (
        "x:1 is not a listener of the contract; it advertises broker 1 at a:1, 2 at b:1",
    )
    assert [cell.cause and cell.cause.kind for cell in report.cells] == ["refused", "refused"]
    assert report.cluster_id == "C"


@pytest.mark.parametrize(("deadline", "left"), [(10.0, LIMIT), (2.0, 2.0), (0.5, 1.0)])
def test_what_failed_is_looked_into_for_what_is_left_of_the_time(
    deadline: float, left: float, answers: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []

    def mark(report: Report, vantage: str, limit: float) -> Report:
        given.extend((vantage, limit))
        return report

    monkeypatch.setattr(doctor, "Deadline", Unmoved)
    monkeypatch.setattr(doctor, "mark_broken_vantage", mark)
    examine([address("z:1")], deadline=deadline, vantage="laptop", produce=False)
    assert given == ["laptop", left]


def test_records_are_sent_by_default(answers: list[list[str]], cluster: ClusterDouble) -> None:
    examine([address("x:1")])
    assert cluster.asked[-1] == "delete"
    cluster.asked.clear()
    examine([address("x:1")], produce=False)
    assert cluster.asked == []
