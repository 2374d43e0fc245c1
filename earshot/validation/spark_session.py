"""One Spark session: where its JVM comes from, what it is told, and how it ends.

Under spark-submit the JVM is there already, and master and jars are what the user submitted with.
Otherwise one is started for this process: `local[*]` unless the user's Spark configuration names a
master, quick to start, its output in a file, gone with this process.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from earshot.errors import EarshotError
from earshot.jvm.archive import archive_options
from earshot.jvm.jars import spark_connector_jars
from earshot.jvm.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""spark-submit tells a Python driver by this variable where its JVM is."""
CONNECTOR_CLASS: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
CONNECTOR_JAR: Final = "spark-sql-kafka-0-10*.jar"
STOP_SECONDS: Final = 10.0

SMALL: Final[dict[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}
"""A job of few rows after its first aggregation: more partitions or replanning only cost time."""

ELSEWHERE: Final[dict[str, str]] = {
    "spark.task.maxFailures": "4",
    "spark.excludeOnFailure.enabled": "true",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor": "1",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "3",
    "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "1",
    "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "8",
    "spark.scheduler.excludeOnFailure.unschedulableTaskSetTimeout": "1s",
    "spark.executorEnv.PYTHONDONTWRITEBYTECODE": "1",
}
"""On a cluster, a task that one executor cannot do is done by another."""


@dataclass(frozen=True)
class SparkSettings:
    """What the user says about Spark; all of it optional."""

    jars: tuple[Path, ...] = ()
    """The connector's jars, instead of fetching them."""
    jars_dir: Path | None = None
    """A directory that holds them."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """`spark.*` properties; they win over earshot's own."""


class Session:
    """A Spark session and, where this process started it, its JVM."""

    def __init__(
        self, spark: SparkSession, process: subprocess.Popen[bytes] | None, log: Path | None
    ) -> None:
        self.spark = spark
        self._process = process
        self._log = log

    @property
    def is_local(self) -> bool:
        """Whether the driver's process is the only executor."""
        master = self.spark.sparkContext.master or ""
        return master == "local" or master.startswith("local[")

    def close(self, patience: float = STOP_SECONDS) -> None:
        """Ends the session; a JVM of our own is gone after ``patience`` seconds at the latest.

        Whatever still runs in it ends with an error in its own thread.
        """
        if self._process is None:
            with contextlib.suppress(Exception):  # the submitter's JVM may be going down already
                self.spark.stop()
            return
        _forget_context()
        end_process(self._process, patience)
        if self._log is not None:
            self._log.unlink(missing_ok=True)


def open_session(settings: SparkSettings) -> Session:
    """The session that spark-submit prepared, or one in a JVM of its own.

    Raises EarshotError where Java or the connector's jars are missing, or the JVM does not start.
    """
    return _submitted(settings) if GATEWAY in os.environ else _launched(settings)


def connector_jars(settings: SparkSettings, pyspark_jars: Path) -> tuple[Path, ...]:
    """The jars to add: the user's, those of a directory, none where they are there, or Ivy's."""
    given = settings.conf.get("spark.jars", "") + settings.conf.get("spark.jars.packages", "")
    if settings.jars:
        missing = [str(path) for path in settings.jars if not path.is_file()]
        if missing:
            raise EarshotError("--jars", observed=f"{', '.join(missing)}: no such file")
        return settings.jars
    if settings.jars_dir is not None:
        found = tuple(sorted(settings.jars_dir.glob("*.jar")))
        if not any(path.match(CONNECTOR_JAR) for path in found):
            raise EarshotError(
                f"jars directory {settings.jars_dir}",
                observed=f"holds no {CONNECTOR_JAR} among {len(found)} jars",
                allowed="Spark's Kafka connector for this PySpark and the three jars it needs",
                remedy="leave the directory out, and the jars are fetched",
            )
        return found
    if given or list(pyspark_jars.glob(CONNECTOR_JAR)):
        return ()
    return spark_connector_jars()


def _launched(settings: SparkSettings) -> Session:
    # imported here, for a command that needs no Spark should not wait for it
    import pyspark
    from pyspark.java_gateway import launch_gateway  # type: ignore[attr-defined]
    from pyspark.sql import SparkSession

    home = Path(pyspark.__file__).parent
    java = find_java()
    jars = connector_jars(settings, home / "jars")
    conf = pyspark.SparkConf(loadDefaults=False)
    for key, value in (
        _defaults(settings.conf, jars, archive_options(java, jars)) | dict(settings.conf)
    ).items():
        conf.set(key, value)
    descriptor, name = tempfile.mkstemp(prefix="earshot-spark-", suffix=".log")
    log = Path(name)
    started: list[subprocess.Popen[bytes]] = []
    try:
        with _environment(JAVA_HOME=str(java.home), SPARK_HOME=str(home)):
            gateway: Any = launch_gateway(conf, {"stdout": descriptor, "stderr": descriptor})
        started.append(gateway.proc)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        context = pyspark.SparkContext(conf=conf, gateway=gateway)
        context.setLogLevel("OFF")
        return Session(SparkSession(context), gateway.proc, log)
    except BaseException as error:
        for process in started:
            _forget_context()
            end_process(process, 0)
        words = last_words(log.read_text(errors="replace"))
        log.unlink(missing_ok=True)
        if not isinstance(error, Exception) or isinstance(error, EarshotError):
            raise
        raise EarshotError(
            "Spark",
            observed=f"no session could be opened: {words or innermost(str(error))}",
            remedy="see the Spark properties given (and those in SPARK_CONF_DIR), and the memory "
            "that this machine has left",
        ) from None
    finally:
        os.close(descriptor)


def _submitted(settings: SparkSettings) -> Session:
    import pyspark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("earshot")
    master = pyspark.SparkConf().get("spark.master", "") or ""
    for key, value in (SMALL | ({} if master.startswith("local") else ELSEWHERE)).items():
        builder = builder.config(key, value)
    for key, value in settings.conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if not _has_connector(spark):
        for path in connector_jars(settings, Path(pyspark.__file__).parent / "jars"):
            spark.sql(f"ADD JAR '{path}'")
    return Session(spark, None, None)


def _has_connector(spark: SparkSession) -> bool:
    jvm: Any = spark.sparkContext._jvm
    try:
        jvm.org.apache.spark.util.Utils.classForName(CONNECTOR_CLASS, True, False)
    except Exception:  # py4j's own, with ClassNotFoundException in it
        return False
    return True


def _defaults(
    given: Mapping[str, str], jars: Sequence[Path], options: Sequence[str]
) -> dict[str, str]:
    conf = SMALL | {"spark.app.name": "earshot"}
    if jars:
        conf["spark.jars"] = ",".join(map(str, jars))
    if options:
        conf["spark.driver.extraJavaOptions"] = shlex.join(options)
    if _names_master(given):
        return conf | ELSEWHERE
    return conf | {
        "spark.master": "local[*]",
        # this machine's own name need not resolve
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


def _names_master(given: Mapping[str, str]) -> bool:
    if "spark.master" in given:
        return not given["spark.master"].startswith("local")
    if "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        return True
    folder = os.environ.get("SPARK_CONF_DIR", "")
    defaults = Path(folder, "spark-defaults.conf")
    with contextlib.suppress(OSError):
        if folder:
            return re.search(r"^\s*spark\.master\b", defaults.read_text(), re.M) is not None
    return False


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Within, these variables are set: what starts the JVM takes them from nowhere else."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def _forget_context() -> None:
    """Lets PySpark forget a context whose JVM is about to go, so that a next one can be opened."""
    import pyspark
    from pyspark.sql import SparkSession

    pyspark.SparkContext._active_spark_context = None
    pyspark.SparkContext._gateway = None
    pyspark.SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def end_process(process: subprocess.Popen[bytes], patience: float) -> None:
    """SIGTERM, and SIGKILL after ``patience`` seconds; closes our end of its standard input."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    process.terminate()
    try:
        process.wait(max(patience, 0.1))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


_EXCEPTION: Final = re.compile(
    r"(?P<name>(?:[a-z][\w]*\.)+[A-Z][\w$]*(?:Exception|Error)): (?P<text>[^\n]+)"
)


def innermost(text: str) -> str:
    """The reason at the bottom of a Java stack trace: the last of Kafka's exceptions, or of all.

    A text without any exception is returned as its first line.
    """
    found = [(match["name"], match["text"].strip()) for match in _EXCEPTION.finditer(text)]
    kafka = [item for item in found if item[0].startswith("org.apache.kafka.")]
    chosen = (kafka or found)[-1:]
    if not chosen:
        return text.strip().splitlines()[0] if text.strip() else "no reason was given"
    name, words = chosen[0]
    return f"{name.rpartition('.')[2]}: {words}"


def last_words(text: str, lines: int = 3) -> str:
    """What a JVM that did not start said last, without stack frames and progress."""
    kept = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.startswith(("\t", "Setting default log level"))
    ]
    return "; ".join(kept[-lines:])
