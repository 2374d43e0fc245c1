"""Which servers this machine asks, from texts as its files and tools hold them."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from earshot.names import configured
from earshot.names.configured import (
    Configuration,
    configuration,
    nameservers,
    read_resolv_conf,
    read_scutil,
)

SCUTIL = """\
DNS configuration

resolver #1
  search domain[0] : office.example
  search domain[1] : Example.COM.
  nameserver[0] : 192.0.2.53
  nameserver[1] : 2001:db8::53
  if_index : 6 (en0)
  flags    : Request A records, Request AAAA records
  reach    : 0x00020002 (Reachable,Directly Reachable Address)

resolver #2
  domain   : local
  options  : mdns
  timeout  : 5
  flags    : Request A records, Request AAAA records
  reach    : 0x00000000 (Not Reachable)
  order    : 300000

resolver #3
  domain   : vpn.example
  nameserver[0] : 10.8.0.1
  flags    : Supplemental, Request A records
  reach    : 0x00000003 (Reachable,Transient Connection)
  order    : 101200

resolver #4
  domain   : test
  nameserver[0] : 127.0.0.1
  nameserver[1] : ::1
  port     : 5353
  flags    : Request A records

DNS configuration (for scoped queries)

resolver #1
  search domain[0] : office.example
  nameserver[0] : 198.51.100.53
  if_index : 6 (en0)
  flags    : Scoped, Request A records
"""


@pytest.mark.parametrize(
    ("text", "servers", "search"),
    [
        ("", (), ()),
        ("nameserver 192.0.2.53\nnameserver 10.8.0.1\n", ("192.0.2.53", "10.8.0.1"), ()),
        ("# nameserver 1.1.1.1\n; nameserver 1.1.1.1\nnameserver 192.0.2.53", ("192.0.2.53",), ()),
        ("nameserver 2001:db8::53\nnameserver\nnameserver dns.example", ("2001:db8::53",), ()),
        ("nameserver 192.0.2.53\nnameserver 192.0.2.53", ("192.0.2.53",), ()),
        ("search a.example b.example.\noptions ndots:2", (), ("a.example", "b.example")),
        ("search a.example\ndomain b.example", (), ("b.example",)),
        ("search .", (), ()),
    ],
)
def test_a_resolv_conf(text: str, servers: tuple[str, ...], search: tuple[str, ...]) -> None:
    assert read_resolv_conf(text) == Configuration(servers, search)


def test_macos_has_resolvers_for_single_domains() -> None:
    found = read_scutil(SCUTIL)
    assert found.servers == (
        *("192.0.2.53", "2001:db8::53", "10.8.0.1"),
        *("127.0.0.1:5353", "[::1]:5353"),
    )
    assert found.search == ("office.example", "example.com")
    assert read_scutil("No DNS configuration available") == Configuration()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that a machine is configured by, all of them absent."""
    monkeypatch.setattr(configured, "RESOLV_CONF", tmp_path / "resolv.conf")
    monkeypatch.setattr(configured, "BEHIND_STUB", tmp_path / "behind.conf")
    return tmp_path


def test_a_machine_without_files_has_no_server(files: Path) -> None:
    assert configuration("linux") == Configuration()


def test_behind_a_stub_stand_the_servers_of_every_link(files: Path) -> None:
    (files / "resolv.conf").write_text("nameserver 127.0.0.53\nsearch office.example\n")
    assert configuration("linux").servers == ("127.0.0.53",)
    (files / "behind.conf").write_text("nameserver 192.0.2.53\nnameserver 10.8.0.1\nsearch x\n")
    assert configuration("linux") == Configuration(("192.0.2.53", "10.8.0.1"), ("office.example",))
    # a server beside the stub counts too
    (files / "resolv.conf").write_text("nameserver 10.9.0.1\nnameserver 127.0.0.53\n")
    assert configuration("linux").servers == ("192.0.2.53", "10.8.0.1", "10.9.0.1")


def test_a_file_that_no_stub_uses_says_nothing(files: Path) -> None:
    (files / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    (files / "behind.conf").write_text("nameserver 10.8.0.1\n")
    assert configuration("linux").servers == ("192.0.2.53",)


def test_on_macos_both_count(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    monkeypatch.setattr(configured, "_scutil", lambda: SCUTIL)
    assert configuration("darwin").servers[:3] == ("192.0.2.53", "2001:db8::53", "10.8.0.1")
    assert configuration("darwin").search == ("office.example", "example.com")


def test_a_machine_without_the_tool_has_nothing_to_add(files: Path) -> None:
    assert read_scutil(configured._scutil()) == Configuration()


@pytest.mark.parametrize(
    ("line", "servers"),
    [
        ("flags    : Request A records", ("192.0.2.1", "192.0.2.2:54", "[2001:db8::2]:54")),
        ("flags    : Scoped, Request A records", ("192.0.2.2:54", "[2001:db8::2]:54")),
        ("options  : mdns", ("192.0.2.2:54", "[2001:db8::2]:54")),
    ],
)
def test_scoped_and_multicast_resolvers_are_left_out(line: str, servers: tuple[str, ...]) -> None:
    text = (
        "DNS configuration\n\nresolver #1\n  search domain[0] : A.example.\n"
        f"  nameserver[0] : 192.0.2.1\n  {line}\n\n"
        "resolver #2\n  nameserver[0] : 192.0.2.2\n  nameserver[1] : 2001:db8::2\n"
        "  port     : 54\n"
    )
    assert read_scutil(text).servers == servers
    assert read_scutil(text).search == (("a.example",) if len(servers) == 3 else ())


def test_the_servers_after_one_that_is_none_count() -> None:
    text = "nameserver dns.example\nnameserver 192.0.2.53\nsearch a.example\nnameserver 10.8.0.1\n"
    assert read_resolv_conf(text) == Configuration(("192.0.2.53", "10.8.0.1"), ("a.example",))


@pytest.mark.parametrize("line", ["search", "domain", "nameserver", "sortlist 192.0.2.1", ""])
def test_a_line_without_a_value_or_of_another_kind_says_nothing(line: str) -> None:
    text = f"nameserver 192.0.2.53\nsearch a.example\n{line}\n"
    assert read_resolv_conf(text) == Configuration(("192.0.2.53",), ("a.example",))


def test_a_domain_is_one_word() -> None:
    assert read_resolv_conf("domain a.example b.example").search == ("a.example",)


def test_scutil_may_fail(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        if len(asked) > 1:
            raise subprocess.TimeoutExpired(command, options["timeout"])
        return subprocess.CompletedProcess(command, 0, SCUTIL, "")

    monkeypatch.setattr(subprocess, "run", run)
    assert configuration("darwin").servers == read_scutil(SCUTIL).servers
    assert configuration("darwin") == configuration("linux") == Configuration()
    assert asked == [["/usr/sbin/scutil", "--dns"]] * 2


def test_nameservers_of_a_resolv_conf(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text(
        "# nameserver 9.9.9.9\nsearch lan\nnameserver 192.0.2.1\nnameserver 2001:db8::1\n"
    )
    assert nameservers(file) == ("192.0.2.1", "2001:db8::1")
    assert nameservers(tmp_path / "missing") == ()
