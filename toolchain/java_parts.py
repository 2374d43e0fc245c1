"""What runs on Java: Kafka's jars, Spark's connector and the class-data archive, all cached."""

from __future__ import annotations

import subprocess

from toolchain import progress
from toolchain.paths import LOGS, PYTHON, ROOT

# Through the project's own Python: PySpark and its Ivy are installed only there.
COMMAND = (PYTHON, "-m", "earshot.jvm")


def ensure() -> None:
    """Have it all in the cache. Raises EarshotError."""
    check = subprocess.run([*COMMAND, "--check"], cwd=ROOT, stdin=subprocess.DEVNULL)
    if check.returncode == 0:
        return
    with progress.step("Kafka and Spark: fetching jars, making a class-data archive"):
        progress.run(
            COMMAND,
            log=LOGS / "jvm.log",
            failure="Kafka's and Spark's jars",
            remedy="mend that and run it again",
            cwd=ROOT,
        )
