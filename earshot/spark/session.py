"""Opens and closes a Spark session.

Under spark-submit the JVM, the master and the jars are those of the submission. Otherwise a JVM is
started for this process, with `local[*]` unless the user's Spark configuration names a master.
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
from earshot.jvm.archive import QUICK_START, ArchiveRecorder, recording, start_options
from earshot.jvm.jars import spark_connector_jars, spark_jars
from earshot.jvm.java import find_java
from earshot.spark.jvm import LOOPBACK, Jvm, full_disk_remedy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""The variable with the JVM's port, which spark-submit sets for a Python driver."""
CONNECTOR_CLASS: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
CONNECTOR_JAR: Final = "spark-sql-kafka-0-10*.jar"
STOP_SECONDS: Final = 10.0
SECURED_CLASSES: Final = "secured"
"""The name of a class archive that includes the classes of TLS and logins."""

SMALL_JOB: Final[dict[str, str]] = {
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.redaction.options.regex": "(?i)url|secret|password|jaas|keystore.key|private key",
}
"""For a job with few rows after its first aggregation: more partitions and replanning cost time.
Spark's web page and event log show the options of a write, except those whose key or value matches
the last of these. Spark's default pattern does not cover PEM keys."""

CLUSTER_OPTIONS: Final[dict[str, str]] = {
    "spark.task.maxFailures": "4",
    "spark.excludeOnFailure.enabled": "true",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor": "1",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "3",
    "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "1",
    "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "8",
    "spark.scheduler.excludeOnFailure.unschedulableTaskSetTimeout": "1s",
    "spark.executor.extraJavaOptions": shlex.join(QUICK_START),
}
"""For a cluster: retry a failed task on another executor, and start executors quickly."""

AUTHENTICATE: Final = "spark.authenticate"
ENCRYPT: Final = "spark.network.crypto.enabled"
AUTHENTICATION: Final[dict[str, str]] = {
    AUTHENTICATE: "true",
    ENCRYPT: "true",
    "spark.network.crypto.saslFallback": "false",
}
"""For a driver without a cluster. Every user of the machine can connect to its ports, whose blocks
contain the tasks' client properties. Spark generates the secret in the JVM, not in a property."""
ENCRYPTS: Final = (ENCRYPT, "spark.authenticate.enableSaslEncryption", "spark.ssl.rpc.enabled")
"""Properties that encrypt the connections between Spark's processes; one is enough."""


@dataclass(frozen=True)
class SparkSettings:
    """The user's settings for Spark, all optional."""

    jars: tuple[Path, ...] = ()
    """The connector's jars, instead of fetching them."""
    jars_dir: Path | None = None
    """A directory with these jars."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """`spark.*` properties, which override earshot's."""
    secured: bool = False
    """True if a listener uses TLS or SASL, for which the JVM loads more classes."""
    record: bool = False
    """True to archive the loaded classes in the user's cache after a first run, which takes some
    seconds."""


def is_local(spark: SparkSession) -> bool:
    """True if the driver's process is the only executor."""
    return _is_local(spark.sparkContext.master or "")


def exposure(spark: SparkSession, *, credentials: bool) -> str:
    """A note if connections of ``spark`` are not authenticated or not encrypted, else "".

    ``credentials`` is True if the session gets client properties that may contain credentials.
    """
    context = spark.sparkContext
    conf, spark_text = context.getConf(), f"Spark ({context.master})"
    read_action = "read the client properties of this run" if credentials else ""
    if conf.get(AUTHENTICATE, "false") != "true":
        actions = " and ".join(filter(None, ("run code there", read_action)))
        properties = f"{AUTHENTICATE} and {ENCRYPT}"
        if (context.master or "").startswith("spark:"):
            properties += ", and spark.authenticate.secret in its spark-defaults.conf,"
        return (
            f"{spark_text} does not authenticate connections: any user who can connect to a port "
            f"of its driver or executors can {actions}; set {properties} (docs/security.md)"
        )
    is_encrypted = any(conf.get(key, "false") == "true" for key in ENCRYPTS)
    if read_action and not is_encrypted and not is_local(spark):
        return (
            f"{spark_text} does not encrypt connections: any user who can read the network between "
            f"its driver and executors can {read_action}; set {ENCRYPT} (docs/security.md)"
        )
    return ""


class SessionStart:
    """A session that is being opened. Its JVM starts in the constructor and ends in `close`."""

    def __init__(self, settings: SparkSettings) -> None:
        """Starts the JVM without waiting. Raises EarshotError for settings that cannot be used."""
        self._settings = settings
        self._session: SparkSession | None = None
        self._recording: ArchiveRecorder | None = None
        # py4j prints stack traces for calls that are pending when the JVM ends
        logging.getLogger().addFilter(_is_not_py4j)
        self._jvm = None if GATEWAY in os.environ else self._start()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="spark-session")
        # in the main thread, a new context would replace the handler of Ctrl-C
        self._future = self._pool.submit(self._open)

    def session(self, seconds: float) -> SparkSession:
        """The session. Raises TimeoutError after ``seconds``, EarshotError if it fails to open."""
        return self._future.result(seconds)

    @property
    def is_recorded(self) -> bool:
        """True if `finish` will write a class archive."""
        return self._recording is not None

    def finish(self, seconds: float) -> bool:
        """Waits up to ``seconds`` for the JVM to exit, and keeps its class archive.

        Returns False if there is no archive, or if it failed. Call `close` afterwards.
        """
        if self._recording is None or self._jvm is None or self._session is None:
            return False
        # the run has its result, so an error here is harmless
        with contextlib.suppress(Exception):
            self._session.stop()
            return self._jvm.exit(seconds) and self._recording.keep()
        return False

    def close(self) -> None:
        """Ends the session and the JVM. Pending jobs end with an error in their thread.

        Can be called twice.
        """
        session, jvm = self._session, self._jvm
        if jvm is not None:
            # a local JVM is killed; an application on a cluster gets time to unregister
            jvm.end(0.0 if session is None or is_local(session) else STOP_SECONDS)
            _forget_context()
            if self._recording is not None:
                self._recording.discard()
        elif session is not None:
            with contextlib.suppress(Exception):  # the submitter's JVM may be exiting already
                session.stop()
        self._session = None
        self._pool.shutdown(wait=False)

    def _start(self) -> Jvm:
        home, java = folder_of("pyspark", "Spark"), find_java()
        jars = connector_jars(self._settings, home / "jars")
        archive_name = SECURED_CLASSES if self._settings.secured else ""
        archive_key = (java.executable, (home / "jars", *jars), archive_name)
        if self._settings.record and _is_local(_master(self._settings.conf)):
            self._recording = recording(*archive_key)
        options = self._recording.options if self._recording else start_options(*archive_key)
        try:
            return Jvm(home, java, _conf(self._settings.conf, jars, options))
        except BaseException:
            if self._recording is not None:
                self._recording.discard()
            raise

    def _open(self) -> SparkSession:
        jvm = self._jvm
        self._session = _submitted_session(self._settings) if jvm is None else _new_session(jvm)
        return self._session


def connector_jars(settings: SparkSettings, pyspark_jars: Path) -> tuple[Path, ...]:
    """The jars to add: the user's, those of the user's directory, none if PySpark or a property has
    the connector, else jars fetched by Ivy. Raises EarshotError for missing files."""
    jar_properties = settings.conf.get("spark.jars", "") + settings.conf.get(
        "spark.jars.packages", ""
    )
    if settings.jars:
        missing_jars = [str(path) for path in settings.jars if not path.is_file()]
        if missing_jars:
            raise EarshotError("--jars", observed=f"{', '.join(missing_jars)}: no such file")
        return settings.jars
    if settings.jars_dir is not None:
        jars = tuple(sorted(settings.jars_dir.glob("*.jar")))
        if not any(path.match(CONNECTOR_JAR) for path in jars):
            raise EarshotError(
                f"jars directory {settings.jars_dir}",
                observed=f"contains no {CONNECTOR_JAR} among {len(jars)} jars",
                allowed="Spark's Kafka connector for this PySpark and the three jars it needs",
                remedy="omit the directory: then the jars are fetched",
            )
        return jars
    if jar_properties or list(pyspark_jars.glob(CONNECTOR_JAR)):
        return ()
    return spark_connector_jars()


def _new_session(jvm: Jvm) -> SparkSession:
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
    server.handle_error = lambda *_: None  # no stack trace when the JVM ends
    return SparkSession(context)


def _submitted_session(settings: SparkSettings) -> SparkSession:
    import pyspark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("earshot")
    submit_conf = pyspark.SparkConf()  # the properties of the user's spark-submit
    master = submit_conf.get("spark.master", "") or ""
    user_conf = {**dict(submit_conf.getAll()), **settings.conf}
    own_conf = SMALL_JOB | (_authentication(user_conf) if _is_local(master) else CLUSTER_OPTIONS)
    overridden = {key: user_conf[key] for key in own_conf if key in user_conf}
    conf: dict[str, Any] = own_conf | overridden | dict(settings.conf)
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


def _conf(
    user_conf: Mapping[str, str], jars: Sequence[Path], options: Sequence[str]
) -> dict[str, str]:
    conf = SMALL_JOB | {"spark.app.name": "earshot"}
    if jars:
        conf["spark.jars"] = spark_jars(jars)
    if options:
        conf["spark.driver.extraJavaOptions"] = shlex.join(options)
    conf["spark.master"] = master = _master(user_conf)
    if not master.startswith("local"):
        return conf | CLUSTER_OPTIONS | dict(user_conf)
    local = {
        # this machine's own name need not resolve
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
    }
    # `local-cluster[...]` has executors, which would need the secret
    return (
        conf | local | (_authentication(user_conf) if _is_local(master) else {}) | dict(user_conf)
    )


def _authentication(user_conf: Mapping[str, str]) -> dict[str, str]:
    # Spark does not start if encryption is set without authentication
    return AUTHENTICATION if user_conf.get(AUTHENTICATE, "true") == "true" else {}


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _master(user_conf: Mapping[str, str]) -> str:
    """The user's master, by default `local[*]`."""
    if "spark.master" in user_conf:
        return user_conf["spark.master"]
    match = re.search(r"--master[\s=]+(\S+)", os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    if folder := os.environ.get("SPARK_CONF_DIR"):
        with contextlib.suppress(OSError):
            defaults = Path(folder, "spark-defaults.conf").read_text(errors="replace")
            # as Java reads properties
            match = match or re.search(r"^\s*spark\.master[\s=:]+(\S+)", defaults, re.M)
    return match[1] if match else "local[*]"


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _forget_context() -> None:
    """Removes PySpark's references to a context whose JVM has ended, so that a new one can open."""
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
    """The root cause in a Java stack trace: the last exception of Kafka's, or of any package.

    Returns the first line of a text without an exception.
    """
    exceptions = [(match["name"], match["text"].strip()) for match in _EXCEPTION.finditer(text)]
    kafka = [exception for exception in exceptions if exception[0].startswith("org.apache.kafka.")]
    if not exceptions:
        return text.strip().splitlines()[0] if text.strip() else "no reason was given"
    name, reason = (kafka or exceptions)[-1]
    return f"{name.rpartition('.')[2]}: {reason}"
