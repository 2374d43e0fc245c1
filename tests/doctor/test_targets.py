"""Brokers that only a later answer lists, by doubles of brokers that disagree."""

import contextlib
import socket
from collections.abc import Iterator

import pytest

from earshot.doctor import targets
from earshot.doctor.doctor import examine
from earshot.doctor.observation import CellTarget
from earshot.doctor.probe import Contact
from earshot.doctor.survey import AddressResult
from earshot.doctor.targets import new_targets_of
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.names.lookup import Diagnosis, Lookup
from earshot.validation.result import Report
from earshot.validation.terms import Stage
from tests.doubles import peer as doubles
from tests.doubles.answers import address, answer, contract
from tests.doubles.peer import kafka, listening, reply

PLAIN = Protocol.PLAINTEXT
Listed = dict[int, list[tuple[int, ...]]]
"""By broker, the ids that it lists in its first answer, in its second, ...; the last one stays."""


@contextlib.contextmanager
def brokers(listed: Listed) -> Iterator[dict[int, Address]]:
    """Brokers that list what ``listed`` holds; yields their addresses."""
    addresses: dict[int, Address] = {}

    def serving(id: int) -> contextlib.AbstractContextManager[doubles.Peer]:
        ahead = iter([*listed[id][:-1]])

        def metadata(connection: socket.socket, request: bytes) -> None:
            ids = next(ahead, listed[id][-1])
            reply(doubles.metadata({it: addresses[it] for it in ids}))(connection, request)

        return listening(kafka({3: metadata, 32: doubles.own_configuration(id)}))

    with contextlib.ExitStack() as stack:
        for id in listed:
            addresses[id] = stack.enter_context(serving(id)).address
        yield addresses


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asks again sooner than after seconds."""
    monkeypatch.setattr("earshot.doctor.doctor.AGREE_AFTER", (0.05, 0.1))


def outcome(report: Report) -> dict[int, str]:
    return {cell.broker: cell.cause.kind if cell.cause else "" for cell in report.cells}


def examined(listed: Listed, *seeds: int) -> tuple[Report, dict[int, Address]]:
    """The report of an examination that starts at ``seeds``, and the brokers' addresses."""
    with brokers(listed) as at:
        report = examine([at[id] for id in seeds or (1,)], deadline=60, produce=False)
    return report, at


def test_a_broker_that_only_a_later_answer_lists_is_examined_and_disputed() -> None:
    report, at = examined({1: [(1, 2)], 2: [(1, 2, 3)], 3: [(1, 2, 3)]})
    assert outcome(report) == {1: "", 2: "", 3: "disputed-broker"}
    assert report.exit_code == 1
    cell = report.cells[2]
    assert (cell.address, cell.failed_stage) == (at[3], Stage.METADATA)
    assert cell.cause is not None and cell.cause.observed == (
        f"answers disagree: {at[3]} lists broker 3 of {at[1]}, and {at[1]} does not list it"
    )


def test_a_broker_that_all_list_when_asked_again_has_just_joined() -> None:
    report, _ = examined({1: [(1, 2), (1, 2, 3)], 2: [(1, 2, 3)], 3: [(1, 2, 3)]})
    assert outcome(report) == {1: "", 2: "", 3: ""}


def test_a_chain_of_answers_is_followed() -> None:
    report, _ = examined({1: [(1, 2)], 2: [(1, 2, 3)], 3: [(2, 3, 4)], 4: [(1, 2, 3, 4)]})
    assert set(outcome(report)) == {1, 2, 3, 4}
    assert outcome(report)[4] == "disputed-broker"


def test_addresses_of_one_cluster_that_disagree_are_one_listener() -> None:
    report, at = examined({1: [(1, 2)], 2: [(1, 2, 3)], 3: [(1, 2, 3)]}, 1, 2)
    assert {cell.listener for cell in report.cells} == {f"{at[1]},{at[2]}"}
    assert outcome(report) == {1: "", 2: "", 3: "disputed-broker"}


def test_a_contracts_broker_that_another_does_not_list_is_disputed() -> None:
    with brokers({1: [(1,)], 2: [(1, 2)]}) as at:
        expected = contract(HOST=[str(at[1]), str(at[2])])
        report = examine(expected, deadline=60, produce=False)
    assert outcome(report) == {1: "", 2: "disputed-broker"}


def test_no_more_brokers_are_examined_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.doctor.doctor.MAX_UNEXPECTED", 2)
    report, _ = examined({id: [(1, id, id + 1) if id < 8 else (1, id)] for id in range(1, 9)})
    assert set(outcome(report)) == {1, 2, 3, 4}
    assert report.exit_code == 1


LOOKUP = Lookup("a", "test", Diagnosis.OK, ("192.0.2.1",))
TARGETS = [CellTarget("L", PLAIN, id, address(f"a:{id}")) for id in (1, 2)]


def added(own: list[str]) -> list[int]:
    """Brokers that the answer ``own`` of the first of two targets adds."""
    first, second = (target.address for target in TARGETS)
    results = {
        (first, PLAIN): AddressResult(Contact(first, LOOKUP), answer(str(first), *own)),
        (second, PLAIN): AddressResult(Contact(second, LOOKUP), None),
    }
    return [target.broker for target in new_targets_of(TARGETS, results)]


def test_which_answers_add_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert added(["a:1", "a:2", "a:3"]) == [3]
    assert added(["a:9", "a:2", "a:3"]) == [], "it is wrong about itself"
    monkeypatch.setattr(targets, "MAX_UNEXPECTED", 3)
    assert len(added([f"a:{id}" for id in range(1, 50)])) == 3
