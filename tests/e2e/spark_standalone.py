"""A standalone Spark cluster of this machine, whose processes may have mount namespaces."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from earshot.jvm.java import find_java
from tests.e2e.ports import free_ports

HOME = Path(pyspark.__file__).parent
READY = 90.0
"""Maximum seconds for the start of master and workers on a busy machine."""


@dataclass(frozen=True)
class Standalone:
    """A running master with its workers."""

    master: str
    directory: Path

    def submit(
        self, script: Path, arguments: Sequence[str], jars: Sequence[Path], *prefix: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs `spark-submit` to its end, with the command ``prefix`` before it."""
        return subprocess.run(
            [
                *prefix,
                str(HOME / "bin" / "spark-submit"),
                *("--master", self.master, "--jars", ",".join(map(str, jars))),
                *("--conf", "spark.driver.host=127.0.0.1"),
                str(script),
                *arguments,
            ],
            capture_output=True,
            text=True,
            env=_environment(),
            cwd=self.directory,
            check=False,
        )


@contextlib.contextmanager
def standalone(directory: Path, workers: Mapping[str, Sequence[str]]) -> Iterator[Standalone]:
    """A master and a worker with one core for each entry of ``workers``, stopped at the end.

    The value of an entry is a command that runs the worker, or empty.
    """
    (port,) = free_ports(1)
    master = f"spark://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((directory / "master.log").open("w+"))
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        stack.enter_context(spark_process([], "master.Master", arguments, directory, log.fileno()))
        _await(directory / "master.log", "New state: ALIVE", 1)
        for name, prefix in workers.items():
            arguments = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
            arguments += ["--webui-port", "0", "--work-dir", str(directory / name), master]
            stack.enter_context(
                spark_process(prefix, "worker.Worker", arguments, directory, log.fileno())
            )
        _await(directory / "master.log", "Registering worker", len(workers))
        yield Standalone(master, directory)


@contextlib.contextmanager
def spark_process(
    prefix: Sequence[str],
    name: str,
    arguments: Sequence[str],
    directory: Path,
    log: int,
    environment: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Within, Spark's class ``name`` runs, with the command ``prefix`` before it. Its output is in
    ``log``."""
    command = [*prefix, str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    with subprocess.Popen(
        [*command, *arguments],
        stdout=log,
        stderr=log,
        env=_environment() | dict(environment or {}),
        cwd=directory,
    ) as process:
        try:
            yield
        finally:
            process.terminate()  # spark-class has become the JVM; a worker ends its executors
            process.wait(30)


def _await(log: Path, words: str, times: int) -> None:
    end = time.monotonic() + READY
    while (text := log.read_text()).count(words) < times:
        assert time.monotonic() < end, f"no {words!r} in:\n{text}"
        time.sleep(0.1)


def _environment() -> dict[str, str]:
    return os.environ | {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def with_resolver(directory: Path, name: str, hosts: Mapping[str, str]) -> list[str]:
    """The beginning of a command whose processes resolve only ``hosts`` (address by name).

    It needs root, and Linux's mount namespaces.
    """
    lines = ["127.0.0.1 localhost", *(f"{address} {host}" for host, address in hosts.items())]
    own_hosts = directory / f"{name}.hosts"
    own_hosts.write_text("\n".join(lines) + "\n")
    servers = directory / f"{name}.resolv"
    servers.write_text("nameserver 127.0.0.254\noptions timeout:1 attempts:1\n")
    mounts = f"mount --bind {own_hosts} /etc/hosts && mount --bind {servers} /etc/resolv.conf"
    return ["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh"]
