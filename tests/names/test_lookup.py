from __future__ import annotations

from collections.abc import Iterator

import pytest

from earshot.names.lookup import LITERAL, Diagnosis, Lookup, literal, look_up
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
    found = look_up([(name, where) for name in names for where in (inside, outside)], 5)
    assert list(found) == [
        ("kafka-1", "inside"),
        ("kafka-1", "outside"),
        ("kafka-2", "inside"),
        ("kafka-2", "outside"),
    ]
    assert inside.asked == outside.asked == {"kafka-1": 1, "kafka-2": 1}


def test_more_names_than_workers_are_all_answered() -> None:
    resolver = TableResolver("r", {f"k{i}": (f"10.0.0.{i}",) for i in range(200)})
    found = look_up([(f"k{i}", resolver) for i in range(200)], 5)
    assert [item.addresses for item in found.values()] == [(f"10.0.0.{i}",) for i in range(200)]


def test_four_failures_stay_four_diagnoses() -> None:
    failures = [item for item in Diagnosis if item is not Diagnosis.OK]
    resolver = TableResolver("r", {str(item): item for item in failures})
    found = look_up([(str(item), resolver) for item in failures], 5)
    assert [item.diagnosis for item in found.values()] == failures
    assert not any(item.ok or item.addresses for item in found.values())


def test_a_resolver_that_never_returns_costs_the_time_limit_and_only_its_names(
    silent: SilentResolver,
) -> None:
    table = TableResolver("table", {"kafka": ("10.0.0.1",)})
    found = look_up([("kafka", silent), ("kafka", table)], 0.2)
    lost = found["kafka", "silence"]
    assert (lost.diagnosis, lost.answered) == (Diagnosis.TIMEOUT, False)
    assert lost.detail == "no answer within 0.2 s"
    assert found["kafka", "table"].addresses == ("10.0.0.1",)


def test_addresses_are_not_looked_up() -> None:
    resolver = TableResolver("r")
    found = look_up([("10.0.0.1", resolver), ("2001:DB8::1", resolver)], 5)
    assert [item.addresses for item in found.values()] == [("10.0.0.1",), ("2001:db8::1",)]
    assert {item.resolver for item in found.values()} == {LITERAL}
    assert not resolver.asked


@pytest.mark.parametrize("text", ["kafka", "kafka-1", "1.2.3", "a:b"])
def test_a_name_is_no_literal(text: str) -> None:
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

    found = look_up([("old", resolver), ("new", resolver)], 5, 60, clock, sleep)
    assert all(item.ok for item in found.values())
    assert resolver.asked == {"old": 1, "new": 4}
    assert clock.slept == [0.5, 1.0, 2.0]


def test_retries_end_with_their_time() -> None:
    clock = Clock()
    resolver = TableResolver("r")
    found = look_up([("new", resolver)], 5, 20, clock, clock.sleep)
    assert found["new", "r"].diagnosis is Diagnosis.NXDOMAIN
    assert clock.slept == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert clock.now < 20


def test_nothing_is_asked_again_unless_wanted() -> None:
    clock = Clock()
    resolver = TableResolver("r")
    look_up([("new", resolver)], 5, clock=clock, sleep=clock.sleep)
    assert resolver.asked == {"new": 1}
    assert clock.slept == []
