"""Finds a node's process: the recorded one, if it is alive and runs in the node's directory.

A pid may be reused, the wall clock may be set, and a directory may be copied with its record. So
the pid, the start time in the kernel's ticks, and the process's working directory must all match.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from earshot.errors import EarshotError
from earshot_pulumi.file_access import owner, user

FILE = "process.json"
MAIN_CLASS = "kafka.Kafka"
PROPERTIES = "server.properties"
START_TIME_SLACK = 0.05
"""Seconds by which two readings of one process's start time may differ (kernel ticks)."""
UNKNOWN = ""
"""The digest of unknown settings."""
_STARTED = 19
"""Index of the start time in /proc/PID/stat after the command's name; field 22 of proc(5)."""


@dataclass(frozen=True)
class Record:
    """The process of a node, as it was started."""

    pid: int
    started: float
    """Seconds since the epoch, by the clock at that time. Shown to users, and compared only if the
    kernel's ticks are unknown."""
    digest: str
    """Digest of the settings that it was started with."""
    ticks: int | None = None
    """The start time in ticks since the kernel's start, which no change of the clock affects."""
    boot: str | None = None
    """Identifies the start of the kernel from which the ticks count."""

    @classmethod
    def of(cls, pid: int, digest: str) -> Record:
        """The record of the living process ``pid``."""
        return cls(pid, psutil.Process(pid).create_time(), digest, start_ticks(pid), boot_id())

    @property
    def incarnation(self) -> str:
        return f"{self.pid}@{self.started:.2f}"

    def process(self, directory: Path) -> psutil.Process | None:
        """The living process, or None if it has ended or another process has the pid."""
        try:
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            runs_here = runs_from(process, directory)
            return process if runs_here is not False and self._matches(process, runs_here) else None
        except psutil.Error:
            return None

    def _matches(self, process: psutil.Process, runs_here: bool | None) -> bool:
        if self.ticks is not None and (ticks := start_ticks(self.pid)) is not None:
            return (self.ticks, self.boot) == (ticks, boot_id())
        if runs_here:
            return True  # a broker in this directory has the pid, so the clock does not matter
        return abs(process.create_time() - self.started) < START_TIME_SLACK


def read_record(directory: Path) -> Record | None:
    """The process last started in ``directory``, alive or not; None without a valid record.

    Raises EarshotError if this user may not read the record.
    """
    path = directory / FILE
    try:
        record = Record(**json.loads(path.read_text()))
    except PermissionError:
        raise EarshotError(
            str(path),
            observed=f"this user ({user()}) may not read it, so it is unknown whether the node "
            "runs",
            remedy=f"run the command as its owner ({owner(path)})",
        ) from None
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    is_valid = (
        isinstance(record.pid, int) and isinstance(record.started, int | float) and record.pid > 0
    )
    return record if is_valid else None


def running(directory: Path) -> Record | None:
    """The record of the node's living process, else None.

    A process without a valid record has the digest `UNKNOWN`: its record was lost or restored from
    a copy, or its starter was killed before it could write one.
    """
    record = read_record(directory)
    if record is not None and record.process(directory) is not None:
        return record
    process = unrecorded(directory)
    try:
        return Record.of(process.pid, UNKNOWN) if process is not None else None
    except psutil.Error:
        return None  # it has just ended


def process_of(directory: Path) -> psutil.Process | None:
    """The node's living process, recorded or not."""
    record = read_record(directory)
    return (record.process(directory) if record is not None else None) or unrecorded(directory)


def unrecorded(directory: Path) -> psutil.Process | None:
    """A node's process in ``directory`` that no record is needed to find.

    Only a process of this user or of the owner of ``directory`` counts: processes of other users
    may have any command line.
    """
    try:
        owners = {os.geteuid(), directory.stat().st_uid}
    except OSError:
        return None
    for process in psutil.process_iter(["cmdline", "uids"]):
        # a process of another user may hide its command line
        command, uids = process.info["cmdline"] or [], process.info["uids"]
        is_node = command[-2:-1] == [MAIN_CLASS] and uids is not None and uids.real in owners
        if is_node and runs_from(process, directory):
            return process
    return None


def is_suspended(process: psutil.Process) -> bool:
    """True if a signal or a debugger has stopped ``process``."""
    try:
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    except psutil.Error:
        return False


def runs_from(process: psutil.Process, directory: Path) -> bool | None:
    """True if ``process`` is a broker started in ``directory``; None if unknown.

    The working directory takes precedence over the command line, which is wrong after the directory
    was moved.
    """
    try:
        command = process.cmdline()
    except psutil.Error:
        command = []
    if command and command[-2:-1] != [MAIN_CLASS]:
        return False
    try:
        expected = directory.stat()
    except OSError:
        return False
    working_directory = _working_directory(process)
    if working_directory is not None and working_directory.st_nlink > 0:
        if not os.path.samestat(working_directory, expected):
            return False
        return True if command else None
    if not command:
        return None  # the process starts or ends, or hides its command line
    try:
        return os.path.samestat(Path(command[-1]).parent.stat(), expected)
    except OSError:
        return None  # the directory moved, and its working directory cannot be read


def start_ticks(pid: int) -> int | None:
    """Start time of ``pid`` in ticks since the kernel's start; None without a Linux /proc."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
        return int(text[text.rindex(b")") + 1 :].split()[_STARTED])
    except (OSError, ValueError, IndexError):
        return None


def boot_id() -> str | None:
    """An id of this start of the kernel; None without a Linux /proc."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _working_directory(process: psutil.Process) -> os.stat_result | None:
    """The working directory of ``process``; None if unknown. st_nlink is 0 if it was removed.

    A starting JVM works in ``hsperfdata_USER`` for some milliseconds, to remove files of dead JVMs
    (OpenJDK, ``perfMemory_posix.cpp``); that directory counts as unknown.
    """
    try:
        link = f"/proc/{process.pid}/cwd"
        # open the link itself: another directory may have the name of its target by now
        descriptor = os.open(link if os.path.lexists(link) else process.cwd(), os.O_DIRECTORY)
        try:
            own_link = Path(f"/proc/self/fd/{descriptor}")
            path = own_link.readlink() if own_link.is_symlink() else Path(process.cwd())
            return None if path.name.startswith("hsperfdata_") else os.fstat(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, psutil.Error):
        return None
