import errno
import socket
from typing import Any

import pytest

from earshot.errors import AddressError
from earshot.listeners.address import Address
from earshot.names.lookup import Diagnosis
from earshot.names.resolvers import SYSTEM_LABEL, SystemResolver, parse_server
from tests.raised import raised


def answer_with(monkeypatch: pytest.MonkeyPatch, result: Any) -> None:
    def getaddrinfo(*args: Any, **options: Any) -> Any:
        if isinstance(result, Exception):
            raise result
        return [(socket.AF_UNSPEC, socket.SOCK_STREAM, 6, "", (text, 0)) for text in result]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def test_localhost_resolves_on_every_machine() -> None:
    lookup = SystemResolver().resolve("localhost", 5)
    assert lookup.ok and {"127.0.0.1", "::1"} & set(lookup.addresses)
    assert lookup.resolver == SYSTEM_LABEL


def test_addresses_keep_their_order_and_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can connect to an address of a link without its zone."""
    answer_with(monkeypatch, ["::1", "fe80::1%eth0", "127.0.0.1", "::1"])
    assert SystemResolver().resolve("kafka", 5).addresses == ("::1", "fe80::1%eth0", "127.0.0.1")


@pytest.mark.parametrize(
    ("code", "diagnosis"),
    [
        ("EAI_NONAME", Diagnosis.NXDOMAIN),
        ("EAI_NODATA", Diagnosis.NO_ANSWER),
        ("EAI_AGAIN", Diagnosis.SERVER_FAILURE),
        ("EAI_FAIL", Diagnosis.SERVER_FAILURE),
        ("EAI_MEMORY", Diagnosis.SERVER_FAILURE),
    ],
)
def test_getaddrinfo_errors(
    monkeypatch: pytest.MonkeyPatch, code: str, diagnosis: Diagnosis
) -> None:
    answer_with(monkeypatch, socket.gaierror(getattr(socket, code), "its own words"))
    lookup = SystemResolver().resolve("kafka", 5)
    assert (lookup.diagnosis, lookup.detail, lookup.addresses) == (diagnosis, "its own words", ())


def test_an_error_of_the_system_is_not_nxdomain(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, OSError(errno.EMFILE, "Too many open files"))
    lookup = SystemResolver().resolve("kafka", 5)
    assert (lookup.diagnosis, lookup.detail) == (Diagnosis.SERVER_FAILURE, "Too many open files")


def test_a_label_that_cannot_be_encoded_exists_nowhere() -> None:
    assert SystemResolver().resolve(f"{'a' * 64}.example", 5).diagnosis is Diagnosis.NXDOMAIN


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.53", Address("192.0.2.53", 53)),
        ("192.0.2.53:5353", Address("192.0.2.53", 5353)),
        ("[2001:db8::53]:5353", Address("2001:db8::53", 5353)),
        ("[2001:db8::53]", Address("2001:db8::53", 53)),
        ("2001:db8:0::53", Address("2001:db8::53", 53)),
    ],
)
def test_a_server(text: str, address: Address) -> None:
    assert parse_server(text) == address


@pytest.mark.parametrize(
    "text", ["", "dns.example.com", "dns:53", "192.0.2.53:0", "192.0.2.53:x", "[::1]53:", "[::1"]
)
def test_what_is_no_server(text: str) -> None:
    with pytest.raises(AddressError):
        parse_server(text)


def test_the_message_about_a_server_shows_what_was_found_and_what_is_allowed() -> None:
    assert str(raised(AddressError, parse_server, "dns.example.com")) == (
        "DNS server 'dns.example.com': is not an IP address\n"
        "  allowed: ip, ip:port or [ipv6]:port, as in 192.0.2.53 or [2001:db8::53]:5353"
    )
