"""Finds a Java for Kafka and Spark: 17 or 21."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from earshot.errors import EarshotError

# Kafka 4 needs 17 or newer (11 only for clients); Spark 4.0 supports 17 and 21
SUPPORTED = (17, 21)
# of Debian and similar systems, and of macOS, relative to the root directory
USUAL_PLACES = ("usr/lib/jvm/*", "Library/Java/JavaVirtualMachines/*/Contents/Home")
ANSWER_SECONDS = 30
INSTALL = """install one of:
    Debian, Ubuntu   apt-get install openjdk-17-jre-headless
    Fedora, RHEL     dnf install java-21-openjdk-headless
    macOS            brew install openjdk@17
    anywhere         sdk install java 17.0.15-tem
  or, where it is installed already, set JAVA_HOME to it"""


@dataclass(frozen=True)
class Java:
    """A Java runtime: its home directory, its `java` command and its version, such as 17.0.15."""

    home: Path
    executable: Path
    version: str

    @property
    def major(self) -> int:
        """The major version: 17 for ``17.0.15``, 8 for ``1.8.0_402``, 0 without a number."""
        numbers = [*map(int, re.findall(r"\d+", self.version)), 0]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 2 else numbers[0]


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """The first supported Java in ``JAVA_HOME``, PATH, or the system's usual places.

    Raises EarshotError, which lists the unsupported ones.
    """
    rejected = []
    for source, home in _candidates(environment):
        java = _inspect(home)
        if java is not None and java.major in SUPPORTED:
            return java
        problem = f"is Java {java.version}" if java else "has no working bin/java"
        rejected.append(f"{source} {problem}")
    observed = "; ".join(rejected) or "none was found (JAVA_HOME, PATH)"
    allowed = " or ".join(map(str, SUPPORTED))
    raise EarshotError("Java", observed=observed, allowed=allowed, remedy=INSTALL)


def jvm_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """``environment`` for a JVM that opens paths with characters outside ASCII.

    On Linux a JVM decodes paths by the locale, and finds no such file if that is not UTF-8.
    """
    utf8 = {"LC_ALL": "C.UTF-8"} if sys.platform == "linux" else {}
    return {**environment, **utf8}


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        # brokers start in another folder, where a relative path would differ
        yield f"JAVA_HOME ({home})", Path(home).absolute()
    if command := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield f"{command} on PATH", Path(command).resolve().parent.parent
    for pattern in USUAL_PLACES:
        for place in sorted(Path("/").glob(pattern)):
            if (place / "bin" / "java").exists() and not place.is_symlink():  # links are aliases
                yield str(place), place


def _inspect(home: Path) -> Java | None:
    executable = home / "bin" / "java"
    if not os.access(executable, os.X_OK):
        return None
    version = _released_version(home) or _printed_version(executable)
    return Java(home, executable, version) if version else None


def _released_version(home: Path) -> str | None:
    """The version in the ``release`` file of a runtime, which needs no process."""
    try:
        text = (home / "release").read_text(errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return match[1] if match else None


def _printed_version(executable: Path) -> str | None:
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=ANSWER_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "([^"]+)"', answer.stderr)
    return match[1] if match else None
