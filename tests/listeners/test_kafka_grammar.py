"""How Kafka reads its lists, compared with the oracle."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.listeners import grammar
from earshot.listeners.address import Address
from earshot.listeners.grammar import Bad
from earshot.listeners.kafka_grammar import KafkaGrammar
from earshot.listeners.terms import Protocol
from tests.listeners.clusters import hosts, names, ports, protocols
from tests.listeners.test_grammar import KAFKA_REFUSES, KAFKA_TAKES

OLD, KAFKA_4, NEW = KafkaGrammar((3, 3)), KafkaGrammar((4, 0)), KafkaGrammar((4, 2))
read_listeners, read_protocols = KAFKA_4.read_listeners, KAFKA_4.read_protocols
read_voters, read_servers = KAFKA_4.read_voters, KAFKA_4.read_servers

TAKEN_OTHERWISE = {
    "A://b1:9092;B://b1:9093": ("A://B1:9092;B", Address("b1", 9093)),
    "A://b1:9092 B://b1:9093": ("A://B1:9092 B", Address("b1", 9093)),
    "PLAINTEXT://:tcp://10.1.1.1:9092": ("PLAINTEXT://:TCP", Address("10.1.1.1", 9092)),
}
"""Kafka reads these, and refuses the names that it has read: no protocol belongs to them."""


def bad(read: Callable[[str], Iterator[Any]], text: str) -> list[str]:
    """What is said of each entry that is refused, its listener first."""
    return [f"{item.name}: {item.error.line}" for item in read(text) if isinstance(item, Bad)]


@pytest.mark.parametrize("text", KAFKA_TAKES)
def test_a_listener_list_that_kafka_takes(text: str) -> None:
    read = NEW.read_listeners if text == "A://b1:9092,A://b1:9092" else read_listeners
    assert list(read(text)) and bad(read, text) == []


@pytest.mark.parametrize("text", KAFKA_REFUSES)
def test_a_listener_list_that_kafka_refuses(text: str) -> None:
    if text in TAKEN_OTHERWISE:
        assert list(read_listeners(text)) == [TAKEN_OTHERWISE[text]]
    elif not text.strip():
        assert list(read_listeners(text)) == []
    else:
        assert len(bad(read_listeners, text)) == 1


@pytest.mark.parametrize(
    ("read", "text", "entries"),
    [
        (read_listeners, "internal://b_1:9092", [("INTERNAL", Address("b_1", 9092))]),
        (read_listeners, "A://[::1]:1,B://::1:2",
         [("A", Address("::1", 1)), ("B", Address("::1", 2))]),
        (read_listeners, " A://:0 ,, B://h:2 ,", [("A", Address("", 0)), ("B", Address("h", 2))]),
        (read_listeners, "A://h:-1", [("A", Address("h", -1))]),
        (read_protocols, "a:plaintext, B : SASL_SSL ,A:SSL,",
         [("A", Protocol.PLAINTEXT), ("B", Protocol.SASL_SSL), ("A", Protocol.SSL)]),
        (read_voters, "9@c9:9093", [(9, Address("c9", 9093))]),
        (read_voters, "-1@c_9:1, 01@[::1]:2", [(-1, Address("c_9", 1)), (1, Address("::1", 2))]),
        (read_voters, "+1@c9:1@@", [(1, Address("c9", 1))]),
        (read_voters, "9@CONTROLLER://c9:9093", [(9, Address("c9", 9093))]),
        (read_voters, "9@:9093", [(9, Address("", 9093))]),
    ],
)  # fmt: skip
def test_a_list_that_kafka_reads(
    read: Callable[[str], Iterator[Any]], text: str, entries: list[Any]
) -> None:
    assert list(read(text)) == entries


AS_LISTENERS = "allowed: NAME://host:port entries with one comma between them"
AS_PROTOCOLS = (
    "allowed: NAME:PROTOCOL entries, PROTOCOL being one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
)
AS_VOTERS = "allowed: id@host:port entries with one comma between them"


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        *((read_listeners, text, f"{name}: listener entry '{text}': {problem}; {AS_LISTENERS}")
          for name, text, problem in (
            ("A", "A://b1", "has no port number at its end"),
            ("A", "A://b1: 9092", "has no port number at its end"),
            ("b1", "b1:9092", "has no ://"),
            ("", "://b1:9092", "has no name before ://"),
            ("A", "A://$H你:1", "has '$你' in its host"),
            ("A", "A://h:2147483648", "cannot be read"),
        )),
        (read_listeners, "A://u:p$@h:1",
         f"A: listener entry 'A://***@h:1': has '@' in its host; {AS_LISTENERS}"),
        (read_listeners, "a://h:1,A://h:2",
         "A: A: occurs twice in one list; allowed: each name once"),
        *((read_protocols, text, f"{name}: protocol map entry '{text}': {problem}; {AS_PROTOCOLS}")
          for name, text, problem in (
            ("A", "A", "has no colon"),
            ("A", "A:", "names the protocol ''"),
            ("A", "A:TLS", "names the protocol 'TLS'"),
            ("A=SSL", "A=SSL", "has no colon"),
        )),
        *((read_voters, text, f"{name}: voter entry '{text}': {problem}; {AS_VOTERS}")
          for name, text, problem in (
            ("c9", "c9:9093", "has no @"),
            ("x@c9", "x@c9:9093", "cannot be read"),
            ("9@c9", "9@c9", "cannot be read"),
            ("9@c9", "9@c9:", "cannot be read"),
            ("9@c9", "9@c9:65536", "cannot be read"),
            ("٩@c9", "٩@c9:1", "cannot be read"),
        )),
    ],
)  # fmt: skip
def test_the_message_of_an_entry_that_is_refused(
    read: Callable[[str], Iterator[Any]], text: str, message: str
) -> None:
    assert bad(read, text) == [message]


def test_good_entries_are_read_beside_bad_ones() -> None:
    found = list(read_listeners("A://h:1,B,C://h:3"))
    assert [item for item in found if not isinstance(item, Bad)] == [
        ("A", Address("h", 1)),
        ("C", Address("h", 3)),
    ]
    assert len(found) == 3


def test_servers() -> None:
    found = list(read_servers("c9:9093, C://[::1]:1,c_9:2,:1"))
    assert found == [(Address(host, port), None) for host, port in
                     (("c9", 9093), ("::1", 1), ("c_9", 2), ("", 1))]  # fmt: skip
    assert bad(read_servers, "c9,c9:65536,") == [
        "c9: server entry 'c9': cannot be read; allowed: host:port entries",
        "c9: server entry 'c9:65536': cannot be read; allowed: host:port entries",
        ": an entry: is blank; allowed: host:port entries",
    ]
    assert list(OLD.read_servers("c9")) == []  # it does not know the setting


def test_names_are_compared_as_they_are_written_and_one_name_is_not() -> None:
    assert list(KAFKA_4.read_names("A, b,,")) == [("A", None), (" b", None)]
    assert list(KafkaGrammar((4, 1)).read_names("A, b,,")) == [("A", None), ("b", None)]
    assert len(bad(NEW.read_names, "A, b,,")) == 1
    assert list(KAFKA_4.read_name(" a ")) == [("A", None)]


@pytest.mark.parametrize("text", ["A://h:1,A://h:1", "A://h:1,,B://h:2", "A://h:1,"])
def test_since_4_2_one_entry_twice_counts_once_and_a_blank_one_is_refused(text: str) -> None:
    twice = text.count("A") == 2
    assert bool(bad(read_listeners, text)) is twice
    assert bool(bad(NEW.read_listeners, text)) is not twice
    assert bad(NEW.read_listeners, "A://h:1,a://h:1")  # not the same entry


@pytest.mark.parametrize(("grammar", "host"), [(OLD, "9"), (KAFKA_4, None)])
def test_what_older_releases_take_before_a_voters_host(
    grammar: KafkaGrammar, host: str | None
) -> None:
    found = list(grammar.read_voters("9@c 9:9093"))
    assert (found == [(9, Address("9", 9093))]) if host else isinstance(found[0], Bad)


@pytest.mark.parametrize("read", [read_listeners, read_voters, read_servers])
@pytest.mark.parametrize("text", ["A://h:{}", "{}@h:1", "1@h:{}", "h:{}"])
def test_a_number_of_thousands_of_digits_is_refused(
    read: Callable[[str], Iterator[Any]], text: str
) -> None:
    assert len(bad(read, text.format("9" * 5000))) == 1


@given(st.lists(st.tuples(names, hosts, ports), min_size=1, max_size=4, unique_by=lambda e: e[0]))
def test_what_the_strict_grammar_takes_means_the_same_here(
    entries: list[tuple[str, str, int]],
) -> None:
    text = ",".join(f"{name}://{Address(host, port)}" for name, host, port in entries)
    strict = list(grammar.read_listeners(text))
    if not any(isinstance(item, Bad) for item in strict):
        assert list(read_listeners(text)) == strict


@given(st.dictionaries(names, protocols, min_size=1, max_size=5))
def test_a_map_that_the_strict_grammar_takes_means_the_same_here(map: dict[str, Protocol]) -> None:
    text = ",".join(f"{name}:{protocol}" for name, protocol in map.items())
    assert dict(item for item in read_protocols(text) if not isinstance(item, Bad)) == map


@given(st.text(max_size=60) | st.text(alphabet="aA:/@[]0129.-,% ", max_size=40))
def test_any_text_is_read_or_refused_entry_by_entry(text: str) -> None:
    of_old = (OLD.read_listeners, OLD.read_protocols, OLD.read_voters, OLD.read_names)
    of_new = (NEW.read_listeners, NEW.read_protocols, NEW.read_names, NEW.read_name)
    for read in (*of_old, *of_new, read_voters, read_servers):
        items: list[Any] = list(read(text))
        for item in items:
            if isinstance(item, Bad):
                assert item.error.observed and item.error.line
