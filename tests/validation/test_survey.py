"""What sightings of addresses say about brokers."""

from __future__ import annotations

from earshot.listeners.model import Protocol
from earshot.names.lookup import Diagnosis, Lookup
from earshot.validation.client import Failure
from earshot.validation.contract import Contract
from earshot.validation.diagnosis import Facts, judge
from earshot.validation.metadata import Answer
from earshot.validation.probe import Attempt, Contact
from earshot.validation.result import Verdict
from earshot.validation.survey import (
    UNKNOWN,
    Place,
    Sighting,
    facts_of,
    targets_of,
    targets_seen,
)
from tests.doubles.answers import address, answer, contract

PLAIN = Protocol.PLAINTEXT
INTERNAL = ["i:1", "i:2"]
EXTERNAL = ["e:1", "e:2"]
TWO = contract(INTERNAL=INTERNAL, EXTERNAL=EXTERNAL)


def sighting(place: str, said: Answer | Failure | None, error: str = "") -> Sighting:
    host = place.partition(":")[0]
    lookup = Lookup(host, "test", Diagnosis.OK, ("192.0.2.1",))
    return Sighting(Contact(address(place), lookup, (Attempt(place, error, 0.0),)), said)


def seen(**changed: Sighting) -> dict[Place, Sighting]:
    """A healthy cluster of TWO, but for the places changed (`i1` is i:1)."""
    healthy = {
        place: sighting(place, answer(place, *listener))
        for listener in (INTERNAL, EXTERNAL)
        for place in listener
    }
    healthy |= {f"{key[0]}:{key[1]}": value for key, value in changed.items()}
    return {(address(place), PLAIN): value for place, value in healthy.items()}


def facts(
    sightings: dict[Place, Sighting], cluster: Contract = TWO, **seeds: Answer
) -> dict[tuple[str, int], Facts]:
    given = {name: [item] for name, item in seeds.items()}
    found = facts_of(targets_of(cluster), sightings, given, cluster)
    return {(item.target.listener, item.target.broker): item for item in found}


def kinds(found: dict[tuple[str, int], Facts]) -> dict[str, str]:
    """The failed cells, by `LISTENER broker`, before any record."""
    cells = {key: judge(item, "host") for key, item in found.items()}
    return {
        f"{listener} {broker}": cell.cause.kind
        for (listener, broker), cell in cells.items()
        if cell.cause and cell.cause.kind != "not-acknowledged"
    }


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
    dead = {"i2": sighting("i:2", None, "refused"), "e2": sighting("e:2", None, "refused")}
    assert kinds(facts(seen(**dead))) == {"INTERNAL 2": "refused", "EXTERNAL 2": "refused"}
    gone = {
        "i1": sighting("i:1", answer("i:1", "i:1")),
        "e1": sighting("e:1", answer("e:1", "e:1")),
    }
    assert kinds(facts(seen(**dead, **gone))) == {"INTERNAL 2": "refused", "EXTERNAL 2": "refused"}


def test_drift_of_a_broker_that_left_its_address() -> None:
    moved = {
        "e2": sighting("e:2", None, "refused"),
        "e1": sighting("e:1", answer("e:1", "e:1", "e:9")),
    }
    assert kinds(facts(seen(**moved))) == {"EXTERNAL 2": "drift"}


def test_a_broker_without_the_listener_is_missing() -> None:
    lacking = {
        "e2": sighting("e:2", None, "refused"),
        "e1": sighting("e:1", answer("e:1", "e:1")),
    }
    assert kinds(facts(seen(**lacking))) == {"EXTERNAL 2": "missing"}


def test_a_seed_stands_in_for_addresses_that_nobody_reaches() -> None:
    lost = {"e1": sighting("e:1", None, "refused"), "e2": sighting("e:2", None, "refused")}
    alone = facts(seen(**lost))
    assert alone["EXTERNAL", 1].via is None
    helped = facts(seen(**lost), EXTERNAL=answer("localhost:1", "e:1", "e:7"))
    assert kinds(helped) == {"EXTERNAL 1": "refused", "EXTERNAL 2": "drift"}


def test_crossed_listeners() -> None:
    crossed = {"e1": sighting("e:1", answer("e:1", *INTERNAL))}
    found = facts(seen(**crossed))
    assert kinds(found) == {"EXTERNAL 1": "crossed-listeners"}
    # its answer says nothing about EXTERNAL
    assert found["EXTERNAL", 2].elsewhere == ("INTERNAL",)


def test_an_address_of_another_cluster() -> None:
    other = {"e1": sighting("e:1", answer("e:1", *EXTERNAL, cluster="D"))}
    assert kinds(facts(seen(**other))) == {"EXTERNAL 1": "foreign-cluster"}


def test_an_unexpected_broker_gets_a_cell() -> None:
    more = {"e1": sighting("e:1", answer("e:1", *EXTERNAL, "e:3"))}
    found = facts(seen(**more))
    assert kinds(found) == {"EXTERNAL 3": "unexpected"}
    cell = judge(found["EXTERNAL", 3], "host")
    assert cell.verdict is Verdict.FAIL and cell.address == "e:3"


def test_an_expected_shared_address_fails_both() -> None:
    shared = contract(EXTERNAL=["e:1", "e:1"])
    both = {(address("e:1"), PLAIN): sighting("e:1", answer("e:1", "e:1", "e:1"))}
    assert kinds(facts(both, shared)) == {
        "EXTERNAL 1": "shared-address",
        "EXTERNAL 2": "shared-address",
    }


def test_without_a_contract_listeners_are_named_by_address() -> None:
    seeds = [address("s:1"), address("s:2"), address("s:3"), address("s:4")]
    answers = [answer("s:1", "a:1", "a:2"), answer("s:2", "b:1"), answer("s:3", "a:1", "a:2")]
    targets = targets_seen(seeds, PLAIN, answers)
    assert [(item.listener, item.broker, str(item.address)) for item in targets] == [
        ("s:1,s:3", 1, "a:1"),
        ("s:1,s:3", 2, "a:2"),
        ("s:2", 1, "b:1"),
        ("s:4", UNKNOWN, "s:4"),
    ]
