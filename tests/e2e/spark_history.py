"""The web pages of ended Spark jobs, which Spark's history server makes from event logs."""

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.e2e.ports import free_ports
from tests.e2e.spark_standalone import spark_process

SECONDS = 90.0
"""Maximum seconds until the server has read all logs on a busy machine."""
PAGES = ("jobs", "stages", "storage", "environment", "executors", "SQL")
ANSWERS = ("environment", "jobs", "stages", "executors", "sql?details=true&planDescription=true")
"""The paths of the interface for programs."""


def plant_secret(events: Path, secret: str) -> Path:
    """Copies the one log in ``events`` as that of another job, which shows ``secret``."""
    (log,) = events.iterdir()
    name = log.name.removesuffix(".inprogress")
    copy = events / f"planted-{name}"
    lines = log.read_text().replace(name, copy.name)
    assert '"spark.app.name":"earshot"' in lines
    copy.write_text(lines.replace('"spark.app.name":"earshot"', f'"spark.app.name":"{secret}"'))
    return copy


def web_pages(events: Path, folder: Path) -> dict[str, str]:
    """Each page and answer about every log in ``events``, by path. ``folder`` is for files."""
    (port,) = free_ports(1)
    settings = {
        "spark.history.fs.logDirectory": events.as_uri(),
        "spark.history.ui.port": str(port),
        "spark.ui.host": "127.0.0.1",
    }
    options = " ".join(f"-D{key}={value}" for key, value in settings.items())
    with (
        (folder / "history.log").open("w+") as log,
        spark_process(
            [], "history.HistoryServer", [], folder, log.fileno(), {"SPARK_HISTORY_OPTS": options}
        ),
    ):
        address = f"http://127.0.0.1:{port}"
        pages: dict[str, str] = {}
        for id in _application_ids(address, len(list(events.iterdir()))):
            paths = [f"/history/{id}/{page}/" for page in PAGES]
            paths += [f"/api/v1/applications/{id}/{answer}" for answer in ANSWERS]
            pages |= {path: _read(address + path) for path in paths}
            runs = json.loads(pages[paths[-1]])
            paths = [f"/history/{id}/SQL/execution/?id={run['id']}" for run in runs]
            pages |= {path: _read(address + path) for path in paths}
        return pages


def _application_ids(address: str, count: int) -> list[str]:
    end = time.monotonic() + SECONDS
    while True:
        try:
            applications: list[dict[str, Any]] = json.loads(_read(f"{address}/api/v1/applications"))
            if len(applications) == count:
                return [str(application["id"]) for application in applications]
        except urllib.error.URLError:
            applications = []
        assert time.monotonic() < end, f"{len(applications)} of {count} logs are known"
        time.sleep(0.2)


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:
        return str(answer.read().decode())
