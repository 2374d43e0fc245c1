"""The lookup of a consumer group's coordinator, by doubles of brokers."""

import socket
import struct

import pytest

from earshot.doctor import group_lookup
from earshot.doctor.asking import ReachableAddress
from earshot.doctor.group_lookup import GroupLookups, group_notes
from earshot.listeners.address import Address
from earshot.validation.deadline import Deadline
from tests.doubles.peer import Reply, kafka, listening, reply, text


def coordinator(*errors: int) -> Reply:
    """Answers FindCoordinator with each of ``errors``, then with the last one."""
    answered: list[int] = []

    def send(connection: socket.socket, request: bytes) -> None:
        error = errors[min(len(answered), len(errors) - 1)]
        answered.append(error)
        content = struct.pack(">ih", 0, error) + text(None) + struct.pack(">i", 1)
        reply(content + text("b") + struct.pack(">i", 9092))(connection, request)

    return send


def silence(connection: socket.socket, request: bytes) -> None:
    """No answer until the client has gone."""
    connection.recv(1)


def lookup_at(replies: dict[int, Reply], end: Deadline) -> str:
    with listening(kafka(replies)) as peer:
        reachable = ReachableAddress(peer.address, ("127.0.0.1",), None, None)
        lookups = GroupLookups(end)
        lookups.start([None, reachable])
        reason = lookups.reason(peer.address)
        assert len(lookups.notes()) == bool(reason)
        return reason


@pytest.mark.parametrize("errors", [(0,), (15, 15, 0), (14, 0), (29,), (30,), (31,)])
def test_a_lookup_that_succeeds_or_is_not_allowed_is_silent(
    errors: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new cluster first creates `__consumer_offsets`."""
    monkeypatch.setattr(group_lookup, "LOOKUP_LIMIT", 30.0)
    monkeypatch.setattr(group_lookup, "AGAIN_AFTER", 0.01)
    assert lookup_at({10: coordinator(*errors)}, Deadline(60)) == ""


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ({10: coordinator(15)}, "FindCoordinator was answered with COORDINATOR_NOT_AVAILABLE for"),
        ({10: coordinator(35)}, "FindCoordinator was answered with the error code 35"),
        ({10: silence}, "FindCoordinator fails: no answer within 0."),
        ({}, "FindCoordinator fails: it closed the connection without an answer"),
    ],
)
def test_a_lookup_that_fails_for_good_has_a_reason(
    replies: dict[int, Reply], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_lookup, "LOOKUP_LIMIT", 0.4)
    monkeypatch.setattr(group_lookup, "AGAIN_AFTER", 0.05)
    assert lookup_at(replies, Deadline(60)).startswith(reason)


def test_a_lookup_that_the_deadline_cut_short_proves_nothing() -> None:
    assert lookup_at({10: coordinator(15)}, Deadline(0.3)) == ""
    stopped = Deadline(60)

    def stop(connection: socket.socket, request: bytes) -> None:
        stopped.stop.set()
        coordinator(15)(connection, request)

    assert lookup_at({10: stop}, stopped) == ""


def test_lookups_are_bounded_and_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups: list[tuple[ReachableAddress, Deadline]] = []
    monkeypatch.setattr(group_lookup, "MAX_LOOKUPS", 2)

    def failed_lookup(peer: ReachableAddress, end: Deadline) -> str:
        lookups.append((peer, end))
        return ""

    monkeypatch.setattr(group_lookup, "failed_lookup", failed_lookup)
    peers = [ReachableAddress(Address("b", id), ("::1",), None, None) for id in (1, 2, 3)]
    group_lookups = GroupLookups(Deadline(60))
    group_lookups.start(peers[:1])
    group_lookups.start(peers[1:])
    assert group_lookups.notes() == []
    assert {peer.address for peer, _ in lookups} == {peers[0].address, peers[1].address}
    assert lookups[0][1] is lookups[1][1]


def test_one_note_names_all_addresses() -> None:
    assert group_notes({"a:1": "", "b:2": ""}) == []
    (note,) = group_notes({"a:1": "X", "b:2": "", "c:3": "X"})
    assert note.startswith("no consumer group finds its coordinator at a:1, c:3: X; a new cluster")
    assert "offsets.topic.replication.factor" in note
