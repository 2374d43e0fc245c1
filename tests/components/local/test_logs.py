"""What is said of a node that ended."""

import os
from pathlib import Path

from earshot_pulumi.local.process import why_ended
from earshot_pulumi.local.record import Record

from tests.components.local.nodes import recorded

STARTED = 1_700_000_000.0
LOG = """\
[2026-11-22 09:10:00,000] INFO Registered `kafka:type=kafka.Log4jController` MBean (kafka.Some$)
[2026-11-22 09:10:01,000] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
org.apache.kafka.common.KafkaException: the first
[2026-11-22 09:11:00,000] INFO Registered `kafka:type=kafka.Log4jController` MBean (kafka.Some$)
[2026-11-22 09:11:01,000] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
org.apache.kafka.common.KafkaException: the second
[2026-11-22 09:11:02,000] INFO shutting down (kafka.server.ControllerServer)
"""


def written(directory: Path, name: str, text: str, time: float) -> None:
    (directory / name).write_text(text)
    os.utime(directory / name, (time, time))


def test_kafka_s_reason_leads_and_the_logs_follow(tmp_path: Path) -> None:
    recorded(tmp_path, Record(7, STARTED, "d"))
    written(tmp_path, "server.log", LOG, STARTED + 2)
    assert why_ended(tmp_path) == (
        f"KafkaException: the second\n  logs: {tmp_path / 'server.log'}, console.log"
    )


def test_a_log_of_an_earlier_process_does_not_count(tmp_path: Path) -> None:
    recorded(tmp_path, Record(7, STARTED, "d"))
    written(tmp_path, "server.log", LOG, STARTED - 60)
    written(tmp_path, "console.log", "Invalid maximum heap size: -Xmx1\n", STARTED + 1)
    assert why_ended(tmp_path).startswith("Invalid maximum heap size: -Xmx1\n")


def test_without_a_reason_the_last_lines_are_shown(tmp_path: Path) -> None:
    written(tmp_path, "server.log", "one\ntwo\n", STARTED)
    assert why_ended(tmp_path) == (
        "its last lines:\n  server.log: one\n  server.log: two\n"
        f"  logs: {tmp_path / 'server.log'}, console.log"
    )
