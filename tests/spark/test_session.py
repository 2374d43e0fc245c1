import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.errors import EarshotError
from earshot.jvm.java import Java
from earshot.spark import session as spark_session
from earshot.spark.jvm import Jvm, full_disk_remedy
from earshot.spark.session import (
    AUTHENTICATION,
    SMALL_JOB,
    SessionStart,
    SparkSettings,
    connector_jars,
    exposure,
    innermost,
)

CONNECTOR = "spark-sql-kafka-0-10_2.13-4.0.0.jar"


@pytest.fixture
def fetched_jars(monkeypatch: pytest.MonkeyPatch) -> tuple[Path, ...]:
    """Ivy's answer."""
    jars = (Path("/cache/connector.jar"),)
    monkeypatch.setattr(spark_session, "spark_connector_jars", lambda: jars)
    return jars


def test_jars_that_the_user_names_come_first(
    tmp_path: Path, fetched_jars: tuple[Path, ...]
) -> None:
    jar = tmp_path / "mine.jar"
    jar.touch()
    (tmp_path / CONNECTOR).touch()
    settings = SparkSettings(jars=(jar,), jars_dir=tmp_path, conf={"spark.jars": "other.jar"})
    assert connector_jars(settings, tmp_path) == (jar,)


def test_a_jar_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EarshotError, match=r"--jars: .*absent\.jar: no such file"):
        connector_jars(SparkSettings(jars=(tmp_path / "absent.jar",)), tmp_path)


def test_then_those_of_a_directory(tmp_path: Path, fetched_jars: tuple[Path, ...]) -> None:
    names = ("commons-pool2-2.12.0.jar", CONNECTOR)
    for name in names:
        (tmp_path / name).touch()
    jars = connector_jars(SparkSettings(jars_dir=tmp_path), Path("/nowhere"))
    assert [path.name for path in jars] == list(names)


def test_a_directory_without_the_connector_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some.jar").touch()
    with pytest.raises(EarshotError, match="contains no spark-sql-kafka"):
        connector_jars(SparkSettings(jars_dir=tmp_path), tmp_path)


@pytest.mark.parametrize("key", ["spark.jars", "spark.jars.packages"])
def test_own_jars_are_left_alone(key: str, tmp_path: Path, fetched_jars: tuple[Path, ...]) -> None:
    assert connector_jars(SparkSettings(conf={key: "something"}), tmp_path) == ()


def test_pyspark_may_have_the_connector(tmp_path: Path, fetched_jars: tuple[Path, ...]) -> None:
    assert connector_jars(SparkSettings(), tmp_path) == fetched_jars
    (tmp_path / CONNECTOR).touch()
    assert connector_jars(SparkSettings(), tmp_path) == ()


EXPIRED = "TimeoutException: Expiring 5 record(s) for t-0:5001 ms"
SAVE_FAILED = (
    "An error occurred while calling o1.save.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0: (executor "
    f"driver): org.apache.kafka.common.errors.{EXPIRED}\n\tat org.apache.spark.X(X.scala:1)\n"
)
NO_CLIENT = (
    "java.util.concurrent.ExecutionException: org.apache.kafka.common.KafkaException: "
    "Failed to create new KafkaAdminClient\n\tat x.Y.z(Y.java:1)\n"
    "Caused by: org.apache.kafka.common.config.ConfigException: No bootstrap\n"
    "Caused by: java.lang.IllegalStateException: after it"
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SAVE_FAILED, EXPIRED),
        (NO_CLIENT, "ConfigException: No bootstrap"),
        ("java.lang.IllegalArgumentException: bad option", "IllegalArgumentException: bad option"),
        ("no exception\nat all", "no exception"),
        ("", "no reason was given"),
    ],
)
def test_the_innermost_reason(text: str, reason: str) -> None:
    assert innermost(text) == reason


def test_py4j_s_stack_traces_are_dropped_and_nothing_else() -> None:
    def record(path: str) -> logging.LogRecord:
        return logging.LogRecord("root", logging.ERROR, path, 1, "said", None, None)

    assert not spark_session._is_not_py4j(record("/lib/py4j/java_gateway.py"))
    assert spark_session._is_not_py4j(record("/lib/earshot/cli/__init__.py"))


@pytest.mark.parametrize(
    ("conf", "arguments", "defaults", "local"),
    [
        ({}, "", "", True),
        ({"spark.master": "local[2]"}, "", "", True),
        ({"spark.master": "spark://it:7077"}, "", "", False),
        ({}, "--master yarn pyspark-shell", "", False),
        ({}, "", "spark.master spark://it:7077\n", False),
        ({}, "", "spark.master=local[3]\n", True),
        ({}, "", "spark.ui.enabled false\n", True),
    ],
)
def test_a_master_that_the_user_names_is_respected(
    conf: dict[str, str],
    arguments: str,
    defaults: str,
    local: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    session_conf = spark_session._conf(conf, (), ())
    assert ("spark.driver.bindAddress" in session_conf) is local
    assert (session_conf.items() >= AUTHENTICATION.items()) is local
    named_masters = f"{' '.join(conf.values())} {arguments} {defaults}".replace("=", " ").split()
    default = "master" not in f"{conf}{arguments}{defaults}"
    assert session_conf["spark.master"] in (["local[*]"] if default else named_masters)


def test_authentication_of_local_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    # a local cluster has executors, and so no secret of its own
    conf = spark_session._conf({"spark.master": "local-cluster[2,1,1024]"}, (), ())
    assert not conf.keys() & AUTHENTICATION.keys()
    # authentication that is turned off turns off the rest
    conf = spark_session._conf({"spark.authenticate": "false"}, (), ())
    assert {key: conf[key] for key in AUTHENTICATION if key in conf} == {
        "spark.authenticate": "false"
    }


AUTHENTICATED = {"spark.authenticate": "true"}
OPEN, READABLE = "does not authenticate", "does not encrypt"


@pytest.mark.parametrize(
    ("master", "conf", "credentials", "words"),
    [
        ("local[*]", AUTHENTICATION, True, ""),
        ("local[*]", AUTHENTICATED, True, ""),
        ("local[*]", {}, False, OPEN),
        ("yarn", {}, True, OPEN),
        ("yarn", AUTHENTICATED, True, READABLE),
        ("yarn", AUTHENTICATED, False, ""),
        ("yarn", AUTHENTICATED | {"spark.network.crypto.enabled": "true"}, True, ""),
        ("yarn", AUTHENTICATED | {"spark.ssl.rpc.enabled": "true"}, True, ""),
        ("spark://it:7077", {}, True, "spark.authenticate.secret in its spark-defaults.conf"),
    ],
)
def test_exposure_is_named(
    master: str, conf: dict[str, str], credentials: bool, words: str
) -> None:
    context = SimpleNamespace(master=master, getConf=lambda: conf)
    spark: Any = SimpleNamespace(sparkContext=context)
    note = exposure(spark, credentials=credentials)
    assert words in note and bool(note) is bool(words)
    assert ("client properties" in note) is (credentials and bool(note))


def test_spark_s_defaults_in_latin_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_bytes(b"# f\xfcr uns\nspark.master yarn\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert spark_session._conf({}, (), ())["spark.master"] == "yarn"


def test_the_user_s_properties_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    options = {"spark.driver.extraJavaOptions": "-Dmine", "spark.sql.shuffle.partitions": "7"}
    conf = spark_session._conf(options, (Path("/a.jar"), Path("/b.jar")), ("-XX:One", "-XX:Two"))
    assert conf["spark.driver.extraJavaOptions"] == "-Dmine"
    assert conf["spark.sql.shuffle.partitions"] == "7"
    assert conf["spark.jars"] == "/a.jar,/b.jar"


@pytest.mark.parametrize(("script", "ended_well"), [
    ("read line; exit 0", True),
    ("read line; exit 1", False),
    ("read line; kill -9 $$", False),
    ("exec sleep 60", False),
], ids=["well", "failed", "killed", "goes on"])  # fmt: skip
def test_an_unused_jvm_ends_well_or_not(tmp_path: Path, script: str, ended_well: bool) -> None:
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(f"#!/bin/sh\n{script}\n")
    submit.chmod(0o755)
    jvm = Jvm(tmp_path, Java(tmp_path, tmp_path / "bin" / "java", "17.0.1"), {})
    try:
        assert jvm.exit(0.2 if "sleep" in script else 10) is ended_well
    finally:
        jvm.end()


@pytest.mark.parametrize(("host", "variable", "address"), [
    ("127.0.0.1", "", "127.0.0.1"),
    ("127.0.0.1", "192.0.2.1", "192.0.2.1"),
    ("", "", "none"),
    ("driver.example", "", "none"),
])  # fmt: skip
def test_the_machine_s_own_name_need_not_resolve(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, variable: str, address: str
) -> None:
    """Spark looks it up at its start, unless SPARK_LOCAL_IP has an address; a user's counts."""
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    if variable:
        monkeypatch.setenv("SPARK_LOCAL_IP", variable)
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text('#!/bin/sh\necho "${SPARK_LOCAL_IP-none}"\n')
    submit.chmod(0o755)
    conf = {"spark.driver.host": host} if host else {}
    jvm = Jvm(tmp_path, Java(tmp_path, tmp_path / "bin" / "java", "17.0.1"), conf)
    try:
        assert jvm.exit(10) and (jvm.directory / "log").read_text() == f"{address}\n"
    finally:
        jvm.end()


class RecordingDouble:
    """A double of the recording of a class archive, on a full disk."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def keep(self) -> bool:
        self.done.append("keep")
        raise OSError(28, "No space left on device", "/cache/sources.json")

    def discard(self) -> None:
        self.done.append("discard")


def test_a_recording_that_cannot_be_kept_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = RecordingDouble()
    jvm: Any = SimpleNamespace(exit=lambda _: True, end=lambda _: None)
    context = SimpleNamespace(master="local[*]")
    spark: Any = SimpleNamespace(stop=lambda: None, sparkContext=context)
    monkeypatch.setattr(SessionStart, "_start", lambda _: jvm)
    monkeypatch.setattr(spark_session, "_new_session", lambda _: spark)
    monkeypatch.setattr(spark_session, "_forget_context", lambda: None)
    monkeypatch.delenv(spark_session.GATEWAY, raising=False)
    opening = SessionStart(SparkSettings(record=True))
    opening.session(10)
    opening._recording = recording  # type: ignore[assignment]
    assert not opening.finish(10)
    opening.close()
    assert recording.done == ["keep", "discard"]


def test_a_failed_jvm_leaves_no_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "a,b.jar"
    jar.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(spark_session.GATEWAY, raising=False)
    monkeypatch.setattr(spark_session, "find_java", lambda: Java(tmp_path, jar, "17.0.1"))
    with pytest.raises(EarshotError, match=r"which ends an entry of Spark's `spark\.jars`"):
        SessionStart(SparkSettings(jars=(jar,), record=True))
    assert list((tmp_path / "earshot" / "archives").iterdir()) == []


@pytest.mark.parametrize(
    ("key", "value", "hidden"),
    [
        ("kafka.ssl.keystore.key", "-----BEGIN", True),
        ("kafka.other", "-----BEGIN ENCRYPTED PRIVATE KEY-----", True),
        ("kafka.ssl.key.password", "geheim", True),
        ("kafka.sasl.jaas.config", "OAuthBearerLoginModule required;", True),
        ("kafka.ssl.truststore.certificates", "-----BEGIN CERTIFICATE-----", False),
        ("kafka.bootstrap.servers", "b1:9092", False),
    ],
)
def test_spark_shows_no_option_with_a_secret(key: str, value: str, hidden: bool) -> None:
    """Spark matches the key or the value."""
    pattern = SMALL_JOB["spark.sql.redaction.options.regex"]
    assert bool(re.search(pattern, key) or re.search(pattern, value)) is hidden


def test_a_full_disk_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    remedy = full_disk_remedy("java.io.IOException: No space left on device")
    assert remedy.startswith(f"free space on the disk of {tmp_path}, or set TMPDIR")
    assert full_disk_remedy("java.io.IOException: refused") == ""
