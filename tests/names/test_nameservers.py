"""Against a DNS server of ours on loopback."""

import contextlib
import errno
import os
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import dns.exception
import dns.message
import dns.rcode
import dns.resolver
import pytest

from earshot.errors import AddressError
from earshot.names import nameservers
from earshot.names.lookup import Diagnosis, Lookup, look_up, unanswered
from earshot.names.nameservers import DnsResolver
from tests.doubles.dns_server import (
    NO_RECORD,
    TRUNCATED,
    dns_server,
    dns_server_with_tcp,
)

TABLE: dict[str, tuple[str, ...] | str] = {
    "both.example.com": ("203.0.113.1", "2001:db8::1"),
    "four.example.com": ("203.0.113.1", "203.0.113.2"),
    "six.example.com": ("2001:db8::1",),
    "bare.example.com": NO_RECORD,
    "broken.example.com": "SERVFAIL",
    "secret.example.com": "REFUSED",
}


class CountingTable(dict[str, tuple[str, ...] | str]):
    """Counts the questions."""

    def __init__(self, table: Mapping[str, tuple[str, ...] | str]) -> None:
        super().__init__(table)
        self.asked: Counter[str] = Counter()

    def __getitem__(self, key: str) -> tuple[str, ...] | str:
        self.asked[key] += 1
        return super().__getitem__(key)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with dns_server(TABLE) as address:
        yield address


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """A socket that takes questions and answers none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    with silent_server() as server:
        yield server


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("both.example.com", {"203.0.113.1", "2001:db8::1"}),
        ("four.example.com", {"203.0.113.1", "203.0.113.2"}),
        ("six.example.com", {"2001:db8::1"}),
        ("BOTH.Example.COM", {"203.0.113.1", "2001:db8::1"}),
        ("both.example.com.", {"203.0.113.1", "2001:db8::1"}),
    ],
)
def test_addresses_of_both_families(server: str, name: str, addresses: set[str]) -> None:
    lookup = DnsResolver([server]).resolve(name, 5)
    assert lookup.ok and set(lookup.addresses) == addresses
    assert (lookup.resolver, lookup.each) == (server, ()), "it speaks for the resolver"


@pytest.mark.parametrize(
    ("name", "diagnosis", "detail"),
    [
        ("nobody.example.com", Diagnosis.NXDOMAIN, "the name does not exist"),
        # hosts file and search domains do not count
        ("localhost", Diagnosis.NXDOMAIN, "the name does not exist"),
        ("both", Diagnosis.NXDOMAIN, "the name does not exist"),
        ("bare.example.com", Diagnosis.NO_ANSWER, "no A record; no AAAA record"),
        ("broken.example.com", Diagnosis.SERVER_FAILURE, "answered SERVFAIL"),
        ("secret.example.com", Diagnosis.SERVER_FAILURE, "answered REFUSED"),
    ],
)
def test_failures(server: str, name: str, diagnosis: Diagnosis, detail: str) -> None:
    lookup = DnsResolver([server]).resolve(name, 5)
    assert (lookup.diagnosis, lookup.addresses, lookup.answered) == (diagnosis, (), True)
    assert detail in lookup.detail


def test_an_answer_that_is_cut_short_over_tcp_says_nothing_about_the_name() -> None:
    with dns_server_with_tcp({NAME: TRUNCATED}) as server:
        lookup = DnsResolver([server]).resolve(NAME, 5)
    assert (lookup.diagnosis, lookup.answered) == (Diagnosis.SERVER_FAILURE, True)
    assert lookup.detail == "its answer is cut short, over TCP as well"


def test_an_address_that_is_listed_twice_counts_once() -> None:
    with dns_server({NAME: ("192.0.2.1", "192.0.2.2", "192.0.2.1")}) as server:
        assert DnsResolver([server]).resolve(NAME, 5).addresses == ("192.0.2.1", "192.0.2.2")


def test_silence_is_a_timeout(silent: str) -> None:
    (item,) = look_up([("both.example.com", DnsResolver([silent]))], 0.5).values()
    assert (item.diagnosis, item.answered) == (Diagnosis.TIMEOUT, False)


NAME = "both.example.com"


def test_one_server_that_resolves_a_name_is_enough(server: str, silent: str) -> None:
    """In any order: the office's server first, and the VPN's, which knows the name, second."""
    with dns_server({}) as office, dns_server({NAME: "SERVFAIL"}) as failing:
        for servers in ([office, server], [server, office], [failing, silent, office, server]):
            lookup = DnsResolver(servers).resolve(NAME, 4)
            assert lookup.ok and set(lookup.addresses) == set(TABLE[NAME])
            assert lookup.resolver == ", ".join(servers)
            assert [lookup.resolver for lookup in lookup.each] == servers
        assert lookup.unresolved_at == (
            f"{failing}: server-failure",
            f"{silent}: timeout",
            f"{office}: nxdomain",
        )


def test_a_name_that_no_server_knows_does_not_exist(server: str) -> None:
    with dns_server({}) as office:
        lookup = DnsResolver([office, server]).resolve("nobody.example.com", 4)
    assert (lookup.diagnosis, lookup.detail) == (Diagnosis.NXDOMAIN, "the name does not exist")


def test_what_each_server_said_stands_in_the_detail(server: str) -> None:
    with dns_server({"bare.example.com": "REFUSED"}) as office:
        lookup = DnsResolver([office, server]).resolve("bare.example.com", 4)
    assert lookup.diagnosis is Diagnosis.NO_ANSWER
    assert lookup.detail == (f"{office}: answered REFUSED; {server}: no A record; no AAAA record")


def test_servers_that_give_different_addresses_are_told_apart(server: str) -> None:
    with dns_server({NAME: ("203.0.113.1", "198.51.100.7")}) as other:
        lookup = DnsResolver([other, server]).resolve(NAME, 4)
    assert set(lookup.addresses) == {"203.0.113.1", "198.51.100.7", "2001:db8::1"}
    assert lookup.servers_with("198.51.100.7") == (other,)
    assert lookup.servers_with("2001:db8::1") == (server,)
    assert lookup.servers_with("203.0.113.1") == ()


def test_a_server_that_never_answers_costs_its_time_once_and_not_per_name(silent: str) -> None:
    """More names than are asked at a time, within one time-out for all of them."""
    names = [f"k{i}.example.com" for i in range(300)]
    table = dict.fromkeys(names[::2], ("203.0.113.1",))
    with dns_server(table) as office:
        resolver = DnsResolver([silent, office])
        lookups = look_up([(name, resolver) for name in names], 8)
    assert [item.diagnosis for item in lookups.values()] == [Diagnosis.OK, Diagnosis.NXDOMAIN] * 150


def test_all_servers_silent_is_a_timeout(silent: str) -> None:
    with silent_server() as other:
        lookup = DnsResolver([silent, other]).resolve(NAME, 0.5)
    assert (lookup.diagnosis, lookup.answered) == (Diagnosis.TIMEOUT, False)


def test_each_server_is_asked_once_for_each_family(server: str) -> None:
    table = CountingTable({NAME: ("203.0.113.1",)})
    with dns_server(table) as counted:
        resolver = DnsResolver([counted, server, counted])
        look_up([(NAME, resolver), (NAME.upper(), resolver)], 5)
    assert table.asked == {NAME: 2}


def test_a_resolver_without_servers_is_refused() -> None:
    with pytest.raises(AddressError, match="DNS resolver"):
        DnsResolver([])


def test_a_resolver_is_called_after_its_servers() -> None:
    assert DnsResolver(["192.0.2.53", "192.0.2.54"]).label == "192.0.2.53, 192.0.2.54"


def test_machine_settings_are_not_read(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*given: object) -> None:
        raise AssertionError("the servers and options of this machine are others")

    monkeypatch.setattr(dns.resolver.Resolver, "read_resolv_conf", read)
    assert DnsResolver([server]).resolve(NAME, 5).ok


def test_a_fault_of_ours_is_not_taken_for_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*given: object) -> Lookup:
        raise ZeroDivisionError

    monkeypatch.setattr(nameservers._Server, "_lookup", fault)
    with pytest.raises(ZeroDivisionError):
        DnsResolver(["192.0.2.53", "192.0.2.54"]).resolve(NAME, 0.5)


def said(diagnosis: Diagnosis, *addresses: str, detail: str = "", answered: bool = True) -> Lookup:
    return Lookup(NAME, "192.0.2.53", diagnosis, addresses, 0.0, detail, answered)


FOUR = said(Diagnosis.OK, "203.0.113.1")
SIX = said(Diagnosis.OK, "2001:db8::1")
NO_A = said(Diagnosis.NO_ANSWER, detail="no A")
NO_AAAA = said(Diagnosis.NO_ANSWER, detail="no AAAA")
NOBODY = said(Diagnosis.NXDOMAIN, detail="nobody")
UNREACHED = said(Diagnosis.SERVER_FAILURE, detail="unreached", answered=False)
FAILED = said(Diagnosis.SERVER_FAILURE, detail="failed")
SILENT = said(Diagnosis.TIMEOUT, detail="silent", answered=False)


@pytest.mark.parametrize(
    ("first", "second", "seconds", "found"),
    [
        (FOUR, SIX, 1.0, said(Diagnosis.OK, "203.0.113.1", "2001:db8::1")),
        (FOUR, SILENT, 1.0, said(Diagnosis.OK, "203.0.113.1", detail="silent")),
        (NO_A, SIX, 8.0, said(Diagnosis.OK, "2001:db8::1", detail="no A")),
        (NO_A, NO_AAAA, 8.0, said(Diagnosis.NO_ANSWER, detail="no A; no AAAA")),
        (NO_A, FAILED, 8.0, said(Diagnosis.SERVER_FAILURE, detail="no A; failed")),
        (NO_A, UNREACHED, 8.0, said(Diagnosis.SERVER_FAILURE, detail="no A; unreached")),
        (FAILED, NO_AAAA, 8.0, said(Diagnosis.SERVER_FAILURE, detail="failed; no AAAA")),
        (FAILED, FAILED, 8.0, FAILED),
        (UNREACHED, FAILED, 8.0, said(Diagnosis.SERVER_FAILURE, detail="unreached; failed")),
        (UNREACHED, UNREACHED, 8.0, UNREACHED),
        (NOBODY, None, None, NOBODY),
        (SILENT, None, None, SILENT),
    ],
)
def test_the_second_family_is_asked_for_where_it_can_matter(
    first: Lookup,
    second: Lookup | None,
    seconds: float | None,
    found: Lookup,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And is given a second only where there is an address already."""
    asked: list[tuple[str, float]] = []

    def answer(server: object, name: str, family: str, left: float) -> Lookup:
        asked.append((family, left))
        answered = first if family == "A" else second
        assert answered is not None
        return answered

    monkeypatch.setattr(nameservers, "time", SimpleNamespace(monotonic=lambda: 100.0))
    monkeypatch.setattr(nameservers._Server, "_lookup", answer)
    assert nameservers._Server("192.0.2.53").resolve(NAME, 8.0) == found
    assert asked == [("A", 8.0)] + ([("AAAA", seconds)] if seconds is not None else [])


def test_without_time_no_server_is_asked() -> None:
    server = nameservers._Server("192.0.2.53")
    for seconds in (0.0, -1.0):
        assert server._lookup(NAME, "A", seconds) == unanswered(NAME, "192.0.2.53", 0.0)


@pytest.mark.parametrize(("seconds", "patience"), [(8.0, 2.0), (3.0, 1.5)])
def test_a_server_is_mute_once_it_has_been_silent_for_a_while(
    seconds: float, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    answers = iter([SILENT, SILENT, FOUR, SIX, SILENT])
    monkeypatch.setattr(nameservers, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(nameservers._Server, "_lookup", lambda *given: next(answers))
    server = nameservers._Server("192.0.2.53")
    assert not server.is_mute(1000.0), "nobody has asked it"
    server.resolve(NAME, seconds)
    clock[0] += 1.0
    server.resolve(NAME, 0.1)
    assert not server.is_mute(100.0 + patience - 0.25)
    assert server.is_mute(100.0 + patience), "counted from the first question, with its patience"
    server.resolve(NAME, seconds)
    server.resolve(NAME, seconds)
    assert not server.is_mute(1000.0), "it was heard once"


HEARD, OTHER, MUTE = "192.0.2.53", "192.0.2.54", "192.0.2.55"


@pytest.mark.parametrize(
    ("seconds", "answers", "waited"),
    [
        (8.0, {HEARD: (0.25, FOUR), OTHER: (0.5, SIX)}, 0.5),
        (8.0, {HEARD: (0.25, FOUR), MUTE: None}, 1.25),
        (2.5, {HEARD: (0.25, FOUR), MUTE: None}, 1.0),
        (8.0, {HEARD: (0.25, FOUR), OTHER: (0.75, SIX), MUTE: None}, 1.25),
        (8.0, {HEARD: (0.25, FOUR), OTHER: (0.25, NOBODY), MUTE: None}, 1.25),
        (8.0, {HEARD: (0.25, NOBODY), MUTE: None}, 2.0),
        (8.0, {HEARD: (0.25, NOBODY), OTHER: (1.0, FOUR), MUTE: None}, 2.0),
        (8.0, {HEARD: (0.25, NOBODY), OTHER: (4.0, FOUR), MUTE: None}, 4.0),
        (8.0, {OTHER: None, MUTE: None}, 8.0),
        (8.0, {HEARD: (0.25, UNREACHED), OTHER: (0.5, UNREACHED)}, 0.5),
    ],
    ids=["all answer", "one resolves it", "in less time", "another resolves it later",
         "another denies it at the same time", "one denies it", "resolved after a denial",
         "one that was heard before is slow", "all are silent", "none can be reached"],
)  # fmt: skip
def test_how_long_is_waited_for_the_servers(
    seconds: float,
    answers: dict[str, tuple[float, Lookup] | None],
    waited: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a clock that goes on as time is waited, and with servers that answer by that clock."""
    clock = [100.0]
    servers: dict[Future[Lookup], nameservers._Server] = {}

    def asks(future: Future[Lookup], server: nameservers._Server, *given: Any) -> None:
        server.resolve(*given)  # has no answer so far
        reported = answers[server.label]
        server.has_answered = reported is not None and reported[0] > 2.0  # for another name before
        servers[future] = server

    def wait(waiting: set[Future[Lookup]], left: float, _: str) -> tuple[set[Any], set[Any]]:
        due = [
            (100.0 + reported[0], future, reported[1])
            for future in waiting
            if (reported := answers[servers[future].label])
        ]
        clock[0] = min([clock[0] + left, *(at for at, _, _ in due)])
        done = set()
        for at, future, lookup in due:
            if at <= clock[0]:
                servers[future].has_answered = lookup.answered
                future.set_result(lookup)
                done.add(future)
        return done, waiting - done

    class AtOnce:
        def __init__(self, target: Any, args: tuple[Any, ...], daemon: bool) -> None:
            self.start = lambda: target(*args)
            assert daemon, "or a silent server holds back the end of the process"

    monkeypatch.setattr(nameservers, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(nameservers, "threading", SimpleNamespace(Thread=AtOnce))
    monkeypatch.setattr(nameservers, "wait", wait)
    monkeypatch.setattr(nameservers, "_answer", asks)
    monkeypatch.setattr(nameservers._Server, "_lookup", lambda *given: SILENT)
    lookup = DnsResolver(list(answers)).resolve(NAME, seconds)
    assert clock[0] - 100.0 == waited
    assert [each for each in lookup.each if each.diagnosis is Diagnosis.TIMEOUT] == [
        unanswered(NAME, label, waited) for label, reported in answers.items() if reported is None
    ]


def failures(*attempts: tuple[object, dns.message.Message | None]) -> tuple[str, bool]:
    exception: Any = dns.exception.DNSException  # has no types
    error = exception("nothing more")
    error.kwargs = {"errors": [(HEARD, False, 53, *attempt) for attempt in attempts]}
    return nameservers._failures(error)


def test_what_a_server_did_is_told_once() -> None:
    refused = dns.message.make_response(dns.message.make_query("a.", "A"))
    refused.set_rcode(dns.rcode.REFUSED)
    unreached = OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))
    attempts = [(item, None) for item in (unreached, unreached, OSError(), ValueError("garbled"))]
    reported = "Network is unreachable; OSError; garbled"
    assert failures(*attempts) == (reported, False)
    assert failures(("failed", refused), *attempts) == (f"answered REFUSED; {reported}", True)
    assert failures() == ("nothing more", False)


def test_an_answer_that_cannot_be_used_says_why() -> None:
    answered = dns.message.make_response(dns.message.make_query("a.", "A"))
    untyped: Any = dns.message
    endless = untyped.ChainTooLong()
    assert failures((endless, answered)) == ("The CNAME chain is too long.", True)
    cut, unreached = untyped.Truncated(message=answered), OSError(errno.ECONNREFUSED, "refused")
    reported = ("its answer is too long for UDP; refused", True)
    assert failures((cut, None), (unreached, None)) == reported
