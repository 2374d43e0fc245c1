"""A listener changes on three running brokers while clients write through one that stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from earshot.report.json import read_report
from earshot.transition.memory import recall
from tests.e2e.engine import Deployment, deployment, local_cluster
from tests.e2e.ports import consecutive_ports
from tests.e2e.steady_producer import (
    REPLICAS,
    SteadyProducer,
    all_there,
    led_by_every_broker,
    longest_wait_of_a_partition,
    read_all,
)
from tests.e2e.transactional_producer import TransactionalProducer, read_committed

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PATIENCE = 60.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Three brokers, proved by the doctor; every test leaves them with one internal listener."""
    ports = consecutive_ports(3, 5)
    cluster = local_cluster(
        listeners=[
            {"name": "INTERNAL", "port": ports[0], "scopes": ["internal"]},
            {"name": "EXTERNAL", "port": ports[1], "scopes": ["host"]},
        ],
        controllers={"port": ports[2]},
        validation={"records": 0, "deadline": 120},
    )
    with deployment(tmp_path_factory.mktemp("stack") / "p", cluster) as made:
        made.up()
        yield made


def internal(stack: Deployment, name: str, **change: Any) -> dict[str, Any]:
    """Another internal listener than the one that runs, on ports of its own."""
    taken = [item["port"] for item in stack.cluster["listeners"]]
    port = next(it for it in consecutive_ports(3, 3) if it not in taken)
    return {"name": name, "port": port, "scopes": ["internal"], **change}


def want(stack: Deployment, *listeners: dict[str, Any]) -> None:
    """Let the stack's file have these listeners, which brokers do not have yet."""
    stack.cluster = {**stack.cluster, "listeners": list(listeners)}


def seen(stack: Deployment) -> dict[str, bool]:
    """The listeners of the contract, and which of them are leaving."""
    return {it["name"]: it["leaving"] for it in stack.outputs()["contract"]["listeners"]}


def proved(stack: Deployment) -> set[str]:
    """The listeners that the last validation went through."""
    report = read_report((stack.root.parent / "report.json").read_bytes(), "report.json")
    return {cell.listener for cell in report.cells if cell.verdict == "pass"}


def external(stack: Deployment) -> str:
    return str(stack.outputs()["bootstrap_EXTERNAL"])


def test_the_listener_between_brokers_is_replaced_and_no_acknowledged_record_is_lost(
    stack: Deployment,
) -> None:
    _old, clients = stack.cluster["listeners"]
    topic, transactions = "replaced", "replaced-transactions"
    led_by_every_broker(external(stack), topic)
    led_by_every_broker(external(stack), transactions)
    want(stack, internal(stack, "REPL"), clients)
    before = stack.pids()
    preview = stack.pulumi("preview")
    assert "step 1 of 3: INTERNAL and REPL side by side; run again" in preview.stdout
    assert stack.pids() == before
    with (
        SteadyProducer(external(stack), topic, len(REPLICAS)) as producer,
        TransactionalProducer(external(stack), transactions) as transactional,
    ):
        stack.up()
        assert seen(stack) == {"INTERNAL": True, "EXTERNAL": False, "REPL": False}
        assert proved(stack) == {"INTERNAL", "EXTERNAL", "REPL"}
        assert "bootstrap_REPL" in stack.outputs()
        second = stack.up()
        assert "step 2 of 3: brokers reach each other through REPL; run again" in second
        assert seen(stack)["INTERNAL"]
        third = stack.up()
        assert "step 3 of 3: INTERNAL taken away" in third and "run again" not in third
    assert seen(stack) == {"REPL": False, "EXTERNAL": False}
    after = stack.pids()
    assert "unchanged" in stack.up() and stack.pids() == after
    assert producer.failed == [] and len(producer.acknowledged) == producer.sent
    all_there(producer.acknowledged, read_all(external(stack), topic, len(REPLICAS)))
    assert transactional.failed == [] and transactional.committed
    assert read_committed(external(stack), transactions) == transactional.committed
    waited = longest_wait_of_a_partition(producer.acknowledged)
    print(f"{producer.sent} records, longest time without an acknowledgement {waited:.1f} s")


@pytest.mark.parametrize("back", [False, True], ids=["goes on", "returns"])
def test_a_step_that_is_interrupted(stack: Deployment, back: bool) -> None:
    first, clients = stack.cluster["listeners"]
    topic = f"interrupted-{back}"
    led_by_every_broker(external(stack), topic)
    wanted = internal(stack, f"OTHER{int(back)}")
    with SteadyProducer(external(stack), topic, len(REPLICAS)) as producer:
        want(stack, wanted, clients)
        stack.up()
        interrupted(stack)
        (begun,) = recall(stack.root.parent).begun
        assert begun.inter_broker == wanted["name"]
        if back:
            want(stack, first, clients)
            assert "back to the listeners before the step that was interrupted" in stack.up()
            stack.up()
        else:
            assert "step 2 of 3" in stack.up()
            stack.up()
    names = {(first if back else wanted)["name"], "EXTERNAL"}
    assert seen(stack) == dict.fromkeys(names, False)
    assert producer.failed == [] and len(producer.acknowledged) == producer.sent
    all_there(producer.acknowledged, read_all(external(stack), topic, len(REPLICAS)))
    waited = longest_wait_of_a_partition(producer.acknowledged)
    print(f"{producer.sent} records, longest time without an acknowledgement {waited:.1f} s")


def interrupted(stack: Deployment) -> None:
    """An update whose engine is killed once the first broker was restarted."""
    before = stack.pids()
    command = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive"]
    with subprocess.Popen(
        command, cwd=stack.folder, env=stack.environment, stdout=subprocess.DEVNULL
    ) as child:
        end = time.monotonic() + PATIENCE
        while stack.pids().get(1, before[1]) == before[1]:
            assert child.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        below = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGKILL)
    gone = [it for it in below if "kafka.Kafka" not in _arguments(it)]
    psutil.wait_procs(gone, PATIENCE)
    assert stack.pulumi("cancel", "--yes").returncode == 0
    changed = [id for id, pid in stack.pids().items() if before[id] != pid]
    assert changed == [1]


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_listener_that_clients_use_stays_until_they_have_gone(stack: Deployment) -> None:
    own, clients = stack.cluster["listeners"]
    want(stack, own, clients, internal(stack, "EXTRA"))
    stack.up()
    host, _, port = str(stack.outputs()["bootstrap_EXTRA"]).split(",")[1].partition(":")
    want(stack, own, clients)
    before = stack.pids()
    found = f"EXTRA would go, and has 1 connection of clients: 1 from 127.0.0.1 (pid {os.getpid()},"
    with socket.create_connection((host, int(port))):
        for command in ("preview", "up"):
            assert found in " ".join(stack.refused(command=command).split())
        assert stack.pids() == before
        stack.cluster = {**stack.cluster, "remove": "anyway"}
        assert stack.pulumi("preview").returncode == 0
        del stack.cluster["remove"]
    stack.up()
    assert seen(stack) == {own["name"]: False, "EXTERNAL": False}


def test_what_no_order_can_do_is_refused_with_nothing_touched(stack: Deployment) -> None:
    own, clients = stack.cluster["listeners"]
    before, memory = stack.pids(), recall(stack.root.parent)
    for listeners, words in (
        ([own | {"name": "SAME"}, clients], f"would go from {own['name']} to SAME in one go"),
        (
            [own | {"protocol": "SASL_PLAINTEXT"}, clients],
            "would change from PLAINTEXT to SASL_PLAINTEXT",
        ),
    ):
        for command in ("preview", "up"):
            want(stack, *listeners)
            output = stack.refused(command=command)
            want(stack, own, clients)
            assert "nothing was touched" in output and words in output
    assert stack.pids() == before and recall(stack.root.parent) == memory
