"""Why a node ended: Kafka's own reason first, then where the logs are."""

from __future__ import annotations

from pathlib import Path

from components.local.process import last_words
from components.local.record import read_record
from earshot.jvm.broker_log import cause_of_end

KAFKA_LOG, JVM_LOG = "server.log", "console.log"
MTIME_SLACK = 1.0
"""Seconds by which a file's time may lag behind the clock."""


def why_ended(directory: Path) -> str:
    """Why the node in ``directory`` ended, or else its last log lines; then where its logs are."""
    record = read_record(directory)
    since = record.started if record is not None else 0.0
    log, console = (_written(directory / name, since) for name in (KAFKA_LOG, JVM_LOG))
    cause = cause_of_end(log, console) or f"its last lines:\n{last_words(directory)}"
    return f"{cause}\n  logs: {directory / KAFKA_LOG}, {JVM_LOG}"


def _written(path: Path, since: float) -> str:
    """The text of a log; empty if only an earlier run, before ``since`` (s), wrote it."""
    try:
        if path.stat().st_mtime < since - MTIME_SLACK:
            return ""
        return path.read_text(errors="replace")
    except OSError:
        return ""
