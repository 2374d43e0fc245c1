"""What the authority issues, as OpenSSL sees it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from earshot.certificates.authority import (
    Issued,
    Subject,
    issue,
    new_authority,
    read_certificate,
)
from tests.certificates.handshakes import accepted, client_context, server_context

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
NODE = Subject("node-1", "nodes")


@pytest.fixture(scope="module")
def authority() -> Issued:
    return new_authority("test", NOW)


def test_a_certificate_has_exactly_the_hosts_and_the_days(authority: Issued) -> None:
    hosts = ["B1.example.com", "10.0.0.1", "b1.example.com", "::1"]
    read = read_certificate(issue(authority, NODE, hosts, 90, NOW).certificate)
    assert read.names.dns == ("b1.example.com",)
    assert read.names.addresses == ("10.0.0.1", "::1")
    assert read.not_after == NOW + timedelta(days=90)
    assert read.not_before < NOW
    assert len(read.fingerprint) == 64


def test_a_clients_certificate_is_no_servers(authority: Issued) -> None:
    now = datetime.now(UTC)
    authority = new_authority("test", now)
    client = issue(authority, Subject("app", "clients"), [], 1, now)
    assert str(read_certificate(client.certificate).names) == "no name"
    assert not accepted(client_context(authority), server_context(client), "app")


def test_a_client_trusts_its_own_authority_alone() -> None:
    now = datetime.now(UTC)
    ours, other = new_authority("test", now), new_authority("test", now)
    node = server_context(issue(ours, NODE, ["localhost"], 1, now))
    assert accepted(client_context(ours), node, "localhost")
    assert not accepted(client_context(other), node, "localhost")


def test_the_principal_is_written_as_java_writes_it() -> None:
    assert NODE.principal == "CN=node-1,OU=nodes"


def test_no_key_shows_where_an_issued_one_is_printed(authority: Issued) -> None:
    assert "PRIVATE" in authority.key and "PRIVATE" not in repr(authority)


def test_what_is_no_certificate_is_refused() -> None:
    with pytest.raises(ValueError, match="PEM"):
        read_certificate("none")
