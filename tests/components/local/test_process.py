"""Starting and stopping processes, ports and logs; what Kafka itself does is tested end to end."""

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from earshot_pulumi.local import process
from earshot_pulumi.local.process import Launch, check_java, check_room
from earshot_pulumi.local.process_record import Record, running

from earshot.errors import EarshotError
from earshot.files import cache
from earshot.jvm.archive import QUICK_START, QUIET, start_options
from tests.components.local.nodes import SLEEP, as_root, node, recorded, recorded_node
from tests.raised import raised


@pytest.mark.parametrize("start", [node, recorded_node])
def test_stop_ends_a_process_with_or_without_a_record(
    tmp_path: Path, start: Callable[[Path], AbstractContextManager[subprocess.Popen[bytes]]]
) -> None:
    with start(tmp_path) as child:
        assert process.stop(tmp_path) is True
        assert not psutil.pid_exists(child.pid)
        assert process.stop(tmp_path) is False


def test_stop_leaves_the_process_of_a_copied_record_alone(tmp_path: Path) -> None:
    original, copy = tmp_path / "node-1", tmp_path / "copy"
    with recorded_node(original) as child:
        shutil.copytree(original, copy)
        assert process.stop(copy) is False
        assert child.poll() is None


PARENT = """
import subprocess, sys, time
child = subprocess.Popen(sys.argv[1:-1])
print(child.pid, flush=True)
time.sleep(60)
"""
"""Starts a program, and takes no note of its end, as many a container's first process."""


def test_stop_counts_a_zombie_as_ended(tmp_path: Path) -> None:
    tmp_path.joinpath("server.properties").touch()
    node = [sys.executable, "-c", SLEEP, "kafka.Kafka", str(tmp_path / "server.properties")]
    command = [sys.executable, "-c", PARENT, *node, "is no node itself"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        try:
            while psutil.Process(pid).cmdline() != node:
                time.sleep(0.01)
            assert process.stop(tmp_path, grace=30) is True
            assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
            assert process.stop(tmp_path) is False
        finally:
            parent.kill()


def test_stop_kills_what_ignores_the_polite_signal(tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True)"
    with node(tmp_path, f"{deaf}; time.sleep(60)", stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        child.stdout.close()
        recorded(tmp_path, Record.of(child.pid, "d"))
        assert process.stop(tmp_path, grace=0.2) is True
        assert not psutil.pid_exists(child.pid)


@pytest.mark.parametrize("formatted", [True, False])
def test_a_java_that_is_gone_is_one_clear_error(tmp_path: Path, formatted: bool) -> None:
    directory, java = tmp_path / "node-1", tmp_path / "gone" / "java"
    (directory / "log").mkdir(parents=True)
    if formatted:
        (directory / "log" / "meta.properties").touch()
    error = raised(EarshotError, process.start, launch(directory=directory, java=java), "id")
    assert str(error) == (
        f"node 1: {java}: cannot be started (No such file or directory)\n  fix: check that "
        "Java is installed, and that this machine has free memory, then run the same command again"
    )


@as_root
def test_a_process_that_this_user_may_not_stop_is_one_clear_error(open_folder: Path) -> None:
    directory = open_folder / "node-1"
    with recorded_node(directory) as child:
        asked = f"""
import pathlib
from earshot_pulumi.local import process
from earshot.errors import EarshotError
from tests.components.local.nodes import become_nobody
become_nobody()
try:
    process.stop(pathlib.Path({str(directory)!r}))
except EarshotError as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True)
        assert done.stderr == ""
        assert done.stdout == (
            f"node 1: process {child.pid}: belongs to root, and this user (nobody) may not stop "
            "it\n  fix: run the same command as root\n"
        )
        assert child.poll() is None


def test_one_that_ends_by_itself_before_it_is_told_to_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = psutil.Process.send_signal
    with node(tmp_path) as child:

        def late(one: psutil.Process, sig: int) -> None:
            child.kill()
            child.wait()
            send(one, sig)

        monkeypatch.setattr(psutil.Process, "send_signal", late)
        assert process.stop(tmp_path) is True


@pytest.mark.parametrize("holder", ["bob", None])
def test_whose_process_cannot_be_stopped_is_told_where_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holder: str | None
) -> None:
    def refused(one: psutil.Process, *_: object) -> None:
        raise psutil.AccessDenied(one.pid)

    monkeypatch.setattr(psutil.Process, "send_signal", refused)
    monkeypatch.setattr(psutil.Process, "username", (lambda _: holder) if holder else refused)
    monkeypatch.setattr(process, "user", lambda: "ann")
    directory, who = tmp_path / "node-1", holder or "another user"
    with node(directory) as child:
        assert str(raised(EarshotError, process.stop, directory)) == (
            f"node 1: process {child.pid}: belongs to {who}, and this user (ann) may not stop it\n"
            f"  fix: run the same command as {who}"
        )


def test_the_settings_of_a_process_are_those_of_kafka_alone(tmp_path: Path) -> None:
    with node(tmp_path) as child:
        assert process.settings_of(child.pid) == str(tmp_path / "server.properties")
    assert process.settings_of(child.pid) == "", "it has ended"
    assert process.settings_of(None) == ""
    assert process.settings_of(os.getpid()) == ""


def test_a_process_that_outlives_every_signal_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "node-1"

    def late(_self: psutil.Process, timeout: float) -> None:
        time.sleep(timeout)
        raise psutil.TimeoutExpired(timeout)

    monkeypatch.setattr(psutil.Process, "wait", late)
    monkeypatch.setattr(psutil.Process, "status", lambda _: psutil.STATUS_DISK_SLEEP)
    monkeypatch.setattr(process, "KILL_SECONDS", 1.0)
    with node(directory) as child:
        assert str(raised(EarshotError, process.stop, directory, grace=0.1)) == (
            f"node 1: process {child.pid}: still runs 1 s after SIGKILL\n"
            "  fix: find out what it waits for (a disk or a network file system that does not "
            "answer), then run the same command again"
        )


def launch(**changes: object) -> Launch:
    values: dict[str, object] = {
        "id": 1,
        "directory": Path("/d"),
        "properties": "a=b",
        "heap": "256m",
        "kafka_version": "4.1.1",
        "java": Path("/java"),
        "jars": (),
    }
    return Launch(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "restart"),
    [
        ({"properties": "a=c"}, True),
        ({"heap": "1g"}, True),
        ({"kafka_version": "4.2.0"}, True),
        ({"java": Path("/other")}, False),
        ({"jars": (Path("/cache/a.jar"),)}, False),
    ],
)
def test_only_changes_that_need_a_restart_change_the_digest(
    change: dict[str, object], restart: bool
) -> None:
    assert (launch(**change).digest != launch().digest) is restart


def test_a_file_where_the_directory_belongs_is_one_clear_error(tmp_path: Path) -> None:
    directory = tmp_path / "node-1"
    directory.write_text("a file")
    assert str(raised(EarshotError, process.start, launch(directory=directory), "id")) == (
        f"node 1: {directory}: cannot be written (File exists)\n"
        "  fix: move this file away: its path is needed for a directory"
    )


def test_a_full_disk_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    error = raised(EarshotError, process.start, launch(directory=tmp_path / "node-1"), "id")
    file = tmp_path / "node-1" / "server.properties"
    assert str(error) == (
        f"node 1: {file}: cannot be written (No space left on device)\n"
        "  fix: free space on that disk, then run the same command again"
    )


def test_a_process_that_cannot_be_recorded_does_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "meta.properties").touch()
    program = java(tmp_path, "#!/bin/sh\nexec sleep 60\n")
    write, pids = cache.write, []

    def full(path: Path, text: str, mode: int = 0o644) -> None:
        if path.name == "process.json":
            pids.append(json.loads(text)["pid"])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, text, mode)

    monkeypatch.setattr(cache, "write", full)
    with pytest.raises(EarshotError, match="No space left on device"):
        process.start(launch(directory=tmp_path, java=program), "id")
    assert not psutil.pid_exists(*pids)


JAVA = f"""#!{sys.executable} -IS
import json, os, sys, time
with open("calls", "a") as file:
    print(json.dumps([os.getcwd(), *sys.argv[1:]]), file=file)
for option in sys.argv:
    if option.startswith("-XX:ArchiveClassesAtExit="):
        open(option.partition("=")[2], "w").close()
if "format" not in sys.argv:
    print("ran", flush=True)
    time.sleep(60)
"""
"""Keeps what it was told, and then is a broker, or has formatted."""


def java(folder: Path, text: str = JAVA) -> Path:
    """A program in place of Java's."""
    file = folder / "java"
    file.write_text(text)
    file.chmod(0o755)
    return file


FULL = "Error while writing meta.properties: java.io.IOException: No space left on device"
CORRECT = (
    "correct the property in Kafka's message; `data: delete` and `pulumi destroy` remove all data"
)


def calls(directory: Path, number: int) -> list[list[str]]:
    """What the programs of a node were told, when ``number`` of them have begun."""
    file = directory / "calls"
    while not file.exists() or len(file.read_text().splitlines()) < number:
        time.sleep(0.01)
    return [json.loads(line) for line in file.read_text().splitlines()]


def commands(launch: Launch) -> Callable[..., list[str]]:
    """What the node's programs are told, by the options about classes and what is run."""
    directory = launch.directory

    def command(classes: Sequence[str], *rest: str) -> list[str]:
        return [
            str(directory),
            "-Xmx256m",
            "-XX:+UseSerialGC",
            *classes,
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            f"-Dkafka.logs.dir={directory}",
            f"-Dlog4j2.configurationFile=file://{directory}/log4j2.properties",
            f"-Dlog4j.configuration=file://{directory}/log4j.properties",
            *("-cp", ":".join(map(str, launch.jars))),
            *rest,
            str(directory / "server.properties"),
        ]

    return command


def test_a_node_is_formatted_once_and_runs_until_its_settings_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    directory = tmp_path / "node-1"
    jars = (tmp_path / "a.jar", tmp_path / "b.jar")
    for jar in jars:
        jar.touch()
    first = launch(directory=directory, java=java(tmp_path), jars=jars)
    command = commands(first)
    try:
        record = process.start(first, "id")
        runs = command(start_options(first.java, jars), "kafka.Kafka")
        assert any("SharedArchiveFile" in word for word in runs), "what the first JVM has loaded"
        formats, ran = calls(directory, 2)
        (archive,) = (word for word in formats if "ArchiveClassesAtExit" in word)
        options = (archive, *QUICK_START, *QUIET)
        assert formats == command(options, "kafka.tools.StorageTool", "format", "-t", "id", "-c")
        assert ran == runs
        assert record == running(directory) == Record.of(record.pid, first.digest)
        assert os.getsid(record.pid) == record.pid, "the engine ends its own session's processes"
        assert (directory / "server.properties").read_text() == "a=b"
        for name in ("log4j2.properties", "log4j.properties"):
            assert "server.log" in (directory / name).read_text()
        assert process.start(first, "id") == record, "it runs so already"
        (directory / "log").mkdir()
        (directory / "log" / "meta.properties").touch()
        keys = "sasl.oauthbearer.jwks.endpoint.url=https://a/keys"
        other = process.start(replace(first, properties=keys), "id")
        allowed = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://a/keys"
        allows = command((*start_options(first.java, jars), allowed), "kafka.Kafka")
        assert calls(directory, 3) == [formats, runs, allows]
        assert not psutil.pid_exists(record.pid)
        assert other == running(directory) != record
        while (directory / "console.log").read_text() != "ran\n" * 2:
            time.sleep(0.01)
    finally:
        process.stop(directory)


@pytest.mark.parametrize(
    ("script", "observed", "remedy"),
    [
        ("echo one >&2; echo two >&2; echo; echo '\tat a.B' >&2; echo three >&2", "two three", ""),
        ("echo said; echo", "said", ""),
        ("echo out; echo err >&2", "err", ""),
        # no reason to remove data
        (f"echo '{FULL}' >&2", FULL, "free space on that disk, then run the same command again"),
    ],
)
def test_storage_that_cannot_be_formatted_is_one_clear_error(
    tmp_path: Path, script: str, observed: str, remedy: str
) -> None:
    program = java(tmp_path, f"#!/bin/bash\nshopt -s xpg_echo\n{script}\nexit 1\n")
    directory = tmp_path / "node-1"
    error = raised(EarshotError, process.start, launch(directory=directory, java=program), "id")
    assert str(error) == (
        f"broker 1: storage in {directory}/log cannot be formatted: {observed}\n  fix: "
        + (remedy or CORRECT)
    )
    assert not (directory / "process.json").exists()


def test_a_node_that_ended_on_a_full_disk_is_told_so_without_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it would have written last is not there."""
    (tmp_path / "server.log").write_text("[2026-01-01 00:00:00,000] INFO begun (kafka.Kafka)\n")
    assert "is full" not in process.why_ended(tmp_path)
    usage = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert process.why_ended(tmp_path).startswith(f"the disk of {tmp_path} is full; its last lines")


def test_a_storage_tool_that_does_not_end_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "FORMAT_SECONDS", 0.05)
    program = java(tmp_path, "#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(EarshotError) as caught:
        process.start(launch(directory=tmp_path / "node-1", java=program), "id")
    assert caught.value.observed == "Kafka's storage tool did not end within 0.05 s"


def test_what_tells_a_nodes_settings_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    """Kafka writes the values of its settings into its log."""
    directory = tmp_path / "node-1"
    program = java(tmp_path, "#!/bin/sh\ntouch server.log\necho ran\nexec sleep 60\n")
    (directory / "log").mkdir(parents=True)
    (directory / "log" / "meta.properties").touch()
    record = process.start(launch(directory=directory, java=program), "id")
    try:
        while not (directory / "console.log").read_text():
            time.sleep(0.01)
    finally:
        psutil.Process(record.pid).kill()
    for name in ("server.properties", "server.log", "console.log"):
        assert (directory / name).stat().st_mode & 0o777 == 0o600, name


def test_a_class_path_that_java_would_take_apart_is_refused_before_anything_is_touched(
    tmp_path: Path,
) -> None:
    with pytest.raises(EarshotError, match="which ends an entry of Java's class path"):
        process.start(launch(directory=tmp_path / "n", jars=(Path("/a:b/x.jar"),)), "id")
    assert not (tmp_path / "n").exists()


def test_last_words_are_the_last_of_each_log_without_stack_frames(tmp_path: Path) -> None:
    assert process.last_log_lines(tmp_path) == "  (it wrote no log)"
    (tmp_path / "server.log").write_text(
        "".join(f"{n}\n\tat a.b.C(D.java:1)\n\n" for n in range(20))
    )
    (tmp_path / "console.log").write_text("".join(f"{n}\n" for n in range(30)))
    assert process.last_log_lines(tmp_path, 1) == "  server.log: 19\n  console.log: 29"
    assert process.last_log_lines(tmp_path).splitlines() == [
        *(f"  server.log: {n}" for n in range(8, 20)),
        *(f"  console.log: {n}" for n in range(18, 30)),
    ]


def test_room_for_a_start_is_asked_for_and_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = launch(directory=tmp_path)
    check_room(planned)
    assert list(tmp_path.iterdir()) == []

    def full(**_: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(EarshotError, match=r"cannot be written .No space left on device") as caught:
        check_room(planned)
    assert caught.value.remedy.startswith("free space on that disk")


def test_java_is_run_with_the_options_of_a_node(tmp_path: Path) -> None:
    program = java(tmp_path, '#!/bin/sh\nprintf "%s\\n" "$@" >words\n')
    check_java(launch(directory=tmp_path, java=program))
    words = (tmp_path / "words").read_text().splitlines()
    assert words[0] == "-Xmx256m" and words[-1] == "-version"
    assert "kafka.Kafka" not in words


@pytest.mark.parametrize(("script", "observed"), [
    ("echo 'Error: Could not reserve enough space' >&2; exit 1",
     "does not run with a heap of 256m: Error: Could not reserve enough space"),
    ("exit 1", "does not run with a heap of 256m: it ended with status 1"),
    ("exec sleep 60", "does not run with a heap of 256m: did not end within 0.05 s"),
])  # fmt: skip
def test_a_java_that_does_not_run_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, observed: str
) -> None:
    if "sleep" in script:
        monkeypatch.setattr(process, "FORMAT_SECONDS", 0.05)
    bad = java(tmp_path, f"#!/bin/sh\n{script}\n")
    assert str(raised(EarshotError, check_java, launch(directory=tmp_path, java=bad))) == (
        f"node 1: {bad}: {observed}\n"
        "  fix: check that JAVA_HOME is the folder of a Java that runs, and that this machine has "
        "free memory, then run the same command again"
    )


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
    assert process.why_ended(tmp_path) == (
        f"KafkaException: the second\n  logs: {tmp_path / 'server.log'}, console.log"
    )


def test_a_log_of_an_earlier_process_does_not_count(tmp_path: Path) -> None:
    recorded(tmp_path, Record(7, STARTED, "d"))
    written(tmp_path, "server.log", LOG, STARTED - 60)
    written(tmp_path, "console.log", "Invalid maximum heap size: -Xmx1\n", STARTED + 1)
    assert process.why_ended(tmp_path).startswith("Invalid maximum heap size: -Xmx1\n")


def test_without_a_reason_the_last_lines_are_shown(tmp_path: Path) -> None:
    written(tmp_path, "server.log", "one\ntwo\n", STARTED)
    assert process.why_ended(tmp_path) == (
        "its last lines:\n  server.log: one\n  server.log: two\n"
        f"  logs: {tmp_path / 'server.log'}, console.log"
    )
