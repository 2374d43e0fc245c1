"""Against a DNS server of ours on loopback."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from earshot.errors import AddressError
from earshot.names import nameservers
from earshot.names.lookup import Diagnosis, look_up
from earshot.names.nameservers import DnsResolver, configured_servers
from tests.doubles.dns_server import NO_RECORD, dns_server

TABLE: dict[str, tuple[str, ...] | str] = {
    "both.example.com": ("203.0.113.1", "2001:db8::1"),
    "four.example.com": ("203.0.113.1", "203.0.113.2"),
    "six.example.com": ("2001:db8::1",),
    "bare.example.com": NO_RECORD,
    "broken.example.com": "SERVFAIL",
    "secret.example.com": "REFUSED",
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with dns_server(TABLE) as address:
        yield address


@pytest.fixture
def silent() -> Iterator[str]:
    """A socket that takes questions and answers none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("both.example.com", {"203.0.113.1", "2001:db8::1"}),
        ("four.example.com", {"203.0.113.1", "203.0.113.2"}),
        ("six.example.com", {"2001:db8::1"}),
        ("BOTH.Example.COM", {"203.0.113.1", "2001:db8::1"}),
    ],
)
def test_addresses_of_both_families(server: str, name: str, addresses: set[str]) -> None:
    found = DnsResolver([server]).resolve(name, 5)
    assert found.ok and set(found.addresses) == addresses
    assert found.resolver == server


@pytest.mark.parametrize(
    ("name", "diagnosis", "detail"),
    [
        ("nobody.example.com", Diagnosis.NXDOMAIN, "the name does not exist"),
        ("bare.example.com", Diagnosis.NO_ANSWER, "no A record; no AAAA record"),
        ("broken.example.com", Diagnosis.SERVER_FAILURE, "127.0.0.1: answered SERVFAIL"),
        ("secret.example.com", Diagnosis.SERVER_FAILURE, "127.0.0.1: answered REFUSED"),
    ],
)
def test_failures(server: str, name: str, diagnosis: Diagnosis, detail: str) -> None:
    found = DnsResolver([server]).resolve(name, 5)
    assert (found.diagnosis, found.addresses, found.answered) == (diagnosis, (), True)
    assert detail in found.detail


def test_silence_is_a_timeout(silent: str) -> None:
    found = look_up([("both.example.com", DnsResolver([silent]))], 0.5)
    (item,) = found.values()
    assert (item.diagnosis, item.answered) == (Diagnosis.TIMEOUT, False)


def test_the_next_server_is_asked_where_one_fails_or_is_silent(server: str, silent: str) -> None:
    with dns_server({"both.example.com": "SERVFAIL"}) as failing:
        found = DnsResolver([failing, silent, server]).resolve("both.example.com", 4)
    assert found.ok and found.resolver.endswith(server)


def test_the_first_server_that_denies_a_name_is_believed(server: str) -> None:
    with dns_server({}) as empty:
        found = DnsResolver([empty, server]).resolve("both.example.com", 5)
    assert found.diagnosis is Diagnosis.NXDOMAIN


def test_hosts_file_and_search_domains_do_not_count(server: str) -> None:
    assert DnsResolver([server]).resolve("localhost", 5).diagnosis is Diagnosis.NXDOMAIN
    assert DnsResolver([server]).resolve("both", 5).diagnosis is Diagnosis.NXDOMAIN


def test_a_resolver_without_servers_is_refused() -> None:
    with pytest.raises(AddressError, match="DNS resolver"):
        DnsResolver([])


def test_a_resolver_can_have_a_name_of_its_own() -> None:
    assert DnsResolver(["192.0.2.53", "192.0.2.54"]).label == "192.0.2.53, 192.0.2.54"
    assert DnsResolver(["192.0.2.53"], "the VPC's resolver").label == "the VPC's resolver"


def test_behind_a_stub_stand_the_servers_that_it_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    behind = tmp_path / "resolv.conf"
    behind.write_text("nameserver 192.0.2.53\nnameserver 192.0.2.54\n")
    read = nameservers._read
    monkeypatch.setattr(
        nameservers, "_read", lambda path: ("127.0.0.53",) if path is None else read(path)
    )
    monkeypatch.setattr(nameservers, "_BEHIND_STUB", behind)
    assert configured_servers() == ("192.0.2.53", "192.0.2.54")
    monkeypatch.setattr(nameservers, "_BEHIND_STUB", tmp_path / "absent")
    assert configured_servers() == ("127.0.0.53",)
