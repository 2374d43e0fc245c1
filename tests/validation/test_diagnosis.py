"""From facts to cells: the right stage is named, later ones are skipped for that reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from earshot.listeners.model import Protocol
from earshot.names.lookup import Diagnosis, Lookup
from earshot.validation.client import Failure
from earshot.validation.diagnosis import Facts, Sent, Target, judge, ready, undecided
from earshot.validation.metadata import Answer
from earshot.validation.probe import Attempt, Contact, Handshake
from earshot.validation.result import Cell, Stage, Verdict
from tests.doubles.answers import address, answer

HERE = "localhost:9092"
TARGET = Target("EXTERNAL", Protocol.PLAINTEXT, 1, address(HERE))
OK = Lookup("localhost", "this machine", Diagnosis.OK, ("127.0.0.1",), 0.001)
CONNECTED = Attempt("127.0.0.1:9092", "", 0.001)
REACHED = Contact(TARGET.address, OK, (CONNECTED,))
REFUSED = Contact(TARGET.address, OK, (Attempt("127.0.0.1:9092", "refused", 0.001),))
NOWHERE = Contact(
    TARGET.address, Lookup("localhost", "this machine", Diagnosis.NXDOMAIN, detail="not known")
)
OWN = answer(HERE, HERE, "localhost:9093")
OTHER = answer("localhost:9093", HERE, "localhost:9093")
SENT = Sent(0, 0, 2.5, 7)
HEALTHY = Facts(TARGET, REACHED, OWN, cluster_id="C", produced=SENT, consumed=0.01)


def verdicts(cell: Cell) -> str:
    """One letter per stage: p(ass), f(ail), s(kip)."""
    return "".join(str(item.verdict)[0] for item in cell.stages)


def failed(facts: Facts) -> tuple[Stage | None, str]:
    cell = judge(facts, "host")
    assert cell.verdict is Verdict.FAIL and cell.cause is not None
    return cell.failed_stage, cell.cause.kind


def test_all_is_well() -> None:
    cell = judge(HEALTHY, "host")
    assert cell.verdict is Verdict.PASS and cell.cause is None and cell.reason == ""
    assert verdicts(cell) == "ppppppp"
    assert [item.stage for item in cell.stages] == list(Stage)
    assert cell.latency_ms == 2.5
    assert (cell.vantage, cell.listener, cell.broker, cell.address) == ("host", "EXTERNAL", 1, HERE)


@pytest.mark.parametrize(
    ("changes", "stage", "kind"),
    [
        # nobody answers on this listener
        ({"contact": NOWHERE, "own": None}, Stage.RESOLVE, "unresolvable"),
        ({"contact": REFUSED, "own": None}, Stage.TCP, "refused"),
        # another address of the listener answers, and lists the broker as expected
        ({"contact": NOWHERE, "own": None, "via": OTHER}, Stage.RESOLVE, "unresolvable"),
        ({"contact": REFUSED, "own": None, "via": OTHER}, Stage.TCP, "refused"),
        # … or no longer: the broker is down, and its own address says how
        (
            {"contact": REFUSED, "own": None, "via": answer("x:1", "", "x:1")},
            Stage.TCP,
            "refused",
        ),
        # … or at another address
        (
            {"contact": REFUSED, "own": None, "via": answer("x:1", "localhost:9999")},
            Stage.METADATA,
            "drift",
        ),
        # … or not here, but elsewhere
        (
            {
                "contact": REFUSED,
                "own": None,
                "via": answer("x:1", "", "x:1"),
                "elsewhere": ("INTERNAL",),
            },
            Stage.METADATA,
            "missing",
        ),
        # it connects and says nothing sensible
        ({"own": Failure("timeout", "no metadata")}, Stage.BOOTSTRAP, "no-answer"),
        ({"own": Failure("protocol", "closed")}, Stage.BOOTSTRAP, "protocol"),
        ({"own": Failure("authentication", "denied")}, Stage.SECURITY, "authentication"),
        ({"own": Failure("tls", "alert")}, Stage.SECURITY, "tls"),
        # it answers with something else than expected
        ({"own": answer(HERE, "localhost:9999")}, Stage.METADATA, "drift"),
        ({"own": answer(HERE, "", "localhost:9093")}, Stage.METADATA, "unlisted"),
        ({"own": answer(HERE, HERE, HERE)}, Stage.METADATA, "shared-address"),
        ({"cluster_id": "D"}, Stage.METADATA, "foreign-cluster"),
        ({"answers_as": "INTERNAL"}, Stage.METADATA, "crossed-listeners"),
        (
            {"contact": None, "own": None, "via": OTHER, "surplus": True},
            Stage.METADATA,
            "unexpected",
        ),
        # the record
        (
            {"produced": Failure("timeout", "x"), "consumed": None},
            Stage.PRODUCE,
            "not-acknowledged",
        ),
        ({"produced": Failure("misrouted", "x"), "consumed": None}, Stage.PRODUCE, "misrouted"),
        ({"produced": Failure("no-quorum", "x"), "consumed": None}, Stage.PRODUCE, "no-quorum"),
        ({"produced": None, "consumed": None}, Stage.PRODUCE, "not-acknowledged"),
        ({"consumed": Failure("corrupt", "x")}, Stage.CONSUME, "corrupt"),
        ({"consumed": None}, Stage.CONSUME, "not-returned"),
    ],
)
def test_the_stage_that_fails_names_the_cause(
    changes: dict[str, object], stage: Stage, kind: str
) -> None:
    facts = replace(HEALTHY, **changes)  # type: ignore[arg-type]
    assert failed(facts) == (stage, kind)
    cell = judge(facts, "host")
    after = list(Stage).index(stage) + 1
    assert set(verdicts(cell)[after:]) <= {"s"}
    assert all(item.detail for item in cell.stages if item.verdict is Verdict.SKIP)
    assert all(item.detail == f"{stage} failed" for item in cell.stages[after:])
    assert ready(facts) is (stage in (Stage.PRODUCE, Stage.CONSUME))


def test_the_failure_of_the_seeds() -> None:
    """Bootstrap works, the listed name means nothing here."""
    target = replace(TARGET, address=address("nope.invalid:9092"))
    lookup = Lookup("nope.invalid", "this machine", Diagnosis.NXDOMAIN, detail="not known")
    via = answer(HERE, "nope.invalid:9092")
    cell = judge(Facts(target, Contact(target.address, lookup), via=via, cluster_id="C"), "host")
    assert verdicts(cell) == "ppfssss"
    assert cell.failed_stage is Stage.RESOLVE
    assert cell.stages[0].detail == "localhost:9092 answered, nope.invalid:9092 did not"
    assert cell.cause is not None
    for word in ("broker 1", "EXTERNAL", "nope.invalid:9092", "does not exist", "this machine"):
        assert word in cell.cause.observed
    assert "`advertised`" in cell.cause.remedy


def test_a_seed_that_never_said_who_it_is() -> None:
    target = Target("nope.invalid:1", Protocol.PLAINTEXT, -1, address("nope.invalid:1"))
    lookup = Lookup("nope.invalid", "this machine", Diagnosis.NXDOMAIN)
    cell = judge(Facts(target, Contact(target.address, lookup)), "host")
    assert cell.cause is not None
    assert cell.cause.observed.startswith("nope.invalid does not exist for this machine")
    assert "-1" not in cell.cause.observed + cell.cause.expected + cell.cause.remedy
    assert cell.cause.remedy.startswith("correct the bootstrap address")


def test_drift_says_both_sides() -> None:
    cell = judge(replace(HEALTHY, own=answer(HERE, "localhost:9999")), "host")
    assert cell.cause is not None
    assert "localhost:9999" in cell.cause.observed
    assert HERE in cell.cause.expected


@pytest.mark.parametrize("diagnosis", [item for item in Diagnosis if item is not Diagnosis.OK])
def test_four_ways_not_to_resolve(diagnosis: Diagnosis) -> None:
    contact = Contact(TARGET.address, Lookup("localhost", "this machine", diagnosis))
    stage, kind = failed(replace(HEALTHY, contact=contact, own=None))
    assert stage is Stage.RESOLVE
    assert kind == {
        Diagnosis.TIMEOUT: "resolver-timeout",
        Diagnosis.SERVER_FAILURE: "resolver-failure",
    }.get(diagnosis, "unresolvable")


def test_first_address_dead_second_alive_is_told() -> None:
    attempts = (Attempt("[::1]:9092", "refused", 0.001), CONNECTED)
    cell = judge(replace(HEALTHY, contact=Contact(TARGET.address, OK, attempts)), "host")
    assert cell.verdict is Verdict.PASS
    assert "only after [::1]:9092 refused the connection" in cell.stages[3].detail


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
def test_an_address_without_a_route_is_blamed_where_no_other_was_tried(
    errors: tuple[str, str], kind: str
) -> None:
    """In a container without IPv6 `localhost` is 127.0.0.1, which refuses, and ::1."""
    attempts = tuple(Attempt(f"{it}:9092", error, 0.0) for it, error in enumerate(errors))
    contact = Contact(TARGET.address, OK, attempts)
    assert failed(replace(HEALTHY, contact=contact, own=None)) == (Stage.TCP, kind)


@pytest.mark.parametrize(("days", "told"), [(29, True), (30, False), (None, False)])
def test_a_certificate_that_expires_soon_is_told(days: int | None, told: bool) -> None:
    target = replace(TARGET, protocol=Protocol.SSL)
    contact = Contact(TARGET.address, OK, (CONNECTED,), Handshake("TLSv1.3", days, 0.01))
    cell = judge(replace(HEALTHY, target=target, contact=contact), "host")
    assert cell.verdict is Verdict.PASS
    assert ("expires in" in cell.stages[4].detail) is told


def test_a_failed_handshake() -> None:
    contact = replace(REACHED, security=Failure("certificate-name", "for other.test"))
    target = replace(TARGET, protocol=Protocol.SSL)
    facts = replace(HEALTHY, target=target, contact=contact, own=None)
    assert failed(facts) == (Stage.SECURITY, "certificate-name")


def test_without_records_a_cell_passes_and_says_so() -> None:
    cell = judge(replace(HEALTHY, produced=None, consumed=None, skip="not asked for"), "host")
    assert cell.verdict is Verdict.PASS
    assert verdicts(cell) == "pppppss"
    assert cell.stages[5].detail == "not asked for"


def test_a_cell_that_could_not_be_proved_is_skipped() -> None:
    facts = replace(HEALTHY, produced=None, consumed=None, prevented="no right to create topics")
    cell = judge(facts, "host")
    assert cell.verdict is Verdict.SKIP and cell.cause is None
    assert cell.reason == "no right to create topics"
    broken = judge(replace(facts, own=answer(HERE, "localhost:9999")), "host")
    assert broken.verdict is Verdict.FAIL and broken.reason == ""


def test_an_undecided_cell_has_a_reason_for_every_stage() -> None:
    cell = undecided(TARGET, "host", "blind", Verdict.INCONCLUSIVE)
    assert cell.verdict is Verdict.INCONCLUSIVE and cell.reason == "blind"
    assert [(item.verdict, item.detail) for item in cell.stages] == [(Verdict.SKIP, "blind")] * 7


def test_judging_is_pure() -> None:
    assert judge(HEALTHY, "host") == judge(HEALTHY, "host")
    assert isinstance(HEALTHY.own, Answer)
