"""What runs on Java: Kafka's jars, Spark's connector and the class-data archive, all cached."""

from __future__ import annotations

import subprocess

from earshot.errors import EarshotError
from toolchain import progress
from toolchain.paths import LOGS, PYTHON, ROOT

# Through the project's own Python: PySpark and its Ivy are installed only there.
COMMAND = (PYTHON, "-m", "earshot.jvm")


def ensure() -> None:
    """Have it all in the cache. Raises EarshotError where jars cannot be had."""
    check = subprocess.run([*COMMAND, "check"], cwd=ROOT, stdin=subprocess.DEVNULL)
    if check.returncode == 0:
        return
    with progress.step("Kafka and Spark: fetching jars"):
        _make("jars")
    try:
        with progress.step("Spark: making a class-data archive (about a minute)"):
            _make("archive")
    except EarshotError as error:
        progress.say(f"{error}\nGoing on without it: Spark starts more slowly.")


def _make(part: str) -> None:
    progress.run(
        [*COMMAND, part],
        log=LOGS / f"{part}.log",
        failure=f"Kafka's and Spark's {part}",
        remedy="mend that and run it again",
        cwd=ROOT,
    )
