"""Three secured brokers and a controller on AWS in a box: certificates, users and permissions that
nobody made by hand, secrets that only the instances which need them fetch, a listener for each
side, and listeners that change under running producers. The tests go on from each other."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from earshot.certificates.authority import read_certificate
from earshot.placement.aws import report_parameter
from earshot.report.json import read_report
from earshot.user_data.boot import SECRETS
from earshot.user_data.node_report import NodeReport
from earshot.validation.terms import Verdict
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.secured import PARAMETERS, STATE, SecuredBox, security_of
from tests.e2e.box.stack import RECORDS, passed
from tests.e2e.box.state import user_data
from tests.e2e.distant_producer import DistantProducer
from tests.e2e.project import STACK
from tests.e2e.secured import holders, secrets_in, watched
from tests.e2e.steady_producer import all_there, longest_wait, longest_wait_of_a_partition
from tests.measured import MEASURED
from toolchain.state_files import recover

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

BROKERS = {id: f"{STACK}-broker-{id}" for id in (1, 2, 3)}
NODES = {**BROKERS, 10001: f"{STACK}-controller-10001"}
META = "/var/lib/kafka/data/meta.properties"
SECURITY = {"users": [{"name": "app", "prefixes": ["app-"]}]}
PATIENCE = 300.0
OLD, NEW = 9092, 9192
"""EXTERNAL's port."""
INTERNAL, EXTERNAL, REPL = "INTERNAL", "EXTERNAL", "REPL"


def cluster(box: CloudBox, **settings: Any) -> dict[str, Any]:
    """With replication factor 3, two replicas in sync at least, and nothing written by a proof."""
    return box.cluster(
        3,
        security=SECURITY,
        clear_text={},
        prove="here",
        replication_factor=3,
        min_insync_replicas=2,
        controllers={"mode": "separate", "count": 1, "port": 29092},
        controller_volume={"size_gib": 1},
        validation={"records": 0, "deadline": 240},
        **settings,
    )


@pytest.fixture(scope="module")
def secured(box: CloudBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBox]:
    before = box.server.holdings()
    with box.place("outside") as laptop:
        stack = box.stack(tmp_path_factory.mktemp("secure") / "stack", laptop)
        stack.configure(cluster(box))
        made = SecuredBox(box, stack, laptop, before)
        with watched(made.said):
            stack.up()
        yield made


def test_every_broker_is_proved_from_both_sides_as_the_validator(
    secured: SecuredBox, tmp_path: Path
) -> None:
    running = {it.name: it for it in secured.box.held().machines.values()}
    assert sorted(running) == list(NODES.values())
    file = secured.folder / STATE / "report.json"
    report = read_report(file.read_bytes(), str(file))
    here = {("external", EXTERNAL): Verdict.PASS, ("internal", INTERNAL): Verdict.SKIP}
    assert {(it.vantage, it.listener): it.verdict for it in report.cells} == here
    assert security_of(report) == {(EXTERNAL, "SASL_SSL")}
    assert str(secured.stack.project.outputs()["certificates_expire"]).startswith("20")

    report = secured.stack.validate(tmp_path, "--client-config", str(secured.validator), *RECORDS)
    assert passed(report) == {
        (*side, id) for side in (("internal", INTERNAL), ("external", EXTERNAL)) for id in BROKERS
    }
    assert security_of(report) == {(EXTERNAL, "SASL_SSL"), (INTERNAL, "SSL")}

    assert "unchanged" in secured.stack.up("--expect-no-changes")
    assert {it.name: it for it in secured.box.held().machines.values()} == running


def test_only_who_is_meant_comes_in(secured: SecuredBox) -> None:
    """Names mean on each side what they should, and the groups let in whom they name."""
    box, names = secured.box, secured.stack.project.outputs()["names"]["2"]
    machines = {it.name: it for it in box.held().machines.values()}
    broker, controller = machines[BROKERS[2]], machines[NODES[10001]]
    with box.place("inside") as inside, box.place("outside", box.stranger) as stranger:
        outside = secured.laptop
        assert inside.lookup(names["internal"]) == [broker.private]
        assert inside.lookup(names["external"]) == [broker.private]
        assert outside.lookup(names["external"]) == [broker.elastic]
        assert outside.lookup(names["internal"]) == []

        assert inside.opens(broker.private, 19092)
        assert outside.opens(broker.elastic, OLD)
        assert not outside.opens(broker.elastic, 19092), "INTERNAL is for the VPC"
        assert not outside.opens(broker.private, 19092), "no way leads there"
        assert not inside.opens(controller.private, 29092), "controllers are for brokers"
        assert controller.elastic == ""
        assert not inside.opens(broker.private, OLD), "EXTERNAL is for the office"
        assert not stranger.opens(broker.elastic, OLD), "EXTERNAL is for the office"


def test_each_instance_is_shown_its_own_secrets_alone(secured: SecuredBox) -> None:
    ssm = secured.box.server.client("ssm")
    path = {"Path": PARAMETERS, "Recursive": True}
    kinds = {it["Name"]: it["Type"] for it in ssm.get_parameters_by_path(**path)["Parameters"]}
    names = ("authority", *(f"node-{id}" for id in NODES), "trusted", "users")
    assert kinds == {f"{PARAMETERS}/{it}": "SecureString" for it in names}
    given = secured.stack.project.outputs()["names"]
    for id, name in NODES.items():
        files = {"ca.pem", f"node-{id}.pem"} | ({"users"} if id == 1 else set())
        assert secured.fetched(name) == dict.fromkeys(files, "400 kafka")
        broker, own = secured.box.instance(name), f"{SECRETS}/node-{id}.pem"
        assert broker.run("stat", "--file-system", "--format=%T", own).strip() == "tmpfs"
        held = read_certificate(broker.run("cat", own))
        assert set(held.names.dns) == set(given[str(id)].values())
        assert ("external" in given[str(id)]) == (id in BROKERS)


def test_no_secret_is_anywhere_but_in_its_own_file(secured: SecuredBox, tmp_path: Path) -> None:
    box, project, secrets = secured.box, secured.stack.project, secured.secrets
    shown = {
        "state": project.runs("stack", "export", "--show-secrets"),
        "preview": project.runs("preview", "--diff", "--show-secrets"),
        "processes": "\n".join(secured.said),
    }
    for machine in box.held().machines.values():
        broker = box.instance(machine.name)
        shown |= {
            f"{machine.name}: user data": user_data(box.server, machine.id).decode(),
            f"{machine.name}: container": box.engine.run("inspect", broker.container),
            f"{machine.name}: journal": broker.journal(),
        }
    found = [(place, it) for place in shown for it, text in secrets.items() if text in shown[place]]
    assert not found
    own = {str(STATE / "kafka" / "security" / name) for name in secrets_in(secured.store.folder)}
    own.add(str(STATE / "kafka" / "security" / "validator.properties"))
    assert holders(secured.folder, secrets) == own
    for name in own:
        assert (secured.folder / name).stat().st_mode & 0o777 == 0o600, name
    for id, name in NODES.items():
        fetched = {f"{SECRETS}/node-{id}.pem"} | ({f"{SECRETS}/users"} if id == 1 else set())
        assert secured.searched(name, tmp_path) == fetched
    broker = box.instance(BROKERS[2])
    broker.run("cp", f"{SECRETS}/node-2.pem", "/etc/kafka/planted")
    assert "/etc/kafka/planted" in secured.searched(BROKERS[2], tmp_path)
    broker.run("rm", "/etc/kafka/planted")


def test_users_come_in_and_nobody_else(secured: SecuredBox, tmp_path: Path) -> None:
    app = secured.client("app", EXTERNAL)
    nobody = {key: it for key, it in app.items() if not key.startswith("sasl.")}
    clients = {
        "app": (app, "app-orders"),
        "app elsewhere": (app, "other"),
        "wrong password": ({**app, "sasl.password": "wrong"}, "app-orders"),
        "no password": ({**nobody, "security.protocol": "SSL"}, "app-orders"),
        "no TLS": ({**nobody, "security.protocol": "PLAINTEXT"}, "app-orders"),
    }
    became = secured.became(secured.laptop, tmp_path / "clients.json", clients)
    expected = {
        "app": "written",
        "app elsewhere": "authorization",
        "wrong password": "authentication",
    }
    assert {who: became[who] for who in expected} == expected
    assert all(became[who] != "written" for who in clients.keys() - {"app"}), became


@dataclass(frozen=True)
class Kept:
    """What a broker must have before and after."""

    private: str
    elastic: str
    volume: str
    device: str
    """The disk below the volume."""
    meta: str
    """What Kafka wrote when it formatted its storage, a random id of the folder included."""


def kept(box: CloudBox) -> dict[str, Kept]:
    box.settle()
    found, running = {}, box.instances()
    for machine in box.held().machines.values():
        (volume,) = machine.volumes
        found[machine.name] = Kept(
            machine.private,
            machine.elastic,
            volume,
            str(box.fleet.disk(volume).device),
            running[machine.name].run("cat", META),
        )
    return found


def ids(box: CloudBox) -> dict[str, str]:
    """Instances by name."""
    return {machine.name: id for id, machine in box.held().machines.items()}


def happened(box: CloudBox, since: float) -> list[tuple[str, str]]:
    """What was done with instances, and which said that they were in sync, in its order."""
    found: list[tuple[float, str, str]] = [
        (it.when, it.what, it.name) for it in box.fleet.doings if it.when > since
    ]
    ssm, told = box.server.client("ssm"), set[str]()
    for id, name in BROKERS.items():
        parameter = report_parameter(STACK, f"broker-{id}")
        for item in ssm.get_parameter_history(Name=parameter)["Parameters"]:
            report, when = NodeReport.read(item["Value"]), item["LastModifiedDate"].timestamp()
            if report is not None and report.serves and report.instance not in told:
                told.add(report.instance)  # it may say so again and again
                found.append((when, report.state.value, name))
    return [(what, name) for when, what, name in sorted(found) if when > since]


def one_by_one(ids: tuple[int, ...]) -> list[tuple[str, str]]:
    return [(what, BROKERS[id]) for id in ids for what in ("off", "on", "in-sync")]


@contextlib.contextmanager
def until_replaced(secured: SecuredBox, id: int) -> Iterator[subprocess.Popen[str]]:
    """An update, once the broker ``id`` has another instance, which boots; it ends within."""
    since, end = time.time(), time.monotonic() + PATIENCE
    with secured.stack.project.updating() as child:
        while ("on", BROKERS[id]) not in happened(secured.box, since):
            assert child.poll() is None and time.monotonic() < end
            time.sleep(0.2)
        yield child
    recover(secured.stack.project.environment, STACK)  # as `make up` does before it calls the CLI


@dataclass
class Traffic:
    """A producer on each listener that stays to the end: EXTERNAL, and REPL once it is there."""

    producers: dict[str, DistantProducer]
    writing: contextlib.ExitStack
    """Ends both."""


@pytest.fixture(scope="module")
def traffic() -> Iterator[Traffic]:
    with contextlib.ExitStack() as writing:
        yield Traffic({}, writing)


def begins(traffic: Traffic, secured: SecuredBox, side: Any, listener: str, folder: Path) -> None:
    """A producer of the user on ``listener``; it is told no other address later."""
    file = folder / f"{listener}.json"
    file.write_text(json.dumps(secured.client("app", listener)))
    place = traffic.writing.enter_context(secured.box.place(side))
    producer = DistantProducer(place.command, file, f"app-through-{listener}")
    traffic.producers[listener] = traffic.writing.enter_context(producer)


def seen(secured: SecuredBox) -> dict[str, bool]:
    """The listeners of the contract, and which of them are leaving."""
    contract = secured.stack.project.outputs()["contract"]
    return {it["name"]: it["leaving"] for it in contract["listeners"]}


def test_a_listener_comes_and_another_one_moves_with_its_clients(
    secured: SecuredBox, traffic: Traffic, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The first of three steps, ended by Ctrl-C: INTERNAL is to become REPL, EXTERNAL gets another
    port."""
    box, folder = secured.box, tmp_path_factory.mktemp("clients")
    begins(traffic, secured, "outside", EXTERNAL, folder)
    known = secured.client("app", EXTERNAL)
    first, running = kept(box), ids(box)
    changed = cluster(box)
    internal, external = changed["listeners"]
    assert (internal["name"], external["name"], external["port"]) == (INTERNAL, EXTERNAL, OLD)
    changed["listeners"] = [{**internal, "name": REPL, "port": 19192}, {**external, "port": NEW}]
    secured.stack.configure(changed)
    began = time.time()
    with until_replaced(secured, 1) as child:
        late = {"app": (known, "app-orders")}
        became = secured.became(secured.laptop, folder / "late.json", late)
        assert became == {"app": "written"}, "through the brokers that have not moved"
        os.killpg(child.pid, signal.SIGINT)
        child.communicate(timeout=PATIENCE)
        assert child.returncode != 0
    told = secured.stack.up()
    assert "step 1 of 3: INTERNAL and REPL side by side; EXTERNAL at other" in told
    assert happened(box, began) == one_by_one((1, 2, 3))
    assert kept(box) == first
    assert {name for name, id in ids(box).items() if running[name] == id} == {NODES[10001]}
    for name in BROKERS.values():
        assert "since clean shutdown file" in box.instances()[name].journal("kafka"), name
    assert seen(secured) == {INTERNAL: True, EXTERNAL: False, REPL: False}
    begins(traffic, secured, "inside", REPL, folder)


def test_brokers_reach_each_other_by_the_new_one(secured: SecuredBox) -> None:
    """The second step, in which a broker is killed."""
    began = time.time()
    with until_replaced(secured, 1) as child:
        secured.box.instances()[BROKERS[3]].run("systemctl", "kill", "--signal=KILL", "kafka")
        told, _ = child.communicate(timeout=PATIENCE)
    if child.returncode:
        told = secured.stack.up()
    assert "step 2 of 3: brokers reach each other through REPL; run again" in told
    assert happened(secured.box, began) == one_by_one((1, 2, 3))


def test_a_listener_goes_once_nobody_uses_it_and_no_acknowledged_record_is_lost(
    secured: SecuredBox, traffic: Traffic, record_property: Callable[[str, object], None]
) -> None:
    """The third step, in which the CLI is killed."""
    box, running = secured.box, ids(secured.box)
    broker = next(it for it in box.held().machines.values() if it.name == BROKERS[2])
    with box.place("inside") as inside:
        held = inside.command("bash", "-c", f"exec 3<>/dev/tcp/{broker.private}/19092; sleep 600")
        with subprocess.Popen(held) as client:
            refused = " ".join(secured.stack.project.fails().split())
            client.kill()
        who = (
            f"listener INTERNAL would go, and has 1 connection of clients: 1 from {inside.address}"
        )
        assert who in refused, refused
    assert ids(box) == running
    with until_replaced(secured, 1) as child:
        below = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGKILL)
        psutil.wait_procs(below, 60)
    assert "step 3 of 3: INTERNAL taken away" in secured.stack.up("--refresh")
    assert seen(secured) == {REPL: False, EXTERNAL: False}
    traffic.writing.close()
    outputs = secured.stack.project.outputs()
    for name, producer in traffic.producers.items():
        assert producer.failed == [] and len(producer.acknowledged) == producer.sent > 0
        all_there(producer.acknowledged, producer.found)
        assert len(producer.found) == producer.sent, "and none was written twice"
        # it was told no new address: it has learned them from the brokers that it still knew
        bootstrap = outputs[f"bootstrap_{name}"].split(",")
        assert producer.known_brokers == dict(zip(BROKERS, bootstrap, strict=True))
        worst = longest_wait_of_a_partition(producer.acknowledged)
        record_property(
            MEASURED,
            f"producer on {name}, INTERNAL renamed to REPL and EXTERNAL at another port in three "
            f"steps, each interrupted, on three instances: {producer.sent} records acknowledged, "
            f"none lost; longest time without an acknowledgement "
            f"{longest_wait(producer.acknowledged):.2f} s (of one partition {worst:.2f} s)",
        )


def loop_devices() -> str:
    return subprocess.run(["losetup", "--list"], check=True, capture_output=True, text=True).stdout


def test_nothing_is_left_when_it_is_destroyed(secured: SecuredBox) -> None:
    """The last one."""
    box = secured.box
    assert "unchanged" in secured.stack.up("--expect-no-changes")
    volumes = [id for it in box.held().machines.values() for id in it.volumes]
    disks = [str(box.fleet.disk(id).device) for id in volumes]
    assert len(disks) == len(NODES) and all(device in loop_devices() for device in disks)
    secured.stack.destroy()
    box.settle()
    assert box.server.holdings() == secured.before
    assert box.fleet.left == []
    assert not any(device in loop_devices() for device in disks)
    assert json.loads(secured.stack.project.runs("stack", "export"))["deployment"] is not None
