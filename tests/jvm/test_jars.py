"""Fetching jars: real Ivy, against a repository double on loopback."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.jvm import jars
from tests.doubles.maven_repository import MavenRepositoryDouble
from tests.raised import raised

needs_java = [pytest.mark.e2e, pytest.mark.requires("java")]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MavenRepositoryDouble]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with MavenRepositoryDouble(tmp_path / "repository") as double:
        monkeypatch.setenv(jars.REPOSITORY_VARIABLE, double.url)
        double.add("org.example:leaf:1.0")
        double.add("org.example:heavy:3.0")
        double.add("org.example:top:2.0", "org.example:leaf:1.0", "org.example:heavy:3.0")
        yield double


def names(paths: tuple[Path, ...]) -> list[str]:
    return [path.name for path in paths]


LEAF = ["org.example:leaf:1.0"]
TOP = ["org.example:top:2.0"]


class TestFetch:
    pytestmark = needs_java

    def test_brings_all_but_exclusions(self, repository: MavenRepositoryDouble) -> None:
        paths = jars.fetch("top", TOP, excludes=["org.example:heavy"])
        assert names(paths) == ["leaf-1.0.jar", "top-2.0.jar"]

    def test_second_time_needs_no_network(self, repository: MavenRepositoryDouble) -> None:
        first_paths = jars.fetch("top", TOP)
        requests = len(repository.requests)
        assert jars.fetch("top", TOP) == first_paths
        assert len(repository.requests) == requests

    def test_a_spoilt_jar_is_fetched_again(self, repository: MavenRepositoryDouble) -> None:
        (jar,) = jars.fetch("leaf", LEAF)
        content = jar.read_bytes()
        jar.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert jars.fetch("leaf", LEAF) == (jar,)
        assert jar.read_bytes() == content
        jar.unlink()
        with pytest.raises(EarshotError, match=re.escape(jars.FETCH)):
            jars.fetch("leaf", LEAF, fetching=False)
        assert jars.fetch("leaf", LEAF) == (jar,)

    def test_unknown_version_is_named_at_once(self, repository: MavenRepositoryDouble) -> None:
        assert str(raised(EarshotError, jars.fetch, "leaf", ["org.example:leaf:9.9"])) == (
            "jars of org.example:leaf:9.9: the repository has no org.example:leaf:9.9\n"
            "  fix: check the version; a mirror of Maven's central repository may be named "
            f"in {jars.REPOSITORY_VARIABLE}"
        )
        assert repository.requests.count("/org/example/leaf/9.9/leaf-9.9.pom") == 1

    def test_a_failing_server_is_asked_again(self, repository: MavenRepositoryDouble) -> None:
        repository.failures = 1
        assert names(jars.fetch("leaf", LEAF)) == ["leaf-1.0.jar"]

    def test_a_download_unlike_its_checksum_is_refused(
        self, repository: MavenRepositoryDouble, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(jars, "ATTEMPTS", 1)
        jar = repository.add("org.example:spoilt:1.0")
        jar.write_bytes(jar.read_bytes() + b"more")
        with pytest.raises(EarshotError, match="spoilt"):
            jars.fetch("spoilt", ["org.example:spoilt:1.0"])


NOT_FOUND = ["module not found: g#a;9.9", "==== repository: tried", ":: g#a;9.9: not found"]


def test_a_module_that_the_repository_does_not_have_is_its_final_answer() -> None:
    assert jars._missing_jars(NOT_FOUND) == ["g:a:9.9"]


@pytest.mark.parametrize(
    "line",
    [
        "SERVER ERROR: Bad Gateway url=http://mirror/g/a/9.9/a-9.9.pom",
        "Server access error at url http://mirror/a.pom (java.net.ConnectException: refused)",
        "Host mirror not found. url=http://mirror/g/a/9.9/a-9.9.pom",
    ],
)
def test_a_repository_that_did_not_answer_may_have_it(line: str) -> None:
    assert jars._missing_jars([*NOT_FOUND, line]) == []
    assert line in jars._failure_text([*NOT_FOUND, line])


def test_an_unwritable_cache_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    assert str(raised(EarshotError, jars.fetch, "leaf", ["org.example:leaf:1.0"])) == (
        f"jars of leaf: cannot be kept in {tmp_path}/file/cache/earshot/jars (Not a directory)\n"
        "  fix: let XDG_CACHE_HOME name a folder, absolute, that this user can write"
    )


def test_a_full_disk_ends_the_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = []

    def ivy(command: object) -> list[str]:
        commands.append(command)
        return ['Exception in thread "main" java.io.IOException: No space left on device']

    monkeypatch.setattr(jars, "_run_ivy", ivy)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert str(raised(EarshotError, jars.fetch, "leaf", ["org.example:leaf:1.0"])) == (
        f"jars of leaf: cannot be kept in {tmp_path}/earshot/jars (No space left on device)\n"
        "  fix: free space on that disk, then run the same command again"
    )
    assert len(commands) == 1


@pytest.mark.parametrize("text", ["", "group", "group:", ":a:1", "a:b:c:d"])
def test_malformed_coordinate(text: str) -> None:
    with pytest.raises(EarshotError, match="Maven coordinate"):
        jars.Coordinate.parse(text)


@pytest.mark.parametrize(
    ("version", "binding"),
    [("3.9.1", "slf4j-reload4j"), ("4.0.0", "log4j-slf4j-impl"), ("4.1.1", "log4j-slf4j-impl")],
)
def test_logging_of_a_version(monkeypatch: pytest.MonkeyPatch, version: str, binding: str) -> None:
    requested_coordinates: list[str] = []

    def record(name: str, coordinates: list[str], **_: object) -> tuple[Path, ...]:
        requested_coordinates.extend(coordinates)
        return ()

    monkeypatch.setattr(jars, "fetch", record)
    jars.kafka_broker_jars(version)
    assert requested_coordinates[0] == f"org.apache.kafka:kafka_2.13:{version}"
    assert binding in requested_coordinates[1]


@pytest.mark.e2e
@pytest.mark.requires("java")
def test_connector_is_exactly_the_four_jars_pyspark_lacks() -> None:
    assert [name.rpartition("-")[0] for name in names(jars.spark_connector_jars())] == [
        "commons-pool2",
        "kafka-clients",
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
    ]


@pytest.mark.e2e
@pytest.mark.requires("java")
@pytest.mark.parametrize(
    ("join", "path", "why"),
    [
        (jars.class_path, "/a:b/x.jar", "a :, which ends an entry of Java's class path"),
        (jars.spark_jars, "/a,b/x.jar", "a ,, which ends an entry of Spark's `spark.jars`"),
    ],
)
def test_paths_that_split_are_refused(
    join: Callable[[list[Path]], str], path: str, why: str
) -> None:
    assert join([Path("/a b/ü.jar")]) == "/a b/ü.jar"
    assert str(raised(EarshotError, join, [Path("/x.jar"), Path(path)])) == (
        f"jar {path}: its path has {why}\n"
        "  fix: put it into another folder; earshot's own follow XDG_CACHE_HOME"
    )


def test_broker_class_path_has_server_and_logging() -> None:
    jar_names = set(names(jars.kafka_broker_jars()))
    assert {f"kafka_2.13-{jars.KAFKA_VERSION}.jar", "log4j-slf4j-impl-2.24.3.jar"} <= jar_names
