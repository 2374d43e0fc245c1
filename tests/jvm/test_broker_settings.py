"""Kafka's own parser: its answers, and errors if it cannot run."""

import subprocess
import time
from pathlib import Path

import psutil
import pytest

from earshot.errors import EarshotError
from earshot.jvm import broker_settings
from earshot.jvm.archive import start_options
from earshot.jvm.broker_settings import ParserAnswer, ask_kafka, lacks_class
from earshot.jvm.jars import kafka_broker_jars
from earshot.jvm.java import Java, find_java
from tests.raised import raised

GOOD = """\
process.roles=broker,controller
node.id=1
listeners=INTERNAL://localhost:19092,CONTROLLER://localhost:29092
advertised.listeners=INTERNAL://localhost:19092,CONTROLLER://localhost:29092
listener.security.protocol.map=INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.voters=1@localhost:29092
inter.broker.listener.name=INTERNAL
log.dirs=/nowhere/log
"""


def java_double(folder: Path, script: str) -> Java:
    """A double of `java`, which runs ``script``."""
    executable = folder / "java"
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    return Java(folder, executable, "17.0.1")


def no_answer(java: Java, problem: str) -> str:
    return (
        f"Kafka's own check of the brokers' settings: could not be asked: {problem}\n"
        f"  fix: see that {java.executable} runs, then run the same command again"
    )


@pytest.mark.e2e
@pytest.mark.requires("java")
def test_each_node_gets_kafka_s_own_answer() -> None:
    answer = ask_kafka(
        find_java(),
        kafka_broker_jars("4.1.1"),
        {
            1: GOOD,
            2: GOOD + "num.io.threads=abc\n",
            3: GOOD + "replica.fetch.wait.max.ms=60000\n",
            4: GOOD + "principal.builder.class=org.example.Builder\n",
            5: GOOD + "metric.reporters=org.apache.kafka.common.metrics.JmxReporter,a.Reporter\n",
            6: GOOD + "authorizer.class.name=kafka.security.authorizer.AclAuthorizer\n",
            7: GOOD + "authorizer.class.name=${file:/nowhere:authorizer}\n",
        },
    )
    assert answer == ParserAnswer(
        {
            2: "Invalid value abc for configuration num.io.threads: Not a number of type INT",
            3: "requirement failed: replica.socket.timeout.ms should always be at least"
            " replica.fetch.wait.max.ms to prevent unnecessary socket timeouts",
            4: "Invalid value org.example.Builder for configuration principal.builder.class:"
            " Class org.example.Builder could not be found.",
            5: "Invalid value org.apache.kafka.common.metrics.JmxReporter,a.Reporter for"
            " configuration metric.reporters: Class a.Reporter could not be found.",
            6: "Invalid value kafka.security.authorizer.AclAuthorizer for configuration"
            " authorizer.class.name: Class kafka.security.authorizer.AclAuthorizer could not be"
            " found.",
        },
        metadata_version=27,
    )
    assert [id for id, text in answer.refusals.items() if lacks_class(text)] == [4, 5, 6]


def test_an_answer_is_by_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_text = '{"refusals": {"2": "no"}, "metadata_version": 27}'
    monkeypatch.setattr(broker_settings, "_ask", lambda question, deadline: (answer_text, ""))
    java = java_double(tmp_path, "exit 1")
    assert ask_kafka(java, (), {1: GOOD, 2: GOOD}) == ParserAnswer({2: "no"}, metadata_version=27)


@pytest.mark.e2e
@pytest.mark.requires("java")
def test_jars_without_kafka_cannot_be_asked() -> None:
    java = find_java()
    error = raised(EarshotError, ask_kafka, java, (), {1: GOOD})
    assert str(error) == no_answer(java, "no kafka.server.KafkaConfig is among the jars")


@pytest.mark.parametrize(
    ("refusal", "is_missing_class"),
    [
        ("Invalid value a.B for configuration c: Class a.B could not be found.", True),
        ("Invalid value x for configuration c: Class x is no authorizer", False),
        ("the host k could not be found", False),
    ],
)
def test_a_missing_class_differs_from_other_refusals(refusal: str, is_missing_class: bool) -> None:
    assert lacks_class(refusal) is is_missing_class


def test_a_java_that_does_not_start_is_no_refusal_of_the_settings(tmp_path: Path) -> None:
    java = java_double(tmp_path, "echo 'Could not reserve enough space' >&2; exit 1")
    error = raised(EarshotError, ask_kafka, java, (), {1: GOOD})
    expected = no_answer(java, "Could not reserve enough space the JVM did not start")
    assert str(error) == expected


def test_a_silent_java_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    java = java_double(tmp_path, f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600")

    def late(child: subprocess.Popen[str], question: str, timeout: float) -> None:
        """The deadline passes as soon as Java runs."""
        assert child.stdin is not None
        child.stdin.write(question)
        child.stdin.close()
        while not pid.exists():
            assert child.poll() is None
            time.sleep(0.01)
        raise subprocess.TimeoutExpired(child.args, timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", late)
    error = raised(EarshotError, ask_kafka, java, (), {1: GOOD}, deadline=1)
    assert str(error) == no_answer(java, "no answer within 1 s")
    end = time.monotonic() + 60
    while is_alive(int(pid.read_text())):
        assert time.monotonic() < end, "its process was left behind"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_settings_are_on_no_command_line(tmp_path: Path) -> None:
    java = java_double(tmp_path, f'echo "$@" > {tmp_path}/words; exit 1')
    with pytest.raises(EarshotError):
        ask_kafka(java, (Path("/jars/a.jar"),), {1: GOOD + "ssl.key.password=hunter2\n"})
    words = (tmp_path / "words").read_text()
    assert "/jars/a.jar" in words and "py4j.GatewayServer" in words
    assert "hunter2" not in words and "INTERNAL" not in words


def test_the_class_path_begins_as_a_broker_s_so_that_its_archive_fits(tmp_path: Path) -> None:
    java = java_double(tmp_path, f'printf "%s\\n" "$@" > {tmp_path}/words; exit 1')
    jars = (Path("/jars/a.jar"), Path("/jars/b.jar"))
    with pytest.raises(EarshotError):
        ask_kafka(java, jars, {1: GOOD})
    words = (tmp_path / "words").read_text().splitlines()
    first_jar, *middle_jars, last_jar = words[words.index("-cp") + 1].split(":")
    assert (first_jar, middle_jars) == ("/jars/a.jar", ["/jars/b.jar"])
    assert Path(last_jar).name.startswith("py4j")
    assert words.index("-cp") > words.index("-classpath"), "the last one counts"
    assert set(start_options(java.executable, jars)) < set(words)
