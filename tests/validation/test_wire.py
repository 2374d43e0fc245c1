"""Kafka's protocol with one peer: what is read, and what every kind of lie comes to."""

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.listeners.address import Address
from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from earshot.validation.wire import (
    MAX_BROKERS,
    MAX_BYTES,
    Answer,
    Exchange,
    ExchangeError,
    answering_broker,
    connect,
    leads_partition,
    metadata,
    request_keys,
    transport_error,
)
from tests.doubles import peer as doubles
from tests.doubles.closed_port import closed_port
from tests.doubles.peer import Reply, Serve, kafka, listening, raw, reply, text
from tests.raised import raised

B = Address("kafka-1.example.com", 9092)


class DeadlineAfterLooks(Deadline):
    """Passes once the seconds left have been read so often."""

    def __init__(self, looks: int) -> None:
        super().__init__(60)
        self._looks = looks

    def left(self, limit: float | None = None) -> float:
        self._looks -= 1
        return super().left(limit) if self._looks >= 0 else 0.0


@contextlib.contextmanager
def exchange_with(serve: Serve, end: Deadline | None = None) -> Iterator[Exchange]:
    with (
        listening(serve) as peer,
        connect("127.0.0.1", peer.address, None, Deadline(60)) as connection,
    ):
        yield Exchange(connection, end or Deadline(60))


def failure(serve: Serve, end: Deadline | None = None) -> Failure:
    """The failure of a request for metadata."""
    with exchange_with(serve, end) as exchange, pytest.raises(ExchangeError) as caught:
        metadata(exchange)
    return caught.value.failure


def answers(replied: Reply) -> Serve:
    return kafka({3: replied})


def test_the_brokers_of_an_answer() -> None:
    listed = {7: B, 2: Address("::1", -5)}
    with exchange_with(answers(reply(doubles.metadata(listed)))) as exchange:
        assert metadata(exchange) == ("C", listed)
        assert metadata(exchange) == ("C", listed)
    with exchange_with(answers(reply(doubles.metadata({}, None)))) as exchange:
        assert metadata(exchange) == ("", {})


def test_an_answer_of_a_thousand_brokers_is_taken() -> None:
    listed = {id: Address(f"kafka-{id}.example.com", 9092) for id in range(MAX_BROKERS)}
    with exchange_with(answers(reply(doubles.metadata(listed)))) as exchange:
        assert metadata(exchange)[1] == listed


def drip(connection: socket.socket, peer: doubles.Peer, number: int) -> None:
    """A byte now and then, of an answer that never ends."""
    connection.sendall(struct.pack(">i", MAX_BYTES))
    while True:
        time.sleep(0.02)
        connection.sendall(b"\0")


def mute(connection: socket.socket, peer: doubles.Peer, number: int) -> None:
    connection.recv(1000)
    connection.recv(1000)


MANY = [(id, Address("127.0.0.1", 1 + id)) for id in range(10_000)]
LONG = "h" * 30_000
UNREADABLE = "its answer cannot be read: "
ANNOUNCED = "it announces an answer of {} bytes; allowed: 4 to 4,194,304"
FOREIGN = "something other than Kafka listens there ({!r})"
CLOSED = ("disconnected", "it closed the connection without an answer")


def unreadable(content: bytes, why: str) -> tuple[Serve, str, str]:
    return answers(reply(content)), "not-kafka", UNREADABLE + why


def foreign(content: bytes, sentence: str) -> tuple[Serve, str, str]:
    return answers(raw(content)), "not-kafka", sentence


HTTP = b"HTTP/1.1 400 Bad Request"
HALF = struct.pack(">ii", 100, 1)
TWICE = doubles.metadata([(1, B), (1, Address("other", 1))])
HOSTILE: dict[str, tuple[Serve, str, str]] = {
    "ten thousand brokers":
    (answers(reply(doubles.metadata(MANY))), "too-many",
     "it lists 10,000 brokers, and earshot asks at most 2,000: none of them was asked"),
    "two billion brokers": unreadable(struct.pack(">i", 2**31 - 1),
                                      "2,147,483,647 entries in 0 bytes"),
    "fewer than no brokers": unreadable(struct.pack(">iq", -7, 0), "-7 entries in 8 bytes"),
    "a broker twice": unreadable(TWICE, "broker 1 twice"),
    "a negative broker": unreadable(doubles.metadata([(-1, B)]), "broker -1"),
    "a host of a negative length": unreadable(struct.pack(">iihiiii", 1, 1, -2, 0, 0, 0, 0),
                                              "a length of -2"),
    "a host that is longer than the answer": unreadable(struct.pack(">iihii", 1, 1, 30_000, 0, 0),
                                                        "it ends after 18 bytes, in a field"),
    "nothing": unreadable(b"", "it ends after 0 bytes, in a field"),
    "another answer": foreign(struct.pack(">ii", 8, 99) + b"\0\0\0\0",
                              "it answers a request that was not sent"),
    "a frame of two gigabytes": foreign(struct.pack(">i", 2**31 - 1),
                                        ANNOUNCED.format("2,147,483,647")),
    "a frame of a negative length": foreign(struct.pack(">i", -1), ANNOUNCED.format(-1)),
    "a frame too short for an answer": foreign(struct.pack(">ib", 1, 0), ANNOUNCED.format(1)),
    "a web server": (answers(raw(HTTP + b"\r\nServer: x\r\n\r\n")), "http",
                     "something that speaks HTTP listens there ('HTTP/1.1 400 Bad Request')"),
    "an SSH server": foreign(b"SSH-2.0-OpenSSH_9.2\r\n", FOREIGN.format("SSH-2.0-OpenSSH_9.2")),
    "endless text": foreign(b"A" * 100_000, FOREIGN.format("A" * 60)),
    "a TLS alert": (answers(raw(b"\x15\x03\x03\x00\x02\x02\x46")), "protocol", "it answers in TLS"),
    "no answer, closed": (kafka({}), *CLOSED),
    "half an answer, closed": (lambda connection, peer, number: connection.sendall(HALF), *CLOSED),
}  # fmt: skip


@pytest.mark.parametrize("lie", HOSTILE)
def test_every_hostile_answer_ends_in_one_sentence(lie: str) -> None:
    serve, error, sentence = HOSTILE[lie]
    assert failure(serve) == Failure(error, sentence)


@pytest.mark.parametrize(("serve", "looks", "part"), [(drip, 20, " but "), (mute, 3, "")])
def test_an_endless_answer_ends_at_the_deadline(serve: Serve, looks: int, part: str) -> None:
    found = failure(serve, DeadlineAfterLooks(looks))
    assert found.error == "timeout" and found.text.startswith(f"no answer within 60.0 s{part}")


def test_a_run_that_is_stopped_waits_no_more() -> None:
    end = Deadline(60)
    with listening(mute) as peer, connect("127.0.0.1", peer.address, None, end) as connection:
        threading.Timer(0.1, end.stop.set).start()
        error = raised(ExchangeError, metadata, Exchange(connection, end.within(30)))
    assert error.failure.error == "timeout"


def test_a_long_text_of_a_peer_is_shortened() -> None:
    answer = doubles.metadata({1: Address(LONG, 9092)}, LONG)
    with exchange_with(answers(reply(answer))) as exchange:
        cluster, brokers = metadata(exchange)
    for shown in (cluster, brokers[1].host):
        assert shown.endswith("... (30,000 characters)") and len(shown) == 60


def test_text_that_is_no_text_is_shown() -> None:
    content = struct.pack(">ii", 1, 1) + text(b"k\xff") + struct.pack(">i", 1) + text(None)
    content += text("C") + struct.pack(">ii", 1, 0)
    with exchange_with(answers(reply(content))) as exchange:
        assert metadata(exchange)[1] == {1: Address("k\\xff", 1)}


@given(st.binary(max_size=200))
def test_whatever_an_answer_holds_nothing_else_is_raised(content: bytes) -> None:
    answer = Answer(content)
    with contextlib.suppress(ExchangeError):
        for _ in range(answer.count(3)):
            answer.text()
        answer.data(4)


def described(error: int, message: str | None) -> Reply:
    result = struct.pack(">h", error) + text(message) + b"\x04" + text("1") + struct.pack(">i", 0)
    return reply(struct.pack(">ii", 0, 1) + result)


@pytest.mark.parametrize(
    ("replied", "id"),
    [
        (doubles.own_configuration(1), 1),
        (doubles.own_configuration(2), 2),
        (described(29, "Cluster authorization failed."), None),
        (described(42, None), None),
        (described(42, "Unexpected broker id, expected nobody"), None),
        (described(42, f"expected {'9' * 400} or"), None),
        (reply(struct.pack(">ii", 0, 0)), None),
    ],
)
def test_a_broker_tells_who_it_is_by_what_it_refuses(replied: Reply, id: int | None) -> None:
    with exchange_with(kafka({32: replied})) as exchange:
        assert answering_broker(exchange, 1) == id


def offsets(error: int) -> Reply:
    part = struct.pack(">iihqq", 1, 0, error, -1, 5)
    return reply(struct.pack(">i", 1) + text("t") + part)


@pytest.mark.parametrize(
    ("replied", "known"),
    [
        (offsets(0), True),
        (offsets(6), False),
        (offsets(3), False),
        (offsets(29), None),
        (reply(struct.pack(">i", 0)), None),
        (reply(struct.pack(">i", 1) + text("t") + struct.pack(">i", 0)), None),
    ],
)
def test_a_broker_tells_what_it_leads(replied: Reply, known: bool | None) -> None:
    with exchange_with(kafka({2: replied})) as exchange:
        assert leads_partition(exchange, "t", 0) is known


def test_the_requests_that_a_peer_takes() -> None:
    content = struct.pack(">hihhhhhh", 0, 2, 3, 0, 13, 62, 0, 4)
    with exchange_with(kafka({18: reply(content)})) as exchange:
        assert request_keys(exchange) == {3, 62}


def test_a_closed_port() -> None:
    with closed_port() as (ip, port), pytest.raises(ExchangeError) as caught:
        connect(ip, Address("localhost", port), None, Deadline(60))
    assert caught.value.failure == Failure("refused", "it refused the connection")


def test_an_alert_is_told_in_words() -> None:
    alert = ssl.SSLError(1, "[SSL: SSLV3_ALERT_BAD_CERTIFICATE] sslv3 alert bad certificate")
    alert.reason = "SSLV3_ALERT_BAD_CERTIFICATE"
    found = transport_error(alert).failure
    assert found == Failure("client-certificate", "sslv3 alert bad certificate")
    other = ssl.SSLError(1, "tlsv1 alert protocol version")
    assert transport_error(other).failure.error == "tls"
    reset = ConnectionResetError(104, "Connection reset by peer")
    assert transport_error(reset).failure.error == "disconnected"
    assert transport_error(TimeoutError()).failure.error == "timeout"
