"""Clients: kcat and the doctor on this machine, or in containers on a network."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from earshot.report.json import read_report
from earshot.validation.result import Report
from tests.e2e.docker_engine import Engine

SECONDS = 60
"""Seconds after which a client that still tries is killed."""
KCAT = ("timeout", str(SECONDS), "kcat", "-X", "broker.address.family=v4")
"""kcat with IPv4 only, so that its errors are the same on every machine."""


@dataclass(frozen=True)
class Client:
    """The commands of Kafka clients at one place."""

    kcat_command: tuple[str, ...] = KCAT
    earshot_command: tuple[str, ...] = (sys.executable, "-m", "earshot")

    def listing(self, bootstrap: str) -> list[str]:
        """The lines of `kcat -L` without topics."""
        output = self._kcat(["-b", bootstrap, "-L", "-m", "20"])
        assert output.returncode == 0, output.stdout + output.stderr
        lines = output.stdout.splitlines()
        return lines[: next(i for i, line in enumerate(lines) if line.endswith(" topics:"))]

    def refusal(self, bootstrap: str) -> str:
        """The error of `kcat -L`, which must fail."""
        output = self._kcat(["-b", bootstrap, "-L", "-m", "5"])
        assert output.returncode != 0, output.stdout
        return output.stderr

    def produce(self, bootstrap: str, topic: str, record: str) -> None:
        output = self._produce(bootstrap, topic, record, 30)
        assert output.returncode == 0, output.stderr

    def consume(self, bootstrap: str, topic: str, count: int) -> list[str]:
        """The first ``count`` records of ``topic``."""
        words = ["-b", bootstrap, "-C", "-t", topic, "-o", "beginning", "-c", str(count)]
        output = self._kcat(words)
        assert output.returncode == 0, output.stderr
        return output.stdout.splitlines()

    def failure(self, bootstrap: str, topic: str) -> str:
        """The error of kcat for a record that cannot be delivered."""
        output = self._produce(bootstrap, topic, "lost", 5)
        assert output.returncode != 0 and "Delivery failed" in output.stderr, output.stderr
        return output.stderr

    def examine(self, bootstrap: str) -> Report:
        """The report of `earshot doctor --bootstrap`."""
        words = ["doctor", "--bootstrap", bootstrap, "--format", "json"]
        output = _run(self.earshot_command, words)
        assert output.returncode in (0, 1, 3), output.stderr
        report = read_report(output.stdout, "the doctor's report")
        assert report.exit_code == output.returncode
        return report

    def _produce(
        self, bootstrap: str, topic: str, record: str, seconds: int
    ) -> subprocess.CompletedProcess[str]:
        patience = f"message.timeout.ms={seconds * 1000}"
        return self._kcat(["-b", bootstrap, "-P", "-t", topic, "-X", patience], record)

    def _kcat(self, arguments: Sequence[str], record: str = "") -> subprocess.CompletedProcess[str]:
        return _run(self.kcat_command, arguments, record)


HERE = Client()
"""The clients of this machine. A test requires its kcat with the mark ``requires("kcat")``."""


def client_on(
    engine: Engine, network: str, image: str, validator: str, dns: Sequence[str] = ()
) -> Client:
    """Clients in containers on ``network``, one container for each command.

    ``image`` has kcat, ``validator`` is the image of `earshot.remote`.
    """
    servers = [word for server in dns for word in ("--dns", server)]
    run = ("docker", "--host", engine.address, "run", "--rm", "-i", "--network", network, *servers)
    return Client((*run, image, *KCAT), (*run, validator))


def _run(
    command: Sequence[str], arguments: Sequence[str], record: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *arguments], input=record, capture_output=True, text=True)


def kcat_listing(source: str, advertised: str, broker: int = 0) -> list[str]:
    """The lines that `kcat -L` prints for a cluster of one broker."""
    return [
        f"Metadata for all topics (from broker {source}):",
        " 1 brokers:",
        f"  broker {broker} at {advertised} (controller)",
    ]
