import socket
from types import SimpleNamespace

import psutil
import pytest

from earshot.names.lookup import Diagnosis
from earshot.names.machine import Machine, own_addresses, this_machine
from tests.doubles.resolvers import TableResolver

OWN = ("127.0.0.1", "192.0.2.10", "::1", "2001:db8::10", "fe80::10")


def machine(answer: tuple[str, ...] | Diagnosis, name: str = "kafka-host") -> Machine:
    return this_machine(lambda: name, TableResolver("table", {name: answer}), lambda: OWN)


@pytest.mark.parametrize(
    ("answer", "bind"),
    [
        (("192.0.2.10",), "192.0.2.10"),
        (("127.0.1.1",), "127.0.1.1"),
        (("192.0.2.10", "127.0.0.1"), "127.0.0.1"),
        (("::1", "127.0.0.1"), "127.0.0.1"),
        (("fe80::10", "2001:db8::10", "192.0.2.10"), "192.0.2.10"),
        (("fe80::10", "2001:db8::10"), "2001:db8::10"),
        (("203.0.113.1", "192.0.2.10"), "192.0.2.10"),
    ],
)
def test_a_name_that_leads_here(answer: tuple[str, ...], bind: str) -> None:
    this = machine(answer)
    assert (this.name, this.name_address, this.why_unnamed) == ("kafka-host", bind, "")
    assert this.addresses == OWN


@pytest.mark.parametrize(("answer", "why"), [
    (("203.0.113.1",), "resolves to 203.0.113.1, which is not one of its addresses"),
    (("fe80::10",), "resolves to fe80::10, which is not one of its addresses that can be bound"),
    (Diagnosis.NXDOMAIN, "kafka-host does not resolve here: nxdomain"),
])  # fmt: skip
def test_a_name_that_does_not(answer: tuple[str, ...] | Diagnosis, why: str) -> None:
    this = machine(answer)
    assert (this.name, this.name_address) == (None, "")
    assert why in this.why_unnamed


def test_a_name_that_no_client_can_use_is_not_used() -> None:
    this = machine(("127.0.0.1",), name="kafka_host")
    assert this.name is None
    assert this.why_unnamed.startswith("host 'kafka_host'")


def test_own_addresses_of_all_interfaces_without_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(family: int, address: str) -> SimpleNamespace:
        return SimpleNamespace(family=family, address=address)

    rows = {
        "eth0": [row(socket.AF_INET6, "fe80::10%eth0"), row(socket.AF_INET, "192.0.2.10"),
                 row(socket.AF_INET6, "1::10"), row(psutil.AF_LINK, "00:00:5e:00:53:01")],
        "lo": [row(socket.AF_INET, "127.0.0.1")],
    }  # fmt: skip
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: rows)
    assert own_addresses() == ("127.0.0.1", "192.0.2.10", "1::10", "::1", "fe80::10")


def test_this_very_machine() -> None:
    found = this_machine()
    assert {"127.0.0.1", "::1"} <= set(found.addresses)
    if found.name is None:
        assert found.why_unnamed
    else:
        with socket.socket(
            socket.AF_INET6 if ":" in found.name_address else socket.AF_INET
        ) as taken:
            taken.bind((found.name_address, 0))
