"""Which broker is behind an address: by doubles of brokers, and of what stands before them."""

import contextlib
import itertools
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from earshot.doctor import asking
from earshot.doctor.asking import (
    CONNECTIONS,
    FIRST_ONLY,
    NOT_ASKED,
    NOT_TOLD,
    AnsweringBrokers,
    ReachableAddress,
    answers_again,
    ask_address,
    fetched,
    version_failure,
    wrong_brokers,
)
from earshot.doctor.doctor import examine
from earshot.listeners.address import Address
from earshot.validation import metadata
from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from earshot.validation.metadata import MetadataAnswer
from earshot.validation.terms import Stage, Verdict
from tests.doubles import peer as doubles
from tests.doubles.answers import contract
from tests.doubles.peer import Reply, broker, forwarder, kafka, listening, reply, text


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "IDENTIFY_LIMIT", 60.0)


def peer_at(address: Address) -> ReachableAddress:
    return ReachableAddress(address, ("127.0.0.1",), None, None)


@contextlib.contextmanager
def behind(advertised: dict[int, Address]) -> Iterator[tuple[doubles.Peer, doubles.Peer]]:
    """Brokers 1 and 2, which advertise what ``advertised`` holds by the time they are asked."""

    def listed(connection: socket.socket, request: bytes) -> None:
        reply(doubles.metadata(advertised))(connection, request)

    def replies(id: int) -> dict[int, Reply]:
        return {3: listed, 32: doubles.own_configuration(id)}

    with listening(kafka(replies(1))) as first, listening(kafka(replies(2))) as second:
        yield first, second


def test_the_broker_that_answers_is_asked_for_on_fresh_connections() -> None:
    advertised: dict[int, Address] = {}
    with behind(advertised) as (first, second):
        advertised |= {1: first.address, 2: second.address}
        said, who = ask_address(peer_at(second.address), Deadline(60))
    assert isinstance(said, MetadataAnswer) and said.brokers == advertised
    assert who == AnsweringBrokers((2,) * CONNECTIONS)
    assert second.connections == CONNECTIONS and second.keys.count(3) == CONNECTIONS
    assert first.connections == 0


@pytest.mark.parametrize("count", [2, asking.MAX_COMPARED + 1])
def test_a_large_cluster_lists_its_brokers_once(count: int) -> None:
    advertised = {id: Address("127.0.0.1", id) for id in range(1, count + 1)}
    with listening(kafka(broker(1, advertised))) as peer:
        _, who = ask_address(peer_at(peer.address), Deadline(60))
    assert who == AnsweringBrokers((1,) * CONNECTIONS)
    assert peer.keys.count(3) == (CONNECTIONS if count == 2 else 1)


@pytest.mark.parametrize(
    ("other", "reached"), [("D", "cluster D"), ("", "cluster without an id"), ("C", "")]
)
def test_a_forwarder_to_brokers_of_one_id_in_two_clusters_is_found_out(
    other: str, reached: str
) -> None:
    advertised: dict[int, Address] = {}

    def replies(cluster: str) -> dict[int, Reply]:
        def listed(connection: socket.socket, request: bytes) -> None:
            reply(doubles.metadata(advertised, cluster))(connection, request)

        return {3: listed, 32: doubles.own_configuration(1)}

    with (
        listening(kafka(replies("C"))) as own,
        listening(kafka(replies(other))) as foreign,
        forwarder(foreign.address, own.address) as way,
    ):
        advertised[1] = way.address
        expected = contract(EXTERNAL=[str(way.address)]).model_copy(update={"cluster_id": "C"})
        (cell,) = examine(expected, deadline=60, produce=False).cells
    if not reached:
        assert cell.verdict is Verdict.PASS
        return
    assert cell.cause is not None and cell.cause.kind == "another-cluster"
    assert cell.cause.observed == f"2 of 5 connections to {way.address} reached {reached}"


@pytest.mark.parametrize("with_contract", [True, False])
def test_a_forwarder_to_two_listeners_of_a_broker_is_found_out(with_contract: bool) -> None:
    advertised, internal = dict[int, Address](), {1: Address("127.0.0.1", 1)}
    is_broker = with_contract  # else the forwarder is only the bootstrap address

    def listed(connection: socket.socket, request: bytes) -> None:
        reply(doubles.metadata(advertised))(connection, request)

    with (
        listening(kafka({3: listed, 32: doubles.own_configuration(1)})) as own,
        listening(kafka(broker(1, internal))) as crossed,
        forwarder(crossed.address, own.address) as way,
    ):
        advertised[1] = way.address if is_broker else own.address
        known = contract(EXTERNAL=[str(way.address)])
        target = known if with_contract else [way.address]
        cells = examine(target, deadline=60, produce=False).cells
    (cell,) = (cell for cell in cells if cell.verdict is Verdict.FAIL)
    assert cell.address == way.address
    assert cell.cause is not None and cell.cause.kind == "crossed-listeners"
    listed_text = "2 of 5 connections to {} got other addresses: broker 1 at 127.0.0.1:1"
    assert cell.cause.observed == listed_text.format(way.address)


def test_a_forwarder_to_two_brokers_is_found_out() -> None:
    advertised: dict[int, Address] = {}
    with behind(advertised) as (first, second), forwarder(first.address, second.address) as way:
        advertised |= {1: way.address, 2: second.address}
        _, who = ask_address(peer_at(way.address), Deadline(60))
        expected = contract(EXTERNAL=[str(way.address), str(second.address)])
        report = examine(expected, deadline=60, produce=False)
    assert who.ids == (1, 2, 1, 2, 1)
    known = f"2 of 5 connections to {way.address} reached broker 2, and not broker 1"
    assert who.other_brokers(way.address, 1) == known
    crossed, well = report.cells
    assert crossed.failed_stage is Stage.METADATA and crossed.cause is not None
    assert crossed.cause.kind == "misrouted"
    assert f"of 5 connections to {way.address} reached broker 2" in crossed.cause.observed
    assert well.verdict is Verdict.PASS and report.exit_code == 1
    assert "answers on 5 of 5 connections" in well.stages[1].detail


@pytest.mark.parametrize(
    ("ids", "reported"),
    [
        ((1, 1), ""),
        ((), ""),
        ((2, 2, 2), "k:1 leads to broker 2, not to broker 1"),
        ((2, 3, 1), "2 of 3 connections to k:1 reached broker 2 and broker 3, and not broker 1"),
    ],
)
def test_who_answered_in_words(ids: tuple[int, ...], reported: str) -> None:
    assert AnsweringBrokers(ids).other_brokers(Address("k", 1), 1) == reported


@pytest.mark.parametrize(("every", "unsteady"), [(2, True), (5, False)])
def test_connections_that_are_cut_beside_others_that_are_not(every: int, unsteady: bool) -> None:
    """A forwarder of which one target is dead; one cut connection may be an accident."""
    replies = {3: reply(b"")}

    def serve(connection: socket.socket, peer: doubles.Peer, number: int) -> None:
        listed = {1: peer.address}
        if (number + 1) % every:
            kafka(replies | broker(1, listed))(connection, peer, number)

    with listening(serve) as peer:
        report = examine(contract(EXTERNAL=[str(peer.address)]), deadline=60, produce=False)
    (cell,) = report.cells
    if unsteady:
        assert cell.cause is not None and cell.cause.kind == "unsteady"
        assert f"connections to {peer.address} got no answer" in cell.cause.observed
    else:
        assert cell.verdict is Verdict.PASS
        assert "of 5 connections" in cell.stages[1].detail
        assert report.notes[-1].startswith(
            f"1 of 5 connections to {peer.address} got no answer: see what"
        )


@pytest.mark.parametrize("is_id_known", [True, False])
def test_a_first_connection_that_is_closed_is_noted(is_id_known: bool) -> None:
    def serve(connection: socket.socket, peer: doubles.Peer, number: int) -> None:
        if number != 1:  # the probe's own connection is number 0
            replies = broker(1, {1: peer.address})
            kafka(replies if is_id_known else {3: replies[3]})(connection, peer, number)

    with listening(serve) as peer:
        report = examine(contract(EXTERNAL=[str(peer.address)]), deadline=60, produce=False)
    assert report.verdict is Verdict.PASS
    note = f"1 of 6 connections to {peer.address} got no answer: "
    assert report.notes[-1].startswith(note) is is_id_known
    assert is_id_known or "got no answer" not in str(report.notes)


def test_a_broker_that_swallows_api_versions_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def silence(connection: socket.socket, request: bytes) -> None:
        connection.recv(1)

    monkeypatch.setattr(asking, "VERSIONS_LIMIT", 0.3)
    monkeypatch.setattr(asking, "VERSIONS_PATIENCE", 0.2)
    listed, known = reply(doubles.metadata({})), reply(b"\0\0")
    for replies, error in (
        ({18: silence, 3: listed}, "timeout"),
        ({18: silence, 3: silence}, None),  # the broker itself is stuck
        ({18: known}, None),
    ):
        with listening(kafka(replies)) as peer:
            failure = version_failure(peer_at(peer.address), Deadline(60))
            assert version_failure(peer_at(peer.address), Deadline(0.1)) is None
        assert (failure and failure.error) == error
        assert version_failure(peer_at(peer.address), Deadline(60)) is None, "not reached"


def test_records_are_fetched_on_a_new_connection() -> None:
    head = struct.pack(">ii", 0, 1) + text("t") + struct.pack(">i", 1)
    partition = struct.pack(">ihqqi", 3, 0, 9, 9, 1) + bytes(16)
    found = reply(head + partition + struct.pack(">i", 5) + b"batch")
    for answer, batches in ((found, b"batch"), (reply(bytes(8)), b"")):
        with listening(kafka({1: answer})) as peer:
            assert fetched(peer_at(peer.address), "t", 3, 7, Deadline(60)) == batches
            assert answers_again(peer_at(peer.address), Deadline(60)) is False
    assert fetched(peer_at(peer.address), "t", 3, 7, Deadline(60)) == b""


def test_a_peer_that_answers_only_first_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "IDENTIFY_LIMIT", 1.0)
    done = threading.Event()

    def serve(connection: socket.socket, peer: doubles.Peer, number: int) -> None:
        if number:
            done.wait(60)
        kafka(broker(1, {1: peer.address}))(connection, peer, number)

    with listening(serve) as peer:
        _, who = ask_address(peer_at(peer.address), Deadline(60))
        done.set()
    assert who == AnsweringBrokers((1,), 0, FIRST_ONLY)


def refusing(connection: socket.socket, request: bytes) -> None:
    """To a user without the right to see a broker's configuration."""
    result = struct.pack(">h", 29) + text("not authorized") + b"\x04" + text("1")
    reply(struct.pack(">ii", 0, 1) + result + struct.pack(">i", 0))(connection, request)


@pytest.mark.parametrize("replies", [{32: refusing}, {}])
def test_a_broker_that_does_not_tell_is_asked_once(replies: dict[int, Reply]) -> None:
    def serve(connection: socket.socket, peer: doubles.Peer, number: int) -> None:
        kafka({3: reply(doubles.metadata({1: peer.address})), **replies})(connection, peer, number)

    with listening(serve) as peer:
        said, who = ask_address(peer_at(peer.address), Deadline(60))
        assert peer.connections == 1
        report = examine(contract(EXTERNAL=[str(peer.address)]), deadline=60, produce=False)
    assert isinstance(said, MetadataAnswer) and who == AnsweringBrokers(unknown_reason=NOT_TOLD)
    assert report.notes[-1] == f"which broker answers is not known at {peer.address}: {NOT_TOLD}"


def test_a_broker_that_lists_no_broker_is_not_asked_for_its_id() -> None:
    with listening(kafka({3: reply(doubles.metadata({}))})) as peer:
        said, who = ask_address(peer_at(peer.address), Deadline(60))
    assert isinstance(said, MetadataAnswer) and said.brokers == {} and who == NOT_ASKED
    assert peer.keys == [3]


def test_a_connection_that_is_closed_is_tried_once_more() -> None:
    def serve(connection: socket.socket, peer: doubles.Peer, number: int) -> None:
        if number:
            kafka(broker(1, {1: peer.address}))(connection, peer, number)

    with listening(serve) as peer:
        said, _ = ask_address(peer_at(peer.address), Deadline(60))
    assert isinstance(said, MetadataAnswer)
    with listening(kafka({})) as peer:
        said, who = ask_address(peer_at(peer.address), Deadline(60))
    assert isinstance(said, Failure) and (said.error, who) == ("disconnected", NOT_ASKED)
    assert peer.connections == 2


def test_every_address_of_a_name_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    @contextlib.contextmanager
    def connect(ip: str, *given: object) -> Iterator[str]:
        asked.append(ip)
        yield ip

    monkeypatch.setattr(asking, "connect", connect)
    monkeypatch.setattr(asking, "Exchange", lambda ip, end: ip)
    monkeypatch.setattr(asking, "metadata", lambda ip: ("C", {1: Address("k", 1)}))
    monkeypatch.setattr(asking, "answering_broker", lambda ip, broker: int(ip[-1]))
    two = ReachableAddress(Address("k", 1), ("192.0.2.1", "192.0.2.2"), None, None)
    _, who = ask_address(two, Deadline(60))
    assert who.ids == (1, 2, 1, 2, 1)
    seven = ReachableAddress(
        Address("k", 1), tuple(f"192.0.2.{n}" for n in range(1, 8)), None, None
    )
    _, who = ask_address(seven, Deadline(60))
    assert who.ids == (1, 2, 3, 4, 5, 6, 7)


def test_connections_that_reach_no_leader_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    leading: Iterator[bool | None] = itertools.cycle([True, False, None])
    monkeypatch.setattr(asking, "leads_partition", lambda *given: next(leading))
    with listening(kafka({})) as peer:
        assert wrong_brokers(peer_at(peer.address), "t", 0, Deadline(60)) == (2, 4)
        assert wrong_brokers(peer_at(peer.address), "t", 0, Deadline(0)) == (0, 0)


MANY = {id: Address("127.0.0.1", 1 + id) for id in range(10_000)}


def test_ten_thousand_brokers_start_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka would start a thread for each, in every client."""
    monkeypatch.delattr(metadata, "AdminClient")
    with listening(kafka(broker(1, MANY))) as peer:
        alone = examine([peer.address])
        assert peer.connections <= 4
        known = examine(contract(EXTERNAL=[str(peer.address)]))
    text = "it lists 10,000 brokers, and earshot asks at most 2,000: none of them was asked"
    for report in (alone, known):
        (cell,) = report.cells
        assert report.exit_code == 3
        assert cell.reason == f"{peer.address} was not checked: {text}"


def test_a_long_host_is_shown_short() -> None:
    with listening(kafka(broker(1, {1: Address("h" * 30_000, 9092)}))) as peer:
        report = examine([peer.address])
    (cell,) = report.cells
    assert cell.cause is not None and cell.cause.kind == "no-host-name"
    assert len(report.model_dump_json()) < 6000


def test_a_broker_that_does_not_say_its_cluster_is_not_the_contracts() -> None:
    advertised: dict[int, Address] = {}

    def silent(connection: socket.socket, request: bytes) -> None:
        reply(doubles.metadata(advertised, None))(connection, request)

    with listening(kafka({3: silent, 32: doubles.own_configuration(1)})) as peer:
        advertised[1] = peer.address
        expected = contract(HOST=[str(peer.address)]).model_copy(update={"cluster_id": "C"})
        report = examine(expected, deadline=5, produce=False)
    (cell,) = report.cells
    assert report.exit_code == 1
    assert cell.cause is not None and cell.cause.kind == "no-cluster-id"
