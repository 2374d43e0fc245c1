"""From facts to cells: the right stage is named, later ones are skipped for that reason."""

from dataclasses import replace

import pytest

from earshot.doctor.diagnosis import diagnose, ready_for_records, undecided
from earshot.doctor.notes import expiry_notes
from earshot.doctor.observation import CellTarget, Observation, SentRecord
from earshot.doctor.probe import Attempt, Contact, Handshake, OtherCertificate
from earshot.listeners.terms import Protocol
from earshot.names.lookup import Diagnosis, Lookup
from earshot.validation.client import Failure
from earshot.validation.metadata import NO_CLUSTER_ID
from earshot.validation.refusals import refusal
from earshot.validation.result import Cell
from earshot.validation.terms import Stage, Verdict
from tests.doubles.answers import address, answer

HERE = "localhost:9092"
TARGET = CellTarget("EXTERNAL", Protocol.PLAINTEXT, 1, address(HERE))
OK = Lookup("localhost", "this machine", Diagnosis.OK, ("127.0.0.1",), 0.001)
CONNECTED = Attempt("127.0.0.1:9092", "", 0.001)
REACHED = Contact(TARGET.address, OK, (CONNECTED,))
REFUSED = Contact(TARGET.address, OK, (Attempt("127.0.0.1:9092", "refused", 0.001),))
NOWHERE = Contact(
    TARGET.address, Lookup("localhost", "this machine", Diagnosis.NXDOMAIN, detail="not known")
)
OWN = answer(HERE, HERE, "localhost:9093")
OTHER = answer("localhost:9093", HERE, "localhost:9093")
SENT = SentRecord(0, 0, 2.5, b"7")
HEALTHY = Observation(TARGET, REACHED, OWN, cluster_id="C", produced=SENT, consumed=0.01)


def verdicts(cell: Cell) -> str:
    """One letter per stage: p(ass), f(ail), s(kip)."""
    return "".join(str(stage.verdict)[0] for stage in cell.stages)


def failed(facts: Observation) -> tuple[Stage | None, str]:
    cell = diagnose(facts, "host")
    assert cell.verdict is Verdict.FAIL and cell.cause is not None
    return cell.failed_stage, cell.cause.kind


def changed(changes: dict[str, object]) -> Observation:
    """The healthy observation with ``changes``."""
    return replace(HEALTHY, **changes)  # type: ignore[arg-type]


def not_acknowledged(error: str) -> dict[str, object]:
    return {"produced": Failure(error, "x"), "consumed": None}


def test_all_is_well() -> None:
    cell = diagnose(HEALTHY, "host")
    assert cell.verdict is Verdict.PASS and cell.cause is None and cell.reason == ""
    assert verdicts(cell) == "ppppppp"
    assert [stage.stage for stage in cell.stages] == list(Stage)
    assert cell.latency_ms == 2.5
    assert (cell.vantage, cell.listener, cell.broker) == ("host", "EXTERNAL", 1)
    assert str(cell.address) == HERE
    assert [(item.detail, item.seconds) for item in cell.stages] == [
        ("localhost:9092 answered", 0.01),
        ("broker 1 at localhost:9092, of 2 brokers", None),
        ("localhost is 127.0.0.1", 0.001),
        ("127.0.0.1:9092", 0.001),
        ("PLAINTEXT, none asked for", None),
        ("partition 0, led by broker 1, offset 0", 0.0025),
        ("the same record, checksum equal", 0.01),
    ]


@pytest.mark.parametrize(
    ("host", "error", "text", "kind"),
    [
        ("kafka_1.example.com", "tls", "SSLV3_ALERT_ILLEGAL_PARAMETER", "underscore-name"),
        ("kafka_1.example.com", "tls", "sslv3 alert illegal parameter", "underscore-name"),
        ("kafka_1.example.com", "tls", "TLSV1_ALERT_PROTOCOL_VERSION", "tls"),
        ("kafka-1.example.com", "tls", "SSLV3_ALERT_ILLEGAL_PARAMETER", "tls"),
        ("kafka_1.example.com", "certificate-expired", "expired", "certificate-expired"),
    ],
)
def test_javas_tls_refuses_an_underscore(host: str, error: str, text: str, kind: str) -> None:
    target = replace(TARGET, protocol=Protocol.SSL, address=address(f"{host}:9092"))
    failure = Failure(error, text)
    contact = replace(REACHED, address=target.address, security=failure)
    facts = Observation(target, contact, cluster_id="C")
    assert failed(facts) == (Stage.SECURITY, kind)


def test_the_large_record_is_shown() -> None:
    cell = diagnose(replace(HEALTHY, produced=replace(SENT, large=SENT)), "host")
    assert [result.detail for result in cell.stages[-2:]] == [
        "partition 0, led by broker 1, offset 0; and a record of 16,384 bytes",
        "the same records, checksums equal",
    ]


def test_one_broker_is_no_plural_and_a_login_is_told() -> None:
    target = replace(TARGET, protocol=Protocol.SASL_PLAINTEXT)
    cell = diagnose(replace(HEALTHY, target=target, own_answer=answer(HERE, HERE)), "host")
    assert cell.stages[1].detail == "broker 1 at localhost:9092, of 1 broker"
    assert cell.stages[4].detail == "SASL_PLAINTEXT, authenticated"


UNRESOLVED = {"contact": NOWHERE, "own_answer": None}
DOWN = {"contact": REFUSED, "own_answer": None}
NOT_LISTED = answer("x:1", "", "x:1")
MISSING = DOWN | {"other_answer": NOT_LISTED, "other_listeners": ("INTERNAL",)}
UNEXPECTED = {"contact": None, "own_answer": None, "other_answer": OTHER, "is_unexpected": True}
UNSENT = {"produced": None, "consumed": None}
DRIFTED = {"own_answer": answer(HERE, "localhost:9999")}
SILENT = Failure("timeout", "no metadata")
ALERT = Failure("tls", "alert")


@pytest.mark.parametrize(
    ("changes", "letters", "kind"),
    [
        # no broker answers on this listener
        (UNRESOLVED, "ssfssss", "unresolvable"),
        (DOWN, "sspfsss", "refused"),
        # another address of the listener answers, and lists the broker as expected
        (UNRESOLVED | {"other_answer": OTHER}, "ppfssss", "unresolvable"),
        (DOWN | {"other_answer": OTHER}, "pppfsss", "refused"),
        # … or no longer: the broker is down, and its own address says how
        (DOWN | {"other_answer": NOT_LISTED}, "pspfsss", "refused"),
        # … or at another address
        (DOWN | {"other_answer": answer("x:1", "localhost:9999")}, "pfsssss", "drift"),
        # … or not here, but elsewhere
        (MISSING, "pfsssss", "missing"),
        # it connects and says nothing sensible
        ({"own_answer": SILENT}, "fssssss", "no-answer"),
        ({"own_answer": SILENT, "other_answer": OTHER}, "fssssss", "no-answer"),
        ({"own_answer": Failure("protocol", "closed")}, "fssssss", "protocol"),
        ({"own_answer": Failure("authentication", "denied")}, "ssppfss", "authentication"),
        ({"own_answer": Failure("mechanism", "not enabled")}, "ssppfss", "mechanism"),
        ({"own_answer": Failure("client-certificate", "x")}, "ssppfss", "client-certificate"),
        ({"own_answer": ALERT}, "ssppfss", "tls"),
        (
            {"contact": replace(REACHED, security=SILENT), "own_answer": None},
            "ssppfss",
            "no-answer",
        ),
        ({"own_answer": ALERT, "other_answer": OTHER}, "ppppfss", "tls"),
        # it answers with something else than expected
        (DRIFTED, "pfsssss", "drift"),
        ({"own_answer": answer(HERE, "", "localhost:9093")}, "pfsssss", "unlisted"),
        ({"own_answer": answer(HERE)}, "pfsssss", "unlisted"),
        ({"own_answer": answer(HERE, HERE, HERE)}, "pfsssss", "shared-address"),
        ({"cluster_id": "D"}, "pfsssss", "foreign-cluster"),
        ({"cluster_id": "D", "contract_names_cluster": True}, "pfsssss", "another-cluster"),
        ({"answering_listener": "INTERNAL"}, "pfsssss", "crossed-listeners"),
        (UNEXPECTED, "pfsssss", "unexpected"),
        # the record
        (not_acknowledged("timeout"), "pppppfs", "not-acknowledged"),
        (not_acknowledged("misrouted"), "pppppfs", "misrouted"),
        (not_acknowledged("unresolvable"), "pppppfs", "unsteady-name"),
        (not_acknowledged("no-quorum"), "pppppfs", "no-quorum"),
        (not_acknowledged("large-lost"), "pppppfs", "large-packets"),
        (UNSENT, "pppppfs", "not-acknowledged"),
        ({"consumed": Failure("corrupt", "x")}, "ppppppf", "corrupt"),
        ({"consumed": Failure("large-lost", "x")}, "ppppppf", "large-packets"),
        ({"consumed": Failure("unresolvable", "x")}, "ppppppf", "unsteady-name"),
        ({"consumed": None}, "ppppppf", "not-returned"),
    ],
)
def test_failed_stages_name_causes(changes: dict[str, object], letters: str, kind: str) -> None:
    facts, stage = changed(changes), list(Stage)[letters.index("f")]
    assert failed(facts) == (stage, kind)
    cell = diagnose(facts, "host")
    assert verdicts(cell) == letters
    assert [result.stage for result in cell.stages] == list(Stage)
    assert all(result.detail for result in cell.stages if result.verdict is Verdict.SKIP)
    later = cell.stages[letters.index("f") + 1 :]
    assert all(result.detail == f"{stage} failed" for result in later)
    assert ready_for_records(facts) is (stage in (Stage.PRODUCE, Stage.CONSUME))


NO_NAME = "broker 1 advertises {} to clients of EXTERNAL, and {} is neither a name nor an address"
ACKNOWLEDGES = "broker 1 acknowledges a record (acks=all)"
RETURNS = "broker 1 returns the same record"


@pytest.mark.parametrize(("changes", "observed", "expected"), [
    (DRIFTED, "broker 1 advertises localhost:9999 to clients of EXTERNAL",
     "localhost:9092, as the contract says"),
    (UNEXPECTED, "EXTERNAL lists broker 1 at localhost:9092",
     "no broker 1 at EXTERNAL: the contract has none there"),
    ({"cluster_id": "D"}, "localhost:9092 belongs to cluster C",
     "cluster D, which the other addresses belong to"),
    ({"cluster_id": "D", "contract_names_cluster": True}, "localhost:9092 belongs to cluster C",
     "cluster D of the contract"),
    ({"answering_listener": "INTERNAL"},
     f"{HERE} is answered by listener INTERNAL: 1 at {HERE}, 2 at localhost:9093",
     "the advertised addresses of EXTERNAL"),
    (MISSING | {"other_listeners": ("INTERNAL", "OTHER")},
     "EXTERNAL lists 2 at x:1, and no broker 1; INTERNAL, OTHER lists it",
     "broker 1 at localhost:9092"),
    ({"own_answer": answer(HERE, "", "localhost:9093")},
     "EXTERNAL lists 2 at localhost:9093, and no broker 1", "broker 1 at localhost:9092"),
    ({"own_answer": answer(HERE, HERE, HERE, HERE)},
     "brokers 1 to 3 advertise one address to EXTERNAL: localhost:9092",
     "a host:port of its own for every broker"),
    ({"own_answer": SILENT}, "localhost:9092 connects, but gives no metadata: no metadata",
     "broker 1 answers a metadata request on localhost:9092"),
    ({"own_answer": ALERT}, "localhost:9092 (PLAINTEXT): alert",
     "the client and EXTERNAL agree on security"),
    (DOWN, "localhost:9092: 127.0.0.1:9092 refused the connection",
     "localhost:9092 accepts a connection"),
    ({"target": replace(TARGET, address=address("a b:1")), **UNRESOLVED},
     NO_NAME.format("a b:1", "'a b'"), "one name or IP address, and one port"),
    ({"target": replace(TARGET, address=address(":1")), **UNRESOLVED},
     NO_NAME.format(":1", "an empty text"), "one name or IP address, and one port"),
    (UNSENT, "the deadline passed before it was sent", ACKNOWLEDGES),
    ({"produced": Failure("timeout", "late"), "consumed": None}, "late", ACKNOWLEDGES),
    ({"consumed": None}, "the deadline passed before it was read", RETURNS),
    ({"consumed": Failure("corrupt", "changed")}, "changed", RETURNS),
])  # fmt: skip
def test_observed_and_expected(changes: dict[str, object], observed: str, expected: str) -> None:
    cell = diagnose(changed(changes), "host")
    assert cell.cause is not None
    assert (cell.cause.observed, cell.cause.expected) == (observed, expected)
    stage = next(result for result in cell.stages if result.stage is cell.failed_stage)
    assert (stage.verdict, stage.detail) == (Verdict.FAIL, observed)


def test_an_answer_without_a_cluster_id_fails_where_an_id_is_expected() -> None:
    unsaid = replace(HEALTHY, own_answer=answer(HERE, HERE, cluster=NO_CLUSTER_ID))
    cell = diagnose(replace(unsaid, contract_names_cluster=True), "host")
    assert cell.cause is not None and cell.cause.kind == "no-cluster-id"
    assert cell.cause.observed == f"{HERE} names no cluster id"
    assert cell.cause.expected == "cluster C of the contract"
    # without a contract, and with no other address that gives an id, there is nothing to compare
    assert diagnose(replace(unsaid, cluster_id=NO_CLUSTER_ID), "host").verdict is Verdict.PASS


def test_what_another_address_answered_is_not_held_against_this_one() -> None:
    elsewhere = replace(
        HEALTHY, cluster_id="D", contact=REFUSED, own_answer=None, other_answer=OTHER
    )
    assert failed(elsewhere) == (Stage.TCP, "refused")
    assert failed(replace(elsewhere, answering_listener="INTERNAL")) == (Stage.TCP, "refused")


def reported(facts: Observation) -> list[tuple[Verdict, str]]:
    """What is said of bootstrap and metadata."""
    return [(stage.verdict, stage.detail) for stage in diagnose(facts, "host").stages[:2]]


def test_the_answering_address_is_shown() -> None:
    listed = (Verdict.PASS, "broker 1 at localhost:9092, of 2 brokers")
    other = (Verdict.PASS, "localhost:9093 answered")
    by_another = [(Verdict.PASS, "localhost:9093 answered, localhost:9092 did not"), listed]
    unanswered = (Verdict.SKIP, "no address of EXTERNAL answered")
    via = replace(HEALTHY, own_answer=None, other_answer=OTHER)
    assert reported(replace(via, contact=REFUSED)) == by_another
    assert reported(replace(via, contact=None)) == by_another
    # a broker that the contract does not list is not asked
    assert reported(replace(via, contact=None, is_unexpected=True))[0] == other
    # its own answer counts, whatever another address answers
    own = (Verdict.PASS, "localhost:9092 answered")
    assert reported(replace(via, own_answer=OWN))[0] == own
    assert reported(replace(via, other_answer=None, contact=REFUSED)) == [unanswered] * 2
    unasked = replace(via, other_answer=None, contact=None)
    assert reported(unasked) == [(Verdict.SKIP, "not reached")] * 2


def test_a_late_observation_is_inconclusive() -> None:
    late = replace(HEALTHY, inconclusive_reason="out of time")
    assert not ready_for_records(late) and ready_for_records(HEALTHY)
    # neither what went well, nor what failed on the way to the address
    undecided_cell = undecided(TARGET, "host", "out of time", Verdict.INCONCLUSIVE)
    for facts in (late, replace(late, contact=REFUSED, own_answer=None)):
        assert diagnose(facts, "host") == undecided_cell
    drifted = answer("x:1", "localhost:9999")
    late = replace(late, contact=None, own_answer=None, other_answer=drifted)
    assert failed(late) == (Stage.METADATA, "drift")


def test_the_failure_of_the_seeds() -> None:
    """Bootstrap works, the listed name means nothing here."""
    target = replace(TARGET, address=address("nope.invalid:9092"))
    lookup = Lookup("nope.invalid", "this machine", Diagnosis.NXDOMAIN, detail="not known")
    via = answer(HERE, "nope.invalid:9092")
    cell = diagnose(
        Observation(target, Contact(target.address, lookup), other_answer=via, cluster_id="C"),
        "host",
    )
    assert verdicts(cell) == "ppfssss"
    assert cell.failed_stage is Stage.RESOLVE
    assert cell.stages[0].detail == "localhost:9092 answered, nope.invalid:9092 did not"
    assert cell.cause is not None
    for word in ("broker 1", "EXTERNAL", "nope.invalid:9092", "does not exist", "this machine"):
        assert word in cell.cause.observed
    assert "`advertised`" in cell.cause.remedy


def test_a_seed_that_never_said_who_it_is() -> None:
    target = CellTarget("nope.invalid:1", Protocol.PLAINTEXT, -1, address("nope.invalid:1"))
    lookup = Lookup("nope.invalid", "this machine", Diagnosis.NXDOMAIN)
    cell = diagnose(Observation(target, Contact(target.address, lookup)), "host")
    assert cell.cause is not None
    assert cell.cause.observed.startswith("nope.invalid does not exist for this machine")
    assert "-1" not in cell.cause.observed + cell.cause.expected + cell.cause.remedy
    assert cell.cause.remedy.startswith("correct the bootstrap address")


def test_a_seed_that_names_no_broker() -> None:
    seed = CellTarget("b.example.com:1", Protocol.PLAINTEXT, -1, address("b.example.com:1"))
    empty = answer("b.example.com:1")
    cell = diagnose(Observation(seed, HEALTHY.contact, own_answer=empty, cluster_id="C"), "host")
    cause = cell.cause
    assert cell.failed_stage is Stage.METADATA and cause is not None
    assert cause.observed == "b.example.com:1 lists no broker at all"
    assert cause.expected == "the cluster's brokers, with their addresses"
    assert cause.remedy == (
        "see the log of the broker there: it answers, but lists no broker that clients can use "
        "(it is fenced, still starting, or shutting down)"
    )


def test_a_broker_may_be_number_zero() -> None:
    facts = replace(HEALTHY, target=replace(TARGET, broker=0), contact=NOWHERE, own_answer=None)
    cause = diagnose(facts, "host").cause
    assert cause is not None
    assert cause.observed.startswith("broker 0 advertises localhost:9092 to clients of EXTERNAL")


@pytest.mark.parametrize(("diagnosis", "words", "kind"), [
    (Diagnosis.NXDOMAIN, "does not exist", "unresolvable"),
    (Diagnosis.NO_ANSWER, "has no address record", "unresolvable"),
    (Diagnosis.SERVER_FAILURE, "could not be looked up, the resolver failed", "resolver-failure"),
    (Diagnosis.TIMEOUT, "could not be looked up in time", "resolver-timeout"),
])  # fmt: skip
@pytest.mark.parametrize("detail", ["", "not known"])
def test_four_ways_not_to_resolve(diagnosis: Diagnosis, words: str, kind: str, detail: str) -> None:
    lookup = Lookup("localhost", "this machine", diagnosis, detail=detail)
    facts = replace(HEALTHY, contact=Contact(TARGET.address, lookup), own_answer=None)
    assert failed(facts) == (Stage.RESOLVE, kind)
    cause = diagnose(facts, "host").cause
    assert cause is not None
    assert cause.observed == (
        f"broker 1 advertises localhost:9092 to clients of EXTERNAL, and localhost {words} for this"
        f" machine{' (not known)' if detail else ''}; it is every machine's name for itself: it"
        " leads every client to its own machine or container"
    )


def test_first_address_dead_second_alive_is_told() -> None:
    attempts = (Attempt("[::1]:9092", "refused", 0.001), CONNECTED)
    cell = diagnose(replace(HEALTHY, contact=Contact(TARGET.address, OK, attempts)), "host")
    assert cell.verdict is Verdict.PASS
    assert cell.stages[3].detail == (
        "127.0.0.1:9092 connected, but only after [::1]:9092 refused the connection: "
        "some clients try only the first"
    )


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        (("refused", "no-route"), "refused"),
        (("no-route", "refused"), "refused"),
        (("timeout", "no-route"), "timeout"),
        (("no-route", "no-route"), "no-route"),
        (("timeout", "refused"), "refused"),
    ],
)
def test_an_address_without_a_route_is_blamed_last(errors: tuple[str, str], kind: str) -> None:
    """In a container without IPv6 `localhost` is 127.0.0.1, which refuses, and ::1."""
    attempts = tuple(Attempt(f"{it}:9092", error, 0.0) for it, error in enumerate(errors))
    contact = Contact(TARGET.address, OK, attempts)
    assert failed(replace(HEALTHY, contact=contact, own_answer=None)) == (Stage.TCP, kind)


@pytest.mark.parametrize(("days", "names", "reported"), [
    (29, (), "; the certificate expires in 29 days"),
    (30, (), "; the certificate lasts 30 days"),
    (30, ("*.test", "localhost", "::1"),
     "; the certificate is for *.test, localhost, ::1 and lasts 30 days"),
    (30, ("b9",), ("; the certificate is for b9 and lasts 30 days; it does not cover localhost: "
                   "clients that compare names refuse it")),
    (None, (), ""),
])  # fmt: skip
def test_the_certificate_is_described(
    days: int | None, names: tuple[str, ...], reported: str
) -> None:
    target = replace(TARGET, protocol=Protocol.SSL)
    secured = Handshake("TLSv1.3", days, 0.01, "TLS_AES_256_GCM_SHA384", names)
    contact = Contact(TARGET.address, OK, (CONNECTED,), secured)
    cell = diagnose(replace(HEALTHY, target=target, contact=contact), "host")
    assert cell.verdict is Verdict.PASS
    assert cell.stages[4].detail == f"SSL, TLSv1.3, TLS_AES_256_GCM_SHA384{reported}"
    assert cell.stages[4].seconds == 0.01


@pytest.mark.parametrize(
    ("days", "noted"),
    [
        ([7, None], []),
        ([6, 7], ["the first in 6 days: b0:9092. Clients"]),
        ([1], ["the first in 1 day: b0:9092. Clients"]),
        ([3, 5, 4, 0, 6], ["the first within a day: b3:9092, b0:9092, b2:9092 and 2 more. "]),
    ],
)
def test_certificates_that_expire_within_days_are_noted(
    days: list[int | None], noted: list[str]
) -> None:
    facts = []
    for number, left in enumerate(days):
        target = replace(TARGET, address=address(f"b{number}:9092"))
        secured = Handshake("TLSv1.3", left, 0.01)
        contact = Contact(target.address, OK, (CONNECTED,), secured)
        facts.append(replace(HEALTHY, target=target, contact=contact))
    notes = expiry_notes(facts)
    assert len(notes) == len(noted)
    assert all(text in note for text, note in zip(noted, notes, strict=True))


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (("B-2.test", "boot.test"), "misrouted"),
        (("boot.test",), "certificate-name"),
        (("other names",), "certificate-name"),
    ],
)
def test_another_brokers_certificate_is_a_wrong_way(names: tuple[str, ...], error: str) -> None:
    """As behind a gateway that sends two names to one broker."""
    text = f"the certificate is for {', '.join(names)}"
    shown = OtherCertificate("certificate-name", text, names=names)
    target = replace(TARGET, protocol=Protocol.SSL, address=address("b-1.test:443"))
    via = answer("boot.test:443", "b-1.test:443", "b-2.test:443")
    contact = replace(REACHED, address=target.address, security=shown)
    facts = replace(HEALTHY, target=target, contact=contact, own_answer=None, other_answer=via)
    assert failed(facts) == (Stage.SECURITY, error)
    assert failed(replace(facts, other_answer=None)) == (Stage.SECURITY, "certificate-name")


def test_without_records_a_cell_passes_and_says_so() -> None:
    cell = diagnose(replace(HEALTHY, produced=None, consumed=None, skip="not asked for"), "host")
    assert cell.verdict is Verdict.PASS
    assert verdicts(cell) == "pppppss"
    assert cell.stages[5].detail == "not asked for"


def test_a_cell_that_could_not_be_proved_is_skipped() -> None:
    reason = "no right to create topics"
    facts = replace(HEALTHY, produced=None, consumed=None, no_record_reason=reason)
    cell = diagnose(facts, "host")
    assert (cell.verdict, cell.cause, cell.reason) == (Verdict.SKIP, None, reason)
    cause = refusal(Failure("policy-violation", "two replicas at least"))
    refused = diagnose(replace(facts, refusal=cause), "host")
    assert (refused.verdict, refused.cause) == (Verdict.SKIP, cause)
    broken = diagnose(replace(facts, own_answer=answer(HERE, "localhost:9999")), "host")
    assert broken.verdict is Verdict.FAIL and broken.reason == ""


def test_an_undecided_cell_has_a_reason_for_every_stage() -> None:
    cell = undecided(TARGET, "host", "blind", Verdict.INCONCLUSIVE)
    assert cell.verdict is Verdict.INCONCLUSIVE and cell.reason == "blind"
    assert [(stage.verdict, stage.detail) for stage in cell.stages] == [(Verdict.SKIP, "blind")] * 7


def test_a_dead_broker_that_is_not_listed() -> None:
    cell = diagnose(changed(DOWN | {"other_answer": NOT_LISTED}), "host")
    metadata = cell.stages[list(Stage).index(Stage.METADATA)]
    skipped = (Verdict.SKIP, "no listener lists broker 1 any more")
    assert (metadata.verdict, metadata.detail) == skipped
