import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import AddressError
from earshot.listeners.address import (
    Address,
    check_host,
    check_listener_name,
    check_port,
    parse_address,
    read_address,
)
from tests.goldens import is_golden
from tests.listeners.clusters import hosts, ports
from tests.raised import raised

GOOD_HOSTS = [
    "localhost",
    "b1",
    "b1.example.org",
    "B1.Example.ORG",
    "1a.example",
    "xn--bcher-kva.example",
    "ip-172-31-18-160.us-west-2.compute.internal",
    "a" * 63 + ".example",
    ".".join(["a" * 62] * 4),
    "10.0.0.1",
    "255.255.255.255",
    "0x1.example.org",
]

BAD_HOSTS = [
    "",
    "host_1",
    "host.",
    "a..b",
    ".a",
    "-bad",
    "bad-",
    "a.-b",
    "a" * 64 + ".example",
    ".".join(["a" * 63] * 4),
    "256.256.256.256",
    "0",
    "000.0.0.0",
    "0.0.0.0.",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0X7F.0.0.0x1",
    "1.2.3.4.5",
    "a.1",
    "2001:db8::1:9092:",
    "[host]",
    "[host",
    "host]",
    "[::1",
    "::1]",
    "[]",
    "10.0.0.1%eth0",
    "[fe80::1%eth0]",
    "fe80::1%eth0",
    "b%201",
    "host:9094",
    "*",
    "a b",
    " a",
    "${IP}",
    "büro.example",
    "١٢٧.0.0.1",
    "user@host",
    '"host"',
    "host/",
    "host\n",
    "\x00",
]


@pytest.mark.parametrize("text", GOOD_HOSTS)
def test_accepts_a_host(text: str) -> None:
    assert check_host(text) == text


@pytest.mark.parametrize("text", BAD_HOSTS)
def test_a_refused_host_has_the_rule(text: str) -> None:
    assert "RFC 1123" in str(raised(AddressError, check_host, text))


@pytest.mark.parametrize(
    ("text", "kept"),
    [("[::1]", "::1"), ("::1", "::1"), ("[2001:DB8:0::1]", "2001:db8::1"), ("[::]", "::")],
)
def test_keeps_ipv6_bare_and_compressed(text: str, kept: str) -> None:
    assert check_host(text) == kept


OBSERVED = r"allowed: host:port or \[ipv6\]:port"


@pytest.mark.parametrize(("check", "text", "why"), [
    *((check_port, port, "1 to 65535") for port in (
        0, -1, 65536, 70000, "", "0", "09092", "+9092", "-1", " 1", "9092.0", "٩٠٩٢", True,
    )),
    *((check_listener_name, name, "beginning with a letter") for name in (
        "_A", "INT.ERNAL", "INT ERNAL", "INT/X", "INT:X", "ÄUSSEN",
    )),
    (parse_address, "", "no port"),
    (parse_address, ":9092", "is empty"),
    (parse_address, "2001:db8::1:9092", "several colons"),
    (parse_address, "[host]:9092", "IPv6"),
    (parse_address, "b1:9092/", "port '9092/'"),
    # an observed address has a host and a number of at most ten digits
    *((read_address, text, OBSERVED) for text in (
        "", "kafka", "kafka:", "kafka:http", "kafka:+1", "[::1]", "9092", "12345678901",
        "kafka:12345678901",
    )),
])  # fmt: skip
def test_a_refusal_has_its_reason(check: Callable[[Any], object], text: object, why: str) -> None:
    with pytest.raises(ValueError if check is read_address else AddressError, match=why):
        check(text)


@pytest.mark.parametrize("port", [1, 9092, 65535, "1", "65535"])
def test_accepts_a_port(port: int | str) -> None:
    assert check_port(port) == int(port)


@pytest.mark.parametrize(
    "name", ["A", "INTERNAL", "LISTENER_BOB", "PLAINTEXT_9092", "X1", "A" * 200]
)
def test_accepts_a_listener_name(name: str) -> None:
    assert check_listener_name(name) == name


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("b1:9092", Address("b1", 9092)),
        ("10.0.0.1:1", Address("10.0.0.1", 1)),
        ("[::1]:65535", Address("::1", 65535)),
    ],
)
def test_parses_an_address(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@given(hosts, ports)
def test_an_address_reads_back_as_it_was_printed(host: str, port: int) -> None:
    address = Address(check_host(host), port)
    assert parse_address(str(address)) == address


@given(st.text(max_size=80))
def test_any_text_is_a_host_or_a_named_error(text: str) -> None:
    try:
        host = check_host(text)
    except AddressError as error:
        assert repr(text) in str(error)
    else:
        assert check_host(host) == host


@given(st.ip_addresses())
def test_every_ip_address_is_a_host(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert ipaddress.ip_address(check_host(str(address))) == address


@given(st.text(), st.integers(-(2**31), 2**31 - 1))
def test_what_was_observed_reads_back_whatever_it_is(host: str, port: int) -> None:
    assert read_address(str(Address(host, port))) == Address(host, port)


def without_reason(text: str) -> str:
    """A message without Python's own words, which its versions choose differently."""
    return re.sub(r"(is none|no IPv6 address) \(.*\)", r"\1", text)


def test_every_refusal_of_a_host_or_name_is_as_on_disk() -> None:
    lines = []
    for check, texts in (
        (check_host, [*BAD_HOSTS, "a{b", "a_b."]),
        (check_listener_name, ["", "Listener_Bob", " internal ", "1INT", "INT-ERNAL", "a b"]),
        (parse_address, ["b1", "b1:", "host:9094:30000", "[::1:9092", "a:b:1"]),
    ):
        for text in texts:
            error = raised(AddressError, check, text)
            remedy = f" - {error.remedy}" if error.remedy else ""
            lines.append(f"{error.object} {without_reason(error.observed)}{remedy}")
    is_golden("\n".join(lines) + "\n", Path(__file__).parent / "refusals.txt")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("kafka:-1", Address("kafka", -1)),
        ("kafka:1234567890", Address("kafka", 1234567890)),
        ("[::1]:1", Address("::1", 1)),
        ("[kafka]:1", Address("[kafka]", 1)),
        ("::1:1", Address("::1", 1)),
        (":1", Address("", 1)),
    ],
)
def test_what_was_observed_is_taken_apart_as_it_stands(text: str, address: Address) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize("check", [check_host, check_port, check_listener_name, parse_address])
def test_a_refusal_of_a_megabyte_is_short(check: Callable[[str], object]) -> None:
    assert len(str(raised(AddressError, check, "a_" * 500_000))) < 1_000
