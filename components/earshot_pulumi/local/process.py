"""Kafka processes of this machine: format storage, start detached, stop. Does not use Pulumi.

Each node has its own directory:

    node-1/log                data (Kafka's log.dirs); outlives the process
    node-1/server.properties  the settings of the last start
    node-1/files/             copies of files in the settings: see earshot_pulumi.local.node_files
    node-1/server.log         the broker's log, rotated
    node-1/console.log        output of the JVM
    node-1/process.json       the node's process: see earshot_pulumi.local.process_record
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from earshot.errors import EarshotError, remedy_of
from earshot.files import cache
from earshot.jvm.archive import recording, start_options
from earshot.jvm.broker_log import cause_of_end, without_frames
from earshot.jvm.jars import class_path
from earshot.jvm.java import jvm_environment
from earshot.listeners.properties import read_properties
from earshot.listeners.security import token_options
from earshot_pulumi.file_access import user, writing
from earshot_pulumi.local.node_files import with_own_files
from earshot_pulumi.local.process_record import (
    FILE,
    MAIN_CLASS,
    PROPERTIES,
    Record,
    process_of,
    read_record,
    running,
)

_HERE = Path(__file__).parent
KAFKA_LOG, JVM_LOG = "server.log", "console.log"
MTIME_SLACK = 1.0
"""Seconds by which a file's modification time may lag behind the clock."""
FORMAT_SECONDS = 120
LEAST_ROOM = 2**16
"""Free bytes below which a disk counts as full."""
KILL_SECONDS = 10.0
_POLL_SECONDS = 0.2
_ROOM = 1 << 20
"""Bytes that must be free before a start; its files take about a tenth."""
_UMASK = 0o077
"""Kafka's umask: its logs contain the secrets in `extra`."""


@dataclass(frozen=True)
class Launch:
    """The settings with which a node is started. A change of their `digest` restarts it."""

    id: int
    directory: Path
    properties: str
    heap: str
    kafka_version: str
    java: Path
    jars: tuple[Path, ...]
    certificate: str = ""
    """The version of the certificate in the node's key store; empty without one."""
    started_with: str = ""
    """`server.properties` of the node's former run, with its own copies of files. If it is empty,
    `properties` is used."""
    recorded_digest: str = ""
    """The digest of the node's former run, if the version of its certificate is not known."""

    @property
    def digest(self) -> str:
        if self.recorded_digest:
            return self.recorded_digest
        # without the jars' paths, so that a moved cache restarts no broker
        return digest(self.properties, self.heap, self.kafka_version, self.certificate)

    @property
    def log_dir(self) -> Path:
        return self.directory / "log"


def digest(properties: str, heap: str, kafka_version: str, certificate: str) -> str:
    """A digest of a node's settings. A node with another digest is restarted."""
    parts = [properties, heap, kafka_version]
    text = "\0".join([*parts, certificate] if certificate else parts)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_room(launch: Launch) -> None:
    """Raises EarshotError if the disk lacks room for the files of a start.

    Called before the node is stopped: without room it could not be started with its former
    settings either.
    """
    with (
        writing(f"node {launch.id}", launch.directory),
        tempfile.TemporaryFile(dir=launch.directory) as file,
    ):
        file.write(bytes(_ROOM))
        file.flush()


def check_java(launch: Launch) -> None:
    """Raises EarshotError if Java does not run with the node's options, e.g. its heap size.

    Called before the node is stopped, like `check_room`.
    """
    command = [*_java(launch, class_path(launch.jars), _options(launch)), "-version"]
    with _starting(launch):
        code, output = _run_java(launch, command)
    if code != 0:
        raise EarshotError(
            f"node {launch.id}: {launch.java}",
            observed=f"does not run with a heap of {launch.heap}: "
            + (" ".join(output[-2:]) or f"it ended with status {code}"),
            remedy="check that JAVA_HOME is the folder of a Java that runs, and that this machine "
            "has free memory, then run the same command again",
        )


def start(launch: Launch, cluster_id: str) -> Record:
    """The node's process: the one that already runs with these settings, or a new one.

    Returns once the JVM has started, as a single voter of three cannot answer. Raises EarshotError
    if storage cannot be formatted, the old process cannot be stopped, the directory cannot be
    written, or Java cannot be run.
    """
    running_record = running(launch.directory)
    if running_record is not None and running_record.digest == launch.digest:
        return running_record  # an interrupted run started it
    classes = class_path(launch.jars)
    stop(launch.directory)
    with writing(f"node {launch.id}", launch.directory):
        text = launch.started_with or with_own_files(launch.directory, launch.properties)
        cache.write(launch.directory / PROPERTIES, text, mode=0o600)
        for name in ("log4j2.properties", "log4j.properties"):
            cache.write(launch.directory / name, (_HERE / name).read_text())
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        console = os.fdopen(os.open(launch.directory / JVM_LOG, flags, 0o600), "ab")
    with console, _starting(launch):
        if not (launch.log_dir / "meta.properties").exists():
            _format(launch, classes, cluster_id)
        process = subprocess.Popen(
            [
                *_java(launch, classes, _options(launch)),
                MAIN_CLASS,
                str(launch.directory / PROPERTIES),
            ],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            cwd=launch.directory,
            env=jvm_environment(),
            umask=_UMASK,
            # a new session, as Pulumi's engine signals its plugins' process groups when it ends
            start_new_session=True,
        )
    try:
        record = Record.of(process.pid, launch.digest)
        with writing(f"node {launch.id}", launch.directory):
            cache.write(launch.directory / FILE, json.dumps(asdict(record)))
    except BaseException:
        process.kill()  # without a record, it would run unnoticed
        process.wait()
        raise
    process.returncode = 0  # suppresses the handle's warning that the process still runs
    return record


@contextlib.contextmanager
def _starting(launch: Launch) -> Iterator[None]:
    """Turns an OSError into an EarshotError: Java cannot be started."""
    try:
        yield
    except OSError as reason:
        raise EarshotError(
            f"node {launch.id}: {launch.java}",
            observed=f"cannot be started ({reason.strerror})",
            remedy=remedy_of(reason)
            or "check that Java is installed, and that this machine has free memory, then run the "
            "same command again",
        ) from None


def stop(directory: Path, grace: float = 30.0) -> bool:
    """Stops the node's process, with SIGKILL after ``grace`` seconds; False if there is none.

    Raises EarshotError if this user may not stop it or it does not end.
    """
    process = process_of(directory)
    if process is None:
        return False
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, KILL_SECONDS)):
        try:
            process.send_signal(number)
            if _ends_within(process, patience):
                return True
        except psutil.NoSuchProcess:
            return True
        except psutil.AccessDenied:
            raise _foreign_process(directory, process) from None
    raise EarshotError(
        f"{_node(directory)}: process {process.pid}",
        observed=f"still runs {KILL_SECONDS:.0f} s after SIGKILL",
        remedy="find out what it waits for (a disk or a network file system that does not answer), "
        "then run the same command again",
    )


def _ends_within(process: psutil.Process, seconds: float) -> bool:
    """True if ``process`` ends within ``seconds``.

    In a container whose first process collects no children, an ended process stays a zombie.
    """
    end = time.monotonic() + seconds
    while (seconds_left := end - time.monotonic()) > 0:
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(min(seconds_left, _POLL_SECONDS))
            return True
        if process.status() == psutil.STATUS_ZOMBIE:
            with contextlib.suppress(psutil.TimeoutExpired):
                process.wait(0)  # collects a child of this process
            return True
    return False


def _foreign_process(directory: Path, process: psutil.Process) -> EarshotError:
    try:
        owner = process.username()
    except psutil.Error:
        owner = "another user"
    return EarshotError(
        f"{_node(directory)}: process {process.pid}",
        observed=f"belongs to {owner}, and this user ({user()}) may not stop it",
        remedy=f"run the same command as {owner}",
    )


def _node(directory: Path) -> str:
    return directory.name.replace("-", " ")


def settings_of(pid: int | None) -> str:
    """The path of server.properties of the Kafka process ``pid``; empty for other processes."""
    try:
        command = psutil.Process(pid).cmdline() if pid else []
    except psutil.Error:
        return ""
    return command[-1] if command[-2:-1] == ["kafka.Kafka"] else ""


def why_ended(directory: Path) -> str:
    """Why the node in ``directory`` ended, or its last log lines; then the paths of its logs."""
    record = read_record(directory)
    since = record.started if record is not None else 0.0
    log, console = (_log_text(directory / name, since) for name in (KAFKA_LOG, JVM_LOG))
    cause = cause_of_end(log, console) or f"its last lines:\n{last_log_lines(directory)}"
    if _is_full(directory):  # then the end of the log is missing
        cause = f"the disk of {directory} is full; {cause}"
    return f"{cause}\n  logs: {directory / KAFKA_LOG}, {JVM_LOG}"


def _log_text(path: Path, since: float) -> str:
    """The text of a log; empty if only an earlier run, before ``since`` (s), wrote it."""
    try:
        if path.stat().st_mtime < since - MTIME_SLACK:
            return ""
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _is_full(directory: Path) -> bool:
    """True if the disk of ``directory`` has less than `LEAST_ROOM` bytes for its user."""
    try:
        return shutil.disk_usage(directory).free < LEAST_ROOM
    except OSError:
        return False


def last_log_lines(directory: Path, lines: int = 12) -> str:
    """The last ``lines`` of the broker's log and of the JVM's output, without stack frames."""
    log_lines: list[str] = []
    for name in (KAFKA_LOG, JVM_LOG):
        try:
            text = (directory / name).read_text(errors="replace")
        except OSError:
            continue
        log_lines += [f"  {name}: {line}" for line in without_frames(text)[-lines:]]
    return "\n".join(log_lines) or "  (it wrote no log)"


def _format(launch: Launch, classes: str, cluster_id: str) -> None:
    """Formats the node's storage. The first run also records a class data archive for later JVMs.

    The archive has about half of a broker's classes: three brokers start in four seconds instead of
    five.
    """
    archive = recording(launch.java, launch.jars)
    try:
        options = archive.options if archive else start_options(launch.java, launch.jars)
        _run_format(launch, _java(launch, classes, options), cluster_id)
        if archive:
            with contextlib.suppress(OSError):  # without the archive, starts are only slower
                archive.keep()
    finally:
        if archive:
            archive.discard()


def _run_format(launch: Launch, java: Sequence[str], cluster_id: str) -> None:
    command = [*java, "kafka.tools.StorageTool", "format"]
    command += ["-t", cluster_id, "-c", str(launch.directory / PROPERTIES)]
    code, output = _run_java(launch, command)
    if code is None:
        output = [f"Kafka's storage tool {output[0]}"]
    if code != 0:
        disk_full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        is_full = any(os.strerror(errno.ENOSPC) in line for line in output)
        raise EarshotError(
            f"broker {launch.id}: storage in {launch.log_dir} cannot be formatted",
            observed=" ".join(output[-2:]),
            remedy=remedy_of(disk_full)
            if is_full or _is_full(launch.directory)
            else "correct the property in Kafka's message; "
            "`data: delete` and `pulumi destroy` remove all data",
        )


def _run_java(launch: Launch, command: Sequence[str]) -> tuple[int | None, list[str]]:
    """The exit status and output lines of a Java command; the status is None after a timeout."""
    try:
        process = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FORMAT_SECONDS,
            check=False,
            cwd=launch.directory,  # Kafka's tool writes its logs there
            env=jvm_environment(),
            umask=_UMASK,
        )
    except subprocess.TimeoutExpired:
        return None, [f"did not end within {FORMAT_SECONDS} s"]
    return process.returncode, without_frames((process.stderr or process.stdout).strip())


def _options(launch: Launch) -> tuple[str, ...]:
    """The options of a node's JVM for its archive and its OAuth settings."""
    settings = read_properties(launch.properties).values
    return (*start_options(launch.java, launch.jars), *token_options(settings))


def _java(launch: Launch, classes: str, options: Sequence[str]) -> list[str]:
    """The command of a JVM with the class path ``classes``, up to its main class.

    ``options`` are those of `earshot.jvm.archive`.
    """
    directory = launch.directory
    return [
        str(launch.java),
        f"-Xmx{launch.heap}",
        # small and quick to start, for brokers that share a developer's machine
        "-XX:+UseSerialGC",
        *options,
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dkafka.logs.dir={directory}",
        f"-Dlog4j2.configurationFile={(directory / 'log4j2.properties').as_uri()}",
        f"-Dlog4j.configuration={(directory / 'log4j.properties').as_uri()}",
        "-cp",
        classes,
    ]
