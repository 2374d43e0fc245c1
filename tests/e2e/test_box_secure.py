"""A secured broker on AWS in a box: certificates, users and permissions that nobody made by hand,
and secrets that only the instances which need them fetch. The tests go on from each other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from earshot.certificates.authority import read_certificate
from earshot.certificates.store import Store
from earshot.listeners.properties import read_properties
from earshot.listeners.terms import Scope
from earshot.report.json import read_report
from earshot.user_data.boot import SECRETS
from earshot.validation.client import translate
from earshot.validation.result import Report
from earshot.validation.terms import Stage, Verdict
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.place import Place
from tests.e2e.box.stack import BoxStack, passed
from tests.e2e.box.state import user_data
from tests.e2e.project import STACK
from tests.e2e.secured import holders, secrets_in, watched
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

BROKER = f"{STACK}-broker-1"
PARAMETERS = f"/earshot/{STACK}/security"
STATE = Path(".earshot", "stacks", STACK)
SECURITY = {"users": [{"name": "app", "prefixes": ["app-"]}]}


@dataclass
class Secured:
    """The stack, up and proved once from beyond, and what could be seen of processes meanwhile."""

    box: CloudBox
    stack: BoxStack
    laptop: Place
    before: set[str]
    """What there was before the stack."""
    said: set[str] = field(default_factory=set)

    @property
    def folder(self) -> Path:
        return self.stack.project.folder

    @property
    def store(self) -> Store:
        return Store(self.folder / STATE / "kafka" / "security")

    @property
    def secrets(self) -> dict[str, str]:
        """By file or parameter, what nothing else may hold."""
        found = secrets_in(self.store.folder)
        lines = self.parameter("users").splitlines()
        # a user's password in base64, as the instance is told
        return found | {line: line.split()[2] for line in lines if line.startswith("password")}

    def parameter(self, name: str) -> str:
        ssm = self.box.server.client("ssm")
        asked = {"Name": f"{PARAMETERS}/{name}", "WithDecryption": True}
        return str(ssm.get_parameter(**asked)["Parameter"]["Value"])

    def earshot(self, place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = place.command(sys.executable, "-m", "earshot", *arguments)
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="module")
def secured(box: CloudBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    before = box.server.holdings()
    with box.place("outside") as laptop:
        stack = box.stack(tmp_path_factory.mktemp("secure") / "stack", laptop)
        stack.configure(box.cluster(1, security=SECURITY, clear_text={}, prove="here"))
        made = Secured(box, stack, laptop, before)
        with watched(made.said):
            stack.up()
        yield made


def security_of(report: Report) -> set[tuple[str, str]]:
    return {
        (cell.listener, item.detail.partition(",")[0])
        for cell in report.cells
        for item in cell.stages
        if item.stage is Stage.SECURITY and cell.verdict is Verdict.PASS
    }


def test_it_is_proved_from_both_sides_as_the_validator(secured: Secured, tmp_path: Path) -> None:
    file = secured.folder / STATE / "report.json"
    report = read_report(file.read_bytes(), str(file))
    found = {(it.vantage, it.listener): it.verdict for it in report.cells}
    assert found == {("external", "EXTERNAL"): Verdict.PASS, ("internal", "INTERNAL"): Verdict.SKIP}
    assert security_of(report) == {("EXTERNAL", "SASL_SSL")}
    assert str(secured.stack.project.outputs()["certificates_expire"]).startswith("20")

    contract, found_inside = tmp_path / "contract.json", tmp_path / "report.json"
    contract.write_text(secured.stack.contract().for_scope(Scope.INTERNAL).to_json())
    with secured.box.place("inside") as inside:
        told = secured.earshot(
            inside, "validate", "--contract", str(contract), "--vantage", "internal",
            "--client-config", str(secured.store.folder / "validator.properties"),
            "--records", "0", "-o", str(found_inside),
        )  # fmt: skip
    assert found_inside.exists(), told.stderr
    report = read_report(found_inside.read_bytes(), "report")
    assert passed(report) == {("internal", "INTERNAL", 1)}
    assert security_of(report) == {("INTERNAL", "SSL")}


def test_each_instance_is_shown_its_own_secrets_alone(secured: Secured) -> None:
    ssm = secured.box.server.client("ssm")
    path = {"Path": PARAMETERS, "Recursive": True}
    kinds = {it["Name"]: it["Type"] for it in ssm.get_parameters_by_path(**path)["Parameters"]}
    names = ("authority", "node-1", "trusted", "users")
    assert kinds == {f"{PARAMETERS}/{it}": "SecureString" for it in names}
    broker = secured.box.instance(BROKER)
    listed = broker.run("find", SECRETS, "-printf", "%m %u %P\n").splitlines()
    files = ("400 kafka ca.pem", "400 kafka node-1.pem", "400 kafka users")
    assert sorted(listed) == sorted(["500 kafka ", *files])
    own = f"{SECRETS}/node-1.pem"
    assert broker.run("stat", "--file-system", "--format=%T", own).strip() == "tmpfs"
    held = read_certificate(broker.run("cat", own))
    names_given = secured.stack.project.outputs()["names"]["1"]
    assert set(held.names.dns) == {names_given["internal"], names_given["external"]}


def test_no_secret_is_anywhere_but_in_its_own_file(secured: Secured, tmp_path: Path) -> None:
    box, project, secrets = secured.box, secured.stack.project, secured.secrets
    (machine,) = (it for it in box.held().machines.values() if it.name == BROKER)
    broker = box.instance(BROKER)
    shown = {
        "state": project.runs("stack", "export", "--show-secrets"),
        "preview": project.runs("preview", "--diff", "--show-secrets"),
        "user data": user_data(box.server, machine.id).decode(),
        "container": box.engine.run("inspect", broker.container),
        "journal": broker.journal(),
        "processes": "\n".join(secured.said),
    }
    found = [(place, it) for place in shown for it, text in secrets.items() if text in shown[place]]
    assert not found
    own = {str(STATE / "kafka" / "security" / name) for name in secrets_in(secured.store.folder)}
    own.add(str(STATE / "kafka" / "security" / "validator.properties"))
    assert holders(secured.folder, secrets) == own
    for name in own:
        assert (secured.folder / name).stat().st_mode & 0o777 == 0o600, name
    fetched = {f"{SECRETS}/node-1.pem", f"{SECRETS}/users"}
    assert searched(secured, tmp_path, secrets) == fetched
    broker.run("cp", f"{SECRETS}/node-1.pem", "/etc/kafka/planted")
    assert searched(secured, tmp_path, secrets) == {*fetched, "/etc/kafka/planted"}
    broker.run("rm", "/etc/kafka/planted")


def searched(secured: Secured, folder: Path, secrets: Mapping[str, str]) -> set[str]:
    """The files of the instance that hold one of ``secrets``."""
    patterns, broker = folder / "patterns", secured.box.instance(BROKER)
    patterns.write_text("\n".join(secrets.values()) + "\n")
    secured.box.engine.run("cp", str(patterns), f"{broker.container}:/patterns")
    places = "/etc /home /opt /root /run /tmp /usr/local /var"
    command = f"grep -rlsF --devices=skip -f /patterns {places}; rm /patterns"
    return set(broker.run("sh", "-c", command).split())


def test_users_come_in_and_nobody_else(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "app.properties"
    told = secured.earshot(
        secured.laptop, "client", "--stack", STACK, "--user", "app", "--listener", "EXTERNAL",
        "--output", str(file),
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    values = read_properties(file.read_text()).values
    app = {**translate(values), "bootstrap.servers": values["bootstrap.servers"]}
    nobody = {key: it for key, it in app.items() if not key.startswith("sasl.")}
    clients = {
        "app": (app, "app-orders"),
        "app elsewhere": (app, "other"),
        "wrong password": ({**app, "sasl.password": "wrong"}, "app-orders"),
        "no password": ({**nobody, "security.protocol": "SSL"}, "app-orders"),
        "no TLS": ({**nobody, "security.protocol": "PLAINTEXT"}, "app-orders"),
    }
    asked = tmp_path / "clients.json"
    asked.write_text(json.dumps(list(clients.values())))
    command = secured.laptop.command(sys.executable, "-m", "tests.e2e.distant_writers", str(asked))
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert said.returncode == 0, said.stderr
    became = dict(zip(clients, json.loads(said.stdout), strict=True))
    expected = {
        "app": "written",
        "app elsewhere": "authorization",
        "wrong password": "authentication",
    }
    assert {who: became[who] for who in expected} == expected
    assert all(became[who] != "written" for who in clients.keys() - {"app"}), became


def test_nothing_is_left_when_it_is_destroyed(secured: Secured) -> None:
    """The last one."""
    assert "unchanged" in secured.stack.up("--expect-no-changes")
    secured.stack.destroy()
    secured.box.settle()
    assert secured.box.server.holdings() == secured.before
    assert json.loads(secured.stack.project.runs("stack", "export"))["deployment"] is not None
