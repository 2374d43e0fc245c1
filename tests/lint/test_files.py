"""Which files of a folder are checked, which are passed over, and why."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.files.reading import open_regular
from earshot.lint import files
from earshot.lint.files import choose
from earshot.lint.model import FileReport, relative
from tests.raised import raised

WORDLESS = 'has neither "kafka" nor "listeners" in its first 1 MB'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str = "image: apache/kafka\n") -> Path:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def chosen(*paths: str) -> list[str]:
    return [str(file) for file in choose([Path(path) for path in paths]).files]


def passed_over(*paths: str) -> dict[str, str]:
    reports = choose([Path(path) for path in paths]).passed_over
    assert all(not report.kind and len(report.unchecked) == 1 for report in reports)
    return {report.file: report.unchecked[0] for report in reports}


def test_a_named_file_is_checked_whatever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 3)
    for name, text in (("notes.txt", "nothing"), ("large.yml", "image: apache/kafka\n")):
        assert chosen(str(write(name, text))) == [name]


@pytest.mark.parametrize(("names", "paths", "expected"), [
    # in the order of names
    ("b/z.yml b/a.yaml a.properties c.YML b.yml", ".", "a.properties b/a.yaml b/z.yml b.yml c.YML"),
    ("a.json a.txt yml a.yml.bak Dockerfile", ".", ""),
    # templates and samples
    ("server.properties.j2 kafka.conf a.yml.example compose.yaml.tmpl k.cfg", ".",
     "a.yml.example compose.yaml.tmpl k.cfg kafka.conf server.properties.j2"),
    (".ci/a.yml", ".", ""),
    (".ci/a.yml", ".ci", ".ci/a.yml"),
    (".kafka.yml", ".", ".kafka.yml"),
    # each file is checked once
    ("a/a.yml", "a/a.yml a . a/../a/a.yml", "a/a.yml"),
])  # fmt: skip
def test_which_files_are_checked(names: str, paths: str, expected: str) -> None:
    for name in names.split():
        write(name)
    absolute = [str(Path(path).absolute()) for path in paths.split()]
    assert chosen(*paths.split(), *absolute) == expected.split()


@pytest.mark.parametrize("name", [".env", ".env.example", "kafka.env"])
def test_variables_are_left_to_the_compose_file(name: str) -> None:
    write(name, "KAFKA_LISTENERS=A://:1\n")
    why = "contains variables: checked with the Compose file that names it, or if named itself"
    assert passed_over(".") == {name: why}
    assert chosen(name) == [name]


def test_named_files_are_distinguished_from_those_of_folders() -> None:
    for name in ("a/a.yml", "a/compose.override.yml", "a/compose.yml", "b.yml"):
        write(name)
    result = choose([Path("a"), Path("b.yml"), Path("a/compose.override.yml")])
    assert {str(file) for file in result.named} == {"b.yml", "a/compose.yml"}
    assert [str(file) for file in result.files] == ["a/a.yml", "a/compose.yml", "b.yml"]


@pytest.mark.parametrize(
    ("text", "is_chosen"),
    [
        ("x: kafka", True),
        ("x: KAFKA", True),
        ("x: listeners", True),
        ("x: advertised.Listeners", True),
        ("# 345kafka", True),
        ("x: rabbit", False),
        ("# a comment before kafka", False),  # behind what is searched
    ],
)
def test_a_file_that_mentions_kafka_is_checked(
    text: str, is_chosen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SEARCHED_BYTES", 23)
    write("a.yml", f"{text}\n")
    assert chosen(".") == ["a.yml"] * is_chosen
    reason = WORDLESS.replace("1 MB", "0 MB")
    assert passed_over(".") == ({} if is_chosen else {"a.yml": reason})


def test_a_large_file_of_a_folder_is_passed_over() -> None:
    write("a.yml", "kafka".ljust(files.MAX_BYTES))
    write("b.yml", "kafka".ljust(files.MAX_BYTES + 1))
    assert chosen(".") == ["a.yml"]
    assert passed_over(".") == {"b.yml": "is larger than 2 MB"}


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        (".git", "is a hidden folder"),
        (".venv", "is a hidden folder"),
        ("node_modules", "contains packages of others"),
    ],
)
def test_some_folders_are_passed_over_on_every_level(folder: str, why: str) -> None:
    write(f"{folder}/a.yml")
    write(f"b/{folder}/deep/a.yml")
    write("a.json")  # files of other names are not reported
    assert chosen(".") == []
    names = sorted((folder, f"b/{folder}"))
    reports = tuple(FileReport(name, "", unchecked=(why,)) for name in names)
    assert choose([Path()]).passed_over == reports


def test_links_to_folders_are_passed_over_unless_they_are_named() -> None:
    write("a/a.yml")
    Path("round").symlink_to(".")
    Path("link.yml").symlink_to("a/a.yml")
    assert chosen(".") == ["a/a.yml", "link.yml"]
    assert passed_over(".") == {"round": "is a symbolic link to a folder"}
    Path("link").symlink_to("a")
    assert chosen("link") == ["link/a.yml"]


def test_a_file_that_is_not_regular_is_not_opened() -> None:
    os.mkfifo("pipe.yml")
    Path("broken.yml").symlink_to("nowhere")
    why = "is not a regular file"
    assert passed_over(".") == {"broken.yml": why, "pipe.yml": why}


def test_an_unreadable_path_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("shut/a.yml", "shut.yml", "z.yml"):
        write(name)
    list_folder = Path.iterdir

    def refuse(path: Path) -> None:
        if path.stem == "shut":
            raise PermissionError(13, "Permission denied")

    def iterdir(self: Path) -> object:
        refuse(self)
        return list_folder(self)

    def open_file(path: Path) -> object:
        refuse(path)
        return open_regular(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    monkeypatch.setattr(files, "open_regular", open_file)
    why = "cannot be read (Permission denied)"
    assert passed_over(".") == {"shut": why, "shut.yml": why}
    assert chosen(".") == ["z.yml"]


def test_a_file_that_is_named_is_checked_although_its_folder_passes_it_over() -> None:
    write("a.yml", "x: rabbit")
    for paths in ((".", "a.yml"), ("a.yml", ".")):
        assert chosen(*paths) == ["a.yml"]
        assert passed_over(*paths) == {}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nowhere/b.yml", "does not exist\n  allowed: a file or a folder"),
        ("x" * 300, "cannot be read (File name too long)"),
    ],
)
def test_an_invalid_path_is_named(name: str, error: str) -> None:
    write("a.yml")
    assert str(raised(EarshotError, choose, [Path("a.yml"), Path(name)])) == f"path {name}: {error}"


def test_a_folder_with_too_many_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_NAMES", 3)
    for number in range(3):
        write(f"{number}.txt")
    choose([Path()])
    write("a/b.txt")
    assert str(raised(EarshotError, choose, [Path()])) == (
        "folder .: contains more than 3 files and folders\n"
        "  fix: name the files, or the folders that contain them"
    )


def test_a_deep_folder_is_walked_to_its_end() -> None:
    write("/".join(["d"] * 300 + ["a.yml"]))
    assert len(chosen(".")) == 1


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("a.yml", "a.yml"),
        ("./b/../a.yml", "a.yml"),
        ("/project/a.yml", "a.yml"),
        ("../a.yml", "/a.yml"),
        ("/elsewhere/a.yml", "/elsewhere/a.yml"),
        ("/projects/a.yml", "/projects/a.yml"),
    ],
)
def test_a_name_begins_in_the_root(file: str, shown: str) -> None:
    assert relative(file, Path("/project")) == shown


@given(st.lists(st.sampled_from(["a", "b", ".", ".."]), min_size=1, max_size=8))
def test_a_name_below_the_root_is_one_and_the_same(parts: list[str]) -> None:
    root = Path("/project")
    name = relative("/".join(parts), root)
    assert relative(name, root) == name
    assert relative(str(root / name), root) == name
