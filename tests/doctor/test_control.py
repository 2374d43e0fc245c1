"""Whose fault a failed cell is: the listener's, or that of the place it was seen from."""

import contextlib
import socket
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from earshot.doctor import probe
from earshot.doctor.control import (
    ROOT_SERVERS,
    OwnNetwork,
    has_route,
    mark_broken_vantage,
    server_answers,
)
from earshot.listeners.address import read_address
from earshot.names.configured import nameservers
from earshot.names.lookup import Diagnosis, Lookup
from earshot.validation.result import Cause, Report, Vantage
from earshot.validation.terms import Stage, Verdict
from tests.doubles.dns_server import dns_server
from tests.report.samples import failed, healthy_cells, report

LIMIT = 0.5


@dataclass
class PlaceDouble:
    """A place that hears these servers and reaches these addresses; keeps what it was asked."""

    servers: Sequence[str] = ("192.0.2.53",)
    heard: Sequence[str] = ()
    names: Mapping[str, Lookup] = field(default_factory=dict)
    routes: Sequence[str] = ROOT_SERVERS
    asked: list[str] = field(default_factory=list)
    looked_up: list[str] = field(default_factory=list)
    looked_for: list[str] = field(default_factory=list)

    @property
    def place(self) -> OwnNetwork:
        return OwnNetwork(lambda: self.servers, self._hears, self._resolve, self._has_route)

    def _hears(self, server: str, limit: float) -> bool:
        self.asked.append(server)
        return server in self.heard

    def _resolve(self, hosts: Iterable[str], limit: float) -> Mapping[str, Lookup]:
        self.looked_up += hosts or ["nothing"]
        return {host: self.names[host] for host in hosts}

    def _has_route(self, address: str) -> bool:
        self.looked_for.append(address)
        return address in self.routes


def one_failed(stage: Stage, kind: str, address: str = "broker.example:9092") -> Report:
    """Five cells that passed and one that failed."""
    cells = healthy_cells()
    cause = Cause(kind=kind, observed="seen", expected="wanted", remedy="fix")
    bad = failed(cells[5], stage, cause).model_copy(update={"address": read_address(address)})
    return report([*cells[:5], bad])


def verdict(found: Report) -> tuple[Verdict, Verdict]:
    """Of the cell that failed and of the vantage."""
    assert [cell.verdict for cell in found.cells[:5]] == [Verdict.PASS] * 5
    return found.cells[5].verdict, found.vantages[0].verdict


EXCUSED = (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)
BLAMED = (Verdict.FAIL, Verdict.PASS)


@pytest.mark.parametrize("kind", ["resolver-timeout", "resolver-failure"])
def test_a_place_whose_servers_are_all_silent_cannot_check_a_name(kind: str) -> None:
    double = PlaceDouble(servers=("192.0.2.53", "192.0.2.54"))
    found = mark_broken_vantage(one_failed(Stage.RESOLVE, kind), "host", LIMIT, double.place)
    assert verdict(found) == EXCUSED
    assert sorted(double.asked) == ["192.0.2.53", "192.0.2.54"]
    assert double.looked_up == []
    cell = found.cells[5]
    assert (
        cell.reason
        == found.vantages[0].reason
        == (
            "no DNS server of this vantage answers (192.0.2.53, 192.0.2.54: nothing in 0.5 s), "
            "so nothing is known about broker.example"
        )
    )
    assert cell.cause is None and cell.failed_stage is None
    seen = {item.stage: item.verdict for item in cell.stages}
    assert seen[Stage.RESOLVE] is Verdict.INCONCLUSIVE and seen[Stage.METADATA] is Verdict.PASS
    assert found.exit_code == 3


def test_one_server_that_answers_is_enough_to_blame_the_name() -> None:
    double = PlaceDouble(servers=("192.0.2.53", "192.0.2.54"), heard=("192.0.2.54",))
    found = mark_broken_vantage(
        one_failed(Stage.RESOLVE, "resolver-timeout"), "host", LIMIT, double.place
    )
    assert verdict(found) == BLAMED


def test_a_place_without_a_server_cannot_check_a_name() -> None:
    double = PlaceDouble(servers=())
    found = mark_broken_vantage(
        one_failed(Stage.RESOLVE, "resolver-failure"), "host", LIMIT, double.place
    )
    assert verdict(found) == EXCUSED
    assert "has no DNS server" in found.cells[5].reason


@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        (Stage.RESOLVE, "unresolvable"),
        (Stage.TCP, "refused"),
        (Stage.METADATA, "drift"),
        (Stage.BOOTSTRAP, "timeout"),
        (Stage.SECURITY, "authentication"),
    ],
)
def test_a_failure_that_was_answered_is_never_excused(stage: Stage, kind: str) -> None:
    double = PlaceDouble(servers=(), routes=())
    before = one_failed(stage, kind)
    assert mark_broken_vantage(before, "host", LIMIT, double.place) == before
    assert double.asked == []


def test_only_what_is_this_places_fault_is_excused_of_the_cells_of_one_host() -> None:
    before = one_failed(Stage.RESOLVE, "resolver-timeout")
    cause = Cause(kind="drift", observed="seen", expected="wanted", remedy="fix")
    other = failed(before.cells[4], Stage.METADATA, cause)
    other = other.model_copy(update={"address": before.cells[5].address})
    cells = (*before.cells[:4], other, before.cells[5])
    double = PlaceDouble(servers=("192.0.2.53",))
    found = mark_broken_vantage(
        before.model_copy(update={"cells": cells}), "host", LIMIT, double.place
    )
    assert found.cells[4] == other
    assert found.cells[5].verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("stage", [Stage.TCP, Stage.PRODUCE, Stage.CONSUME])
def test_a_place_without_a_network_cannot_check_an_address(stage: Stage) -> None:
    names = {"10.0.1.7": Lookup("10.0.1.7", "none", Diagnosis.OK, ("10.0.1.7",))}
    before = one_failed(stage, "timeout", "10.0.1.7:9092")
    double = PlaceDouble(names=names, routes=())
    found = mark_broken_vantage(before, "host", LIMIT, double.place)
    assert verdict(found) == EXCUSED
    assert double.asked == [], "it is no matter of names"
    assert "no route to 10.0.1.7, and none to anywhere" in found.cells[5].reason


@pytest.mark.parametrize(
    "routes", [ROOT_SERVERS, ("198.41.0.4",), ("2001:503:ba3e::2:30",), ("10.0.1.7",)]
)
def test_a_place_with_a_network_blames_the_address(routes: Sequence[str]) -> None:
    names = {"10.0.1.7": Lookup("10.0.1.7", "none", Diagnosis.OK, ("10.0.1.7",))}
    before = one_failed(Stage.TCP, "no-route", "10.0.1.7:9092")
    found = mark_broken_vantage(
        before, "host", LIMIT, PlaceDouble(names=names, routes=routes).place
    )
    assert verdict(found) == BLAMED


@pytest.mark.parametrize(
    ("diagnosis", "expected"),
    [
        (Diagnosis.TIMEOUT, EXCUSED),
        (Diagnosis.SERVER_FAILURE, EXCUSED),
        (Diagnosis.NXDOMAIN, BLAMED),
        (Diagnosis.NO_ANSWER, BLAMED),
    ],
)
@pytest.mark.parametrize("routes", [ROOT_SERVERS, ()])
def test_a_resolver_that_died_while_records_were_sent(
    diagnosis: Diagnosis, expected: tuple[Verdict, Verdict], routes: Sequence[str]
) -> None:
    names = {"broker.example": Lookup("broker.example", "test", diagnosis)}
    before = one_failed(Stage.PRODUCE, "spark")
    double = PlaceDouble(names=names, routes=routes)
    found = mark_broken_vantage(before, "host", LIMIT, double.place)
    assert verdict(found) == expected


def test_what_is_known_of_one_host_excuses_no_other() -> None:
    """Nor another place that looked."""
    there = Vantage(name="executor-1", kind="executor")
    before = one_failed(Stage.RESOLVE, "resolver-timeout")
    cause = Cause(kind="timeout", observed="seen", expected="wanted", remedy="fix")
    other = failed(before.cells[4], Stage.TCP, cause)
    other = other.model_copy(update={"address": read_address("10.0.1.7:9092")})
    before = before.model_copy(
        update={
            "cells": (*before.cells[:4], other, before.cells[5]),
            "vantages": (*before.vantages, there),
        }
    )
    names = {"10.0.1.7": Lookup("10.0.1.7", "none", Diagnosis.OK, ("10.0.1.7",))}
    found = mark_broken_vantage(before, "host", LIMIT, PlaceDouble(names=names).place)
    assert found.cells[4] == other
    assert found.cells[5].verdict is Verdict.INCONCLUSIVE
    assert [item.verdict for item in found.vantages] == [Verdict.INCONCLUSIVE, Verdict.PASS]
    assert found.vantages[1] == there


@pytest.mark.parametrize("stage", [Stage.RESOLVE, Stage.TCP])
def test_a_cell_that_is_inconclusive_already_stays_as_it_is(stage: Stage) -> None:
    before = one_failed(stage, "resolver-timeout")
    reported = {"verdict": Verdict.INCONCLUSIVE, "reason": "no time", "cause": None}
    cells = (*before.cells[:5], before.cells[5].model_copy(update=reported))
    before = before.model_copy(update={"cells": cells})
    assert mark_broken_vantage(before, "host", LIMIT, PlaceDouble(servers=()).place) is before


def test_the_place_is_this_machine() -> None:
    assert OwnNetwork() == OwnNetwork(nameservers, server_answers, probe.resolve, has_route)


def test_cells_of_other_places_are_not_excused() -> None:
    there = Vantage(name="executor-1", kind="executor")
    before = one_failed(Stage.RESOLVE, "resolver-timeout")
    cells = tuple(
        item.model_copy(update={"vantage": "executor-1"}) if item.verdict is Verdict.FAIL else item
        for item in before.cells
    )
    before = before.model_copy(update={"cells": cells, "vantages": (*before.vantages, there)})
    assert mark_broken_vantage(before, "host", LIMIT, PlaceDouble().place) == before


def test_when_all_is_well_nothing_is_asked() -> None:
    double = PlaceDouble()
    before = report(healthy_cells())
    assert mark_broken_vantage(before, "host", LIMIT, double.place) is before
    assert double.asked == double.looked_up == double.looked_for == []


@pytest.mark.parametrize(
    ("table", "expected"),
    [({}, True), ({"": "NOERROR"}, True), ({"": "REFUSED"}, True), ({"": "SERVFAIL"}, False)],
)
def test_every_code_but_servfail_is_an_answer(table: dict[str, str], expected: bool) -> None:
    with dns_server(table) as server:
        host, _, port = server.rpartition(":")
        assert server_answers(host, 60.0, int(port)) is expected


def test_a_lost_packet_is_asked_for_again_once() -> None:
    received = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        assert not server_answers("127.0.0.1", 0.2, server.getsockname()[1])
        server.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                received.append(server.recv(512))
    assert len(received) == 2


def test_an_answer_to_the_second_question_is_enough() -> None:
    received = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def lose_one() -> None:
            received.append(server.recvfrom(512))
            question, asker = server.recvfrom(512)
            server.sendto(question[:2] + b"\x81\x83" + question[4:], asker)  # NXDOMAIN

        thread = threading.Thread(target=lose_one)
        thread.start()
        try:
            assert server_answers("127.0.0.1", 4.0, server.getsockname()[1])
        finally:
            thread.join(5)
    assert len(received) == 1


def test_a_server_that_is_no_address_is_not_heard() -> None:
    assert not server_answers("not an address", LIMIT)


def test_a_route_is_known_without_a_packet() -> None:
    assert has_route("127.0.0.1")
    assert not has_route("255.255.255.255")  # a broadcast, which a plain socket may not send


def test_a_route_for_ipv6_is_asked_for_as_such() -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("::1", 0))
            there = True
        except OSError:
            there = False
    assert has_route("::1") is there
