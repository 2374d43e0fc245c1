"""One Spark session: where its JVM comes from, its settings, and how it ends.

Under spark-submit the JVM is there already, and master and jars are what the user submitted with.
Otherwise one is started for this process: `local[*]` unless the user's Spark configuration names a
master, quick to start, its output in a file, gone with this process.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from earshot.errors import EarshotError
from earshot.extras import folder_of
from earshot.jvm.archive import QUICK_START, Recording, recording, start_options
from earshot.jvm.jars import spark_connector_jars, spark_jars
from earshot.jvm.java import find_java
from earshot.spark.jvm import Jvm, full_disk_remedy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""The variable by which spark-submit gives a Python driver the port of its JVM."""
CONNECTOR_CLASS: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
CONNECTOR_JAR: Final = "spark-sql-kafka-0-10*.jar"
STOP_SECONDS: Final = 10.0
SECURED: Final = "secured"
"""The work of a driver whose classes include those of TLS and logins."""

SMALL: Final[dict[str, str]] = {
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.redaction.options.regex": "(?i)url|secret|password|jaas|keystore.key|private key",
}
"""A job of few rows after its first aggregation: more partitions or replanning only cost time.
Spark's web page and event log show the options of a write, but those whose key or value fits the
last of these; what Spark has in its place shows keys in PEM."""

ELSEWHERE: Final[dict[str, str]] = {
    "spark.task.maxFailures": "4",
    "spark.excludeOnFailure.enabled": "true",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor": "1",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "3",
    "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "1",
    "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "8",
    "spark.scheduler.excludeOnFailure.unschedulableTaskSetTimeout": "1s",
    "spark.executor.extraJavaOptions": shlex.join(QUICK_START),
}
"""On a cluster, a task that one executor cannot do is done by another; executors start quickly."""

AUTHENTICATE: Final = "spark.authenticate"
ENCRYPT: Final = "spark.network.crypto.enabled"
GUARDED: Final[dict[str, str]] = {
    AUTHENTICATE: "true",
    ENCRYPT: "true",
    "spark.network.crypto.saslFallback": "false",
}
"""For a driver without a cluster. Every user of the machine can connect to its ports, whose blocks
hold the tasks' client properties. Spark generates the secret in the JVM: no property has it."""
ENCRYPTS: Final = (ENCRYPT, "spark.authenticate.enableSaslEncryption", "spark.ssl.rpc.enabled")
"""Properties each of which encrypts the connections between Spark's processes."""


@dataclass(frozen=True)
class SparkSettings:
    """What the user says about Spark; all of it optional."""

    jars: tuple[Path, ...] = ()
    """The connector's jars, instead of fetching them."""
    jars_dir: Path | None = None
    """A directory that holds them."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """`spark.*` properties; they win over earshot's own."""
    secured: bool = False
    """Whether a listener asks for TLS or a login: a JVM loads more classes then."""
    record: bool = False
    """Whether a first run keeps the classes that it loads for the next ones, in the user's cache;
    some seconds at its end."""


def is_local(spark: SparkSession) -> bool:
    """Whether the driver's process is the only executor."""
    return _is_local(spark.sparkContext.master or "")


def exposure(spark: SparkSession, *, credentials: bool) -> str:
    """A note on the protection that ``spark`` lacks, empty where it lacks none.

    ``credentials`` says whether the session gets client properties that may hold some.
    """
    context = spark.sparkContext
    conf, where = context.getConf(), f"Spark ({context.master})"
    read = "read the client properties of this run" if credentials else ""
    if conf.get(AUTHENTICATE, "false") != "true":
        done = " and ".join(filter(None, ("run code there", read)))
        missing = f"{AUTHENTICATE} and {ENCRYPT}"
        if (context.master or "").startswith("spark:"):
            missing += ", and spark.authenticate.secret in its spark-defaults.conf,"
        return (
            f"{where} does not authenticate connections: any user who can connect to a port of its "
            f"driver or executors can {done}; set {missing} (docs/security.md)"
        )
    encrypted = any(conf.get(key, "false") == "true" for key in ENCRYPTS)
    if read and not encrypted and not is_local(spark):
        return (
            f"{where} does not encrypt connections: any user who can read the network between its "
            f"driver and executors can {read}; set {ENCRYPT} (docs/security.md)"
        )
    return ""


class SessionStart:
    """A session on its way: its JVM starts now, and is gone when the opening is closed."""

    def __init__(self, settings: SparkSettings) -> None:
        """Starts the JVM and returns; raises EarshotError for settings that cannot be used."""
        self._settings = settings
        self._session: SparkSession | None = None
        self._recording: Recording | None = None
        # it would print stack traces for calls that were under way when their JVM ended
        logging.getLogger().addFilter(_is_not_py4j)
        self._jvm = None if GATEWAY in os.environ else self._start()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="spark-session")
        # not in the main thread, where a new context would take over Ctrl-C
        self._future = self._pool.submit(self._open)

    def session(self, seconds: float) -> SparkSession:
        """The session; raises TimeoutError after ``seconds``, EarshotError where there is none."""
        return self._future.result(seconds)

    @property
    def is_recorded(self) -> bool:
        """Whether `finish` has something to wait for."""
        return self._recording is not None

    def finish(self, seconds: float) -> bool:
        """Lets the JVM end by itself, at most for ``seconds``, and keeps the classes it recorded.

        False where there was nothing to keep, and where that failed. `close` is still to be called.
        """
        if self._recording is None or self._jvm is None or self._session is None:
            return False
        # the run has its findings: whatever goes wrong here changes nothing about them
        with contextlib.suppress(Exception):
            self._session.stop()
            return self._jvm.exit(seconds) and self._recording.keep()
        return False

    def close(self) -> None:
        """Ends session and JVM; whatever still runs there ends with an error in its thread.

        May be called again.
        """
        session, jvm = self._session, self._jvm
        if jvm is not None:
            # one on its own holds nothing worth a farewell; a cluster's application says goodbye
            jvm.end(0.0 if session is None or is_local(session) else STOP_SECONDS)
            _forget_context()
            if self._recording is not None:
                self._recording.discard()
        elif session is not None:
            with contextlib.suppress(Exception):  # the submitter's JVM may be going down already
                session.stop()
        self._session = None
        self._pool.shutdown(wait=False)

    def _start(self) -> Jvm:
        home, java = folder_of("pyspark", "Spark"), find_java()
        jars = connector_jars(self._settings, home / "jars")
        work = SECURED if self._settings.secured else ""
        what = (java.executable, (home / "jars", *jars), work)
        if self._settings.record and _is_local(_master(self._settings.conf)):
            self._recording = recording(*what)
        options = self._recording.options if self._recording else start_options(*what)
        try:
            return Jvm(home, java, _conf(self._settings.conf, jars, options))
        except BaseException:
            if self._recording is not None:
                self._recording.discard()
            raise

    def _open(self) -> SparkSession:
        jvm = self._jvm
        self._session = _submitted(self._settings) if jvm is None else _connected(jvm)
        return self._session


def connector_jars(settings: SparkSettings, pyspark_jars: Path) -> tuple[Path, ...]:
    """The jars to add: the user's, those of a directory, none where they are there, or Ivy's."""
    given = settings.conf.get("spark.jars", "") + settings.conf.get("spark.jars.packages", "")
    if settings.jars:
        missing = [str(path) for path in settings.jars if not path.is_file()]
        if missing:
            raise EarshotError("--jars", observed=f"{', '.join(missing)}: no such file")
        return settings.jars
    if settings.jars_dir is not None:
        jars = tuple(sorted(settings.jars_dir.glob("*.jar")))
        if not any(path.match(CONNECTOR_JAR) for path in jars):
            raise EarshotError(
                f"jars directory {settings.jars_dir}",
                observed=f"holds no {CONNECTOR_JAR} among {len(jars)} jars",
                allowed="Spark's Kafka connector for this PySpark and the three jars it needs",
                remedy="leave the directory out, and the jars are fetched",
            )
        return jars
    if given or list(pyspark_jars.glob(CONNECTOR_JAR)):
        return ()
    return spark_connector_jars()


def _connected(jvm: Jvm) -> SparkSession:
    import pyspark
    from pyspark.sql import SparkSession

    gateway = jvm.gateway()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        context = pyspark.SparkContext(gateway=gateway)
    except Exception as error:
        _forget_context()
        raise EarshotError(
            "Spark",
            observed=f"no session could be opened: {innermost(str(error))}",
            remedy=full_disk_remedy(str(error))
            or "see the Spark properties given, and those in SPARK_CONF_DIR",
        ) from None
    server: Any = context._accumulatorServer
    server.handle_error = lambda *_: None  # it would print a stack trace when its JVM ends
    return SparkSession(context)


def _submitted(settings: SparkSettings) -> SparkSession:
    import pyspark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("earshot")
    submitted = pyspark.SparkConf()  # what the user's spark-submit says
    master = submitted.get("spark.master", "") or ""
    given = {**dict(submitted.getAll()), **settings.conf}
    own = SMALL | (_guarded(given) if _is_local(master) else ELSEWHERE)
    stated = {key: given[key] for key in own if key in given}
    conf: dict[str, Any] = own | stated | dict(settings.conf)
    spark = builder.config(map=conf).getOrCreate()
    if not _has_connector(spark):
        for path in connector_jars(settings, Path(pyspark.__file__).parent / "jars"):
            spark.sql(f"ADD JAR '{path}'")
    return spark


def _has_connector(spark: SparkSession) -> bool:
    jvm: Any = spark.sparkContext._jvm
    try:
        jvm.org.apache.spark.util.Utils.classForName(CONNECTOR_CLASS, True, False)
    except Exception:  # py4j's own, with ClassNotFoundException in it
        return False
    return True


def _conf(given: Mapping[str, str], jars: Sequence[Path], options: Sequence[str]) -> dict[str, str]:
    conf = SMALL | {"spark.app.name": "earshot"}
    if jars:
        conf["spark.jars"] = spark_jars(jars)
    if options:
        conf["spark.driver.extraJavaOptions"] = shlex.join(options)
    conf["spark.master"] = master = _master(given)
    if not master.startswith("local"):
        return conf | ELSEWHERE | dict(given)
    local = {
        # this machine's own name need not resolve
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    # `local-cluster[...]` has executors, which would have to be given a secret
    return conf | local | (_guarded(given) if _is_local(master) else {}) | dict(given)


def _guarded(given: Mapping[str, str]) -> dict[str, str]:
    # Spark starts with none of the others without the first
    return GUARDED if given.get(AUTHENTICATE, "true") == "true" else {}


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _master(given: Mapping[str, str]) -> str:
    """The master that the user names, by default `local[*]`."""
    if "spark.master" in given:
        return given["spark.master"]
    named = re.search(r"--master[\s=]+(\S+)", os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    if folder := os.environ.get("SPARK_CONF_DIR"):
        with contextlib.suppress(OSError):
            defaults = Path(folder, "spark-defaults.conf").read_text(errors="replace")
            # as Java reads properties
            named = named or re.search(r"^\s*spark\.master[\s=:]+(\S+)", defaults, re.M)
    return named[1] if named else "local[*]"


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _forget_context() -> None:
    """Lets PySpark forget a context whose JVM is gone, so that a next one can be opened."""
    import pyspark
    from pyspark.sql import SparkSession

    pyspark.SparkContext._active_spark_context = None
    pyspark.SparkContext._gateway = None
    pyspark.SparkContext._jvm = None
    SparkSession._instantiatedSession = None


_EXCEPTION: Final = re.compile(
    r"(?P<name>(?:[a-z][\w]*\.)+[A-Z][\w$]*(?:Exception|Error)): (?=(?P<text>[^\n]+))"
)


def innermost(text: str) -> str:
    """The reason at the bottom of a Java stack trace: the last of Kafka's exceptions, or of all.

    A text without any exception is returned as its first line.
    """
    exceptions = [(match["name"], match["text"].strip()) for match in _EXCEPTION.finditer(text)]
    kafka = [exception for exception in exceptions if exception[0].startswith("org.apache.kafka.")]
    if not exceptions:
        return text.strip().splitlines()[0] if text.strip() else "no reason was given"
    name, words = (kafka or exceptions)[-1]
    return f"{name.rpartition('.')[2]}: {words}"
