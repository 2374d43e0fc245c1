"""Processes that look like a node's: Kafka's main class and the properties on the command line."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest
from earshot_pulumi.local.cluster_memory import node_directory
from earshot_pulumi.local.process_record import Record

SLEEP = "import time; time.sleep(60)"
NOBODY = 65534

as_root = pytest.mark.usefixtures("root_only")
"""Only root may become another user."""


def become_nobody() -> None:
    """From now on this process is one of a user who owns nothing."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


@contextlib.contextmanager
def node(directory: Path, code: str = SLEEP, **settings: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs in ``directory`` as a node does; it dies with the test."""
    directory.mkdir(parents=True, exist_ok=True)
    properties = str(directory / "server.properties")
    command = [sys.executable, "-c", code, "kafka.Kafka", properties]
    with process(command, directory, **settings) as child:
        yield child


@contextlib.contextmanager
def process(
    command: list[str], directory: Path, **settings: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """``command`` at work in ``directory``; it dies with the test."""
    child = subprocess.Popen(command, cwd=directory, **settings)
    try:
        while not psutil.Process(child.pid).cmdline():
            time.sleep(0.01)  # for an instant a new program has no command line yet
        yield child
    finally:
        child.kill()
        child.wait()


@contextlib.contextmanager
def recorded_node(directory: Path, code: str = SLEEP) -> Iterator[subprocess.Popen[bytes]]:
    """A `node` with its record."""
    with node(directory, code) as child:
        recorded(directory, Record.of(child.pid, "d"))
        yield child


@contextlib.contextmanager
def running_nodes(root: Path, ids: Iterable[int]) -> Iterator[None]:
    """The nodes with these ids run below ``root``, with their records."""
    with contextlib.ExitStack() as stack:
        for id in ids:
            stack.enter_context(recorded_node(node_directory(root, id)))
        yield


def recorded(directory: Path, record: Record) -> Record:
    """``record`` in ``directory``, as `start` writes it."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "process.json").write_text(json.dumps(asdict(record)))
    return record
