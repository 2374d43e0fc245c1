"""Answers: who gave them, which listener they are of, and how they compare."""

import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import ConfigResource
from hypothesis import given
from hypothesis import strategies as st

from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation import metadata
from earshot.validation.client import Errors, Failure
from earshot.validation.metadata import (
    MetadataAnswer,
    ask,
    identify,
    majority_cluster,
    match_listener,
    steer,
    unexpected_brokers,
)
from tests.doubles.answers import address, answer, contract

TWO = contract(INTERNAL=["a:1", "b:1"], EXTERNAL=["localhost:9092", "localhost:9093"])


def test_of_many_brokers_the_first_ones_are_listed() -> None:
    assert answer("a:1", "b:1", "b:2").brokers_text == "1 at b:1, 2 at b:2"
    ten, more = (answer("a:1", *(f"b:{port}" for port in range(1, n + 1))) for n in (10, 100))
    assert ten.brokers_text.count(" at ") == 10
    assert more.brokers_text == "1 at b:1, 2 at b:2, 3 at b:3 and 97 more"


def test_sharing() -> None:
    assert answer("x:1", "h:1", "h:2", "h:1", "h:1").brokers_at_same_address(1) == (3, 4)
    assert answer("x:1", "h:1", "h:2").brokers_at_same_address(2) == ()
    assert answer("x:1", "h:1").brokers_at_same_address(9) == ()


@pytest.mark.parametrize(
    ("asked", "given", "name"),
    [
        ("localhost:9092", None, "EXTERNAL"),
        ("elsewhere:9093", None, "EXTERNAL"),  # the port alone, where one listener has it
        ("elsewhere:1", None, "INTERNAL"),
        ("elsewhere:7", None, None),
        # a mapped port: the answer decides
        ("localhost:9092", answer("localhost:9092", "a:1", "b:1"), "INTERNAL"),
        ("localhost:7", answer("localhost:7", "localhost:9092", "nope.invalid:9093"), "EXTERNAL"),
        ("localhost:7", answer("localhost:7", "x:1", "y:1"), None),
        ("localhost:9092", answer("localhost:9092", "x:1", "y:1"), "EXTERNAL"),
    ],
)
def test_match_listener(asked: str, given: MetadataAnswer | None, name: str | None) -> None:
    assert match_listener(TWO, address(asked), given) == name


def test_a_broker_without_the_listener_says_nothing_of_it() -> None:
    uneven = contract(INTERNAL=["a:1", "b:1"], EXTERNAL=["c:1", ""])
    assert match_listener(uneven, Address("x", 9), answer("x:9", "c:1", "d:1")) == "EXTERNAL"
    assert match_listener(uneven, Address("x", 9), answer("x:9", "a:1", "b:1")) == "INTERNAL"
    assert match_listener(uneven, Address("c", 1), None) == "EXTERNAL"


def test_a_port_of_two_listeners_decides_nothing() -> None:
    both = contract(INTERNAL=["a:1"], EXTERNAL=["b:1"])
    assert match_listener(both, Address("c", 1), None) is None


@given(st.permutations(["A", "A", "A", "B", "B"]))
def test_the_majority_names_the_cluster(ids: list[str]) -> None:
    assert majority_cluster(answer("x:1", "h:1", cluster=id) for id in ids) == "A"
    assert majority_cluster([]) == "", "no answers, no cluster"


def test_unexpected_brokers() -> None:
    answers = [answer("x:1", "h:1", "h:2"), answer("y:1", "h:1", "h:2", "h:3")]
    assert unexpected_brokers(answers, [1, 2]) == {3: Address("h", 3)}
    assert unexpected_brokers(answers, [1, 2, 3, 4]) == {}


@pytest.fixture(scope="module")
def mock_cluster() -> Iterator[list[Address]]:
    """librdkafka's mock brokers, which other clients may connect to."""
    producer = Producer({"test.mock.num.brokers": 3, "log_level": 0})
    brokers = producer.list_topics(timeout=60).brokers
    yield [Address(str(brokers[id].host), int(brokers[id].port or 0)) for id in sorted(brokers)]


def test_each_broker_answers_for_itself(mock_cluster: list[Address]) -> None:
    for broker in mock_cluster:
        said = ask(broker, Protocol.PLAINTEXT, {}, 60.0, threading.Event())
        assert isinstance(said, MetadataAnswer), said
        assert said.asked == broker
        assert list(said.brokers.values()) == mock_cluster
        assert said.cluster_id


def test_a_port_without_kafka_gives_no_metadata() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        said = ask(Address("127.0.0.1", port), Protocol.PLAINTEXT, {}, 0.6, threading.Event())
    assert isinstance(said, Failure)


def test_without_time_no_client_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a thread per broker: of a thousand, a thousand clients take minutes."""
    monkeypatch.delattr(metadata, "AdminClient")
    said = ask(Address("127.0.0.1", 1), Protocol.PLAINTEXT, {}, 0.0, threading.Event())
    assert said == Failure("timeout", "no metadata within 0.0 s")


def test_a_stopped_run_asks_no_more(mock_cluster: list[Address]) -> None:
    stop = threading.Event()
    stop.set()
    said = ask(mock_cluster[0], Protocol.PLAINTEXT, {}, 60.0, stop)
    assert isinstance(said, Failure) and said.error == "timeout"


@dataclass
class HastyClientDouble:
    """An admin client that has learned of a broker, and failed there, before its answer is back."""

    failed_at: str
    reported: Errors
    asked: int = 0

    def list_topics(self, _topic: str, timeout: float) -> SimpleNamespace:
        self.asked += 1
        if self.asked == 1:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "Failed to get metadata"))
        return SimpleNamespace(cluster_id="here", brokers={})

    def poll(self, _seconds: float) -> None:
        self.reported(KafkaError(KafkaError._SSL, f"ssl://{self.failed_at}: SSL handshake failed"))


@pytest.mark.parametrize(
    ("failed_at", "answered"), [("127.0.0.1:9093/1", True), ("localhost:9093/bootstrap", False)]
)
def test_an_error_at_another_broker_does_not_end_the_question(
    failed_at: str, answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def client(values: Mapping[str, Any]) -> HastyClientDouble:
        return HastyClientDouble(failed_at, values["error_cb"])

    monkeypatch.setattr(metadata, "AdminClient", client)
    said = ask(Address("localhost", 9093), Protocol.SSL, {}, 60.0, threading.Event())
    if answered:
        assert isinstance(said, MetadataAnswer) and said.cluster_id == "here"
    else:
        assert isinstance(said, Failure) and said.error == "tls"


def future(outcome: object) -> Future[object]:
    """Done with ``outcome``, an error or a result; None: not done."""
    done: Future[object] = Future()
    if isinstance(outcome, Exception):
        done.set_exception(outcome)
    elif outcome is not None:
        done.set_result(outcome)
    return done


def refused(text: str) -> KafkaException:
    return KafkaException(KafkaError(KafkaError.INVALID_REQUEST, text))


@pytest.mark.parametrize(
    ("outcome", "id"),
    [
        ("its configuration", 7),
        (refused("Unexpected broker id, expected 2 or empty string, but received 7"), 2),
        (refused("no right to ask"), None),
        (None, None),
    ],
)
def test_a_broker_tells_who_it_is_by_what_it_refuses(
    outcome: object, id: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def describe(resources: list[ConfigResource], request_timeout: float) -> dict[object, object]:
        asked.extend((it.restype, it.name) for it in resources)
        return {resources[0]: future(outcome)}

    client = SimpleNamespace(describe_configs=describe)
    monkeypatch.setattr(metadata, "AdminClient", lambda values: client)
    assert identify(Address("localhost", 9092), 7, Protocol.PLAINTEXT, {}, 0.01) == id
    assert asked == [(ConfigResource.Type.BROKER, "7")]


def test_requests_are_drawn_anew_until_they_go_to_a_broker_that_is_reachable() -> None:
    draws: Iterator[int] = iter([3, 1, 2, 2])

    def list_topics(topic: str, timeout: float) -> SimpleNamespace:
        if (drawn := next(draws, None)) is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return SimpleNamespace(controller_id=drawn)

    client = cast(Any, SimpleNamespace(list_topics=list_topics))
    steer(client, lambda id: id == 2, 5.0)
    assert list(draws) == [2]
    # no broker answers any more: the last draw counts
    steer(client, lambda id: False, 5.0)


def test_no_time_for_a_draw_is_no_error() -> None:
    steer(cast(Any, SimpleNamespace()), lambda id: False, 0.0)
