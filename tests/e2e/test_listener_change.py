"""Listeners change on three running brokers while clients write and read through one that stays.

One cluster, and one sequence of changes: each test begins where the one before it ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from earshot.report.json import read_report
from earshot.transition.memory import recall
from tests.e2e.engine import Deployment, deployment, local_cluster
from tests.e2e.group_reader import GroupReader
from tests.e2e.ports import kept_ports
from tests.e2e.steady_producer import (
    REPLICAS,
    Acknowledged,
    SteadyProducer,
    led_by_every_broker,
    longest_wait_of_a_partition,
    record,
)
from tests.e2e.transactional_producer import TransactionalProducer
from tests.measured import MEASURED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PATIENCE = 120.0
Recorder = Callable[[str, object], None]
PORTS = kept_ports(3, 9)
QUORUM = PORTS.pop()
INTERNAL = {"name": "INTERNAL", "port": PORTS[0], "scopes": ["internal"]}
EXTERNAL = {"name": "EXTERNAL", "port": PORTS[1], "scopes": ["host"]}
WHOLE = {"name": "WHOLE", "port": PORTS[2], "scopes": ["host"]}
SECURE = {
    "name": "SECURE",
    "port": PORTS[3],
    "scopes": ["internal"],
    "protocol": "SASL_PLAINTEXT",
}
PARTS = [
    {"name": name, "port": port, "scopes": ["host"]}
    for name, port in (("OFFICE", PORTS[4]), ("PARTNERS", PORTS[5]))
]
JOINED = {"name": "JOINED", "port": PORTS[6], "scopes": ["host"]}
MOVED = EXTERNAL | {"port": PORTS[7]}
FEW = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
"""Kafka has 50 of each, which every restart of a broker opens."""
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass
class Traffic:
    """Clients of EXTERNAL that are there from before the first change to after the last one."""

    producer: SteadyProducer
    transactional: TransactionalProducer
    group: GroupReader
    writing: contextlib.ExitStack
    """Ends both producers."""

    def is_whole(self, since: float, *others: SteadyProducer) -> str:
        """How long a partition was without an acknowledgement after ``since``, at most.

        Fails where the group has not read what was acknowledged, or read what was not committed.
        """
        acknowledged = list(self.producer.acknowledged)
        for producer in (self.producer, *others):
            assert producer.failed == []
            self.group.has_read(records(producer))
        assert self.transactional.failed == []
        self.group.has_read_once("transactions", list(self.transactional.committed))
        waited = longest_wait_of_a_partition(it for it in acknowledged if it.when >= since)
        return f"longest time of a partition without an acknowledgement {waited:.1f} s"


def records(producer: SteadyProducer) -> dict[tuple[str, int, int], bytes]:
    """What was acknowledged by now, by place."""
    found: list[Acknowledged] = list(producer.acknowledged)
    return {(producer.topic, it.partition, it.offset): record(it.sequence)[1] for it in found}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Three brokers with INTERNAL, EXTERNAL and WHOLE."""
    cluster = local_cluster(
        listeners=[INTERNAL, EXTERNAL, WHOLE],
        controllers={"port": QUORUM},
        extra=FEW,
        validation={"records": 0, "deadline": 120},
    )
    with deployment(tmp_path_factory.mktemp("stack") / "p", cluster) as made:
        made.up()
        yield made


@pytest.fixture(scope="module")
def traffic(stack: Deployment) -> Iterator[Traffic]:
    servers = bootstrap(stack, "EXTERNAL")
    topics = ["steady", "moving", "transactions"]
    for topic in topics:
        led_by_every_broker(servers, topic)
    with GroupReader(servers, "readers", topics) as group, contextlib.ExitStack() as writing:
        producer = writing.enter_context(SteadyProducer(servers, "steady", len(REPLICAS)))
        transactional = writing.enter_context(TransactionalProducer(servers, "transactions"))
        yield Traffic(producer, transactional, group, writing)


def with_logins(stack: Deployment) -> dict[str, Any]:
    """What lets brokers and the validation come in on SECURE; secrets lie in files."""
    folder = stack.folder
    users = 'user_node="of-node" user_check="of-check"'
    jaas = f'{LOGIN} username="node" password="of-node" {users};'
    (folder / "login.properties").write_text(f"jaas={jaas}\n")
    (folder / "client.properties").write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={LOGIN} username="check" password="of-check";\n'
    )
    provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
    reference = f"${{file:{folder / 'login.properties'}:jaas}}"
    return {
        "client_config": "client.properties",
        "extra": {
            **FEW,
            "config.providers": "file",
            "config.providers.file.class": provider,
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": reference,
        },
    }


def split(stack: Deployment) -> None:
    """Brokers are to reach each other by SECURE, and WHOLE is to become two."""
    stack.cluster |= {"listeners": [SECURE, EXTERNAL, *PARTS], **with_logins(stack)}


def seen(stack: Deployment) -> dict[str, bool]:
    """The listeners of the contract, and which of them are leaving."""
    return {it["name"]: it["leaving"] for it in stack.outputs()["contract"]["listeners"]}


def proved(stack: Deployment) -> set[str]:
    """The listeners that the last validation went through."""
    report = read_report((stack.root.parent / "report.json").read_bytes(), "report.json")
    return {cell.listener for cell in report.cells if cell.verdict == "pass"}


def bootstrap(stack: Deployment, name: str) -> str:
    return str(stack.outputs()[f"bootstrap_{name}"])


@contextlib.contextmanager
def until_restarted(stack: Deployment, id: int) -> Iterator[subprocess.Popen[str]]:
    """An update, once it has started another process for the broker ``id``; it ends within."""
    before = stack.pids()
    stack.write()
    command = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive"]
    with subprocess.Popen(
        command,
        cwd=stack.folder,
        env=stack.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,  # as a terminal does
    ) as child:
        end = time.monotonic() + PATIENCE
        while stack.pids().get(id, before[id]) == before[id]:
            assert child.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        yield child


def with_engine_killed(stack: Deployment) -> None:
    """An update that is killed, and all of Pulumi's with it, once it has restarted one broker."""
    with until_restarted(stack, 1) as child:
        below = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGKILL)
    gone = [it for it in below if "kafka.Kafka" not in _arguments(it)]
    psutil.wait_procs(gone, PATIENCE)
    assert stack.pulumi("cancel", "--yes").returncode == 0


def restarted(before: dict[int, int], stack: Deployment) -> list[int]:
    return [id for id, pid in sorted(stack.pids().items()) if before.get(id) != pid]


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_step_is_gone_on_with_after_ctrl_c(
    stack: Deployment, traffic: Traffic, record_property: Recorder
) -> None:
    began, before = time.monotonic(), stack.pids()
    split(stack)
    first = "step 1 of 3: INTERNAL, WHOLE, SECURE, OFFICE and PARTNERS side by side; run again"
    assert first in stack.pulumi("preview").stdout
    assert stack.pids() == before
    with until_restarted(stack, 1) as child:
        os.killpg(child.pid, signal.SIGINT)
        child.communicate(timeout=PATIENCE)
        assert child.returncode != 0
    assert restarted(before, stack) == [1]
    assert first in stack.up()
    assert restarted(before, stack) == [1, 2, 3]
    leaving = dict.fromkeys(("INTERNAL", "WHOLE"), True)
    assert seen(stack) == leaving | dict.fromkeys(
        ("EXTERNAL", "SECURE", "OFFICE", "PARTNERS"), False
    )
    assert proved(stack) == seen(stack).keys()
    record_property(MEASURED, traffic.is_whole(began))


def test_a_step_whose_engine_was_killed_is_taken_back(
    stack: Deployment, traffic: Traffic, record_property: Recorder
) -> None:
    began, before = time.monotonic(), stack.pids()
    with_engine_killed(stack)
    assert restarted(before, stack) == [1]
    (begun,) = recall(stack.root.parent).begun
    assert begun.inter_broker == "SECURE"
    half = stack.pids()
    stack.cluster["listeners"] = [INTERNAL, EXTERNAL, WHOLE]
    assert "back to the listeners before the step that was interrupted" in stack.up()
    assert restarted(half, stack) == [1]
    assert proved(stack) >= {"INTERNAL", "SECURE", "EXTERNAL", "WHOLE"}
    record_property(MEASURED, traffic.is_whole(began))


def test_a_broker_that_was_killed_in_a_step_serves_again_before_another_one_is_stopped(
    stack: Deployment, traffic: Traffic, record_property: Recorder
) -> None:
    began, before = time.monotonic(), stack.pids()
    split(stack)
    with until_restarted(stack, 2) as child:
        os.kill(stack.pids()[1], signal.SIGKILL)
        output, _ = child.communicate(timeout=PATIENCE)
        assert child.returncode != 0
    assert "node 3 was not stopped: down already: node 1" in output
    assert restarted(before, stack) == [2]
    assert "step 3 of 4: brokers reach each other through SECURE" in stack.up("--refresh")
    assert restarted(before, stack) == [1, 2, 3]
    assert proved(stack) == seen(stack).keys()
    record_property(MEASURED, traffic.is_whole(began))


def test_a_listener_that_clients_use_stays_until_they_have_moved(
    stack: Deployment, traffic: Traffic, record_property: Recorder
) -> None:
    began, before = time.monotonic(), stack.pids()
    own = re.escape(f"127.0.0.1 (pid {os.getpid()},")
    found = re.compile(rf"WHOLE would go, and has \d+ connections of clients: \d+ from {own}")
    with SteadyProducer(bootstrap(stack, "WHOLE"), "moving", len(REPLICAS)) as stays:
        wait_for_records(stays)
        for command in ("preview", "up"):
            assert found.search(" ".join(stack.refused(command=command).split()))
        assert stack.pids() == before
        stack.cluster["remove"] = "anyway"
        assert stack.pulumi("preview").returncode == 0
        del stack.cluster["remove"]
    with SteadyProducer(bootstrap(stack, "OFFICE"), "moving", len(REPLICAS)) as moved:
        wait_for_records(moved)
        with_engine_killed(stack)
        assert restarted(before, stack) == [1]
        assert "step 4 of 4: INTERNAL and WHOLE taken away" in stack.up()
    assert restarted(before, stack) == [1, 2, 3]
    assert seen(stack) == dict.fromkeys(("SECURE", "EXTERNAL", "OFFICE", "PARTNERS"), False)
    assert proved(stack) == seen(stack).keys()
    record_property(MEASURED, traffic.is_whole(began, stays, moved))


def wait_for_records(producer: SteadyProducer) -> None:
    """Returns once every broker has acknowledged some."""
    end = time.monotonic() + PATIENCE
    while len({it.partition for it in list(producer.acknowledged)}) < len(REPLICAS):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_way_back_joins_two_and_moves_a_port_while_clients_know_the_old_one(
    stack: Deployment, traffic: Traffic, record_property: Recorder
) -> None:
    began = time.monotonic()
    stack.cluster |= {"listeners": [INTERNAL, MOVED, JOINED], "extra": FEW}
    first = stack.up()
    assert "step 1 of 3" in first and "EXTERNAL at other addresses" in first
    known = traffic.producer.known_brokers()
    assert set(known.values()) == set(bootstrap(stack, "EXTERNAL").split(","))
    assert "step 2 of 3: brokers reach each other through INTERNAL" in stack.up()
    third = stack.up()
    assert "step 3 of 3: SECURE, OFFICE and PARTNERS taken away" in third
    assert "run again" not in third
    assert seen(stack) == dict.fromkeys(("INTERNAL", "EXTERNAL", "JOINED"), False)
    assert proved(stack) == seen(stack).keys()
    record_property(MEASURED, traffic.is_whole(began))
    traffic.writing.close()
    committed = traffic.transactional.committed
    assert traffic.group.has_read_once("transactions", committed) == committed
    after = stack.pids()
    assert stack.pulumi("preview", "--expect-no-changes").returncode == 0
    assert stack.pids() == after


def test_what_no_order_can_do_is_refused_with_nothing_touched(stack: Deployment) -> None:
    kept, before, memory = dict(stack.cluster), stack.pids(), recall(stack.root.parent)
    own, *others = kept["listeners"]
    for change, words, command in (
        ({"name": "SAME"}, "would go from INTERNAL to SAME in one go", "preview"),
        ({"protocol": "SSL"}, "would change from PLAINTEXT to SSL", "up"),
    ):
        stack.cluster["listeners"] = [own | change, *others]
        output = stack.refused(command=command)
        assert "nothing was touched" in output and words in output
    stack.cluster = kept
    assert stack.pids() == before and recall(stack.root.parent) == memory
