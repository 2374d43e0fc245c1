"""Which files of a folder are checked, which are passed over, and why."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.lint import files
from earshot.lint.files import choose
from earshot.lint.model import FileReport, relative
from earshot.reading import open_regular
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
    found = choose([Path(path) for path in paths]).passed_over
    assert all(not item.kind and len(item.unchecked) == 1 for item in found)
    return {item.file: item.unchecked[0] for item in found}


def test_a_file_that_is_named_is_checked_whatever_it_is() -> None:
    assert chosen(str(write("notes.txt", "nothing"))) == ["notes.txt"]


def test_a_large_file_that_is_named_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 3)
    assert chosen(str(write("large.yml"))) == ["large.yml"]


def test_a_folder_is_walked_in_the_order_of_names() -> None:
    for name in ("b/z.yml", "b/a.yaml", "a.properties", "c.YML", "b.yml"):
        write(name)
    assert chosen(".") == ["a.properties", "b/a.yaml", "b/z.yml", "b.yml", "c.YML"]


@pytest.mark.parametrize("name", ["a.json", "a.txt", "yml", "a.yml.bak", "Dockerfile"])
def test_other_names_are_no_matter(name: str) -> None:
    write(name)
    assert choose([Path()]) == files.ChosenFiles((), ())


@pytest.mark.parametrize(
    "name", ["server.properties.j2", "kafka.conf", "a.yml.example", "compose.yaml.tmpl", "k.cfg"]
)
def test_templates_and_samples_are_taken(name: str) -> None:
    write(name)
    assert chosen(".") == [name]


@pytest.mark.parametrize("name", [".env", ".env.example", "kafka.env"])
def test_variables_are_left_to_the_compose_file(name: str) -> None:
    write(name, "KAFKA_LISTENERS=A://:1\n")
    why = "contains variables: checked with the Compose file that names it, or if named itself"
    assert passed_over(".") == {name: why}
    assert chosen(name) == [name]


def test_what_is_named_is_told_from_what_is_found() -> None:
    write("a/a.yml")
    write("a/compose.override.yml")
    write("a/compose.yml")
    write("b.yml")
    found = choose([Path("a"), Path("b.yml"), Path("a/compose.override.yml")])
    assert {str(file) for file in found.named} == {"b.yml", "a/compose.yml"}
    assert [str(file) for file in found.files] == ["a/a.yml", "a/compose.yml", "b.yml"]


@pytest.mark.parametrize("word", ["kafka", "KAFKA", "listeners", "advertised.Listeners"])
def test_a_file_that_speaks_of_kafka_is_taken(word: str) -> None:
    write("a.yml", f"x: {word}\n")
    assert chosen(".") == ["a.yml"]


def test_a_file_that_does_not_is_passed_over() -> None:
    write("a.yml", "x: rabbit\n")
    assert passed_over(".") == {"a.yml": WORDLESS}
    assert chosen(".") == []


def test_a_word_far_down_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SEARCHED_BYTES", 10)
    write("a.yml", "# 34567890kafka")
    write("b.yml", "# 345kafka")
    assert chosen(".") == ["b.yml"]


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
    assert passed_over(".") == {folder: why, f"b/{folder}": why}
    assert chosen(".") == []


def test_a_hidden_folder_that_is_named_is_walked() -> None:
    write(".ci/a.yml")
    assert chosen(".ci") == [".ci/a.yml"]


def test_a_hidden_file_is_a_file() -> None:
    write(".kafka.yml")
    assert chosen(".") == [".kafka.yml"]


def test_links_to_folders_are_passed_over_and_links_to_files_followed() -> None:
    write("a/a.yml")
    Path("round").symlink_to(".")
    Path("link.yml").symlink_to("a/a.yml")
    assert chosen(".") == ["a/a.yml", "link.yml"]
    assert passed_over(".") == {"round": "is a symbolic link to a folder"}


def test_a_link_that_is_named_is_walked() -> None:
    write("a/a.yml")
    Path("link").symlink_to("a")
    assert chosen("link") == ["link/a.yml"]


def test_what_is_no_regular_file_is_not_opened() -> None:
    os.mkfifo("pipe.yml")
    Path("broken.yml").symlink_to("nowhere")
    assert passed_over(".") == {
        "broken.yml": "is not a regular file",
        "pipe.yml": "is not a regular file",
    }


def test_what_cannot_be_read_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    write("shut/a.yml")
    write("shut.yml")
    write("z.yml")
    listed = Path.iterdir

    def refuse(path: Path) -> None:
        if path.stem == "shut":
            raise PermissionError(13, "Permission denied")

    def iterdir(self: Path) -> object:
        refuse(self)
        return listed(self)

    def opened(path: Path) -> object:
        refuse(path)
        return open_regular(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    monkeypatch.setattr(files, "open_regular", opened)
    why = "cannot be read (Permission denied)"
    assert passed_over(".") == {"shut": why, "shut.yml": why}
    assert chosen(".") == ["z.yml"]


def test_a_file_is_checked_once() -> None:
    write("a/a.yml")
    assert chosen("a/a.yml", "a", ".", str(Path("a").absolute()), "a/../a/a.yml") == ["a/a.yml"]


def test_a_file_that_is_named_is_checked_although_its_folder_passes_it_over() -> None:
    write("a.yml", "x: rabbit")
    for paths in ((".", "a.yml"), ("a.yml", ".")):
        assert chosen(*paths) == ["a.yml"]
        assert passed_over(*paths) == {}


def test_a_path_that_does_not_exist_is_named() -> None:
    write("a.yml")
    assert str(raised(EarshotError, choose, [Path("a.yml"), Path("nowhere/b.yml")])) == (
        "path nowhere/b.yml: does not exist\n  allowed: a file or a folder"
    )


def test_a_path_that_cannot_be_a_path_is_named() -> None:
    name = "x" * 300
    error = raised(EarshotError, choose, [Path(name)])
    assert str(error) == f"path {name}: cannot be read (File name too long)"


def test_a_folder_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_NAMES", 3)
    for number in range(3):
        write(f"{number}.txt")
    choose([Path()])
    write("a/b.txt")
    with pytest.raises(EarshotError) as caught:
        choose([Path()])
    assert str(caught.value) == (
        "folder .: contains more than 3 files and folders\n"
        "  fix: name the files, or the folders that contain them"
    )


def test_a_deep_folder_is_walked_to_its_end() -> None:
    write("/".join(["d"] * 300 + ["a.yml"]))
    assert len(chosen(".")) == 1


def test_what_is_passed_over_has_no_kind() -> None:
    write(".git/x")
    assert choose([Path()]).passed_over == (
        FileReport(".git", "", unchecked=("is a hidden folder",)),
    )


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
