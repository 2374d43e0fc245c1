"""Whatever hosts and ports brokers advertise: from their metadata to a report, nothing raises."""

import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.cli import discovery
from earshot.doctor.control import OwnNetwork, mark_broken_vantage
from earshot.doctor.diagnosis import diagnose
from earshot.doctor.doctor import examine
from earshot.doctor.observation import Observation, SentRecord
from earshot.doctor.probe import Attempt, Contact, reach, resolve
from earshot.doctor.survey import AddressResult, facts_of
from earshot.doctor.targets import targets_of, targets_reached, targets_without_contract
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.names.lookup import Diagnosis, Lookup
from earshot.report import Format, render
from earshot.report.json import json, read_report
from earshot.spark.attempts import Route, RouteFailure, RouteProblem
from earshot.spark.executors import vantage_of
from earshot.spark.job import JobResult
from earshot.spark.merge import merge
from earshot.spark.run import access_by_listener
from earshot.validation.client import Failure
from earshot.validation.contract import Contract
from earshot.validation.metadata import MetadataAnswer
from earshot.validation.result import Cell, Report, Vantage
from earshot.validation.terms import Stage, Verdict
from tests.doubles.answers import contract
from tests.doubles.peer import broker, kafka, listening
from tests.report import samples

PLAIN = Protocol.PLAINTEXT
SEED = Address("bootstrap.example.com", 9092)
OFTEN = (
    *("my_kafka", "", "kafka.", "KAFKA-1", "::1", "fe80::1%eth0", "host:9094", "küche", "a..b"),
    *("[::1]", "localhost", "10.0.0.1", "256.1.1.1", "-", "k" * 64, "a b", "a,b", "${HOST}", "x\n"),
)
hosts = st.sampled_from(OFTEN) | st.text(st.characters(exclude_categories=["Cs"]))
ports = st.sampled_from([0, -1, 9092, 65535, 65536, 99999]) | st.integers(-(2**31), 2**31 - 1)
addresses = st.builds(Address, hosts, ports)
brokers = st.dictionaries(st.integers(-(2**31), 2**31 - 1), addresses, min_size=1, max_size=4)
errors = st.sampled_from(["refused", "timeout", "no-route", "reset", "file name too long"])


@st.composite
def results(draw: st.DrawFn, address: Address) -> AddressResult:
    """What may be made of ``address``, as `look` gives it back."""
    diagnosis = draw(st.sampled_from(Diagnosis))
    if diagnosis is not Diagnosis.OK:
        return AddressResult(Contact(address, Lookup(address.host, "test", diagnosis)), None)
    lookup = Lookup(address.host, "test", Diagnosis.OK, ("192.0.2.1",))
    if error := draw(st.none() | errors):
        return AddressResult(Contact(address, lookup, (Attempt("192.0.2.1:1", error, 0.0),)), None)
    contact = Contact(address, lookup, (Attempt("192.0.2.1:1", "", 0.0),))
    said = MetadataAnswer(address, "C", draw(brokers), 0.01)
    return AddressResult(
        contact, said if draw(st.booleans()) else Failure("timeout", "no metadata")
    )


def reported(cells: tuple[Cell, ...], *vantages: Vantage) -> Report:
    place = OwnNetwork(
        servers=tuple,
        server_answers=lambda server, limit: False,
        resolve=lambda names, limit: {
            name: Lookup(name, "test", Diagnosis.TIMEOUT) for name in names
        },
        has_route=lambda address: False,
    )
    here = Vantage(name="host", where="devbox")
    report = samples.report(list(cells), vantages=[here, *vantages])
    return mark_broken_vantage(report, "host", 0.1, place)


def seen_in_full(facts: list[Observation]) -> list[Cell]:
    done = {"produced": SentRecord(0, 0, 2.5, b"7"), "consumed": 0.01}
    return [diagnose(Observation(**{**vars(item), **done}), "host") for item in facts]


def written(report: Report) -> None:
    """In every format, and read back."""
    for format in Format:
        assert render(report, format)
    assert read_report(json(report), "test") == report


@settings(max_examples=40, deadline=None)
@given(st.data(), brokers)
def test_without_a_contract(data: st.DataObject, listed: dict[int, Address]) -> None:
    answer = MetadataAnswer(SEED, "C", listed, 0.01)
    targets = targets_without_contract([SEED], PLAIN, [answer])
    looked = {(target.address, PLAIN): data.draw(results(target.address)) for target in targets}
    cells = seen_in_full(facts_of(targets, looked, {str(SEED): [answer]}, None))
    assert [(cell.broker, cell.address) for cell in cells] == sorted(listed.items())
    for cell in cells:
        cause = cell.cause
        assert cell.verdict is Verdict.PASS or (cause and cause.observed and cause.remedy)
    written(reported(tuple(cells)))


@settings(max_examples=40, deadline=None)
@given(st.data(), brokers)
def test_with_a_contract(data: st.DataObject, listed: dict[int, Address]) -> None:
    known = contract(EXTERNAL=["e:1", "e:2"])
    targets = targets_of(known)
    looked = {(target.address, PLAIN): data.draw(results(target.address)) for target in targets}
    facts = facts_of(
        targets, looked, {"EXTERNAL": [MetadataAnswer(SEED, "C", listed, 0.01)]}, known
    )
    written(reported(tuple(seen_in_full(facts))))


@settings(max_examples=40, deadline=None)
@given(
    brokers,
    st.sampled_from([RouteFailure.JOB_FAILED, RouteFailure.REFUSED, RouteFailure.TIMED_OUT]),
    st.booleans(),
)
def test_with_discovery_and_spark(
    listed: dict[int, Address], trouble: RouteFailure, reached: bool
) -> None:
    good = samples.cell("EXTERNAL", 1)
    cells = tuple(
        good.model_copy(update={"listener": str(SEED), "broker": id, "address": address})
        for id, address in sorted(listed.items())
        if id >= 0
    )
    if not cells:
        return
    discovered, _ = discovery.contract_of(reported(cells), PLAIN)
    targets = [(target.broker, target.address) for target in targets_of(discovered)]
    assert targets == [(cell.broker, cell.address) for cell in cells]
    living = [cell.model_copy(update={"listener": "LISTENER_1"}) for cell in cells]
    access = access_by_listener(targets_reached(discovered, living), {})["LISTENER_1"]
    assert access.bootstrap == discovered.listeners[0].bootstrap
    routes = [Route(it.listener, it.broker, it.address, i) for i, it in enumerate(cells)]
    outcome = {"resolved": ["192.0.2.1"] if reached else [], "error": "" if reached else "unknown"}
    outcome |= {"cluster_id": ""}
    seen = [{"listener": it.listener, "broker": it.broker, **outcome} for it in routes]
    answer = {"executor": "1", "host": "worker", "resolvers": [], "reached": seen}
    executor = vantage_of(answer, routes)
    unwritten = {route.key: RouteProblem(trouble, "gone") for route in routes}
    proven = merge(cells, JobResult(unwritten=unwritten, executors=(executor,)))
    assert len(proven) == 2 * len(cells)
    written(reported(proven, executor))


def test_a_name_with_an_underscore_that_works_passes() -> None:
    address = Address("my_kafka", 9092)
    answer = MetadataAnswer(SEED, "C", {1: address}, 0.01)
    (target,) = targets_without_contract([SEED], PLAIN, [answer])
    lookup = Lookup("my_kafka", "test", Diagnosis.OK, ("192.0.2.1",))
    contact = Contact(address, lookup, (Attempt("192.0.2.1:9092", "", 0.001),))
    own = MetadataAnswer(address, "C", {1: address}, 0.01)
    looked = {(address, PLAIN): AddressResult(contact, own)}
    (cell,) = seen_in_full(facts_of([target], looked, {}, None))
    assert (cell.verdict, str(cell.address)) == (Verdict.PASS, "my_kafka:9092")


@pytest.mark.parametrize("host", OFTEN)
def test_this_machine_looks_up_any_text(host: str) -> None:
    lookups = resolve([host, f"{host}\0", "\ud800"], 5)
    assert set(lookups) == {host, f"{host}\0", "\ud800"}
    assert not lookups[f"{host}\0"].ok and not lookups["\ud800"].ok


@pytest.mark.parametrize("port", [0, -1, 65536, 99999, 2**31 - 1])
def test_a_port_that_is_none_is_not_tried(port: int) -> None:
    """The C library would try 34463 for 99999."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        lookup = Lookup("localhost", "test", Diagnosis.OK, ("127.0.0.1",))
        for number in (port, server.getsockname()[1] + 65536):
            contact = reach(Address("localhost", number), lookup)
            assert [attempt.error for attempt in contact.attempts] == ["no-port"]
            assert not contact.connected


def one(address: Address, lookup: Lookup, *attempts: Attempt) -> Cell:
    answer = MetadataAnswer(SEED, "C", {1: address}, 0.01)
    (target,) = targets_without_contract([SEED], PLAIN, [answer])
    looked = {(address, PLAIN): AddressResult(Contact(address, lookup, attempts), None)}
    (facts,) = facts_of([target], looked, {str(SEED): [answer]}, None)
    return diagnose(facts, "host")


def test_what_is_neither_name_nor_address_is_said() -> None:
    address = Address("kafka:9094", 30000)
    cell = one(address, Lookup(address.host, "test", Diagnosis.NXDOMAIN))
    assert cell.failed_stage is Stage.RESOLVE and cell.cause is not None
    assert cell.cause.kind == "no-host-name"
    assert cell.cause.observed == (
        f"broker 1 advertises [kafka:9094]:30000 to clients of {SEED}, "
        "and 'kafka:9094' is neither a name nor an address"
    )
    empty = one(Address("", 9092), Lookup("", "test", Diagnosis.NXDOMAIN)).cause
    assert empty is not None and empty.observed == (
        f"broker 1 advertises :9092 to clients of {SEED}, "
        "and an empty text is neither a name nor an address"
    )


def test_a_port_that_no_client_can_use_is_said() -> None:
    address = Address("localhost", 99999)
    lookup = Lookup("localhost", "test", Diagnosis.OK, ("127.0.0.1",))
    cell = one(address, lookup, *reach(address, lookup).attempts)
    assert cell.failed_stage is Stage.TCP and cell.cause is not None
    assert (cell.cause.kind, cell.cause.expected) == ("no-port", "a port from 1 to 65535")
    assert cell.cause.observed == (
        "localhost:99999: 127.0.0.1:99999 has a port that no client can connect to "
        "(they go from 1 to 65535)"
    )
    # whatever this place lacks, such a port is the broker's fault
    assert reported((cell,)).cells[0].verdict is Verdict.FAIL


def test_a_contract_written_by_hand_stays_strict() -> None:
    with pytest.raises(ValueError, match="my_kafka"):
        Contract.model_validate_json(
            contract(EXTERNAL=["kafka:9092"]).to_json().replace('"kafka"', '"my_kafka"')
        )


HOPELESS = ("", "kafka:9094", "a b", "a,b", "a..b", "${HOST}", "k" * 64, "[::1]")


def test_by_a_real_client_without_a_contract() -> None:
    """librdkafka hands all of it over, and takes it as a bootstrap address too."""
    brokers = {id: Address(host, 9092) for id, host in enumerate(HOPELESS)}
    brokers |= {20 + id: Address("127.0.0.1", port) for id, port in enumerate((0, -1, 99999))}
    with listening(kafka(broker(1, brokers))) as peer:
        report = examine([peer.address], deadline=8)
    assert [(cell.broker, cell.address) for cell in report.cells] == sorted(brokers.items())
    kinds = {cell.address.host: cell.cause.kind for cell in report.cells if cell.cause}
    assert kinds == dict.fromkeys(HOPELESS, "no-host-name") | {"127.0.0.1": "no-port"}
    written(report)


def test_by_a_real_client_with_a_contract() -> None:
    listed = {1: Address("my_kafka", 9092), 2: Address("", 99999)}
    with listening(kafka(broker(1, listed))) as peer:
        seed = peer.address
        report = examine(contract(EXTERNAL=[str(seed)]), deadline=8)
        found, *_ = discovery.discover([seed], {})
    assert [(cell.broker, cell.cause and cell.cause.kind) for cell in report.cells] == [
        (1, "drift"),
        (2, "unexpected"),
    ]
    assert report.cells[0].cause is not None
    assert "broker 1 advertises my_kafka:9092" in report.cells[0].cause.observed
    written(report)
    # and so on, to Spark
    assert [str(it.advertised["LISTENER_1"].address) for it in found.brokers] == [
        "my_kafka:9092",
        ":99999",
    ]
