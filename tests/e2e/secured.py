"""A secured stack in a test: its keys, passwords and clients, and the places without secrets."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from earshot.certificates.store import Store
from earshot.listeners.properties import read_properties
from earshot.report.json import read_report
from earshot.users.access import login_failure
from earshot.validation.client import Errors, failure_of, translate
from earshot.validation.result import Report
from tests.doubles.watching import watching
from tests.e2e.attack import Attack
from tests.e2e.engine import Deployment

SILENT_SECONDS = 4.0
"""Seconds after which a client without an answer is considered refused."""
PATIENCE = 60.0
"""Maximum seconds until every broker knows a change."""
Stack = TypeVar("Stack", bound=Deployment)


@dataclass
class SecuredClusterStack(Generic[Stack]):
    """The stack, and the visible texts of all processes while it was created."""

    deployment: Stack
    process_texts: set[str] = field(default_factory=set)
    """Command lines and environments of every process of this machine."""
    attack: Attack = field(default_factory=Attack)
    """The answers and files that another user of the machine got meanwhile."""

    @property
    def store(self) -> Store:
        return Store(self.deployment.root / "security")

    @property
    def secrets(self) -> dict[str, str]:
        """The secrets by file."""
        return secrets_in(self.store.folder)

    def current_secrets(self) -> dict[str, str]:
        """The secrets, also during the first update."""
        with contextlib.suppress(FileNotFoundError):
            return self.secrets
        return {}

    def client(self, user: str = "app", listener: str = "EXTERNAL") -> dict[str, Any]:
        """librdkafka's settings from the file that `earshot client` writes."""
        file = self.deployment.folder / f"{user}.properties"
        reported = self.earshot(
            "client", "--user", user, "--listener", listener, "--output", str(file)
        )
        assert reported.returncode == 0, reported.stdout
        assert file.stat().st_mode & 0o777 == 0o600
        values = read_properties(file.read_text()).values
        file.unlink()
        return {**translate(values), "bootstrap.servers": values["bootstrap.servers"]}

    def earshot(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        stack = self.deployment.stack
        return subprocess.run(
            [sys.executable, "-m", "earshot", command, "--stack", stack, *arguments],
            cwd=self.deployment.folder,
            env=self.deployment.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )

    def report(self) -> Report:
        file = self.deployment.root.parent / "report.json"
        return read_report(file.read_bytes(), "report.json")


def secrets_in(folder: Path) -> dict[str, str]:
    """A password or the first line of a key, for each file of a store's ``folder``."""
    secrets = {}
    for path in folder.iterdir():
        text = path.read_text()
        if path.suffix == ".password":
            secrets[path.name] = text.strip()
        elif "PRIVATE KEY" in text and path.suffix != ".properties":
            secrets[path.name] = text.partition("PRIVATE KEY-----\n")[2].partition("\n")[0]
    return secrets


@contextlib.contextmanager
def watched_processes(
    texts: set[str], look: Callable[[], None] = lambda: None, seconds: float = 0.05
) -> Iterator[None]:
    """Within, command lines and environments of all processes are added to ``texts``.

    ``look`` is called as often.
    """
    known_processes: set[tuple[int, float]] = set()

    def look_at_all() -> None:
        look()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                key = (process.pid, process.create_time())
                if key not in known_processes:
                    texts.update(process.cmdline())
                    texts.update(process.environ().values())
                    known_processes.add(key)

    with watching(look_at_all, seconds):
        yield


def holders(folder: Path, secrets: Mapping[str, str]) -> set[str]:
    """The files in ``folder`` with one of ``secrets``. Brokers may remove files meanwhile."""
    files = set()
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            if not path.is_file() or path.is_symlink():
                continue
            with contextlib.suppress(FileNotFoundError):
                content = path.read_bytes()
                if any(secret.encode() in content for secret in secrets.values()):
                    files.add(str(path.relative_to(folder)))
    return files


def client_error(settings: Mapping[str, Any]) -> str:
    """The word for the error of a client without metadata, whose connections have ended."""
    errors, end = Errors(), time.monotonic() + SILENT_SECONDS
    client_settings: dict[str, Any] = {**settings, "log_level": 0, "error_cb": errors}
    admin = AdminClient(client_settings)
    while True:
        try:
            admin.list_topics(timeout=1)
        except KafkaException as error:
            admin.poll(0)
            if errors.first() is not None or time.monotonic() > end:
                return errors.explain(error).error
        else:
            raise AssertionError("it gets metadata")


def await_refusal(settings: Mapping[str, Any]) -> None:
    """Returns once each broker in `bootstrap.servers` refuses this client.

    Brokers learn of a change of users some time after the broker that made it.
    """
    addresses, end = str(settings["bootstrap.servers"]).split(","), time.monotonic() + PATIENCE
    for address in addresses:
        while login_failure({**settings, "bootstrap.servers": address}) is None:
            assert time.monotonic() < end, f"{address} still lets it in"


def accepted_by_each(settings: Mapping[str, Any]) -> bool:
    """True if each broker in `bootstrap.servers` accepts this client's login."""
    addresses = str(settings["bootstrap.servers"]).split(",")
    failures = [login_failure({**settings, "bootstrap.servers": address}) for address in addresses]
    print([failure for failure in failures if failure is not None])
    return not any(failures)


def denial(future: Future[Any]) -> str:
    """The word for the error of an admin client's request.

    A raised error would keep the clients of its callers alive until Python collects cycles, and
    they would connect again in a loop.
    """
    error = future.exception(20)
    assert isinstance(error, KafkaException), "it is done"
    return failure_of(error).error
