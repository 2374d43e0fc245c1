"""Kafka processes of this machine: format once, start detached, recognise, stop exactly that one.

No Pulumi in here. A node lives in a directory of its own:

    node-1/log                data (Kafka's log.dirs); outlives the process
    node-1/server.properties  what it was started with
    node-1/server.log         the broker's log, rotated
    node-1/console.log        what the JVM itself prints
    node-1/process.json       which process it is: pid, start time, digest of its settings
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from earshot import cache
from earshot.errors import EarshotError

START_TIME_SLACK = 0.05
"""Seconds by which two readings of one process's start time may differ (kernel ticks)."""


@dataclass(frozen=True)
class Launch:
    """All that decides how a node runs; a change of any of it means a restart."""

    id: int
    directory: Path
    properties: str
    heap: str
    kafka_version: str
    java: Path
    jars: tuple[Path, ...]

    @property
    def digest(self) -> str:
        # not the jars' paths: a moved cache is no reason to restart a broker
        text = "\0".join((self.properties, self.heap, self.kafka_version))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def log_dir(self) -> Path:
        return self.directory / "log"


@dataclass(frozen=True)
class Record:
    """The process of a node, as it was started; pid and start time together are its identity."""

    pid: int
    started: float
    digest: str

    @property
    def incarnation(self) -> str:
        return f"{self.pid}@{self.started:.2f}"

    def process(self) -> psutil.Process | None:
        """The living process, or None when it is gone or its pid now belongs to another."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < START_TIME_SLACK
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None


def read_record(directory: Path) -> Record | None:
    """Whatever was last started in ``directory``, alive or not."""
    try:
        return Record(**json.loads((directory / "process.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def running(directory: Path) -> Record | None:
    """The node's record where its process is alive."""
    record = read_record(directory)
    return record if record is not None and record.process() is not None else None


def start(launch: Launch, cluster_id: str) -> Record:
    """The node's process: the one that runs already with these settings, or a new one.

    Returns as soon as the JVM is there; a voter of three cannot answer before the others start.
    Raises EarshotError where storage cannot be formatted.
    """
    alive = running(launch.directory)
    if alive is not None and alive.digest == launch.digest:
        return alive  # of an interrupted run: adopted
    stop(launch.directory)
    launch.directory.mkdir(parents=True, exist_ok=True)
    properties = launch.directory / "server.properties"
    properties.write_text(launch.properties)
    (launch.directory / "log4j2.properties").write_text(_log4j2(launch.directory))
    (launch.directory / "log4j.properties").write_text(_log4j1(launch.directory))
    if not (launch.log_dir / "meta.properties").exists():
        _format(launch, properties, cluster_id)
    with (launch.directory / "console.log").open("ab") as console:
        process = subprocess.Popen(
            [*_java(launch), "kafka.Kafka", str(properties)],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            cwd=launch.directory,
            # a session of its own: the engine signals its plugins' process groups when it ends
            start_new_session=True,
        )
    process.returncode = 0  # it is meant to outlive this handle, which would complain
    record = Record(process.pid, psutil.Process(process.pid).create_time(), launch.digest)
    cache.write(launch.directory / "process.json", json.dumps(asdict(record)))
    return record


def stop(directory: Path, grace: float = 30.0) -> bool:
    """Stops the node's own process; True where there was one. Waits ``grace`` s before SIGKILL."""
    record = read_record(directory)
    process = (record.process() if record is not None else None) or unrecorded(directory)
    if process is None:
        return False
    for send, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
        try:
            process.send_signal(send)
            process.wait(patience)
            break
        except psutil.NoSuchProcess:
            break
        except psutil.TimeoutExpired:
            continue
    return True


def unrecorded(directory: Path) -> psutil.Process | None:
    """A node of ``directory`` that was started a moment before its starter was killed."""
    properties = str(directory / "server.properties")
    for process in psutil.process_iter(["cmdline"]):
        if (process.info["cmdline"] or [])[-2:] == ["kafka.Kafka", properties]:
            return process
    return None


def last_words(directory: Path, lines: int = 12) -> str:
    """The last ``lines`` of the broker's log and of the JVM's own output, stack frames left out."""
    found: list[str] = []
    for name in ("server.log", "console.log"):
        try:
            text = (directory / name).read_text(errors="replace")
        except OSError:
            continue
        found += [f"  {name}: {line}" for line in _said(text)[-lines:]]
    return "\n".join(found[-2 * lines :]) or "  (it wrote no log)"


def _said(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.startswith("\tat ")]


@dataclass(frozen=True)
class Holder:
    """Who listens on a port."""

    port: int
    pid: int | None
    name: str

    def __str__(self) -> str:
        who = f"pid {self.pid} ({self.name})" if self.pid else "a process of another user"
        return f"port {self.port} is in use by {who}"


def holders(binds: Iterable[tuple[str, int]]) -> list[Holder]:
    """Processes that listen where ``binds`` (host, port) want to, one per port, in their order."""
    wanted: dict[int, list[str]] = {}
    for host, port in binds:
        wanted.setdefault(port, []).append(host)
    found: dict[int, Holder] = {}
    for connection in psutil.net_connections("tcp"):
        if connection.status != psutil.CONN_LISTEN or not connection.laddr:
            continue
        host, port = connection.laddr.ip, connection.laddr.port
        if any(_overlap(host, other) for other in wanted.get(port, ())):
            found[port] = Holder(port, connection.pid, _process_name(connection.pid))
    return [found[port] for port in sorted(found)]


def _overlap(one: str, other: str) -> bool:
    wildcards = ("0.0.0.0", "::")
    return one == other or one in wildcards or other in wildcards


def _process_name(pid: int | None) -> str:
    try:
        return psutil.Process(pid).name() if pid else ""
    except psutil.Error:
        return "gone by now"


def _format(launch: Launch, properties: Path, cluster_id: str) -> None:
    command = [*_java(launch), "kafka.tools.StorageTool", "format"]
    command += ["-t", cluster_id, "-c", str(properties)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        output = _said((done.stderr or done.stdout).strip())
        raise EarshotError(
            f"broker {launch.id}: storage in {launch.log_dir} cannot be formatted",
            observed=" ".join(output[-2:]),
            remedy="see the property that Kafka names; `make clean` removes all data",
        )


def _java(launch: Launch) -> list[str]:
    directory = launch.directory
    return [
        str(launch.java),
        f"-Xmx{launch.heap}",
        # small and quick to start, for brokers that share a developer's machine
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dkafka.logs.dir={directory}",
        f"-Dlog4j2.configurationFile=file:{directory / 'log4j2.properties'}",
        f"-Dlog4j.configuration=file:{directory / 'log4j.properties'}",
        "-cp",
        os.pathsep.join(map(str, launch.jars)),
    ]


def _log4j2(directory: Path) -> str:
    return f"""\
appender.file.type=RollingFile
appender.file.name=file
appender.file.fileName={directory}/server.log
appender.file.filePattern={directory}/server.log.%i
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=[%d] %p %m (%c)%n
appender.file.policies.type=Policies
appender.file.policies.size.type=SizeBasedTriggeringPolicy
appender.file.policies.size.size=10MB
appender.file.strategy.type=DefaultRolloverStrategy
appender.file.strategy.max=3
rootLogger.level=INFO
rootLogger.appenderRef.file.ref=file
"""


def _log4j1(directory: Path) -> str:
    return f"""\
log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.RollingFileAppender
log4j.appender.file.File={directory}/server.log
log4j.appender.file.MaxFileSize=10MB
log4j.appender.file.MaxBackupIndex=3
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
