"""Three secured brokers and a controller on AWS in a box: certificates, users and permissions that
nobody made by hand, secrets that only the instances which need them fetch, and a listener for each
side. The tests go on from each other; how listeners change is in `tests/e2e/box/change.py`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from earshot.certificates.authority import read_certificate
from earshot.report.json import read_report
from earshot.user_data.boot import SECRETS
from earshot.validation.terms import Verdict
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.secured import (
    BROKERS,
    EXTERNAL,
    INTERNAL,
    NODES,
    PARAMETERS,
    PORT,
    STATE,
    SecuredBox,
    secured_box,
    security_of,
)
from tests.e2e.box.stack import RECORDS, passed_cells
from tests.e2e.box.state import user_data
from tests.e2e.open_sockets import documented_addresses, open_sockets
from tests.e2e.secured import holders, secrets_in
from tests.e2e.stranger import Stranger

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def secured(box: CloudBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBox]:
    with secured_box(box, tmp_path_factory.mktemp("secure") / "stack") as new_secured_box:
        yield new_secured_box


def test_every_broker_is_proved_from_both_sides_as_the_validator(
    secured: SecuredBox, tmp_path: Path
) -> None:
    machines = {machine.name: machine for machine in secured.box.moto_state().machines.values()}
    assert sorted(machines) == list(NODES.values())
    file = secured.folder / STATE / "report.json"
    report = read_report(file.read_bytes(), str(file))
    expected_verdicts = {("external", EXTERNAL): Verdict.PASS, ("internal", INTERNAL): Verdict.SKIP}
    assert {
        (cell.vantage, cell.listener): cell.verdict for cell in report.cells
    } == expected_verdicts
    assert security_of(report) == {(EXTERNAL, "SASL_SSL")}
    assert str(secured.stack.project.outputs()["certificates_expire"]).startswith("20")

    report = secured.stack.validate(tmp_path, "--client-config", str(secured.validator), *RECORDS)
    assert passed_cells(report) == {
        (*side, id) for side in (("internal", INTERNAL), ("external", EXTERNAL)) for id in BROKERS
    }
    assert security_of(report) == {(EXTERNAL, "SASL_SSL"), (INTERNAL, "SSL")}

    assert "unchanged" in secured.stack.up("--expect-no-changes")
    assert {
        machine.name: machine for machine in secured.box.moto_state().machines.values()
    } == machines


def test_only_who_is_meant_comes_in(secured: SecuredBox) -> None:
    """Names resolve to the right addresses on each side. Security groups admit their sources."""
    box, names = secured.box, secured.stack.project.outputs()["names"]["2"]
    machines = {machine.name: machine for machine in box.moto_state().machines.values()}
    broker, controller = machines[BROKERS[2]], machines[NODES[10001]]
    with box.place("inside") as inside, box.place("outside", box.stranger) as stranger:
        outside = secured.laptop
        assert inside.lookup(names["internal"]) == [broker.private]
        assert inside.lookup(names["external"]) == [broker.private]
        assert outside.lookup(names["external"]) == [broker.elastic]
        assert outside.lookup(names["internal"]) == []

        assert inside.opens(broker.private, 19092)
        assert outside.opens(broker.elastic, PORT)
        assert not outside.opens(broker.elastic, 19092), "INTERNAL is for the VPC"
        assert not outside.opens(broker.private, 19092), "no way leads there"
        assert not inside.opens(controller.private, 29092), "controllers are for brokers"
        assert controller.elastic == ""
        assert not inside.opens(broker.private, PORT), "EXTERNAL is for the office"
        assert not stranger.opens(broker.elastic, PORT), "EXTERNAL is for the office"


def test_each_instance_is_shown_its_own_secrets_alone(secured: SecuredBox) -> None:
    ssm = secured.box.server.client("ssm")
    path = {"Path": PARAMETERS, "Recursive": True}
    kinds = {
        parameter["Name"]: parameter["Type"]
        for parameter in ssm.get_parameters_by_path(**path)["Parameters"]
    }
    names = ("authority", *(f"node-{id}" for id in NODES), "trusted", "users")
    assert kinds == {f"{PARAMETERS}/{name}": "SecureString" for name in names}
    node_names = secured.stack.project.outputs()["names"]
    for id, name in NODES.items():
        files = {"ca.pem", f"node-{id}.pem"} | ({"users"} if id == 1 else set())
        assert secured.secret_file_rights(name) == dict.fromkeys(files, "400 kafka")
        broker, key_file = secured.box.instance(name), f"{SECRETS}/node-{id}.pem"
        assert broker.run("stat", "--file-system", "--format=%T", key_file).strip() == "tmpfs"
        certificate = read_certificate(broker.run("cat", key_file))
        assert set(certificate.names.dns) == set(node_names[str(id)].values())
        assert ("external" in node_names[str(id)]) == (id in BROKERS)


def test_no_secret_is_anywhere_but_in_its_own_file(secured: SecuredBox, tmp_path: Path) -> None:
    box, project, secrets = secured.box, secured.stack.project, secured.secrets
    public_texts = {
        "state": project.run("stack", "export", "--show-secrets"),
        "preview": project.run("preview", "--diff", "--show-secrets"),
        "processes": "\n".join(secured.process_texts),
    }
    for machine in box.moto_state().machines.values():
        broker = box.instance(machine.name)
        public_texts |= {
            f"{machine.name}: user data": user_data(box.server, machine.id).decode(),
            f"{machine.name}: container": box.engine.run("inspect", broker.container),
            f"{machine.name}: journal": broker.journal(),
        }
    leaks = [
        (place, secret)
        for place in public_texts
        for secret, text in secrets.items()
        if text in public_texts[place]
    ]
    assert not leaks
    secret_files = {
        str(STATE / "kafka" / "security" / name) for name in secrets_in(secured.store.folder)
    }
    secret_files.add(str(STATE / "kafka" / "security" / "validator.properties"))
    assert holders(secured.folder, secrets) == secret_files
    for name in secret_files:
        assert (secured.folder / name).stat().st_mode & 0o777 == 0o600, name
    for id, name in NODES.items():
        fetched_files = {f"{SECRETS}/node-{id}.pem"} | ({f"{SECRETS}/users"} if id == 1 else set())
        assert secured.files_with_secrets(name, tmp_path) == fetched_files
    broker = box.instance(BROKERS[2])
    broker.run("cp", f"{SECRETS}/node-2.pem", "/etc/kafka/planted")
    assert "/etc/kafka/planted" in secured.files_with_secrets(BROKERS[2], tmp_path)
    broker.run("rm", "/etc/kafka/planted")


def test_another_user_gets_no_secret_from_any_port_or_file(secured: SecuredBox) -> None:
    """The laptop is attacked during an update and a Spark run, then a broker's instance is."""
    attack, table, secrets, box = (
        secured.attack,
        documented_addresses(),
        secured.secrets,
        secured.box,
    )
    processes = {socket.process for socket in attack.sockets.values()}
    double_processes = {process for process in processes if "plugins/resource-aws-" in process}
    assert {
        "Spark driver",
        "Pulumi engine",
        "earshot's plugin, gate",
    } <= processes - double_processes
    assert double_processes and processes - double_processes <= table.keys(), processes
    assert attack.answers and attack.exposed(secrets) == []
    assert attack.readable and attack.holders == set()
    planted_file = secured.folder / "planted.txt"
    planted_file.write_text(secrets["app.password"])
    with Stranger(secured.laptop.pid) as stranger:
        _, holders = stranger.readable(secured.folder, secrets.values())
    planted_file.unlink()
    assert holders == ["planted.txt"]
    for name in BROKERS.values():
        container = box.instance(name).container
        pid = int(box.engine.run("inspect", "--format={{.State.Pid}}", container))
        on_instance = open_sockets(psutil.Process(pid), network=pid)
        assert "Kafka node" in {open_socket.process for open_socket in on_instance}
        with Stranger(pid) as stranger:
            answers = stranger.answers(open_socket.port for open_socket in on_instance)
        assert answers and not any(
            secret.encode() in answer for _, _, answer in answers for secret in secrets.values()
        )


def test_only_users_are_admitted(secured: SecuredBox, tmp_path: Path) -> None:
    app = secured.client("app", EXTERNAL)
    without_login = {key: value for key, value in app.items() if not key.startswith("sasl.")}
    clients = {
        "app": (app, "app-orders"),
        "app elsewhere": (app, "other"),
        "wrong password": ({**app, "sasl.password": "wrong"}, "app-orders"),
        "no password": ({**without_login, "security.protocol": "SSL"}, "app-orders"),
        "no TLS": ({**without_login, "security.protocol": "PLAINTEXT"}, "app-orders"),
    }
    results = secured.write_results(secured.laptop, tmp_path / "clients.json", clients)
    expected = {
        "app": "written",
        "app elsewhere": "authorization",
        "wrong password": "authentication",
    }
    assert {client: results[client] for client in expected} == expected
    assert all(results[client] != "written" for client in clients.keys() - {"app"}), results


def loop_devices() -> str:
    return subprocess.run(["losetup", "--list"], check=True, capture_output=True, text=True).stdout


def test_nothing_is_left_when_it_is_destroyed(secured: SecuredBox) -> None:
    """The last one."""
    box = secured.box
    assert "unchanged" in secured.stack.up("--expect-no-changes")
    volumes = [id for machine in box.moto_state().machines.values() for id in machine.volumes]
    disks = [str(box.fleet.disk(id).device) for id in volumes]
    assert len(disks) == len(NODES) and all(device in loop_devices() for device in disks)
    secured.stack.destroy()
    box.settle()
    assert box.server.holdings() == secured.old_holdings
    assert box.fleet.remaining == []
    assert not any(device in loop_devices() for device in disks)
    assert json.loads(secured.stack.project.run("stack", "export"))["deployment"] is not None
