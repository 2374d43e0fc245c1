"""Kafka's jars and Spark's connector, in the cache."""

from __future__ import annotations

import subprocess

from toolchain import progress
from toolchain.paths import LOGS, PYTHON, ROOT

# Through the project's own Python: PySpark and its Ivy are installed only there.
COMMAND = (PYTHON, "-m", "earshot.jvm")


def ensure() -> None:
    """Fetch what the cache lacks. Raises EarshotError where jars cannot be fetched."""
    check = subprocess.run([*COMMAND, "check"], cwd=ROOT, stdin=subprocess.DEVNULL)
    if check.returncode == 0:
        return
    with progress.step("Kafka and Spark: fetching jars"):
        progress.run(
            [*COMMAND, "jars"],
            log=LOGS / "jars.log",
            failure="Kafka's and Spark's jars",
            remedy="see what the log names, then run it again",
            cwd=ROOT,
        )
