"""What results of addresses say about brokers."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from earshot.doctor import survey
from earshot.doctor.asking import NOT_TOLD, AnsweringBrokers, ReachableAddress
from earshot.doctor.diagnosis import diagnose, ready_for_records
from earshot.doctor.observation import Observation
from earshot.doctor.probe import CONNECT_LIMIT, RESOLVE_LIMIT, Attempt, Contact
from earshot.doctor.protocol_detection import DetectedProtocol
from earshot.doctor.survey import (
    AddressResult,
    ListenerAddress,
    connect_to_all,
    facts_of,
    failed_bootstraps,
)
from earshot.doctor.targets import bootstraps_of, targets_of, targets_without_contract
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.names.lookup import Diagnosis, Lookup
from earshot.validation.client import Failure
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.metadata import NO_CLUSTER_ID, MetadataAnswer
from earshot.validation.terms import Stage, Verdict
from tests.doubles.answers import address, answer, contract

PLAIN = Protocol.PLAINTEXT
INTERNAL = ["i:1", "i:2"]
EXTERNAL = ["e:1", "e:2"]
TWO = contract(INTERNAL=INTERNAL, EXTERNAL=EXTERNAL)


def result(place: str, said: MetadataAnswer | Failure | None, error: str = "") -> AddressResult:
    host = place.partition(":")[0]
    lookup = Lookup(host, "test", Diagnosis.OK, ("192.0.2.1",))
    return AddressResult(Contact(address(place), lookup, (Attempt(place, error, 0.0),)), said)


def seen(**changed: AddressResult) -> dict[ListenerAddress, AddressResult]:
    """A healthy cluster of TWO, but for the places changed (`i1` is i:1)."""
    healthy = {
        place: result(place, answer(place, *listener))
        for listener in (INTERNAL, EXTERNAL)
        for place in listener
    }
    healthy |= {f"{key[0]}:{key[1]}": value for key, value in changed.items()}
    return {(address(place), PLAIN): value for place, value in healthy.items()}


def facts(
    results: dict[ListenerAddress, AddressResult], cluster: Contract = TWO, **seeds: MetadataAnswer
) -> dict[tuple[str, int], Observation]:
    given = {name: [item] for name, item in seeds.items()}
    found = facts_of(targets_of(cluster), results, given, cluster)
    return {(item.target.listener, item.target.broker): item for item in found}


def kinds(found: dict[tuple[str, int], Observation]) -> dict[str, str]:
    """The failed cells, by `LISTENER broker`, before any record."""
    cells = {key: diagnose(item, "host") for key, item in found.items()}
    return {
        f"{listener} {broker}": cell.cause.kind
        for (listener, broker), cell in cells.items()
        if cell.cause and cell.cause.kind != "not-acknowledged"
    }


def at_one_address(bootstrap: str) -> Contract:
    """TWO, whose listener EXTERNAL has this address for first connections."""
    internal, external = TWO.listeners
    changed = external.model_copy(update={"bootstrap": bootstrap})
    return TWO.model_copy(update={"listeners": (internal, changed)})


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (answer("lb:9", *EXTERNAL), None),
        (answer("lb:9", *INTERNAL), "crossed-listeners"),
        (None, "refused"),
    ],
)
def test_a_bootstrap_of_its_own_has_a_cell_only_if_it_fails(
    said: MetadataAnswer | None, kind: str | None
) -> None:
    cluster = at_one_address("lb:9")
    found = result("lb:9", said, "" if said else "refused")
    results = {**seen(), (address("lb:9"), PLAIN): found}
    failed = failed_bootstraps(bootstraps_of(cluster), results, cluster)
    causes = [diagnose(item, "host").cause for item in failed]
    assert [it and it.kind for it in causes] == ([kind] if kind else [])


def test_a_brokers_own_address_is_no_bootstrap_of_its_own() -> None:
    assert bootstraps_of(TWO) == []
    assert bootstraps_of(at_one_address("e:1")) == []


def test_targets_of_a_contract() -> None:
    lone = contract(INTERNAL=INTERNAL, EXTERNAL=["e:1", ""])
    assert [(item.listener, item.broker, str(item.address)) for item in targets_of(lone)] == [
        ("INTERNAL", 1, "i:1"),
        ("INTERNAL", 2, "i:2"),
        ("EXTERNAL", 1, "e:1"),
    ]


def test_all_is_well() -> None:
    assert kinds(facts(seen())) == {}


def test_a_dead_broker_fails_its_own_cells_only() -> None:
    dead = {"i2": result("i:2", None, "refused"), "e2": result("e:2", None, "refused")}
    assert kinds(facts(seen(**dead))) == {"INTERNAL 2": "refused", "EXTERNAL 2": "refused"}
    gone = {
        "i1": result("i:1", answer("i:1", "i:1")),
        "e1": result("e:1", answer("e:1", "e:1")),
    }
    assert kinds(facts(seen(**dead, **gone))) == {"INTERNAL 2": "refused", "EXTERNAL 2": "refused"}


def test_drift_of_a_broker_that_left_its_address() -> None:
    moved = {
        "e2": result("e:2", None, "refused"),
        "e1": result("e:1", answer("e:1", "e:1", "e:9")),
    }
    assert kinds(facts(seen(**moved))) == {"EXTERNAL 2": "drift"}


def test_a_broker_without_the_listener_is_missing() -> None:
    lacking = {"e2": result("e:2", None, "refused"), "e1": result("e:1", answer("e:1", "e:1"))}
    assert kinds(facts(seen(**lacking))) == {"EXTERNAL 2": "missing"}


def test_a_seed_replaces_unreachable_addresses() -> None:
    lost = {"e1": result("e:1", None, "refused"), "e2": result("e:2", None, "refused")}
    alone = facts(seen(**lost))
    assert alone["EXTERNAL", 1].other_answer is None
    helped = facts(seen(**lost), EXTERNAL=answer("localhost:1", "e:1", "e:7"))
    assert kinds(helped) == {"EXTERNAL 1": "refused", "EXTERNAL 2": "drift"}


def test_crossed_listeners() -> None:
    crossed = {"e1": result("e:1", answer("e:1", *INTERNAL))}
    found = facts(seen(**crossed))
    assert kinds(found) == {"EXTERNAL 1": "crossed-listeners"}
    # its answer says nothing about EXTERNAL
    assert found["EXTERNAL", 2].other_listeners == ("INTERNAL",)


@pytest.mark.parametrize("cluster", ["C", NO_CLUSTER_ID])
def test_two_listeners_that_are_crossed_at_every_address(cluster: str) -> None:
    every = {
        f"{place[0]}{place[2]}": result(place, answer(place, *others, cluster=cluster))
        for listener, others in ((INTERNAL, EXTERNAL), (EXTERNAL, INTERNAL))
        for place in listener
    }
    found = facts(seen(**every))
    cells = ("INTERNAL 1", "INTERNAL 2", "EXTERNAL 1", "EXTERNAL 2")
    assert kinds(found) == dict.fromkeys(cells, "crossed-listeners")
    assert {it.cluster_id for it in found.values()} == {cluster}


def test_an_address_of_another_cluster() -> None:
    other = {"e1": result("e:1", answer("e:1", *EXTERNAL, cluster="D"))}
    assert kinds(facts(seen(**other))) == {"EXTERNAL 1": "foreign-cluster"}


OWN = TWO.identified("C")


def test_an_address_of_another_cluster_than_the_contracts() -> None:
    other = {"e1": result("e:1", answer("e:1", *EXTERNAL, cluster="D"))}
    assert kinds(facts(seen(**other), OWN)) == {"EXTERNAL 1": "another-cluster"}


def test_every_address_of_one_and_the_same_wrong_cluster() -> None:
    """The majority is not right: two checkouts of one stack on the same ports."""
    found = facts(seen(), TWO.identified("D"))
    every = {"INTERNAL 1", "INTERNAL 2", "EXTERNAL 1", "EXTERNAL 2"}
    assert kinds(found) == dict.fromkeys(every, "another-cluster")
    cell = diagnose(found["EXTERNAL", 2], "host")
    assert cell.failed_stage is Stage.METADATA and cell.cause is not None
    assert cell.cause.observed == "e:2 belongs to cluster C"
    assert cell.cause.expected == "cluster D of the contract"
    assert cell.cause.remedy == (
        "see which brokers listen at e:2 (another checkout of the stack, a container): stop them, "
        "or use other ports for one of the two clusters; if the stack's data was removed and "
        "created again, use its current contract"
    )


def test_brokers_listed_by_another_cluster_do_not_count() -> None:
    lost = {"e2": result("e:2", None, "refused"), "i2": result("i:2", None, "refused")}
    found = facts(seen(**lost), TWO.identified("D"), EXTERNAL=answer("s:1", "e:1", "e:2", "e:3"))
    assert found["EXTERNAL", 2].other_answer is None and found["EXTERNAL", 2].other_listeners == ()
    assert kinds(found) == {
        "INTERNAL 1": "another-cluster",
        "EXTERNAL 1": "another-cluster",
        "INTERNAL 2": "refused",
        "EXTERNAL 2": "refused",
    }


@pytest.mark.parametrize("cluster", [TWO, OWN])
def test_an_answer_without_the_id_that_others_give_is_none_of_the_cluster(
    cluster: Contract,
) -> None:
    silent = {"e1": result("e:1", answer("e:1", *EXTERNAL, cluster=NO_CLUSTER_ID))}
    assert kinds(facts(seen(**silent), cluster)) == {"EXTERNAL 1": "no-cluster-id"}


def test_what_an_answer_without_the_id_lists_does_not_count() -> None:
    moved = {
        "e1": result("e:1", answer("e:1", "e:1", "e:9", cluster=NO_CLUSTER_ID)),
        "e2": result("e:2", None, "refused"),
    }
    expected = {"EXTERNAL 1": "no-cluster-id", "EXTERNAL 2": "refused"}
    assert kinds(facts(seen(**moved))) == expected


def test_answers_none_of_which_gives_an_id_are_compared_with_none() -> None:
    places = ((place, listener) for listener in (INTERNAL, EXTERNAL) for place in listener)
    silent = {
        place.replace(":", ""): result(place, answer(place, *listener, cluster=NO_CLUSTER_ID))
        for place, listener in places
    }
    assert kinds(facts(seen(**silent))) == {}


def test_a_broker_that_another_answer_does_not_list_is_disputed() -> None:
    fewer = {"e1": result("e:1", answer("e:1", "e:1"))}
    found = facts(seen(**fewer))
    assert kinds(found) == {"EXTERNAL 2": "disputed-broker"}
    cell = diagnose(found["EXTERNAL", 2], "host")
    assert cell.cause is not None and cell.cause.observed == (
        "answers disagree: e:2 lists broker 2 of EXTERNAL, and e:1 does not list it"
    )
    moved = {"e1": result("e:1", answer("e:1", "e:1", "e:9"))}
    cell = diagnose(facts(seen(**moved))["EXTERNAL", 2], "host")
    assert cell.cause is not None and cell.cause.observed == (
        "answers disagree: e:2 lists broker 2 of EXTERNAL, and e:1 lists it at e:9"
    )


def test_a_dead_broker_is_not_disputed() -> None:
    fewer = {
        "e1": result("e:1", answer("e:1", "e:1")),
        "e2": result("e:2", None, "refused"),
    }
    assert kinds(facts(seen(**fewer), EXTERNAL=answer("s:1", *EXTERNAL))) == {
        "EXTERNAL 2": "refused"
    }


def test_an_answer_that_is_wrong_about_itself_disputes_no_other() -> None:
    wrong = {"e1": result("e:1", answer("e:1", "e:9"))}
    assert kinds(facts(seen(**wrong))) == {"EXTERNAL 1": "drift"}


def test_a_broker_with_a_listener_more_gets_a_cell() -> None:
    fewer = contract(INTERNAL=INTERNAL, EXTERNAL=["e:1", ""])
    results = {it: item for it, item in seen().items() if str(it[0]) != "e:2"}
    found = facts_of(targets_of(fewer), results, {}, fewer)
    cells = {(it.target.listener, it.target.broker): diagnose(it, "host") for it in found}
    cause = cells["EXTERNAL", 2].cause
    assert cause is not None and cause.observed == "EXTERNAL lists broker 2 at e:2"


def test_a_login_on_a_listener_without_sasl_is_another_protocol(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Told without asking it: a listener with mutual TLS answers no one without a certificate."""
    lookup = Lookup("e", "test", Diagnosis.OK, ("192.0.2.1",))
    contact = Contact(address("e:1"), lookup, (Attempt("192.0.2.1", "", 0.0),))
    monkeypatch.setattr(survey, "detect_protocol", lambda *given: pytest.fail("asked"))
    met = Failure("no-login", "x")
    found, said = survey._with_detected_protocol(contact, Protocol.SASL_SSL, met, met, Deadline(10))
    assert said is met and found.security == Failure(
        "protocol", "it speaks SSL, and this client SASL_SSL"
    )


def test_an_unexpected_broker_gets_a_cell() -> None:
    more = {"e1": result("e:1", answer("e:1", *EXTERNAL, "e:3"))}
    found = facts(seen(**more))
    assert kinds(found) == {"EXTERNAL 3": "unexpected"}
    cell = diagnose(found["EXTERNAL", 3], "host")
    assert cell.verdict is Verdict.FAIL and str(cell.address) == "e:3"


def test_an_expected_shared_address_fails_both() -> None:
    shared = contract(EXTERNAL=["e:1", "e:1"])
    both = {(address("e:1"), PLAIN): result("e:1", answer("e:1", "e:1", "e:1"))}
    assert kinds(facts(both, shared)) == {
        "EXTERNAL 1": "shared-address",
        "EXTERNAL 2": "shared-address",
    }


def test_without_a_contract_listeners_are_named_by_address() -> None:
    seeds = [address(f"s:{number}") for number in range(1, 6)]
    answers = [answer("s:1", "a:1", "a:2"), answer("s:2", "b:1"), answer("s:3", "a:1", "a:2")]
    answers.append(answer("s:5"))
    targets = targets_without_contract(seeds, PLAIN, answers)
    assert [(item.listener, item.broker, str(item.address)) for item in targets] == [
        ("s:1,s:3", 1, "a:1"),
        ("s:1,s:3", 2, "a:2"),
        ("s:2", 1, "b:1"),
        ("s:4", -1, "s:4"),
        ("s:5", -1, "s:5"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        answer("e:1", "e:1", "e:9", "e:3", cluster="D"),  # EXTERNAL of a foreign cluster
        answer("e:1", *INTERNAL, "i:3"),  # another listener
    ],
    ids=["foreign", "crossed"],
)
def test_an_answer_from_elsewhere_says_nothing_of_other_brokers(other: MetadataAnswer) -> None:
    found = facts(seen(e1=result("e:1", other), e2=result("e:2", None, "refused")))
    assert kinds(found)["EXTERNAL 2"] == "refused"
    assert found["EXTERNAL", 2].other_answer is None
    assert not any(broker == 3 for _, broker in found)


def test_an_answer_of_a_foreign_cluster_does_not_list_a_broker_elsewhere() -> None:
    other = answer("e:1", *EXTERNAL, cluster="D")
    lost = {"e1": result("e:1", other), "e2": result("e:2", None, "refused")}
    assert facts(seen(**lost))["INTERNAL", 2].other_listeners == ()


def test_crossed_answers_do_not_count_for_the_majority() -> None:
    crossed = {
        "e1": result("e:1", answer("e:1", *INTERNAL, cluster="D")),
        "e2": result("e:2", answer("e:2", *INTERNAL, cluster="D")),
        "i2": result("i:2", None, "refused"),
    }
    assert facts(seen(**crossed))["INTERNAL", 1].cluster_id == "C"


def test_an_address_is_asked_for_the_best_answer_of_its_listener() -> None:
    three = contract(EXTERNAL=["e:1", "e:2", "e:3"])
    results = {
        "e:1": result("e:1", answer("e:1", "e:1", "e:2")),
        "e:2": result("e:2", answer("e:2", "e:1", "e:2", "e:3")),
        "e:3": result("e:3", None, "refused"),
    }
    found = facts({(address(place), PLAIN): item for place, item in results.items()}, three)
    via = found["EXTERNAL", 3].other_answer
    assert via is not None and str(via.asked) == "e:2"


SILENT = Failure("timeout", "no metadata within 0.4 s")


@pytest.mark.parametrize(
    ("place", "waited", "late"),
    [
        (result("e:2", None, "timeout"), 0.4, True),
        (result("e:2", SILENT), 0.4, True),
        (result("e:2", None, "timeout"), 2.0, False),
        (result("e:2", SILENT), 4.0, False),
        (result("e:2", None, "refused"), 0.4, False),
        (result("e:2", answer("e:2", *EXTERNAL)), 0.4, False),
        (result("e:2", Failure("tls", "alert")), 0.4, False),
    ],
)
def test_silence_says_nothing_where_there_was_no_time_to_answer(
    place: AddressResult, waited: float, late: bool
) -> None:
    found = facts(seen(e2=replace(place, seconds_left=waited)))["EXTERNAL", 2]
    cell = diagnose(found, "host")
    assert (cell.verdict is Verdict.INCONCLUSIVE) is late
    if late:
        assert cell.cause is None and not ready_for_records(found)
        assert cell.reason == "the deadline left 0.4 s for e:2, which was silent"


@pytest.mark.parametrize("name", ["e", "192.0.2.1"])
def test_a_name_that_there_was_no_time_to_look_up(name: str) -> None:
    lookup = Lookup(name, "test", Diagnosis.TIMEOUT)
    assert AddressResult(Contact(address(f"{name}:1"), lookup), None, 0.0).inconclusive_reason
    assert not AddressResult(Contact(address(f"{name}:1"), lookup), None, 3.0).inconclusive_reason


def test_what_another_address_told_stands_though_there_was_no_time() -> None:
    moved = {
        "e2": replace(result("e:2", None, "timeout"), seconds_left=0.1),
        "e1": result("e:1", answer("e:1", "e:1", "e:9")),
    }
    assert kinds(facts(seen(**moved))) == {"EXTERNAL 2": "drift"}


def test_without_a_contract_an_answer_is_held_against_none() -> None:
    said = answer("s:1", "a:1", "a:2")
    targets = targets_without_contract([address("s:1")], PLAIN, [said])
    results = {
        (address("a:1"), PLAIN): result("a:1", answer("a:1", "b:1", "b:2", "b:3")),
        (address("a:2"), PLAIN): result("a:2", None, "refused"),
    }
    first, second = facts_of(targets, results, {"s:1": [said]}, None)
    assert (
        first.answering_listener,
        first.other_answer,
        first.cluster_id,
        first.contract_names_cluster,
    ) == ("", None, "C", False)
    assert (second.answering_listener, second.other_answer, second.own_answer) == (
        "",
        results[targets[0].address, PLAIN].reply,
        None,
    )


class Unmoved(Deadline):
    """A minute that does not pass."""

    def left(self, limit: float | None = None) -> float:
        return 60.0 if limit is None else min(60.0, limit)


def test_an_answer_with_too_many_brokers_decides_nothing() -> None:
    text = "it lists 10,000 brokers, and earshot asks at most 2,000: none of them was asked"
    found = facts(seen(e2=result("e:2", Failure("too-many", text))))["EXTERNAL", 2]
    cell = diagnose(found, "host")
    assert (cell.verdict, cell.cause) == (Verdict.INCONCLUSIVE, None) and not ready_for_records(
        found
    )
    assert cell.reason == f"e:2 was not checked: {text}"


def test_when_the_time_is_over_an_address_is_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(survey, "resolve")
    with ThreadPoolExecutor(1) as pool:
        found = connect_to_all([(address("e:1"), PLAIN)], {}, Deadline(0), pool)
    assert found[address("e:1"), PLAIN].inconclusive_reason


@pytest.mark.parametrize("error", ["http", "controller", "not-kafka"])
def test_what_is_no_listener_for_clients_is_named(
    error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a handshake failed first."""
    lookup = Lookup("e", "test", Diagnosis.OK, ("192.0.2.1",))
    attempts = (Attempt("192.0.2.1", "", 0.0),)
    tls = Failure("protocol", "wrong version number")
    contact = Contact(address("e:1"), lookup, attempts, tls)
    other = Failure(error, "something else")
    monkeypatch.setattr(survey, "detect_protocol", lambda *given: DetectedProtocol(foreign=other))
    found, said = survey._with_detected_protocol(contact, Protocol.SSL, tls, None, Deadline(10))
    facts = Observation(targets_of(TWO)[2], contact=found, own_answer=said)
    cell = diagnose(facts, "host")
    assert cell.failed_stage is Stage.BOOTSTRAP and cell.cause is not None
    kinds = {"http": "not-kafka", "controller": "controllers-listener"}
    assert cell.cause.kind == kinds.get(error, error)
    assert cell.cause.observed == "e:1 connects, but gives no metadata: something else"


UNKNOWN_NAME = Lookup("e", "test", Diagnosis.NXDOMAIN)
KNOWN_NAME = Lookup("e", "test", Diagnosis.OK, ("192.0.2.1",))
ALERT = Failure("tls", "alert")


@pytest.mark.parametrize(
    ("protocol", "lookup", "error", "security", "waited"),
    [
        (PLAIN, UNKNOWN_NAME, "", None, RESOLVE_LIMIT),
        (PLAIN, KNOWN_NAME, "refused", None, CONNECT_LIMIT),
        (Protocol.SSL, KNOWN_NAME, "", ALERT, CONNECT_LIMIT),
        (Protocol.SSL, KNOWN_NAME, "", None, survey.ASK_LIMIT),
        (PLAIN, KNOWN_NAME, "", None, survey.ASK_LIMIT),
    ],
)
def test_an_address_is_looked_at_as_far_as_it_goes(
    protocol: Protocol,
    lookup: Lookup,
    error: str,
    security: Failure | None,
    waited: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = (address("e:1"), protocol)
    attempts = (Attempt("192.0.2.1", error, 0.0),)
    contact = Contact(place[0], lookup, attempts if lookup.ok else (), security=security)
    said = answer("e:1", "e:1")
    looked: list[object] = []

    def tls_context(values: object) -> str:
        assert protocol is Protocol.SSL, "nobody here speaks TLS"
        return "context"

    def reached(
        where: object, found: Lookup, context: object, limit: float, end: object
    ) -> Contact:
        looked.append((where, found, context, limit))
        return contact

    monkeypatch.setattr(survey, "tls_context", tls_context)
    monkeypatch.setattr(survey, "resolve", lambda hosts, limit: dict.fromkeys(hosts, lookup))
    monkeypatch.setattr(survey, "with_server_answers", lambda found, limit: found)
    monkeypatch.setattr(survey, "reach", reached)
    who = AnsweringBrokers((1,))
    monkeypatch.setattr(survey, "ask_address", lambda *given: (said, who))
    with ThreadPoolExecutor(1) as pool:
        found = connect_to_all([place, place], {}, Unmoved(10), pool)
    asked = waited == survey.ASK_LIMIT
    context: Any = "context" if protocol is Protocol.SSL else None
    peer = ReachableAddress(place[0], ("192.0.2.1",), context, None)
    expected = AddressResult(contact, None, waited)
    if asked:
        expected = AddressResult(contact, said, waited, who, peer)
    assert found == {place: expected}
    assert looked == ([(place[0], lookup, context, CONNECT_LIMIT)] if lookup.ok else [])


@pytest.mark.parametrize(("deadline", "more"), [(5, 1), (10, 1), (30, 3), (60, 6), (3600, 6)])
def test_a_longer_deadline_gives_each_step_longer(
    deadline: float, more: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = (address("e:1"), PLAIN)
    limits: list[float] = []

    def resolved(hosts: Iterable[str], limit: float) -> dict[str, Lookup]:
        limits.append(limit)
        return dict.fromkeys(hosts, KNOWN_NAME)

    def reached(
        where: Address, found: Lookup, context: object, limit: float, end: object
    ) -> Contact:
        limits.append(limit)
        return Contact(where, found, (Attempt("192.0.2.1", "", 0.0),))

    def asked(peer: ReachableAddress, end: Deadline) -> tuple[MetadataAnswer, AnsweringBrokers]:
        limits.append(end.seconds)
        return answer("e:1", "e:1"), AnsweringBrokers()

    monkeypatch.setattr(survey, "resolve", resolved)
    monkeypatch.setattr(survey, "with_server_answers", lambda found, limit: found)
    monkeypatch.setattr(survey, "reach", reached)
    monkeypatch.setattr(survey, "ask_address", asked)
    with ThreadPoolExecutor(1) as pool:
        connect_to_all([place], {}, Unmoved(deadline), pool)
    assert limits == [RESOLVE_LIMIT * more, CONNECT_LIMIT * more, survey.ASK_LIMIT * more]


def test_only_who_speaks_tls_is_spoken_to_so(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []

    def reached(
        where: object, found: Lookup, context: object, limit: float, end: object
    ) -> Contact:
        looked.append((str(where), context))
        return Contact(address("e:1"), found)

    monkeypatch.setattr(survey, "tls_context", lambda values: "context")
    monkeypatch.setattr(survey, "resolve", lambda hosts, limit: dict.fromkeys(hosts, KNOWN_NAME))
    monkeypatch.setattr(survey, "reach", reached)
    with ThreadPoolExecutor(1) as pool:
        connect_to_all(
            [(address("e:1"), PLAIN), (address("e:2"), Protocol.SSL)], {}, Unmoved(60), pool
        )
    assert looked == [("e:1", None), ("e:2", "context")]


def test_logins_that_are_not_spoken_here_are_left_to_a_few_clients_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each client has a thread for each broker: sixteen of a thousand would never be done."""
    places = [(Address(f"b{id}", 9092), Protocol.SASL_PLAINTEXT) for id in range(20)]
    asking: set[Address] = set()
    seen: list[int] = []
    identified: list[tuple[object, ...]] = []

    def reached(where: Address, found: Lookup, *given: object) -> Contact:
        return Contact(where, found, (Attempt("192.0.2.1", "", 0.0),))

    def asked(where: Address, *given: object) -> MetadataAnswer:
        asking.add(where)
        seen.append(len(asking))
        asking.discard(where)
        return answer("e:1", "", "e:1")

    def identify(where: Address, broker: int, *given: object) -> int | None:
        identified.append((str(where), broker))
        return 3 if where.host == "b0" else None

    monkeypatch.setattr(survey, "resolve", lambda hosts, limit: dict.fromkeys(hosts, KNOWN_NAME))
    monkeypatch.setattr(survey, "reach", reached)
    monkeypatch.setattr(survey, "ask", asked)
    monkeypatch.setattr(survey, "identify", identify)
    with ThreadPoolExecutor(16) as pool:
        found = connect_to_all(places, {"sasl.mechanism": "OAUTHBEARER"}, Unmoved(10), pool)
    assert len(seen) == 20 and max(seen) <= survey.NATIVE_CLIENTS
    assert identified.count(("b0:9092", 2)) == survey.NATIVE_CONNECTIONS
    assert found[places[0]].answering_brokers == AnsweringBrokers((3, 3, 3))
    assert found[places[1]].answering_brokers.unknown_reason == NOT_TOLD
    assert found[places[0]].peer is None


class Left(Unmoved):
    """So much is left of what a step may take."""

    def __init__(self, left: float) -> None:
        super().__init__(10)
        self._left = left

    def left(self, limit: float | None = None) -> float:
        return self._left


@pytest.mark.parametrize(
    ("error", "left", "asked"),
    [
        ("tls", survey.PATIENCE, True),
        ("tls", 0.9, False),
        *(
            (error, 2.0, False)
            for error in (
                "certificate-name",
                "certificate-expired",
                "certificate-not-yet-valid",
                "certificate-untrusted",
                "client-certificate",
                "mechanism",
            )
        ),
    ],
)
def test_a_listener_is_asked_what_it_speaks_where_that_may_be_wrong(
    error: str, left: float, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []

    def detect_protocol(peer: tuple[str, int], limit: float) -> DetectedProtocol:
        looked.append((peer, limit))
        return DetectedProtocol(False, ())

    attempts = tuple(Attempt(it, "", 0.0) for it in ("192.0.2.1", "192.0.2.2"))
    lookup = Lookup("e", "test", Diagnosis.OK, ("192.0.2.1", "192.0.2.2", "192.0.2.3"))
    contact = Contact(address("e:1"), lookup, attempts, security=Failure(error, "met"))
    monkeypatch.setattr(survey, "tls_context", lambda values: "context")
    monkeypatch.setattr(survey, "resolve", lambda hosts, limit: dict.fromkeys(hosts, lookup))
    monkeypatch.setattr(survey, "reach", lambda *given: contact)
    monkeypatch.setattr(survey, "detect_protocol", detect_protocol)
    place = (address("e:1"), Protocol.SSL)
    with ThreadPoolExecutor(1) as pool:
        found = connect_to_all([place], {}, Left(left), pool)[place]
    other = Failure("protocol", "it speaks PLAINTEXT, and this client SSL")
    assert found.contact.security == (other if asked else contact.security)
    assert looked == ([(("192.0.2.2", 1), left)] if asked else [])


REFUSING, SLOW, MADE = (Attempt("192.0.2.1", error, 0.0) for error in ("refused", "timeout", ""))


@pytest.mark.parametrize(
    ("attempts", "security", "waited", "silent"),
    [
        ((SLOW, REFUSING), None, 0.4, True),
        ((SLOW, MADE), None, 0.4, False),
        ((MADE,), Failure("timeout", "no answer"), 0.4, True),
        ((MADE,), ALERT, 0.4, False),
        ((SLOW,), None, survey.PATIENCE, False),
    ],
)
def test_who_was_silent_on_the_way_had_no_time(
    attempts: tuple[Attempt, ...], security: Failure | None, waited: float, silent: bool
) -> None:
    contact = Contact(address("e:1"), KNOWN_NAME, attempts, security)
    reported = "the deadline left 0.4 s for e:1, which was silent"
    assert AddressResult(contact, None, waited).inconclusive_reason == (reported if silent else "")


def test_without_answers_no_cluster_is_known() -> None:
    every = {f"{it[0]}{it[2]}": result(it, None, "refused") for it in (*INTERNAL, *EXTERNAL)}
    found = facts(seen(**every))
    assert set(kinds(found).values()) == {"refused"}
    assert {item.cluster_id for item in found.values()} == {""}
