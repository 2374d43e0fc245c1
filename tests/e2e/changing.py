"""The common part of tests in which listeners change while clients write and read."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import yaml

from earshot.report.json import read_report
from tests.e2e.engine import FEW_PARTITIONS, Deployment
from tests.e2e.group_reader import GroupReader
from tests.e2e.steady_producer import (
    REPLICAS,
    Acknowledged,
    SteadyProducer,
    led_by_every_broker,
    longest_wait_of_a_partition,
    record,
)
from tests.e2e.transactional_producer import TransactionalProducer
from toolchain.paths import ROOT

PATIENCE = 120.0
TOPICS = ("steady", "moving", "transactions")
CLIENT = "client.properties"
_TEMPLATE = yaml.safe_load((ROOT / "stacks" / "Pulumi.local.yaml").read_text())
EXTRA = FEW_PARTITIONS | _TEMPLATE["config"]["earshot:cluster"]["extra"]
"""Properties of the brokers: those of the template, and fewer partitions of Kafka's own topics."""
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass
class Traffic:
    """Clients of EXTERNAL from before the first change to after the last one."""

    producer: SteadyProducer
    transactional: TransactionalProducer
    group: GroupReader
    producer_contexts: contextlib.ExitStack
    """Ends both producers."""

    def assert_whole(self, since: float, *other_producers: SteadyProducer) -> str:
        """The longest time of a partition without an acknowledgement after ``since``.

        Fails if the group has not read all acknowledged records, or has read uncommitted ones.
        """
        acknowledged = list(self.producer.acknowledged)
        for producer in (self.producer, *other_producers):
            assert producer.failed == []
            self.group.await_records(records(producer))
            self._await_records_without_offset(producer)
        assert self.transactional.failed == []
        self.group.await_records_once("transactions", list(self.transactional.committed))
        record_bodies = [
            body for place, body in self.group.current_records().items() if place[0] == TOPICS[0]
        ]
        assert len(record_bodies) == len(set(record_bodies)), "and none was written twice"
        longest_seconds = longest_wait_of_a_partition(
            acknowledgement for acknowledgement in acknowledged if acknowledgement.when >= since
        )
        return f"longest time of a partition without an acknowledgement {longest_seconds:.1f} s"

    def _await_records_without_offset(self, producer: SteadyProducer) -> None:
        """Waits for the acknowledged records without an offset."""
        missing_bodies = {
            record(acknowledgement.sequence)[1]
            for acknowledgement in records_without_offset(producer)
        }
        end = time.monotonic() + PATIENCE
        while missing_bodies and time.monotonic() < end:
            read = self.group.current_records().items()
            missing_bodies -= {body for place, body in read if place[0] == producer.topic}
            time.sleep(0.2)
        assert not missing_bodies


@contextlib.contextmanager
def traffic_of(stack: Deployment) -> Iterator[Traffic]:
    """Clients of three brokers, each of which leads a partition of each topic."""
    servers = bootstrap(stack, "EXTERNAL")
    for topic in TOPICS:
        led_by_every_broker(servers, topic)
    with GroupReader(servers, "readers", TOPICS) as group, contextlib.ExitStack() as contexts:
        producer = contexts.enter_context(SteadyProducer(servers, "steady", len(REPLICAS)))
        transactional = contexts.enter_context(TransactionalProducer(servers, "transactions"))
        yield Traffic(producer, transactional, group, contexts)


def records(producer: SteadyProducer) -> dict[tuple[str, int, int], bytes]:
    """The acknowledged records with an offset, by topic, partition and offset."""
    acknowledgements: list[Acknowledged] = list(producer.acknowledged)
    return {
        (producer.topic, acknowledgement.partition, acknowledgement.offset): record(
            acknowledgement.sequence
        )[1]
        for acknowledgement in acknowledgements
        if acknowledgement.offset is not None
    }


def records_without_offset(producer: SteadyProducer) -> list[Acknowledged]:
    """The acknowledged records without an offset."""
    return [
        acknowledgement
        for acknowledgement in list(producer.acknowledged)
        if acknowledgement.offset is None
    ]


def login_settings(stack: Deployment, listener: str) -> dict[str, Any]:
    """The settings with which brokers and the validation log in on ``listener``. The passwords are
    in files."""
    folder = stack.folder
    users = 'user_node="of-node" user_check="of-check"'
    jaas = f'{_LOGIN} username="node" password="of-node" {users};'
    (folder / "login.properties").write_text(f"jaas={jaas}\n")
    (folder / CLIENT).write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={_LOGIN} username="check" password="of-check";\n'
    )
    provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
    reference = f"${{file:{folder / 'login.properties'}:jaas}}"
    return {
        "client_config": CLIENT,
        "extra": {
            **EXTRA,
            "config.providers": "file",
            "config.providers.file.class": provider,
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            f"listener.name.{listener.lower()}.plain.sasl.jaas.config": reference,
        },
    }


def leaving_by_listener(stack: Deployment) -> dict[str, bool]:
    """The listeners of the contract, and whether each is leaving."""
    return {
        listener["name"]: listener["leaving"]
        for listener in stack.outputs()["contract"]["listeners"]
    }


def proved_listeners(stack: Deployment) -> set[str]:
    """The listeners of passed cells in the last validation."""
    report = read_report((stack.root.parent / "report.json").read_bytes(), "report.json")
    return {cell.listener for cell in report.cells if cell.verdict == "pass"}


def bootstrap(stack: Deployment, name: str) -> str:
    return str(stack.outputs()[f"bootstrap_{name}"])


def restarted_ids(old_pids: dict[int, int], stack: Deployment) -> list[int]:
    """The ids of running brokers whose process is not that of ``old_pids``."""
    return [id for id, pid in sorted(stack.pids().items()) if old_pids.get(id) != pid]


@contextlib.contextmanager
def update_with_restarted(
    stack: Deployment, is_enough: Callable[[list[int]], bool]
) -> Iterator[subprocess.Popen[str]]:
    """An update in which ``is_enough`` is true for the restarted ids. It ends within the block."""
    old_pids = stack.pids()
    with stack.updating() as child:
        end = time.monotonic() + PATIENCE
        while not is_enough(restarted_ids(old_pids, stack)):
            assert child.poll() is None and time.monotonic() < end, output_if_ended(child)
            time.sleep(0.05)
        yield child


def output_if_ended(child: subprocess.Popen[str]) -> str:
    """The output of an ended update; empty for a running one."""
    return "" if child.poll() is None else child.communicate()[0]


def kill_engine(stack: Deployment, child: subprocess.Popen[str]) -> None:
    """Kills the CLI ``child``, and waits until all processes of Pulumi have ended. Brokers keep
    running."""
    child_processes = psutil.Process(child.pid).children(recursive=True)
    child.send_signal(signal.SIGKILL)
    child.wait(PATIENCE)
    pulumi_processes = [
        process for process in child_processes if "kafka.Kafka" not in _arguments(process)
    ]
    psutil.wait_procs(pulumi_processes, PATIENCE)
    assert stack.pulumi("cancel", "--yes").returncode == 0


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
