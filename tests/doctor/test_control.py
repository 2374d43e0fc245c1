"""Whose fault a failed cell is: the listener's, or that of the place it was seen from."""

import socket
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from earshot.doctor import probe
from earshot.doctor.control import (
    ROOT_SERVERS,
    OwnNetwork,
    has_route,
    mark_broken_vantage,
    server_answers,
)
from earshot.files.open_files import raise_limit
from earshot.listeners.address import read_address
from earshot.names.configured import nameservers
from earshot.names.lookup import Diagnosis, Lookup
from earshot.validation.result import Cause, Cell, Report, Vantage
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
    files: int = 1000
    asked: list[str] = field(default_factory=list)
    looked_up: list[str] = field(default_factory=list)
    looked_for: list[str] = field(default_factory=list)

    @property
    def place(self) -> OwnNetwork:
        network = OwnNetwork(lambda: self.servers, self._hears, self._resolve, self._has_route)
        return replace(network, may_open=lambda count: min(count, self.files))

    def _hears(self, server: str, limit: float) -> bool:
        self.asked.append(server)
        return server in self.heard

    def _resolve(self, hosts: Iterable[str], limit: float) -> Mapping[str, Lookup]:
        self.looked_up += hosts or ["nothing"]
        return {host: self.names[host] for host in hosts}

    def _has_route(self, address: str) -> bool:
        self.looked_for.append(address)
        return address in self.routes


ADDRESS = "10.0.1.7:9092"
ADDRESS_LOOKUP = {"10.0.1.7": Lookup("10.0.1.7", "none", Diagnosis.OK, ("10.0.1.7",))}
NO_ANSWER = Cause(kind="resolver-timeout", observed="seen", expected="wanted", remedy="fix")


def one_failed(stage: Stage, kind: str, address: str = "broker.example:9092") -> Report:
    """Five cells that passed and one that failed."""
    cells = healthy_cells()
    cause = NO_ANSWER.model_copy(update={"kind": kind})
    cell = failed(cells[5], stage, cause).model_copy(update={"address": read_address(address)})
    return report([*cells[:5], cell])


def with_failed(before: Report, stage: Stage, kind: str, address: str) -> tuple[Report, Cell]:
    """``before`` with another cell that failed, at ``address``, and this cell."""
    cause = NO_ANSWER.model_copy(update={"kind": kind})
    cell = failed(before.cells[4], stage, cause).model_copy(
        update={"address": read_address(address)}
    )
    cells = (*before.cells[:4], cell, before.cells[5])
    return before.model_copy(update={"cells": cells}), cell


def marked(before: Report, double: PlaceDouble) -> Report:
    return mark_broken_vantage(before, "host", LIMIT, double.place)


def verdicts(marked_report: Report) -> tuple[Verdict, Verdict]:
    """Verdicts of the cell that failed and of the vantage."""
    assert [cell.verdict for cell in marked_report.cells[:5]] == [Verdict.PASS] * 5
    return marked_report.cells[5].verdict, marked_report.vantages[0].verdict


EXCUSED = (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)
BLAMED = (Verdict.FAIL, Verdict.PASS)


@pytest.mark.parametrize("kind", ["resolver-timeout", "resolver-failure"])
def test_a_place_whose_servers_are_all_silent_cannot_check_a_name(kind: str) -> None:
    double = PlaceDouble(servers=("192.0.2.53", "192.0.2.54"))
    marked_report = marked(one_failed(Stage.RESOLVE, kind), double)
    assert verdicts(marked_report) == EXCUSED
    assert sorted(double.asked) == ["192.0.2.53", "192.0.2.54"]
    assert double.looked_up == []
    cell = marked_report.cells[5]
    assert cell.reason == marked_report.vantages[0].reason
    assert cell.reason == (
        "no DNS server of this vantage answers (192.0.2.53, 192.0.2.54: nothing in 0.5 s), "
        "so nothing is known about broker.example"
    )
    assert cell.cause is None and cell.failed_stage is None
    stages = {result.stage: result.verdict for result in cell.stages}
    assert stages[Stage.RESOLVE] is Verdict.INCONCLUSIVE
    assert stages[Stage.METADATA] is Verdict.PASS
    assert marked_report.exit_code == 3


def test_one_server_that_answers_is_enough_to_blame_the_name() -> None:
    double = PlaceDouble(servers=("192.0.2.53", "192.0.2.54"), heard=("192.0.2.54",))
    assert verdicts(marked(one_failed(Stage.RESOLVE, "resolver-timeout"), double)) == BLAMED


def test_a_place_without_a_server_cannot_check_a_name() -> None:
    before = one_failed(Stage.RESOLVE, "resolver-failure")
    marked_report = marked(before, PlaceDouble(servers=()))
    assert verdicts(marked_report) == EXCUSED
    assert "has no DNS server" in marked_report.cells[5].reason


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
    assert marked(before, double) == before
    assert double.asked == []


@pytest.mark.parametrize(
    ("stage", "kind", "address"),
    [
        (Stage.METADATA, "drift", "broker.example:9092"),  # of the same host
        (Stage.TCP, "timeout", ADDRESS),
    ],
)
def test_only_the_fault_of_this_place_is_excused(stage: Stage, kind: str, address: str) -> None:
    """Neither another failure, nor another place that looked."""
    there = Vantage(name="executor-1", kind="executor")
    before, cell = with_failed(one_failed(Stage.RESOLVE, "resolver-timeout"), stage, kind, address)
    before = before.model_copy(update={"vantages": (*before.vantages, there)})
    marked_report = marked(before, PlaceDouble(names=ADDRESS_LOOKUP))
    assert marked_report.cells[4] == cell
    assert marked_report.cells[5].verdict is Verdict.INCONCLUSIVE
    assert marked_report.vantages[0].verdict is Verdict.INCONCLUSIVE
    assert marked_report.vantages[1] == there and there.verdict is Verdict.PASS


@pytest.mark.parametrize("stage", [Stage.TCP, Stage.PRODUCE, Stage.CONSUME])
def test_a_place_without_a_network_cannot_check_an_address(stage: Stage) -> None:
    double = PlaceDouble(names=ADDRESS_LOOKUP, routes=())
    marked_report = marked(one_failed(stage, "timeout", ADDRESS), double)
    assert verdicts(marked_report) == EXCUSED
    assert double.asked == [], "no name is looked up"
    assert "no route to 10.0.1.7, and none to anywhere" in marked_report.cells[5].reason


@pytest.mark.parametrize(
    "routes", [ROOT_SERVERS, ("198.41.0.4",), ("2001:503:ba3e::2:30",), ("10.0.1.7",)]
)
def test_a_place_with_a_network_blames_the_address(routes: Sequence[str]) -> None:
    double = PlaceDouble(names=ADDRESS_LOOKUP, routes=routes)
    assert verdicts(marked(one_failed(Stage.TCP, "no-route", ADDRESS), double)) == BLAMED


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
    double = PlaceDouble(names=names, routes=routes)
    assert verdicts(marked(one_failed(Stage.PRODUCE, "spark"), double)) == expected


@pytest.mark.parametrize("stage", [Stage.RESOLVE, Stage.TCP])
def test_an_inconclusive_cell_stays_unchanged(stage: Stage) -> None:
    before = one_failed(stage, "resolver-timeout")
    inconclusive = {"verdict": Verdict.INCONCLUSIVE, "reason": "no time", "cause": None}
    cells = (*before.cells[:5], before.cells[5].model_copy(update=inconclusive))
    before = before.model_copy(update={"cells": cells})
    assert marked(before, PlaceDouble(servers=())) is before


def test_the_place_is_this_machine() -> None:
    assert OwnNetwork() == OwnNetwork(
        nameservers, server_answers, probe.resolve, has_route, raise_limit
    )


@pytest.mark.parametrize(
    ("files", "kind", "verdict"),
    [
        (24, "unsteady-name", Verdict.INCONCLUSIVE),
        (24, "refused", Verdict.FAIL),
        (1000, "unsteady-name", Verdict.FAIL),
    ],
)
def test_a_process_that_may_open_few_files_proves_nothing(
    files: int, kind: str, verdict: Verdict
) -> None:
    before = one_failed(Stage.PRODUCE, kind, ADDRESS)
    after = marked(
        before, PlaceDouble(names=ADDRESS_LOOKUP, files=files, routes=[*ROOT_SERVERS, "10.0.1.7"])
    )
    assert after.cells[5].verdict is verdict
    assert ("may open only 24 files" in after.cells[5].reason) == (verdict is Verdict.INCONCLUSIVE)


def test_cells_of_other_places_are_not_excused() -> None:
    before = one_failed(Stage.RESOLVE, "resolver-timeout")
    there = Vantage(name="executor-1", kind="executor")
    cells = (*before.cells[:5], before.cells[5].model_copy(update={"vantage": there.name}))
    before = before.model_copy(update={"cells": cells, "vantages": (*before.vantages, there)})
    assert marked(before, PlaceDouble()) == before


def test_when_all_is_well_nothing_is_asked() -> None:
    double, before = PlaceDouble(), report(healthy_cells())
    assert marked(before, double) is before
    assert double.asked == double.looked_up == double.looked_for == []


@pytest.mark.parametrize(
    ("table", "expected"),
    [({}, True), ({"": "NOERROR"}, True), ({"": "REFUSED"}, True), ({"": "SERVFAIL"}, False)],
)
def test_every_code_but_servfail_is_an_answer(table: dict[str, str], expected: bool) -> None:
    with dns_server(table) as server:
        host, _, port = server.rpartition(":")
        assert server_answers(host, 60.0, int(port)) is expected


@pytest.fixture
def mute() -> Iterator[tuple[socket.socket, int]]:
    """A server that answers nothing of its own, and its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        yield server, server.getsockname()[1]


def test_a_lost_packet_is_asked_for_again_once(mute: tuple[socket.socket, int]) -> None:
    server, port = mute
    assert not server_answers("127.0.0.1", 0.2, port)
    server.setblocking(False)
    assert len([server.recv(512) for _ in range(2)]) == 2
    with pytest.raises(BlockingIOError):
        server.recv(512)


def test_an_answer_to_the_second_question_is_enough(mute: tuple[socket.socket, int]) -> None:
    server, port = mute

    def lose_one() -> None:
        server.recv(512)
        question, client = server.recvfrom(512)
        server.sendto(question[:2] + b"\x81\x83" + question[4:], client)  # NXDOMAIN

    thread = threading.Thread(target=lose_one)
    thread.start()
    assert server_answers("127.0.0.1", 4.0, port)
    thread.join(5)
    assert not thread.is_alive()


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
