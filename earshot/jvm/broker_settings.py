"""Checks brokers' settings with Kafka's own parser, before a broker starts with them.

`kafka.server.KafkaConfig` of the brokers' version checks all nodes in one JVM: each value, and the
values together. It opens no file or port and makes no DNS queries. So it misses problems that only
a starting broker has, such as a port in use or a class that is loaded late.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from earshot.errors import EarshotError
from earshot.jvm.archive import start_options
from earshot.jvm.jars import class_path
from earshot.jvm.java import Java, jvm_environment

DEADLINE = 60
"""Time limit in seconds; usually the check takes one."""


@dataclass(frozen=True)
class ParserAnswer:
    """The verdict of one version of Kafka."""

    refusals: Mapping[int, str] = field(default_factory=dict)
    """Kafka's message for each node whose settings it refuses, by node id."""
    metadata_version: int | None = None
    """The newest feature level `metadata.version` that this release supports; None if unknown."""


def ask_kafka(
    java: Java, jars: Sequence[Path], properties: Mapping[int, str], deadline: float = DEADLINE
) -> ParserAnswer:
    """The verdict of the Kafka in ``jars`` on ``properties``, the properties files by node id.

    A class in a setting is searched in ``jars``: see `lacks_class`. The settings are passed through
    a pipe, because they may contain passwords. No process remains. Raises EarshotError if Kafka
    cannot be asked, which proves nothing about the settings.
    """
    question = {
        "java": str(java.executable),
        "class_path": class_path(jars),
        "options": start_options(java.executable, jars),
        "properties": {str(id): text for id, text in properties.items()},
        "deadline": deadline,
    }
    output, problem = _ask(json.dumps(question), deadline)
    if problem:
        raise EarshotError(
            "Kafka's own check of the brokers' settings",
            observed=f"could not be asked: {problem}",
            remedy=f"see that {java.executable} runs, then run the same command again",
        )
    answer = json.loads(output)
    refusals = {int(id): str(text) for id, text in answer["refusals"].items()}
    return ParserAnswer(refusals, answer["metadata_version"])


def lacks_class(refusal: str) -> bool:
    """True if ``refusal`` only means that a class is not in the jars.

    Brokers with other jars, such as an image with plugins, may have the class.
    """
    return "could not be found" in refusal and "Class " in refusal


def _ask(question: str, deadline: float) -> tuple[str, str]:
    """The output of `settings_parser`, and the problem if it failed.

    It runs in a child process, because py4j mixes its JVM up with Spark's in the same process.
    """
    with subprocess.Popen(
        [sys.executable, "-P", Path(__file__).with_name("settings_parser.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=jvm_environment(),
        start_new_session=True,  # to end its JVM, too
    ) as child:
        try:
            output, complaint = child.communicate(question, timeout=deadline)
        except subprocess.TimeoutExpired:
            return "", f"no answer within {deadline:g} s"
        finally:
            # its JVM, too; macOS raises PermissionError for a group that has ended
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    if child.returncode == 0:
        return output, ""
    return "", " ".join(complaint.split()[-60:]) or f"status {child.returncode}"
