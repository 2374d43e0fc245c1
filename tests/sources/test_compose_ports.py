from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.sources.compose_ports import ALLOWED, read_port, refuse_impossible_port
from earshot.topology.container import NodePort, PublishedPort


@pytest.mark.parametrize(("entry", "expected"), [
    ("9092", [PublishedPort(9092, None)]),
    (9092, [PublishedPort(9092, None)]),
    ("39092:9092", [PublishedPort(9092, 39092)]),
    ("127.0.0.1:9092:9092", [PublishedPort(9092, 9092, "127.0.0.1")]),
    ("[::1]:9092:9092", [PublishedPort(9092, 9092, "::1")]),
    ("127.0.0.1::9092", [PublishedPort(9092, None, "127.0.0.1")]),
    ("9092:9092/udp", [PublishedPort(9092, 9092, "", "udp")]),
    ("9000-9001:8000-8001", [PublishedPort(8000, 9000), PublishedPort(8001, 9001)]),
    ("9000-9005:9092", [PublishedPort(9092, None)]),
    ("8000-8001", [PublishedPort(8000, None), PublishedPort(8001, None)]),
    ({"target": "9092", "published": "9093"}, [PublishedPort(9092, 9093)]),
    ({"target": 9092}, [PublishedPort(9092, None)]),
    ("65535", [PublishedPort(65535, None)]),
    (" 1:2 ", [PublishedPort(2, 1)]),
    (":9092", [PublishedPort(9092, None)]),
    ("1-1:2-2", [PublishedPort(2, 1)]),
    ({"target": "1-2", "published": "3-4"}, [PublishedPort(1, 3), PublishedPort(2, 4)]),
    ({"target": 1, "host_ip": "[::1]", "x-mine": 1, "name": "n", "app_protocol": "a"},
     [PublishedPort(1, None, "::1")]),
    ({"target": 1, "published": 2, "host_ip": "::1", "protocol": "udp", "mode": "host"},
     [NodePort(1, 2, "::1", "udp")]),
])  # fmt: skip
def test_forms(entry: object, expected: list[PublishedPort]) -> None:
    assert read_port(entry, "p") == expected


@pytest.mark.parametrize(
    "entry",
    [
        *("", "x", "0", "70000", "9092:", "1-2:1-3", "1-3:1-2", "9092:9093-", "65535-65536"),
        *("65536", "0-1", "999999", "3-2", "3-2:1", "1.2.3:1:2", "host:1:2", "1:2:3:4"),
        *("9092/TCP", 9092.0, None, ["9092"]),
        {"target": ""},
        {"target": None},
        {"target": "9092", "published": "x"},
        {"target": 9092, "host_ip": "host"},
        {"target": "1-2", "published": "1-3"},
        {"published": 1},
        {"target": 1, "port": 2},
    ],
)
def test_an_entry_that_compose_refuses_is_refused(entry: object) -> None:
    with pytest.raises(EarshotError) as caught:
        read_port(entry, "services.kafka.ports[0]")
    assert str(caught.value) == f"services.kafka.ports[0]: found {entry!r}\n  allowed: {ALLOWED}"


@pytest.mark.parametrize(
    ("entry", "is_refused"),
    [
        *(
            (entry, True)
            for entry in ("65536", 70000, "70000:1", "1:70000/udp", "1-70000", "9" * 99)
        ),
        *((entry, False) for entry in ("65535", "0:1", "x", "${PORT}:70000", "host:1:2", None)),
    ],
)
def test_only_a_port_above_the_highest_is_impossible(entry: object, is_refused: bool) -> None:
    with contextlib.nullcontext() if not is_refused else pytest.raises(EarshotError):
        refuse_impossible_port(entry, "p")


PORT = st.integers(1, 65535)
IP = st.sampled_from(["", "127.0.0.1", "0.0.0.0", "::1", "2001:db8::7"])


@given(PORT, PORT, IP, st.sampled_from(["tcp", "udp"]))
def test_short_and_long_form_say_the_same(outer: int, inner: int, ip: str, protocol: str) -> None:
    address = f"[{ip}]:" if ":" in ip else f"{ip}:" if ip else ""
    short = read_port(f"{address}{outer}:{inner}/{protocol}", "p")
    long = {"target": inner, "published": str(outer), "host_ip": ip, "protocol": protocol}
    assert short == read_port(long, "p") == [PublishedPort(inner, outer, ip, protocol)]


@given(st.text(alphabet="0123456789:-./[]tcpud", max_size=24))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        ports = read_port(text, "p")
    except EarshotError:
        return
    assert ports and all(1 <= port.container_port <= 65535 for port in ports)
