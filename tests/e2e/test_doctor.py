"""The doctor against real brokers: a healthy cluster, and one thing wrong at a time."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from earshot import cli
from earshot.cli.discovery import discover
from earshot.doctor import asking
from earshot.doctor.doctor import examine
from earshot.listeners.address import Address
from earshot.report.json import json, read_report
from earshot.validation.client import configuration
from earshot.validation.contract import AdvertisedAddress, Contract
from earshot.validation.result import Cell, Report
from earshot.validation.terms import Stage, Verdict
from earshot.validation.topic import create_topic, run_id, topic_name
from tests.doubles.certificates import self_signed
from tests.doubles.peer import forwarder, swallowing
from tests.e2e.cluster import Cluster, local_plan, own_topics, running_cluster
from tests.e2e.ports import free_ports

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

PATIENT = 60.0
"""Seconds for a broker that has just started, with TLS or logins, on a busy machine."""


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[Cluster]:
    """Three brokers with two listeners, for all tests; broker 3 is as the last test left it."""
    _, plan = local_plan(brokers=3)
    with running_cluster(plan) as new_cluster:
        yield new_cluster


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return self_signed(tmp_path, "DNS:localhost")


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """Like `shared_cluster`, with all brokers running as in the plan."""
    shared_cluster.reset()
    return shared_cluster


def address(contract: Contract, listener: str, broker: int) -> Address:
    contract_broker = next(
        contract_broker for contract_broker in contract.brokers if contract_broker.id == broker
    )
    return contract_broker.advertised[listener].address


def failures(report: Report) -> dict[tuple[str, int], tuple[Stage | None, str]]:
    return {
        (cell.listener, cell.broker): (cell.failed_stage, cell.cause.kind)
        for cell in report.cells
        if cell.cause is not None
    }


def drifted_contract(contract: Contract) -> Contract:
    """``contract`` with another EXTERNAL address of broker 3: its cell fails early, which shows
    when the topic is about to be created."""
    (port,) = free_ports(1)
    external = {"EXTERNAL": AdvertisedAddress(host="localhost", port=port)}
    moved_broker = contract.brokers[2].model_copy(
        update={"advertised": contract.brokers[2].advertised | external}
    )
    return contract.model_copy(update={"brokers": (*contract.brokers[:2], moved_broker)})


def test_a_healthy_cluster(cluster: Cluster) -> None:
    reported_cells: list[Cell] = []
    report = examine(cluster.contract, deadline=PATIENT, on_cell=reported_cells.append)
    assert report.verdict is Verdict.PASS and report.exit_code == 0
    assert [(cell.listener, cell.broker) for cell in report.cells] == [
        (name, id) for name in ("INTERNAL", "EXTERNAL") for id in (1, 2, 3)
    ]
    for cell in report.cells:
        assert [stage.verdict for stage in cell.stages] == [Verdict.PASS] * 7
        assert cell.latency_ms is not None and cell.latency_ms > 0
        assert f"led by broker {cell.broker}" in cell.stages[5].detail
    assert sorted(reported_cells, key=str) == sorted(report.cells, key=str)
    assert report.notes == ()
    assert own_topics(cluster.contract) == set()


def test_nothing_is_written_where_no_records_are_wanted(cluster: Cluster) -> None:
    report = examine(cluster.contract, deadline=PATIENT, produce=False)
    assert report.verdict is Verdict.PASS
    assert {stage.verdict for cell in report.cells for stage in cell.stages[5:]} == {Verdict.SKIP}
    assert all(cell.latency_ms is None for cell in report.cells)


def test_without_a_contract(cluster: Cluster) -> None:
    seed = address(cluster.contract, "EXTERNAL", 2)
    report = examine([seed], deadline=PATIENT)
    assert report.verdict is Verdict.PASS
    assert [(cell.listener, cell.broker) for cell in report.cells] == [
        (str(seed), id) for id in (1, 2, 3)
    ]


def test_leftovers_go_and_a_living_run_keeps_its_topic(cluster: Cluster) -> None:
    contract = cluster.contract
    admin = AdminClient(configuration(contract.listeners[0].bootstrap, None, {}))
    killed_topic = topic_name(contract.cluster, run_id(), -1000)
    live_topic = topic_name(contract.cluster, run_id(), 60)
    foreign_topic = topic_name(f"{contract.cluster}-2", run_id(), -1000)
    for name in (killed_topic, live_topic, foreign_topic):
        create_topic(admin, name, [(1,)])
    report = examine(contract, deadline=PATIENT)
    assert own_topics(contract, {live_topic, foreign_topic}) == {live_topic, foreign_topic}
    assert report.notes == ("deleted 1 topic(s) of killed runs",)
    for future in admin.delete_topics([live_topic, foreign_topic]).values():
        future.result()


def test_interrupted_by_sigterm_it_takes_its_topic_along(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "contract.json").write_text(cluster.contract.to_json())
    script = """
import os, pathlib, signal, sys
from earshot.validation.contract import read_contract
from earshot.doctor import asking
from earshot.doctor.doctor import examine
contract = read_contract(pathlib.Path(sys.argv[1]).read_text(), "test")
examine(contract, on_cell=lambda cell: os.kill(os.getpid(), signal.SIGTERM))
"""
    command = [sys.executable, "-c", script, str(tmp_path / "contract.json")]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (completed.returncode, completed.stderr) == (143, "")
    assert own_topics(cluster.contract) == set()


def test_a_killed_broker_fails_its_own_cells_only(cluster: Cluster) -> None:
    cluster.kill(2)
    expected = {(name, 2): (Stage.TCP, "refused") for name in ("INTERNAL", "EXTERNAL")}
    # the cluster still lists it at first, and no longer after its session has ended
    fence_end = time.monotonic() + 60
    is_listed = True
    while is_listed:
        report = examine(cluster.contract, deadline=PATIENT)
        # on a busy machine a new active controller may take longer than a record may
        if failures(report) == expected:
            assert [cell.verdict for cell in report.cells].count(Verdict.PASS) == 4
            is_listed = "no listener lists broker 2" not in report.cells[1].stages[1].detail
        assert time.monotonic() < fence_end, failures(report)
        time.sleep(1)
    cluster.start(2)
    assert examine(cluster.contract, deadline=PATIENT).verdict is Verdict.PASS


@pytest.mark.combination
def test_a_broker_that_dies_in_the_middle(cluster: Cluster) -> None:
    """Killed after its metadata was read, before its record: only its cells fail, at the record."""
    contract = drifted_contract(cluster.contract)

    def kill(cell: Cell) -> None:
        if (cell.listener, cell.broker) == ("EXTERNAL", 3):
            cluster.kill(2)

    report = examine(contract, deadline=PATIENT, on_cell=kill)
    cluster.reset()  # the next tests do not start broker 2
    failed_cells = failures(report)
    assert failed_cells.pop(("EXTERNAL", 3)) == (Stage.METADATA, "drift")
    assert failed_cells == {
        (name, 2): (Stage.PRODUCE, "not-acknowledged") for name in ("INTERNAL", "EXTERNAL")
    }
    assert all("refused" in str(cell.cause) for cell in report.cells if cell.broker == 2)


@pytest.mark.combination
def test_a_broker_that_hangs_fails_its_own_cells_only(cluster: Cluster) -> None:
    """The broker's kernel accepts connections, but the broker never answers."""
    with cluster.suspended(2):
        report = examine(cluster.contract, deadline=15)
    assert failures(report) == {
        (name, 2): (Stage.BOOTSTRAP, "no-answer") for name in ("INTERNAL", "EXTERNAL")
    }


@pytest.mark.combination
def test_a_broker_that_is_fenced_before_the_topic_fails_its_own_cells_only(
    cluster: Cluster,
) -> None:
    """It hangs after its metadata was read, for so long that the controllers fence it: Kafka then
    refuses a topic with a partition on it alone."""
    contract = drifted_contract(cluster.contract)
    admin = AdminClient(configuration(contract.listeners[0].bootstrap, None, {}))
    with contextlib.ExitStack() as stack:

        def hang(cell: Cell) -> None:
            if (cell.listener, cell.broker) == ("EXTERNAL", 3):
                stack.enter_context(cluster.suspended(2))
                fence_end = time.monotonic() + PATIENT
                while 2 in admin.list_topics(timeout=PATIENT).brokers:
                    assert time.monotonic() < fence_end, "the cluster goes on listing it"
                    time.sleep(0.2)

        report = examine(contract, deadline=2 * PATIENT, on_cell=hang)
    assert failures(report) == {
        ("EXTERNAL", 3): (Stage.METADATA, "drift"),
        **{(name, 2): (Stage.PRODUCE, "fenced") for name in ("INTERNAL", "EXTERNAL")},
    }
    assert [cell.verdict for cell in report.cells].count(Verdict.PASS) == 3
    assert own_topics(contract) == set()


def test_drift(shared_cluster: Cluster) -> None:
    (port,) = free_ports(1)
    shared_cluster.advertise(3, EXTERNAL=f"localhost:{port}")
    report = examine(shared_cluster.contract)
    assert failures(report) == {("EXTERNAL", 3): (Stage.METADATA, "drift")}
    cause = report.cells[-1].cause
    assert cause is not None
    assert f"localhost:{port}" in cause.observed
    assert str(address(shared_cluster.contract, "EXTERNAL", 3)) in cause.expected


@pytest.mark.combination
def test_an_address_that_leads_to_two_brokers(
    shared_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a forwarder that takes each connection to the next of two brokers."""
    broker_addresses = [address(shared_cluster.contract, "EXTERNAL", id) for id in (3, 1)]
    with forwarder(*broker_addresses) as way:
        shared_cluster.advertise(3, EXTERNAL=str(way.address))
        host, port = way.address
        external = {"EXTERNAL": AdvertisedAddress(host=host, port=port)}
        moved_broker = shared_cluster.contract.brokers[2].model_copy(
            update={"advertised": shared_cluster.contract.brokers[2].advertised | external}
        )
        brokers = (*shared_cluster.contract.brokers[:2], moved_broker)
        contract = shared_cluster.contract.model_copy(update={"brokers": brokers})
        report = examine(contract)
        report_without_records = examine([broker_addresses[1]], produce=False)
        # of a user who may not ask a broker who it is
        monkeypatch.setattr(asking, "answering_broker", lambda *arguments: None)
        report_without_question = examine(contract, deadline=PATIENT)
    assert failures(report) == {("EXTERNAL", 3): (Stage.METADATA, "misrouted")}
    assert f"of 5 connections to {way.address} reached broker 1" in str(report.cells[-1].cause)
    assert list(failures(report_without_records).values()) == [(Stage.METADATA, "misrouted")]
    assert failures(report_without_question) == {("EXTERNAL", 3): (Stage.PRODUCE, "misrouted")}
    assert f"of 5 connections to {way.address} reached another" in str(
        report_without_question.cells[-1].cause
    )
    assert report_without_question.notes == ()


@pytest.mark.combination
def test_a_path_that_loses_some_messages(shared_cluster: Cluster) -> None:
    limits = {"request": 2**20, "answer": 2**20}
    swallowed_keys: set[int] = set()

    def swallows(key: int | None, size: int) -> bool:
        limit = limits["answer" if key is None else "request"]
        return size > limit or key in swallowed_keys

    with swallowing(address(shared_cluster.contract, "EXTERNAL", 3), swallows) as way:
        shared_cluster.advertise(3, EXTERNAL=str(way.address))
        place = way.address

        def cell_and_notes() -> tuple[Cell, tuple[str, ...]]:
            report = examine([place], deadline=PATIENT)
            (cell,) = (cell for cell in report.cells if cell.address == place)
            return cell, report.notes

        cell, notes = cell_and_notes()
        assert (cell.verdict, notes) == (Verdict.PASS, ())
        swallowed_keys.add(10)  # FindCoordinator
        cell, (note,) = cell_and_notes()
        assert cell.verdict is Verdict.PASS
        assert note.startswith("no consumer group finds its coordinator at ")
        swallowed_keys.clear()
        for key, size, stage in (("answer", 1400, Stage.CONSUME), ("request", 600, Stage.PRODUCE)):
            limits[key] = size
            cell, _ = cell_and_notes()
            assert cell.failed_stage is stage and cell.cause is not None
            assert cell.cause.kind == "large-packets"


def test_a_controllers_listener_is_named(shared_cluster: Cluster) -> None:
    controller = shared_cluster.plan.node(1).listener(shared_cluster.plan.controller)
    assert controller is not None
    report = examine([controller.advertised])
    (failure,) = failures(report).values()
    assert failure == (Stage.BOOTSTRAP, "controllers-listener")


def test_the_failure_of_the_seeds(shared_cluster: Cluster) -> None:
    """Bootstrap is accepted, the advertised name means nothing here."""
    seed = address(shared_cluster.contract, "EXTERNAL", 1)
    shared_cluster.advertise(3, EXTERNAL="nope.invalid:9092")
    report = examine([seed])
    assert failures(report) == {(str(seed), 3): (Stage.RESOLVE, "unresolvable")}
    cell = report.cells[-1]
    assert str(cell.address) == "nope.invalid:9092" and cell.cause is not None
    assert str(seed) in cell.cause.observed and "advertise" in cell.cause.remedy
    assert report.exit_code == 1


@pytest.mark.combination
@pytest.mark.parametrize(
    ("advertised", "kind"),
    [("my_kafka:9092", "unresolvable"), ("kafka:9094:30000", "no-host-name")],
)
def test_what_earshot_would_not_advertise(
    shared_cluster: Cluster, advertised: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka takes such names: they are shown and checked like any other."""
    seed = address(shared_cluster.contract, "EXTERNAL", 1)
    shared_cluster.advertise(3, EXTERNAL=advertised)
    report = examine([seed])
    assert failures(report) == {(str(seed), 3): (Stage.RESOLVE, kind)}
    assert [cell.verdict for cell in report.cells[:2]] == [Verdict.PASS] * 2
    shown_address = report.cells[2].address
    host, _, port = advertised.rpartition(":")
    assert shown_address == Address(host, int(port))
    assert read_report(json(report), "test") == report
    drift_report = examine(shared_cluster.contract)
    assert failures(drift_report) == {("EXTERNAL", 3): (Stage.METADATA, "drift")}
    assert f"broker 3 advertises {shown_address} to clients" in str(drift_report.cells[-1].cause)
    discovered_contract, *_ = discover([seed], {})
    assert discovered_contract.brokers[2].advertised["LISTENER_1"].address == shown_address
    assert cli.run(["doctor", "--bootstrap", str(seed)]) == 1
    assert f"cause     {kind}" in capsys.readouterr().out


@pytest.mark.combination
def test_two_brokers_at_one_address(shared_cluster: Cluster) -> None:
    shared_address = address(shared_cluster.contract, "EXTERNAL", 1)
    shared_cluster.advertise(3, EXTERNAL=str(shared_address))
    assert failures(examine(shared_cluster.contract)) == {
        ("EXTERNAL", 1): (Stage.METADATA, "shared-address"),
        ("EXTERNAL", 3): (Stage.METADATA, "drift"),
    }
    assert failures(examine([shared_address])) == {
        (str(shared_address), 1): (Stage.METADATA, "shared-address"),
        (str(shared_address), 3): (Stage.METADATA, "shared-address"),
    }


@pytest.mark.combination
def test_a_broker_without_the_listener_is_missing(shared_cluster: Cluster) -> None:
    plan = shared_cluster.plan
    shared_cluster.extra[3] = {
        key: ",".join(
            f"{listener.name}://{getattr(listener, side)}"
            for listener in plan.node(3).listeners
            if listener.name != "EXTERNAL"
        )
        for key, side in (("listeners", "bind"), ("advertised.listeners", "advertised"))
    }
    shared_cluster.stop(3)
    shared_cluster.start(3)
    assert failures(examine(shared_cluster.contract)) == {
        ("EXTERNAL", 3): (Stage.METADATA, "missing")
    }


def test_a_lost_quorum_is_a_cause_of_its_own(cluster: Cluster) -> None:
    cluster.kill(2)
    cluster.kill(3)
    failed_cells = failures(examine(cluster.contract))
    assert {key: kind for key, (_, kind) in failed_cells.items() if key[1] == 1} == {
        ("INTERNAL", 1): "no-quorum",
        ("EXTERNAL", 1): "no-quorum",
    }
    assert {kind for key, (_, kind) in failed_cells.items() if key[1] != 1} == {"refused"}


@pytest.mark.combination
def test_the_contract_names_the_listener_behind_an_unresolvable_name() -> None:
    listeners = (
        {"name": "INTERNAL", "scopes": ["internal"]},
        {"name": "EXTERNAL", "scopes": ["host"], "advertised": {1: "nope.invalid"}},
    )
    _, plan = local_plan(brokers=1, listeners=listeners)
    bind = plan.node(1).listeners[1].bind
    with running_cluster(plan) as cluster:
        seed = Address("localhost", bind.port)
        report = examine(cluster.contract, bootstrap=[seed])
    assert failures(report) == {("EXTERNAL", 1): (Stage.RESOLVE, "unresolvable")}
    assert report.notes == (
        f"{seed} is listener EXTERNAL; it advertises broker 1 at nope.invalid:{bind.port}",
    )
    assert report.cells[1].stages[0].detail.startswith(f"{seed} answered")


@pytest.mark.combination
def test_crossed_addresses_are_found_by_who_answers() -> None:
    """Metadata equals the contract, and every address reaches the other broker."""
    first_port, second_port = free_ports(2)
    crossed_listener = {
        "name": "EXTERNAL",
        "scopes": ["host"],
        "advertised": {1: f"localhost:{second_port}", 2: f"localhost:{first_port}"},
    }
    _, plan = local_plan(
        brokers=2, listeners=({"name": "INTERNAL", "scopes": ["internal"]}, crossed_listener)
    )
    ports = {1: first_port, 2: second_port}
    nodes = tuple(
        node.model_copy(
            update={
                "listeners": tuple(
                    listener.model_copy(update={"bind_port": ports[node.id]})
                    if listener.name == "EXTERNAL"
                    else listener
                    for listener in node.listeners
                )
            }
        )
        for node in plan.nodes
    )
    with running_cluster(plan.model_copy(update={"nodes": nodes})) as cluster:
        report = examine(cluster.contract)
    assert failures(report) == {("EXTERNAL", id): (Stage.METADATA, "misrouted") for id in (1, 2)}
    cause = report.cells[2].cause
    assert cause is not None
    assert cause.observed == f"localhost:{second_port} leads to broker 2, not to broker 1"


def allow_operations(cluster: Cluster, user: str, operations: Sequence[str]) -> None:
    """Allows ``user`` only these ``operations``, on topics of the doctor."""
    admin = AdminClient(configuration(cluster.contract.listeners[0].bootstrap, None, {}))
    any_value: Any = None
    all_bindings = AclBindingFilter(
        ResourceType.ANY,
        any_value,
        ResourcePatternType.ANY,
        any_value,
        any_value,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin.delete_acls([all_bindings])[all_bindings].result()
    bindings = [
        AclBinding(
            ResourceType.TOPIC,
            "__earshot-",
            ResourcePatternType.PREFIXED,
            f"User:{user}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for operation in operations
    ]
    for future in admin.create_acls(bindings).values() if bindings else ():
        future.result()


@pytest.mark.combination
def test_credentials() -> None:
    """A listener with SASL: right credentials pass, wrong ones fail at security, and a user who may
    not create topics lacks that right, and no quorum."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    listeners = (
        {"name": "INTERNAL", "scopes": ["internal"]},
        {"name": "EXTERNAL", "scopes": ["host"], "protocol": "SASL_PLAINTEXT"},
    )
    prefix = "listener.name.external"
    extra = {
        f"{prefix}.sasl.enabled.mechanisms": "PLAIN",
        f"{prefix}.plain.sasl.jaas.config": f'{module} user_alice="right" user_bob="right";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
    }
    _, plan = local_plan(brokers=1, listeners=listeners)

    def client(password: str, user: str = "alice") -> dict[str, str]:
        login = f'{module} username="{user}" password="{password}";'
        return {"sasl.mechanism": "PLAIN", "sasl.jaas.config": login}

    with running_cluster(plan, extra={1: extra}) as cluster:
        passed_report = examine(cluster.contract, client=client("right"), deadline=PATIENT)
        wrong_password_report = examine(cluster.contract, client=client("wrong"))
        report_without_login = examine([address(cluster.contract, "EXTERNAL", 1)])
        report_by_rights = {}
        for rights in ((), ("WRITE", "READ"), ("WRITE", "READ", "DELETE"), ("CREATE",)):
            allow_operations(cluster, "bob", rights)
            report_by_rights[rights] = examine(
                cluster.contract.with_listeners(["EXTERNAL"]), client=client("right", "bob")
            )
    for rights, report in report_by_rights.items():
        (cell,) = report.cells
        assert cell.verdict is Verdict.SKIP and cell.cause is not None, rights
        assert cell.cause.kind == "topic-authorization", (rights, cell.cause)
    assert passed_report.verdict is Verdict.PASS, failures(passed_report)
    assert failures(wrong_password_report) == {("EXTERNAL", 1): (Stage.SECURITY, "authentication")}
    assert "wrong" not in wrong_password_report.model_dump_json()
    assert list(failures(report_without_login).values()) == [(Stage.SECURITY, "protocol")]
    cause = report_without_login.cells[0].cause
    assert cause is not None and "it speaks SASL_PLAINTEXT (PLAIN)" in cause.observed


@pytest.mark.combination
def test_tls(certificate: Path) -> None:
    """A listener with TLS: its authority given, unknown, and for another name."""
    listeners = (
        {"name": "INTERNAL", "scopes": ["internal"]},
        {"name": "EXTERNAL", "scopes": ["host"], "protocol": "SSL"},
    )
    prefix = "listener.name.external.ssl.keystore"
    extra = {f"{prefix}.type": "PEM", f"{prefix}.location": str(certificate)}
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificate)}
    _, plan = local_plan(brokers=1, listeners=listeners)
    with running_cluster(plan, extra={1: extra}) as cluster:
        passed_report = examine(cluster.contract, client=trusted, deadline=PATIENT)
        untrusted_report = examine(cluster.contract)
        plaintext_report = examine([address(cluster.contract, "EXTERNAL", 1)])
        cluster.advertise(1, EXTERNAL=f"127.0.0.1:{address(cluster.contract, 'EXTERNAL', 1).port}")
        seed = address(cluster.contract, "EXTERNAL", 1)
        tls_settings = trusted | {"security.protocol": "SSL"}
        wrong_name_report = examine([seed], client=tls_settings, deadline=PATIENT)
    assert passed_report.verdict is Verdict.PASS, failures(passed_report)
    assert "TLSv1.3" in passed_report.cells[1].stages[4].detail
    assert failures(untrusted_report) == {
        ("EXTERNAL", 1): (Stage.SECURITY, "certificate-untrusted")
    }
    assert list(failures(plaintext_report).values()) == [(Stage.SECURITY, "protocol")]
    cause = plaintext_report.cells[0].cause
    assert cause is not None and "it speaks SSL, and this client PLAINTEXT" in cause.observed
    assert failures(wrong_name_report) == {(str(seed), 1): (Stage.SECURITY, "certificate-name")}
