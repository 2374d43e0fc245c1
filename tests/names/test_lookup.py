from collections.abc import Iterator
from typing import Any

import pytest

from earshot.names.lookup import LITERAL, Diagnosis, Lookup, combined, literal, look_up
from tests.doubles.resolvers import SilentResolver, TableResolver


class Clock:
    """Time that passes only in sleep."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def silent() -> Iterator[SilentResolver]:
    resolver = SilentResolver()
    yield resolver
    resolver.release()


def test_each_name_is_asked_once_per_resolver() -> None:
    inside, outside = TableResolver("inside"), TableResolver("outside")
    names = ["kafka-1", "kafka-2", "KAFKA-1"] * 50
    lookups = look_up([(name, where) for name in names for where in (inside, outside)], 5)
    assert list(lookups) == [
        ("kafka-1", "inside"),
        ("kafka-1", "outside"),
        ("kafka-2", "inside"),
        ("kafka-2", "outside"),
    ]
    assert inside.asked == outside.asked == {"kafka-1": 1, "kafka-2": 1}


def test_more_names_than_workers_are_all_answered() -> None:
    resolver = TableResolver("r", {f"k{i}": (f"10.0.0.{i}",) for i in range(200)})
    lookups = look_up([(f"k{i}", resolver) for i in range(200)], 5)
    assert [item.addresses for item in lookups.values()] == [(f"10.0.0.{i}",) for i in range(200)]


def test_four_failures_stay_four_diagnoses() -> None:
    failures = [item for item in Diagnosis if item is not Diagnosis.OK]
    resolver = TableResolver("r", {str(item): item for item in failures})
    lookups = look_up([(str(item), resolver) for item in failures], 5)
    assert [item.diagnosis for item in lookups.values()] == failures
    assert not any(item.ok or item.addresses for item in lookups.values())


def test_a_silent_resolver_times_out_for_its_names_only(silent: SilentResolver) -> None:
    """However many names there are for it."""
    table = TableResolver("table", {"kafka": ("10.0.0.1",)})
    many = [(f"k{i}", silent) for i in range(200)]
    lookups = look_up([*many, ("kafka", table)], 1)
    assert lookups["kafka", "table"].addresses == ("10.0.0.1",)
    outcomes = {
        (lost.diagnosis, lost.answered, lost.detail)
        for (_, resolver), lost in lookups.items()
        if resolver == "silence"
    }
    assert outcomes == {(Diagnosis.TIMEOUT, False, "no answer within 1.0 s")}
    assert len(lookups) == 201


def test_addresses_are_not_looked_up() -> None:
    resolver = TableResolver("r")
    lookups = look_up([("10.0.0.1", resolver), ("2001:DB8::1", resolver)], 5)
    assert [item.addresses for item in lookups.values()] == [("10.0.0.1",), ("2001:db8::1",)]
    assert {item.resolver for item in lookups.values()} == {LITERAL}
    assert not resolver.asked


@pytest.mark.parametrize(
    "text",
    ["kafka", "kafka-1", "1.2.3", "a:b", "fe80::1%eä", "fe80::1%\x01", "fe80::1%\n1", "١٢"],
)
def test_a_name_and_what_is_no_plain_text_are_no_literals(text: str) -> None:
    assert literal(text) is None


def test_no_questions_have_no_answers() -> None:
    assert look_up([], 5) == {}


def test_a_fault_of_a_resolver_is_not_swallowed() -> None:
    class Broken(TableResolver):
        def resolve(self, name: str, seconds: float) -> Lookup:
            raise ZeroDivisionError("a fault of ours")

    with pytest.raises(ZeroDivisionError):
        look_up([("kafka", Broken("r"))], 5)


def test_a_record_that_spreads_is_asked_for_again_and_the_others_are_not() -> None:
    clock = Clock()
    resolver = TableResolver("r", {"old": ("10.0.0.1",)})

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if len(clock.slept) == 3:
            resolver.table["new"] = ("10.0.0.2",)

    lookups = look_up([("old", resolver), ("new", resolver)], 5, 60, clock, sleep)
    assert all(item.ok for item in lookups.values())
    assert resolver.asked == {"old": 1, "new": 4}
    assert clock.slept == [0.5, 1.0, 2.0]


def test_retries_end_with_their_time() -> None:
    clock = Clock()
    lookups = look_up([("new", TableResolver("r"))], 5, 20, clock, clock.sleep)
    assert lookups["new", "r"].diagnosis is Diagnosis.NXDOMAIN
    assert clock.slept == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert clock.now < 20


def test_nothing_is_asked_again_unless_wanted() -> None:
    clock = Clock()
    resolver = TableResolver("r")
    look_up([("new", resolver)], 5, clock=clock, sleep=clock.sleep)
    assert resolver.asked == {"new": 1}
    assert clock.slept == []


def said(diagnosis: Diagnosis, resolver: str = "a", **more: Any) -> Lookup:
    return Lookup("k", resolver, diagnosis, **more)


NXDOMAIN_A, NXDOMAIN_B = said(Diagnosis.NXDOMAIN), said(Diagnosis.NXDOMAIN, "b")
SILENT_A = said(Diagnosis.TIMEOUT, answered=False)
SILENT_B = said(Diagnosis.TIMEOUT, "b", answered=False)
NONE_A, NONE_B = (said(Diagnosis.NXDOMAIN, it, detail="none") for it in "ab")
REFUSED_A = said(Diagnosis.SERVER_FAILURE, detail="refused")
EMPTY_B, FAILED_B = said(Diagnosis.NO_ANSWER, "b"), said(Diagnosis.SERVER_FAILURE, "b")


@pytest.mark.parametrize(
    ("first", "second", "diagnosis", "detail", "answered"),
    [
        (NXDOMAIN_A, NXDOMAIN_B, Diagnosis.NXDOMAIN, "", True),
        (NONE_A, NONE_B, Diagnosis.NXDOMAIN, "none", True),
        (SILENT_A, EMPTY_B, Diagnosis.NO_ANSWER, "a: timeout; b: no-answer", True),
        (REFUSED_A, NXDOMAIN_B, Diagnosis.NXDOMAIN, "a: refused; b: nxdomain", True),
        (SILENT_A, FAILED_B, Diagnosis.SERVER_FAILURE, "a: timeout; b: server-failure", True),
        (SILENT_A, SILENT_B, Diagnosis.TIMEOUT, "", False),
    ],
)
def test_the_diagnosis_of_several_servers(
    first: Lookup, second: Lookup, diagnosis: Diagnosis, detail: str, answered: bool
) -> None:
    each = (first, second)
    expected = Lookup("k", "all", diagnosis, (), 0.0, detail, answered, each)
    assert combined("k", "all", each) == expected


def test_of_servers_that_resolve_a_name_all_addresses_count_once() -> None:
    each = [
        said(Diagnosis.OK, addresses=("192.0.2.1", "192.0.2.2"), seconds=1.0),
        said(Diagnosis.OK, "b", addresses=("192.0.2.2", "192.0.2.3"), seconds=3.0),
        said(Diagnosis.NXDOMAIN, "c", seconds=2.0, detail="none"),
    ]
    lookup = combined("k", "all", each)
    assert (lookup.addresses, lookup.seconds) == (("192.0.2.1", "192.0.2.2", "192.0.2.3"), 3.0)
    assert lookup.unresolved_at == ("c: nxdomain",)
    assert lookup.servers_with("192.0.2.1") == ("a",)
    assert lookup.servers_with("192.0.2.2") == ("a", "b")
    assert combined("k", "all", each[:2]).servers_with("192.0.2.2") == ()
    assert combined("k", "all", each[2:]).unresolved_at == ()
