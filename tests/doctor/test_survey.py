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
    lookup = Lookup(place.partition(":")[0], "test", Diagnosis.OK, ("192.0.2.1",))
    return AddressResult(Contact(address(place), lookup, (Attempt(place, error, 0.0),)), said)


def seen(**changed: AddressResult | MetadataAnswer | None) -> dict[ListenerAddress, AddressResult]:
    """Results of TWO, healthy but for ``changed`` (`i1` is i:1; None: it refuses connections)."""
    results = {
        place: result(place, answer(place, *listener))
        for listener in (INTERNAL, EXTERNAL)
        for place in listener
    }
    for key, change in changed.items():
        place = f"{key[0]}:{key[1]}"
        if isinstance(change, AddressResult):
            results[place] = change
        else:
            results[place] = result(place, change, "" if change else "refused")
    return {(address(place), PLAIN): address_result for place, address_result in results.items()}


def facts(
    results: dict[ListenerAddress, AddressResult], cluster: Contract = TWO, **seeds: MetadataAnswer
) -> dict[tuple[str, int], Observation]:
    seed_answers = {listener: [seed] for listener, seed in seeds.items()}
    observations = facts_of(targets_of(cluster), results, seed_answers, cluster)
    return {(facts.target.listener, facts.target.broker): facts for facts in observations}


def kinds(observations: dict[tuple[str, int], Observation]) -> dict[str, str]:
    """The causes of failed cells, by `LISTENER broker`, before any record."""
    cells = {key: diagnose(facts, "host") for key, facts in observations.items()}
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
def test_a_bootstrap_has_a_cell_if_it_fails(said: MetadataAnswer | None, kind: str | None) -> None:
    cluster = at_one_address("lb:9")
    found = result("lb:9", said, "" if said else "refused")
    results = {**seen(), (address("lb:9"), PLAIN): found}
    failed = failed_bootstraps(bootstraps_of(cluster), results, cluster)
    causes = [diagnose(item, "host").cause for item in failed]
    assert [cause and cause.kind for cause in causes] == ([kind] if kind else [])


def test_a_brokers_own_address_is_no_bootstrap_of_its_own() -> None:
    assert bootstraps_of(TWO) == []
    assert bootstraps_of(at_one_address("e:1")) == []


def test_each_other_address_of_a_list_is_a_bootstrap() -> None:
    listed = at_one_address("e:1,lb:9,[::1]:9")
    assert [str(item.address) for item in bootstraps_of(listed)] == ["lb:9", "[::1]:9"]


def test_targets_of_a_contract() -> None:
    lone = contract(INTERNAL=INTERNAL, EXTERNAL=["e:1", ""])
    assert [(item.listener, item.broker, str(item.address)) for item in targets_of(lone)] == [
        ("INTERNAL", 1, "i:1"),
        ("INTERNAL", 2, "i:2"),
        ("EXTERNAL", 1, "e:1"),
    ]


OWN = TWO.identified("C")
ALL_CELLS = ("INTERNAL 1", "INTERNAL 2", "EXTERNAL 1", "EXTERNAL 2")
BOTH_REFUSED = {"INTERNAL 2": "refused", "EXTERNAL 2": "refused"}
E1_ALONE = answer("e:1", "e:1")
E2_MOVED = answer("e:1", "e:1", "e:9")
OF_D = answer("e:1", *EXTERNAL, cluster="D")
WITHOUT_ID = answer("e:1", *EXTERNAL, cluster=NO_CLUSTER_ID)
MOVED_WITHOUT_ID = answer("e:1", "e:1", "e:9", cluster=NO_CLUSTER_ID)
NO_IDS = {
    place.replace(":", ""): answer(place, *listener, cluster=NO_CLUSTER_ID)
    for listener in (INTERNAL, EXTERNAL)
    for place in listener
}


@pytest.mark.parametrize(("changed", "cluster", "failed"), [
    pytest.param({}, TWO, {}, id="none"),
    pytest.param({"i2": None, "e2": None}, TWO, BOTH_REFUSED, id="dead broker"),
    pytest.param(*({"i2": None, "e2": None, "i1": answer("i:1", "i:1"), "e1": E1_ALONE}, TWO),
                 *(BOTH_REFUSED,), id="dead broker that others no longer list"),
    pytest.param({"e2": None, "e1": E2_MOVED}, TWO, {"EXTERNAL 2": "drift"}, id="moved"),
    pytest.param({"e2": None, "e1": E1_ALONE}, TWO, {"EXTERNAL 2": "missing"}, id="missing"),
    pytest.param({"e1": OF_D}, TWO, {"EXTERNAL 1": "foreign-cluster"}, id="other cluster"),
    pytest.param({"e1": OF_D}, OWN, {"EXTERNAL 1": "another-cluster"}, id="not contract's"),
    pytest.param({"e1": WITHOUT_ID}, TWO, {"EXTERNAL 1": "no-cluster-id"}, id="no id"),
    pytest.param({"e1": WITHOUT_ID}, OWN, {"EXTERNAL 1": "no-cluster-id"}, id="not own id"),
    pytest.param(*({"e1": MOVED_WITHOUT_ID, "e2": None}, TWO),
                 {"EXTERNAL 1": "no-cluster-id", "EXTERNAL 2": "refused"},
                 id="what an answer without an id lists does not count"),
    pytest.param(NO_IDS, TWO, {}, id="no answer has an id"),
    pytest.param({"e1": answer("e:1", "e:9")}, TWO, {"EXTERNAL 1": "drift"}, id="own drift"),
])  # fmt: skip
def test_which_cells_fail(
    changed: dict[str, MetadataAnswer | None], cluster: Contract, failed: dict[str, str]
) -> None:
    assert kinds(facts(seen(**changed), cluster)) == failed


def test_what_another_address_listed_counts_though_there_was_no_time() -> None:
    late = replace(result("e:2", None, "timeout"), seconds_left=0.1)
    assert kinds(facts(seen(e2=late, e1=E2_MOVED))) == {"EXTERNAL 2": "drift"}


def test_a_seed_replaces_unreachable_addresses() -> None:
    assert facts(seen(e1=None, e2=None))["EXTERNAL", 1].other_answer is None
    observations = facts(seen(e1=None, e2=None), EXTERNAL=answer("localhost:1", "e:1", "e:7"))
    assert kinds(observations) == {"EXTERNAL 1": "refused", "EXTERNAL 2": "drift"}


def test_crossed_listeners() -> None:
    observations = facts(seen(e1=answer("e:1", *INTERNAL)))
    assert kinds(observations) == {"EXTERNAL 1": "crossed-listeners"}
    # its answer says nothing about EXTERNAL
    assert observations["EXTERNAL", 2].other_listeners == ("INTERNAL",)


@pytest.mark.parametrize("cluster", ["C", NO_CLUSTER_ID])
def test_two_listeners_that_are_crossed_at_every_address(cluster: str) -> None:
    changed = {
        place.replace(":", ""): answer(place, *others, cluster=cluster)
        for listener, others in ((INTERNAL, EXTERNAL), (EXTERNAL, INTERNAL))
        for place in listener
    }
    observations = facts(seen(**changed))
    assert kinds(observations) == dict.fromkeys(ALL_CELLS, "crossed-listeners")
    assert {facts.cluster_id for facts in observations.values()} == {cluster}


def test_every_address_of_one_and_the_same_wrong_cluster() -> None:
    """The majority is not right: two checkouts of one stack on the same ports."""
    observations = facts(seen(), TWO.identified("D"))
    assert kinds(observations) == dict.fromkeys(ALL_CELLS, "another-cluster")
    cell = diagnose(observations["EXTERNAL", 2], "host")
    assert cell.failed_stage is Stage.METADATA and cell.cause is not None
    assert cell.cause.observed == "e:2 belongs to cluster C"
    assert cell.cause.expected == "cluster D of the contract"
    assert cell.cause.remedy == (
        "see which brokers listen at e:2 (another checkout of the stack, a container): stop them, "
        "or use other ports for one of the two clusters; if the stack's data was removed and "
        "created again, use its current contract"
    )


def test_brokers_listed_by_another_cluster_do_not_count() -> None:
    seed = answer("s:1", "e:1", "e:2", "e:3")
    observations = facts(seen(e2=None, i2=None), TWO.identified("D"), EXTERNAL=seed)
    facts_of_e2 = observations["EXTERNAL", 2]
    assert facts_of_e2.other_answer is None and facts_of_e2.other_listeners == ()
    others = {"INTERNAL 1": "another-cluster", "EXTERNAL 1": "another-cluster"}
    assert kinds(observations) == others | BOTH_REFUSED


@pytest.mark.parametrize(
    ("said", "dispute"),
    [(answer("e:1", "e:1"), "does not list it"), (answer("e:1", "e:1", "e:9"), "lists it at e:9")],
)
def test_a_broker_that_answers_disagree_about(said: MetadataAnswer, dispute: str) -> None:
    observations = facts(seen(e1=said))
    assert kinds(observations) == {"EXTERNAL 2": "disputed-broker"}
    cause = diagnose(observations["EXTERNAL", 2], "host").cause
    assert cause is not None and cause.observed == (
        f"answers disagree: e:2 lists broker 2 of EXTERNAL, and e:1 {dispute}"
    )


def test_a_dead_broker_is_not_disputed() -> None:
    results, seed = seen(e1=answer("e:1", "e:1"), e2=None), answer("s:1", *EXTERNAL)
    assert kinds(facts(results, EXTERNAL=seed)) == {"EXTERNAL 2": "refused"}


def test_a_broker_with_a_listener_more_gets_a_cell() -> None:
    fewer = contract(INTERNAL=INTERNAL, EXTERNAL=["e:1", ""])
    results = seen()
    del results[address("e:2"), PLAIN]
    cause = diagnose(facts(results, fewer)["EXTERNAL", 2], "host").cause
    assert cause is not None and cause.observed == "EXTERNAL lists broker 2 at e:2"


def test_a_refused_login_is_another_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told without asking it: a listener with mutual TLS answers no one without a certificate."""
    contact, login = result("e:1", None).contact, Failure("no-login", "x")
    monkeypatch.setattr(survey, "detect_protocol", lambda *given: pytest.fail("asked"))
    protocol, end = Protocol.SASL_SSL, Deadline(10)
    detected, said = survey._with_detected_protocol(contact, protocol, login, login, end)
    other_protocol = Failure("protocol", "it speaks SSL, and this client SASL_SSL")
    assert said is login and detected.security == other_protocol


def test_an_unexpected_broker_gets_a_cell() -> None:
    observations = facts(seen(e1=answer("e:1", *EXTERNAL, "e:3")))
    assert kinds(observations) == {"EXTERNAL 3": "unexpected"}
    cell = diagnose(observations["EXTERNAL", 3], "host")
    assert cell.verdict is Verdict.FAIL and str(cell.address) == "e:3"


def test_an_expected_shared_address_fails_both() -> None:
    results = {(address("e:1"), PLAIN): result("e:1", answer("e:1", "e:1", "e:1"))}
    failed = dict.fromkeys(("EXTERNAL 1", "EXTERNAL 2"), "shared-address")
    assert kinds(facts(results, contract(EXTERNAL=["e:1", "e:1"]))) == failed


def test_without_a_contract_listeners_are_named_by_address() -> None:
    seeds = [address(f"s:{number}") for number in range(1, 6)]
    answers = [answer("s:1", "a:1", "a:2"), answer("s:2", "b:1"), answer("s:3", "a:1", "a:2")]
    answers.append(answer("s:5"))
    targets = targets_without_contract(seeds, PLAIN, answers)
    assert [(target.listener, target.broker, str(target.address)) for target in targets] == [
        ("s:1,s:3", 1, "a:1"),
        ("s:1,s:3", 2, "a:2"),
        ("s:2", 1, "b:1"),
        ("s:4", -1, "s:4"),
        ("s:5", -1, "s:5"),
    ]


@pytest.mark.parametrize("other", [
    answer("e:1", "e:1", "e:9", "e:3", cluster="D"),  # EXTERNAL of a foreign cluster
    answer("e:1", *INTERNAL, "i:3"),  # another listener
    answer("e:1", *EXTERNAL, cluster="D"),
], ids=["foreign", "crossed", "foreign with the same addresses"])  # fmt: skip
def test_an_answer_from_elsewhere_says_nothing_of_other_brokers(other: MetadataAnswer) -> None:
    observations = facts(seen(e1=other, e2=None))
    assert kinds(observations)["EXTERNAL 2"] == "refused"
    assert observations["EXTERNAL", 2].other_answer is None
    assert other.cluster_id == "C" or observations["INTERNAL", 2].other_listeners == ()
    assert not any(broker == 3 for _, broker in observations)


def test_crossed_answers_do_not_count_for_the_majority() -> None:
    crossed = {f"e{id}": answer(f"e:{id}", *INTERNAL, cluster="D") for id in (1, 2)}
    assert facts(seen(**crossed, i2=None))["INTERNAL", 1].cluster_id == "C"


def test_an_address_is_asked_for_the_best_answer_of_its_listener() -> None:
    every = ["e:1", "e:2", "e:3"]
    answers = (answer("e:1", "e:1", "e:2"), answer("e:2", *every), None)
    results = {
        (address(place), PLAIN): result(place, said, "" if said else "refused")
        for place, said in zip(every, answers, strict=True)
    }
    via = facts(results, contract(EXTERNAL=every))["EXTERNAL", 3].other_answer
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
def test_silence_needs_time_to_be_a_failure(
    place: AddressResult, waited: float, late: bool
) -> None:
    observation = facts(seen(e2=replace(place, seconds_left=waited)))["EXTERNAL", 2]
    cell = diagnose(observation, "host")
    assert (cell.verdict is Verdict.INCONCLUSIVE) is late
    if late:
        assert cell.cause is None and not ready_for_records(observation)
        assert cell.reason == "the deadline left 0.4 s for e:2, which was silent"


@pytest.mark.parametrize("name", ["e", "192.0.2.1"])
def test_a_name_that_there_was_no_time_to_look_up(name: str) -> None:
    lookup = Lookup(name, "test", Diagnosis.TIMEOUT)
    assert AddressResult(Contact(address(f"{name}:1"), lookup), None, 0.0).inconclusive_reason
    assert not AddressResult(Contact(address(f"{name}:1"), lookup), None, 3.0).inconclusive_reason


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
    observation = facts(seen(e2=result("e:2", Failure("too-many", text))))["EXTERNAL", 2]
    cell = diagnose(observation, "host")
    assert (cell.verdict, cell.cause) == (Verdict.INCONCLUSIVE, None) and not ready_for_records(
        observation
    )
    assert cell.reason == f"e:2 was not checked: {text}"


def test_no_address_is_tried_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(survey, "resolve")
    place = (address("e:1"), PLAIN)
    assert connected(place, end=Deadline(0))[place].inconclusive_reason


@pytest.mark.parametrize(
    ("error", "kind"),
    [("http", "not-kafka"), ("controller", "controllers-listener"), ("not-kafka", "not-kafka")],
)
def test_foreign_listener_is_named(error: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a handshake failed first."""
    tls = Failure("protocol", "wrong version number")
    contact = replace(result("e:1", None).contact, security=tls)
    foreign = DetectedProtocol(foreign=Failure(error, "something else"))
    monkeypatch.setattr(survey, "detect_protocol", lambda *given: foreign)
    detected, said = survey._with_detected_protocol(contact, Protocol.SSL, tls, None, Deadline(10))
    cell = diagnose(Observation(targets_of(TWO)[2], contact=detected, own_answer=said), "host")
    assert cell.failed_stage is Stage.BOOTSTRAP and cell.cause is not None
    assert cell.cause.kind == kind
    assert cell.cause.observed == "e:1 connects, but gives no metadata: something else"


UNKNOWN_NAME = Lookup("e", "test", Diagnosis.NXDOMAIN)


class StepsDouble:
    """The steps at an address, with the answers that a test chooses, and what each was given."""

    def __init__(self) -> None:
        self.lookup = KNOWN_NAME
        self.attempts: tuple[Attempt, ...] = (Attempt("192.0.2.1", "", 0.0),)
        self.security: Failure | None = None
        self.limits: list[float] = []
        self.reached: list[tuple[object, ...]] = []

    def resolve(self, hosts: Iterable[str], limit: float) -> dict[str, Lookup]:
        self.limits.append(limit)
        return dict.fromkeys(hosts, self.lookup)

    def reach(
        self, place: Address, lookup: Lookup, context: object, limit: float, _: object
    ) -> Any:
        self.limits.append(limit)
        self.reached.append((place, lookup, context, limit))
        return Contact(place, lookup, self.attempts, self.security)

    def ask_address(self, peer: ReachableAddress, end: Deadline) -> Any:
        self.limits.append(end.seconds)
        return answer("e:1", "e:1"), AnsweringBrokers((1,))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> StepsDouble:
    double = StepsDouble()
    monkeypatch.setattr(survey, "tls_context", lambda values: "context")
    monkeypatch.setattr(survey, "with_server_answers", lambda lookup, limit: lookup)
    for name in ("resolve", "reach", "ask_address"):
        monkeypatch.setattr(survey, name, getattr(double, name))
    return double


def connected(
    *places: ListenerAddress, end: Deadline, client: dict[str, str] | None = None, workers: int = 1
) -> dict[ListenerAddress, AddressResult]:
    with ThreadPoolExecutor(workers) as pool:
        return connect_to_all(places, client or {}, end, pool)


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
    steps: StepsDouble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = (address("e:1"), protocol)
    steps.lookup, steps.security = lookup, security
    steps.attempts = (Attempt("192.0.2.1", error, 0.0),)
    if protocol is PLAIN:
        monkeypatch.delattr(survey, "tls_context")
    context: Any = "context" if protocol is Protocol.SSL else None
    contact = Contact(place[0], lookup, steps.attempts, security) if lookup.ok else None
    expected = AddressResult(contact or Contact(place[0], lookup), None, waited)
    if waited == survey.ASK_LIMIT:
        said, brokers = answer("e:1", "e:1"), AnsweringBrokers((1,))
        peer = ReachableAddress(place[0], ("192.0.2.1",), context, None)
        expected = replace(expected, reply=said, answering_brokers=brokers, peer=peer)
    assert connected(place, place, end=Unmoved(10)) == {place: expected}
    reached = [(place[0], lookup, context, CONNECT_LIMIT)] if lookup.ok else []
    assert steps.reached == reached


@pytest.mark.parametrize(("deadline", "more"), [(5, 1), (10, 1), (30, 3), (60, 6), (3600, 6)])
def test_longer_deadlines_give_more_time(deadline: float, more: float, steps: StepsDouble) -> None:
    connected((address("e:1"), PLAIN), end=Unmoved(deadline))
    assert steps.limits == [RESOLVE_LIMIT * more, CONNECT_LIMIT * more, survey.ASK_LIMIT * more]


def test_only_listeners_with_tls_get_a_context(steps: StepsDouble) -> None:
    connected((address("e:1"), PLAIN), (address("e:2"), Protocol.SSL), end=Unmoved(60))
    contexts = [(str(place), context) for place, _, context, _ in steps.reached]
    assert contexts == [("e:1", None), ("e:2", "context")]


def test_other_logins_get_a_few_clients(
    steps: StepsDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each client has a thread for each broker: sixteen of a thousand would never be done."""
    places = [(Address(f"b{id}", 9092), Protocol.SASL_PLAINTEXT) for id in range(20)]
    asking: set[Address] = set()
    clients: list[int] = []
    identified: list[tuple[object, ...]] = []

    def ask(place: Address, *given: object) -> MetadataAnswer:
        asking.add(place)
        clients.append(len(asking))
        asking.discard(place)
        return answer("e:1", "", "e:1")

    def identify(place: Address, broker: int, *given: object) -> int | None:
        identified.append((str(place), broker))
        return 3 if place.host == "b0" else None

    monkeypatch.setattr(survey, "ask", ask)
    monkeypatch.setattr(survey, "identify", identify)
    client = {"sasl.mechanism": "OAUTHBEARER"}
    results = connected(*places, end=Unmoved(10), client=client, workers=16)
    assert len(clients) == 20 and max(clients) <= survey.NATIVE_CLIENTS
    assert identified.count(("b0:9092", 2)) == survey.NATIVE_CONNECTIONS
    assert results[places[0]].answering_brokers == AnsweringBrokers((3, 3, 3))
    assert results[places[1]].answering_brokers.unknown_reason == NOT_TOLD
    assert results[places[0]].peer is None


class Left(Unmoved):
    """So much is left of what a step may take."""

    def __init__(self, left: float) -> None:
        super().__init__(10)
        self._left = left

    def left(self, limit: float | None = None) -> float:
        return self._left


CERTAIN_ERRORS = (
    *("certificate-name", "certificate-expired", "certificate-not-yet-valid"),
    *("certificate-untrusted", "certificate-unfit", "client-certificate", "mechanism"),
)


@pytest.mark.parametrize(
    ("error", "left", "asked"),
    [
        ("tls", survey.PATIENCE, True),
        ("tls", 0.9, False),
        *((error, 2.0, False) for error in CERTAIN_ERRORS),
    ],
)
def test_a_listener_is_asked_what_it_speaks_where_that_may_be_wrong(
    error: str, left: float, asked: bool, steps: StepsDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    detected: list[object] = []

    def detect_protocol(peer: tuple[str, int], limit: float) -> DetectedProtocol:
        detected.append((peer, limit))
        return DetectedProtocol(False, ())

    monkeypatch.setattr(survey, "detect_protocol", detect_protocol)
    steps.lookup = replace(KNOWN_NAME, addresses=("192.0.2.1", "192.0.2.2", "192.0.2.3"))
    steps.attempts = tuple(Attempt(it, "", 0.0) for it in ("192.0.2.1", "192.0.2.2"))
    steps.security = Failure(error, "met")
    place = (address("e:1"), Protocol.SSL)
    contact = connected(place, end=Left(left))[place].contact
    other = Failure("protocol", "it speaks PLAINTEXT, and this client SSL")
    assert contact.security == (other if asked else steps.security)
    assert detected == ([(("192.0.2.2", 1), left)] if asked else [])


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
    observations = facts(seen(i1=None, i2=None, e1=None, e2=None))
    assert kinds(observations) == dict.fromkeys(ALL_CELLS, "refused")
    assert {facts.cluster_id for facts in observations.values()} == {""}
