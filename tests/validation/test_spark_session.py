from __future__ import annotations

import logging
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.validation import spark_session
from earshot.validation.spark_session import SparkSettings, connector_jars, innermost

CONNECTOR = "spark-sql-kafka-0-10_2.13-4.0.0.jar"


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> tuple[Path, ...]:
    """Ivy's answer."""
    jars = (Path("/cache/connector.jar"),)
    monkeypatch.setattr(spark_session, "spark_connector_jars", lambda: jars)
    return jars


def test_jars_that_the_user_names_come_first(tmp_path: Path, fetched: tuple[Path, ...]) -> None:
    jar = tmp_path / "mine.jar"
    jar.touch()
    (tmp_path / CONNECTOR).touch()
    settings = SparkSettings(jars=(jar,), jars_dir=tmp_path, conf={"spark.jars": "other.jar"})
    assert connector_jars(settings, tmp_path) == (jar,)


def test_a_jar_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EarshotError, match=r"--jars: .*absent\.jar: no such file"):
        connector_jars(SparkSettings(jars=(tmp_path / "absent.jar",)), tmp_path)


def test_then_those_of_a_directory(tmp_path: Path, fetched: tuple[Path, ...]) -> None:
    names = ("commons-pool2-2.12.0.jar", CONNECTOR)
    for name in names:
        (tmp_path / name).touch()
    found = connector_jars(SparkSettings(jars_dir=tmp_path), Path("/nowhere"))
    assert [path.name for path in found] == list(names)


def test_a_directory_without_the_connector_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some.jar").touch()
    with pytest.raises(EarshotError, match="holds no spark-sql-kafka"):
        connector_jars(SparkSettings(jars_dir=tmp_path), tmp_path)


@pytest.mark.parametrize("key", ["spark.jars", "spark.jars.packages"])
def test_spark_s_own_properties_are_left_alone(
    key: str, tmp_path: Path, fetched: tuple[Path, ...]
) -> None:
    assert connector_jars(SparkSettings(conf={key: "something"}), tmp_path) == ()


def test_nothing_is_added_where_pyspark_has_the_connector(
    tmp_path: Path, fetched: tuple[Path, ...]
) -> None:
    assert connector_jars(SparkSettings(), tmp_path) == fetched
    (tmp_path / CONNECTOR).touch()
    assert connector_jars(SparkSettings(), tmp_path) == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            (
                "An error occurred while calling o1.save.\n"
                ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0: "
                "(executor driver): org.apache.kafka.common.errors.TimeoutException: Expiring 5 "
                "record(s) for t-0:5001 ms\n\tat org.apache.spark.Some.thing(Some.scala:1)\n"
            ),
            "TimeoutException: Expiring 5 record(s) for t-0:5001 ms",
        ),
        (
            (
                "java.util.concurrent.ExecutionException: org.apache.kafka.common.KafkaException: "
                "Failed to create new KafkaAdminClient\n\tat x.Y.z(Y.java:1)\n"
                "Caused by: org.apache.kafka.common.config.ConfigException: No bootstrap\n"
                "Caused by: java.lang.IllegalStateException: after it"
            ),
            "ConfigException: No bootstrap",
        ),
        ("java.lang.IllegalArgumentException: bad option", "IllegalArgumentException: bad option"),
        ("no exception\nat all", "no exception"),
        ("", "no reason was given"),
    ],
)
def test_the_innermost_reason_is_told(text: str, reason: str) -> None:
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
    found = spark_session._conf(conf, (), ())
    assert ("spark.driver.bindAddress" in found) is local
    assert found.get("spark.master", "") == conf.get("spark.master", "local[*]" if local else "")


def test_the_user_s_properties_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    options = {"spark.driver.extraJavaOptions": "-Dmine", "spark.sql.shuffle.partitions": "7"}
    found = spark_session._conf(options, (Path("/a.jar"), Path("/b.jar")), ("-XX:One", "-XX:Two"))
    assert found["spark.driver.extraJavaOptions"] == "-Dmine"
    assert found["spark.sql.shuffle.partitions"] == "7"
    assert found["spark.jars"] == "/a.jar,/b.jar"
