"""The selected Java, and the error if none is suitable."""

import sys
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.jvm import java
from tests.raised import raised


def install(home: Path, version: str, *, released: bool = True) -> Path:
    """A double of a Java: a command that prints its version, and a release file if ``released``."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    answer = f"echo 'openjdk version \"{version}\" 2025-01-01' >&2"
    command.write_text(f'#!/bin/sh\n[ "$1" != -version ] || {answer}\n')
    command.chmod(0o755)
    if released:
        (home / "release").write_text(f'IMPLEMENTOR="Someone"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture(autouse=True)
def no_usual_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "USUAL_PLACES", ())


def java_of(home: Path, java_on_path: Path | None = None) -> java.Java:
    """The selected Java, with ``home`` as JAVA_HOME and ``java_on_path`` on PATH."""
    path = java_on_path / "bin" if java_on_path else "/nowhere"
    return java.find_java({"JAVA_HOME": str(home), "PATH": str(path)})


@pytest.mark.parametrize("released", [True, False], ids=["release file", "asked"])
@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "21-ea"])
def test_java_home_comes_first(tmp_path: Path, version: str, released: bool) -> None:
    home = install(tmp_path / "home", version, released=released)
    found_java = java_of(home, install(tmp_path / "other", "17.0.1"))
    assert (found_java.home, found_java.version, found_java.major) == (
        home,
        version,
        int(version[:2]),
    )


def test_a_relative_java_home_is_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = install(tmp_path / "home", "17.0.1")
    monkeypatch.chdir(tmp_path)
    assert java.find_java({"JAVA_HOME": "home", "PATH": ""}).executable == home / "bin" / "java"


def test_unsuitable_java_home_gives_way_to_path(tmp_path: Path) -> None:
    home = install(tmp_path / "home", "11.0.2")
    java_on_path = install(tmp_path / "other", "17.0.1")
    assert java_of(home, java_on_path).home == java_on_path


def test_command_on_path_may_be_a_link(tmp_path: Path) -> None:
    home = install(tmp_path / "home", "21.0.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert java.find_java({"PATH": str(tmp_path / "bin")}).home == home


def test_all_that_was_found_is_named(tmp_path: Path) -> None:
    home = install(tmp_path / "home", "1.8.0_402")
    java_on_path = install(tmp_path / "other", "25.0.1")
    error = raised(EarshotError, java_of, home, java_on_path)
    assert error.observed == (
        f"JAVA_HOME ({home}) is Java 1.8.0_402; {java_on_path}/bin/java on PATH is Java 25.0.1"
    )
    assert (error.allowed, error.remedy) == ("17 or 21", java.INSTALL)
    assert "apt-get install openjdk-17-jre-headless" in str(error)


def rejection(home: Path) -> str:
    """The observed value of the error for JAVA_HOME ``home``, without another Java."""
    return raised(EarshotError, java_of, home).observed


def test_nothing_found(tmp_path: Path) -> None:
    error = raised(EarshotError, java.find_java, {"PATH": str(tmp_path)})
    assert error.observed == "none was found (JAVA_HOME, PATH)"
    assert rejection(tmp_path) == f"JAVA_HOME ({tmp_path}) has no working bin/java"


def test_a_command_that_may_not_be_run_is_none(tmp_path: Path) -> None:
    home = install(tmp_path / "home", "17.0.1")
    (home / "bin" / "java").chmod(0o644)
    assert rejection(home) == f"JAVA_HOME ({home}) has no working bin/java"


@pytest.mark.parametrize(
    "script",
    ["#!/bin/sh\nexec sleep 60\n", "#!/nowhere/sh\n", "#!/bin/sh\necho nonsense >&2\n"],
    ids=["slow", "broken", "says something else"],
)
def test_no_java_version(tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "ANSWER_SECONDS", 0.05)
    home = install(tmp_path / "home", "17.0.1", released=False)
    (home / "bin" / "java").write_text(script)
    assert rejection(home) == f"JAVA_HOME ({home}) has no working bin/java"


def test_the_release_file_is_read_before_the_command(tmp_path: Path) -> None:
    home = install(tmp_path / "home", "17.0.1")
    (home / "release").write_text('JAVA_VERSION="21.0.2"\n')
    assert java_of(home).version == "21.0.2"
    (home / "release").write_text('IMPLEMENTOR="Someone"\n')
    assert java_of(home).version == "17.0.1", "the command has it"


def test_usual_places_come_last_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below_the_root = tmp_path.relative_to("/")
    places = (f"{below_the_root}/usr/lib/jvm/*", f"{below_the_root}/Library/*/Contents/Home")
    monkeypatch.setattr(java, "USUAL_PLACES", places)
    oldest_java = install(tmp_path / "usr/lib/jvm/java-11", "11.0.2")
    older_java = install(tmp_path / "usr/lib/jvm/java-8", "1.8.0_402")
    (tmp_path / "usr/lib/jvm/default-java").symlink_to(oldest_java)
    (tmp_path / "usr/lib/jvm/empty").mkdir()
    newest_java = install(tmp_path / "Library/new/Contents/Home", "25.0.1")
    assert raised(EarshotError, java.find_java, {"PATH": "/nowhere"}).observed == (
        f"{oldest_java} is Java 11.0.2; {older_java} is Java 1.8.0_402; "
        f"{newest_java} is Java 25.0.1"
    )
    suitable_java = install(tmp_path / "Library/old/Contents/Home", "21.0.2")
    assert java.find_java({"PATH": "/nowhere"}).home == suitable_java


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", 17), ("1.8.0_402", 8), ("1.8", 8), ("1", 1), ("21-ea", 21), ("garbage", 0)],
)
def test_major(version: str, major: int) -> None:
    assert java.Java(Path(), Path(), version).major == major


@pytest.mark.parametrize(("system", "expected"), [("linux", "C.UTF-8"), ("darwin", "C")])
def test_a_jvm_opens_any_path(monkeypatch: pytest.MonkeyPatch, system: str, expected: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    assert java.jvm_environment({"LC_ALL": "C", "HOME": "/h"}) == {"LC_ALL": expected, "HOME": "/h"}
