"""The class-data archive: tied to what it was made from, and really used by a JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from earshot.jvm import archive
from earshot.jvm.jars import spark_connector_jars
from earshot.jvm.java import Java, find_java


@pytest.fixture
def java(tmp_path: Path) -> Java:
    executable = tmp_path / "java-home" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.touch()
    return Java(tmp_path / "java-home", executable, "17.0.1")


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "one.jar"
    path.touch()
    return path


@pytest.fixture(autouse=True)
def scratch_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if "e2e" not in request.keywords:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Stands in for the training job: writes an empty archive."""
    made: list[Path] = []

    def train(java: Java, jars: tuple[Path, ...], folder: Path) -> None:
        (folder / archive.FILE).touch()
        archive.record_sources(java, jars, folder)
        made.append(folder)

    monkeypatch.setattr(archive, "_train", train)
    return made


def test_without_an_archive_one_tier_of_compilation_is_all(java: Java, jar: Path) -> None:
    assert not archive.is_made(java, (jar,))
    assert archive.start_options(java, (jar,)) == (archive.QUICK_START,)


def test_archive_is_made_once_and_named_in_the_options(
    java: Java, jar: Path, training: list[Path]
) -> None:
    path = archive.make_archive(java, (jar,))
    assert archive.make_archive(java, (jar,)) == path
    assert len(training) == 1
    assert f"-XX:SharedArchiveFile={path}" in archive.start_options(java, (jar,))


def test_changed_jar_makes_it_stale(java: Java, jar: Path, training: list[Path]) -> None:
    old = archive.make_archive(java, (jar,))
    os.utime(jar, (1, 1))
    assert archive.start_options(java, (jar,)) == (archive.QUICK_START,)

    new = archive.make_archive(java, (jar,))

    assert new != old
    assert not old.exists(), "a stale archive takes 160 MB"


def test_archive_of_other_jars_is_kept(
    java: Java, jar: Path, tmp_path: Path, training: list[Path]
) -> None:
    other = tmp_path / "two.jar"
    other.touch()
    first = archive.make_archive(java, (jar,))
    archive.make_archive(java, (other,))
    assert first.exists()


@pytest.mark.e2e
@pytest.mark.requires("java")
def test_jvm_loads_spark_from_the_archive() -> None:
    java, connector = find_java(), spark_connector_jars()
    archive.make_archive(java, connector)
    options = [o for o in archive.start_options(java, connector) if not o.startswith("-Xlog")]
    script = (
        "from pyspark.sql import SparkSession; import sys;"
        "s = SparkSession.builder.master('local[1]')"
        ".config('spark.driver.extraJavaOptions', sys.argv[1]).config('spark.jars', sys.argv[2])"
        ".config('spark.ui.enabled', 'false').config('spark.driver.host', '127.0.0.1')"
        ".getOrCreate();"
        "assert s.range(5).count() == 5; s.stop()"
    )
    log = "-Xlog:class+load=info"

    result = subprocess.run(
        [sys.executable, "-c", script, " ".join([*options, log]), ",".join(map(str, connector))],
        env=os.environ | {"JAVA_HOME": str(java.home), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )

    assert result.returncode == 0, result.stderr
    loaded = [line for line in result.stdout.splitlines() if "org.apache.spark." in line]
    shared = [line for line in loaded if "shared objects file (top)" in line]
    assert len(shared) > len(loaded) / 2
