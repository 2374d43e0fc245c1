from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import AddressError
from earshot.listeners.address import Address, check_host
from earshot.listeners.grammar import (
    Bad,
    parse_entries,
    read_listeners,
    read_name,
    read_names,
    read_protocols,
    read_servers,
    read_voters,
)
from earshot.listeners.terms import Protocol
from tests.goldens import is_golden
from tests.listeners.clusters import hosts, names, ports, protocols
from tests.listeners.test_address import without_reason
from tests.raised import raised

T = TypeVar("T")

# what Kafka's own syntax lets through, so that Kafka will not save anybody
KAFKA_TAKES = [
    "A://host_1:9092", "A://host.:9092", "A://a..b:9092", "A://-bad-:9092",
    "A://256.256.256.256:9092", "A://0:9092", "A://127.1:9092", "A://2130706433:9092",
    "A://0x7f000001:9092", "A://2001:db8::1:9092", "A://::1:9092", "A://[host]:9092",
    "A://[host:9092", "A://10.0.0.1%eth0:9092", "A://[fe80::1%eth0]:9092", "A://b%201:9092",
    "A://host:9094:30000", "A://b1:-1", "A://b1:0", "A://b1:99999", "A://b1:09092",
    "internal://b1:9092", "INT-ERNAL://b1:9092", "INT.ERNAL://b1:9092", "1INT://b1:9092",
    "INT:ERNAL://b1:9092", "EXT ERNAL://b1:9092", "A://b1:9092,", "A://b1:9092,,B://b1:9093",
    "A://b1:9092,A://b1:9092",
]  # fmt: skip
KAFKA_REFUSES = [
    "", " ", "A://*:9092", "A://b 1:9092", "A://${IP}:9092", "A://10.0.0.1 10.0.0.2:9092",
    "A://bücher:9092", "A://user@b1:9092", '"A://b1:9092"', "A://b1:9092/", "A://b1", "b1:9092",
    "A://b1:+9092", "A://b1:99999999999", "A://b1:9092;B://b1:9093", "A://b1:9092 B://b1:9093",
    "PLAINTEXT://:tcp://10.1.1.1:9092", "://b1:9092", "  ://b1:9092", "A://b1:9092,A://b1:9093",
]  # fmt: skip


def parse_protocols(text: str) -> dict[str, Protocol]:
    return dict(map(_entry, read_protocols(text)))


def parse_voters(text: str) -> dict[int, Address]:
    return dict(map(_entry, read_voters(text)))


def _entry(entry: T | Bad) -> T:
    if isinstance(entry, Bad):
        raise entry.error
    return entry


@pytest.mark.parametrize("text", [*KAFKA_TAKES, *KAFKA_REFUSES])
def test_refuses_a_listener_list(text: str) -> None:
    assert raised(AddressError, parse_entries, text).observed


@pytest.mark.parametrize(
    ("parse", "text", "entries"),
    [
        (parse_entries, "A://b1:9092", [("A", Address("b1", 9092))]),
        (parse_entries, "A://:9092", [("A", Address("", 9092))]),
        (parse_entries, "A://[2001:db8::1]:9092", [("A", Address("2001:db8::1", 9092))]),
        (parse_entries, "A://h:1 ,\tB://0.0.0.0:2",
         [("A", Address("h", 1)), ("B", Address("0.0.0.0", 2))]),
        (parse_entries, "A://h:1,B://h:1", [("A", Address("h", 1)), ("B", Address("h", 1))]),
        (parse_protocols, "A:PLAINTEXT", {"A": Protocol.PLAINTEXT}),
        (parse_protocols, " A : SSL ,B:SASL_SSL", {"A": Protocol.SSL, "B": Protocol.SASL_SSL}),
        (parse_protocols, "SSL:SSL", {"SSL": Protocol.SSL}),
        (parse_voters, "9@c9:9093", {9: Address("c9", 9093)}),
        (parse_voters, "0@127.0.0.1:1 , 1@[::1]:2",
         {0: Address("127.0.0.1", 1), 1: Address("::1", 2)}),
    ],
)  # fmt: skip
def test_parses_a_list(parse: Callable[[str], object], text: str, entries: object) -> None:
    assert parse(text) == entries


def test_reads_the_good_entries_beside_the_bad_ones() -> None:
    found = list(read_listeners("A://b1:9092,internal://b_1:9093,C://c:70000,A://d:1"))
    assert found[0] == ("A", Address("b1", 9092))
    bad = [item for item in found if isinstance(item, Bad)]
    assert [item.name for item in bad] == ["internal", "C", "A"]
    assert "occurs twice" in bad[2].error.line


@given(st.lists(st.tuples(names, hosts, ports), min_size=1, max_size=4, unique_by=lambda e: e[0]))
def test_a_printed_list_reads_back(entries: list[tuple[str, str, int]]) -> None:
    wanted = [(name, Address(check_host(host), port)) for name, host, port in entries]
    assert parse_entries(",".join(f"{name}://{address}" for name, address in wanted)) == wanted


VOTERS = """
1 1@ 1: blah@ 1@kafka1:9092, 1@kafka1:9092,2 1@kafka1:9092,2@ 1@kafka1:9092:1@kafka2:9092 1@kafka1
1@kafka1:9092,2@blah 9@c9:-1 x@c9:9093 9@c9:99999 9@c9:0 9@:9093 9@kafka_1:9093 9@[c9:9093
9@::1:9093 9@CONTROLLER://c9:9093 9@a:1,9@b:1 -1@c9:9093 01@c9:9093 2147483648@c9:9093 ٩@c9:9093
"""


@pytest.mark.parametrize(
    ("parse", "text", "why"),
    [
        (parse_protocols, "A:plaintext", "'plaintext'"),
        (parse_protocols, "A=PLAINTEXT", "has no colon"),
        (parse_protocols, "A:PLAINTEXT,", "blank entry"),
        (parse_protocols, "a:PLAINTEXT", "write A"),
        *((parse_voters, text, ".") for text in ("", "9@c 9:9093", *VOTERS.split())),
    ],
)
def test_refuses_a_list(parse: Callable[[str], object], text: str, why: str) -> None:
    with pytest.raises(AddressError, match=why):
        parse(text)


@given(st.dictionaries(names, protocols, min_size=1, max_size=5))
def test_a_printed_map_reads_back(map: dict[str, Protocol]) -> None:
    honest = {
        name: Protocol(name) if name in list(Protocol) else protocol
        for name, protocol in map.items()
    }
    assert parse_protocols(",".join(f"{k}:{v}" for k, v in honest.items())) == honest


def test_reads_names_without_blanks() -> None:
    assert list(read_names("A,B_2")) == [("A", None), ("B_2", None)]
    for text in ("A, B", "a", "A,,B", "", "A,A"):
        assert any(isinstance(item, Bad) for item in read_names(text)), text


def test_reads_servers() -> None:
    assert list(read_servers("c9:9093, [::1]:1")) == [
        (Address("c9", 9093), None),
        (Address("::1", 1), None),
    ]
    for text in ("c9", "c9:0", "c9:9093,", "C://c9:9093", "c9:1,c9:1", "c_9:1"):
        assert any(isinstance(item, Bad) for item in read_servers(text)), text


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_by_name(text: str) -> None:
    for parse in (parse_entries, parse_protocols, parse_voters):
        try:
            assert parse(text)
        except AddressError as error:
            assert error.observed and error.line


LISTS = {
    "protocols": (read_protocols, ["", "A", "A:", ":SSL", "A:TLS", "SSL:PLAINTEXT", "A:SSL,A:SSL"]),
    "voters": (read_voters, ["", "1", "1@", "x@c:1", "01@c:1", "2147483648@c:1", "-1@c:1",
                             "1@c:1,1@c:2", "1@c_1:1", "2147483647@c:1"]),
    "names": (read_names, ["", "A,", "A, B", "a", "A,A", " "]),
    "name": (read_name, ["", "A,B", "a", " A"]),
    "servers": (read_servers, ["", "c", "c:1,c:1", "c:1, d:2", ","]),
}  # fmt: skip


def test_every_refusal_of_a_list_is_as_on_disk() -> None:
    lines = []
    cases: list[tuple[str, Any, list[str]]] = [
        ("listeners", read_listeners, [*KAFKA_TAKES, *KAFKA_REFUSES]),
        *((name, read, texts) for name, (read, texts) in LISTS.items()),
    ]
    for name, read, texts in cases:
        for text in texts:
            lines.append(f"{name} {text!r}")
            for item in read(text):
                if isinstance(item, Bad):
                    lines.append(f"  bad {item.name or '-'}: {without_reason(item.error.line)}")
                else:
                    lines.append(f"  {item[0]} {item[1] or '-'}")
    is_golden("\n".join(lines) + "\n", Path(__file__).parent / "lists.txt")


def test_a_port_on_every_interface_may_be_left_to_the_list_and_not_to_the_name() -> None:
    assert parse_entries("A://:1") == [("A", Address("", 1))]
    for text in ("A://:0", "A://1", "A://", "A:/:1"):
        with pytest.raises(AddressError):
            parse_entries(text)
