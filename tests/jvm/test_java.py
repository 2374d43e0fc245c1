"""Which Java is taken, and what is said where none will do."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.jvm import java


def install(home: Path, version: str, *, released: bool = True) -> Path:
    """A stand-in for a Java: a command that says its version, and perhaps a release file."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    command.chmod(0o755)
    if released:
        (home / "release").write_text(f'IMPLEMENTOR="Someone"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture(autouse=True)
def no_usual_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "USUAL_PLACES", ())


@pytest.mark.parametrize("released", [True, False], ids=["release file", "asked"])
@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "21-ea"])
def test_java_home_comes_first(tmp_path: Path, version: str, released: bool) -> None:
    home = install(tmp_path / "home", version, released=released)
    other = install(tmp_path / "other", "17.0.1")

    found = java.find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})

    assert (found.home, found.version) == (home, version)
    assert found.major == int(version[:2])


def test_unsuitable_java_home_gives_way_to_path(tmp_path: Path) -> None:
    home = install(tmp_path / "home", "11.0.2")
    other = install(tmp_path / "other", "17.0.1")

    found = java.find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})

    assert found.home == other


def test_command_on_path_may_be_a_link(tmp_path: Path) -> None:
    home = install(tmp_path / "home", "21.0.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")

    assert java.find_java({"PATH": str(tmp_path / "bin")}).home == home


def test_all_that_was_found_is_named(tmp_path: Path) -> None:
    home = install(tmp_path / "home", "1.8.0_402")
    other = install(tmp_path / "other", "25.0.1")

    with pytest.raises(EarshotError) as caught:
        java.find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})

    message = str(caught.value)
    assert f"JAVA_HOME ({home}) is Java 1.8.0_402" in message
    assert "on PATH is Java 25.0.1" in message
    assert "17 or 21" in message
    assert "apt-get install openjdk-17-jre-headless" in message


def test_nothing_found(tmp_path: Path) -> None:
    with pytest.raises(EarshotError, match="none was found"):
        java.find_java({"PATH": str(tmp_path)})


def test_wrong_java_home(tmp_path: Path) -> None:
    with pytest.raises(EarshotError, match="has no working bin/java"):
        java.find_java({"JAVA_HOME": str(tmp_path), "PATH": "/nowhere"})


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("1.8.0_402", 8), ("21-ea", 21), ("garbage", 0)]
)
def test_major(version: str, major: int) -> None:
    assert java.Java(Path(), Path(), version).major == major
