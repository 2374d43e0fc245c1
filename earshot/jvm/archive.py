"""A class-data archive for Spark's JVM: the classes of one job, parsed and verified beforehand.

Most of a small Spark job's time goes into loading classes. The archive (AppCDS, made by
``-XX:ArchiveClassesAtExit`` in a job like earshot's own) is tied to one Java, one PySpark and one
set of jars; the JVM itself refuses one that does not fit and goes on without.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from earshot import cache
from earshot.errors import EarshotError
from earshot.jvm.jars import kafka_broker_jars
from earshot.jvm.java import Java

log = logging.getLogger(__name__)

FILE = "spark.jsa"
SOURCES = "sources.json"
TRAINING_SECONDS = 300
# One tier of compilation: a short job is over before the second would pay.
QUICK_START = "-XX:TieredStopAtLevel=1"
# No word about an archive that does not fit: it is an optimization, not a part.
QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def start_options(java: Java, jars: Sequence[Path]) -> tuple[str, ...]:
    """JVM options that let a Spark driver with ``jars`` start soon, the archive where it is there.

    Hand them over as ``spark.driver.extraJavaOptions``.
    """
    if not is_made(java, jars):
        return (QUICK_START,)
    return (f"-XX:SharedArchiveFile={_folder(java, jars) / FILE}", QUICK_START, *QUIET)


def is_made(java: Java, jars: Sequence[Path]) -> bool:
    """Whether the archive for this Java and these ``jars`` is there."""
    return _is_complete(_folder(java, jars))


def make_archive(java: Java, jars: Sequence[Path]) -> Path:
    """Make the archive by running a training job, once; returns its file. Takes about a minute.

    Archives of what is gone or has changed are removed. Raises EarshotError.
    """
    folder = cache.ensure(
        _folder(java, jars), lambda fresh: _train(java, jars, fresh), _is_complete
    )
    for other in folder.parent.glob(f"*/{SOURCES}"):
        if not _is_current(other):
            shutil.rmtree(other.parent)
    return folder / FILE


def _folder(java: Java, jars: Sequence[Path]) -> Path:
    text = json.dumps(_sources(java, jars), sort_keys=True)
    return cache.root() / "archives" / hashlib.sha256(text.encode()).hexdigest()[:16]


def _sources(java: Java, jars: Sequence[Path]) -> dict[str, object]:
    """What an archive depends on; the JVM compares the jars' times and sizes by itself as well."""
    files = (java.executable, _pyspark() / "jars", *jars)
    return {
        "java": java.version,
        "pyspark": importlib.metadata.version("pyspark"),
        "files": {str(path): path.stat().st_mtime_ns for path in files},
    }


def record_sources(java: Java, jars: Sequence[Path], folder: Path) -> None:
    """Keep beside an archive what it was made from: that is how it is known to be complete."""
    (folder / SOURCES).write_text(json.dumps(_sources(java, jars), indent=2) + "\n")


def _is_current(record: Path) -> bool:
    """Whether all that an archive was made from is still as it was."""
    try:
        files = json.loads(record.read_text())["files"]
        return all(Path(path).stat().st_mtime_ns == time for path, time in files.items())
    except (OSError, ValueError, LookupError):
        return False


def _is_complete(folder: Path) -> bool:
    return (folder / FILE).is_file() and (folder / SOURCES).is_file()


def _train(java: Java, jars: Sequence[Path], folder: Path) -> None:
    command = [
        sys.executable, "-m", "earshot.jvm.training", "--archive", str(folder / FILE),
        "--broker-jars", os.pathsep.join(map(str, kafka_broker_jars())),
        "--jars", ",".join(map(str, jars)), "--work", str(folder / "work"),
    ]  # fmt: skip
    log.info("a training job is running: broker, Spark session, write and read")
    environment = os.environ | {"JAVA_HOME": str(java.home), "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as training:
        try:
            output, _ = training.communicate(timeout=TRAINING_SECONDS)
        except BaseException:
            training.terminate()
            training.wait()
            raise
    if training.returncode != 0 or not (folder / FILE).is_file():
        lines = "".join(f"\n    {line}" for line in output.splitlines()[-10:])
        raise EarshotError(
            "class-data archive",
            observed=f"the training job ended with status {training.returncode}:{lines}",
            remedy="run: make setup; Spark works without the archive, only slower",
        )
    shutil.rmtree(folder / "work", ignore_errors=True)
    record_sources(java, jars, folder)


def _pyspark() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise EarshotError("PySpark", observed="it is not installed", remedy="run: make setup")
    return Path(spec.submodule_search_locations[0])
