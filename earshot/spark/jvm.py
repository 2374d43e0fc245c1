"""Starts and ends the JVM of Spark's driver.

PySpark can start a JVM itself, but returns control only when the JVM is ready, so an interrupted
run could not end it. The protocol is PySpark's: the JVM writes its gateway's port and secret to a
file, and exits when its standard input is closed, so it never outlives this process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from earshot.errors import EarshotError
from earshot.files.temporary import TemporaryFolder
from earshot.jvm.java import Java, jvm_environment

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

PREFIX: Final = "earshot-spark-"
LOOPBACK: Final = "127.0.0.1"
START_SECONDS: Final = 120.0
"""Time limit for the JVM to open its gateway."""
_NOISE_PREFIXES: Final = (
    "\t",
    "WARNING: Using incubator",
    "NOTE: Picked up",
    "Setting default",
    "Using",
)


class Jvm:
    """A running spark-submit, with a temporary directory for all its files."""

    def __init__(self, home: Path, java: Java, conf: Mapping[str, str]) -> None:
        self._folder = TemporaryFolder(PREFIX)
        self.directory = self._folder.path
        self._gateway_file = self.directory / "gateway"
        self._ended = threading.Event()
        settings = {"spark.local.dir": str(self.directory)} | dict(conf)
        command = [str(home / "bin" / "spark-submit")]
        command += [word for key in settings for word in ("--conf", f"{key}={settings[key]}")]
        options = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} -Djava.io.tmpdir={self.directory}"
        environment = (
            _own_address(conf)
            | jvm_environment()
            | {
                "JDK_JAVA_OPTIONS": options.strip(),
                "JAVA_HOME": str(java.home),
                "SPARK_HOME": str(home),
                "SPARK_CONNECT_MODE": "0",
                "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._gateway_file),
            }
        )
        with (self.directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "pyspark-shell"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self.directory,
                umask=0o077,  # blocks may go to a folder of SPARK_LOCAL_DIRS
                start_new_session=True,  # Ctrl-C must not reach the JVM
            )

    def gateway(self) -> JavaGateway:
        """Waits for the JVM and returns its py4j gateway. Raises EarshotError if the JVM fails."""
        # imported while the JVM starts
        from pyspark.java_gateway import launch_gateway

        give_up = time.monotonic() + START_SECONDS
        while not self._gateway_file.exists():
            if self._process.poll() is not None or time.monotonic() > give_up:
                words = self.last_output()
                raise EarshotError(
                    "Spark",
                    observed=f"its JVM did not start: {words}",
                    remedy=full_disk_remedy(words)
                    or "see the Spark properties given (and those in SPARK_CONF_DIR), and the "
                    "memory that this machine has left",
                )
            self._ended.wait(0.01)
        port, length = struct.unpack(">ii", (content := self._gateway_file.read_bytes())[:8])
        secret = content[8 : 8 + length].decode()
        with _environment(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret):
            gateway: JavaGateway = launch_gateway()  # type: ignore[no-untyped-call]
        return gateway

    def last_output(self, lines: int = 3) -> str:
        """The last ``lines`` of the JVM's log, without stack frames and noise."""
        text = (self.directory / "log").read_text(errors="replace")
        lines_kept = [
            line.strip() for line in text.splitlines() if not line.startswith(_NOISE_PREFIXES)
        ]
        return "; ".join([line for line in lines_kept if line][-lines:]) or "its log is empty"

    def exit(self, seconds: float) -> bool:
        """Asks the JVM to exit. True if it exits with 0 within ``seconds``.

        After False its files may be incomplete.
        """
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            return self._process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False

    def end(self, patience: float = 0.0) -> None:
        """Ends the process and removes its directory. SIGTERM first, if ``patience`` (s) is not
        0; then SIGKILL."""
        self._ended.set()
        if patience:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._folder.remove()


def full_disk_remedy(reason: str) -> str:
    """The remedy if ``reason`` is a full disk; empty for other reasons."""
    if os.strerror(errno.ENOSPC) not in reason:
        return ""
    folder = tempfile.gettempdir()
    return f"free space on the disk of {folder}, or set TMPDIR to a folder on another disk"


def _own_address(conf: Mapping[str, str]) -> dict[str, str]:
    """The variable with which Spark does not look this machine's own name up, if it needs none."""
    host = conf.get("spark.driver.host", "")
    return {"SPARK_LOCAL_IP": host} if host == LOOPBACK else {}


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Sets environment variables for a while: PySpark reads its connection only from there."""
    previous_values = {key: os.environ[key] for key in values if key in os.environ}
    os.environ.update(values)
    try:
        yield
    finally:
        for key in values:
            os.environ.pop(key, None)
        os.environ.update(previous_values)
