"""Text on stdout and in files of every kind."""

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from earshot.cli import output
from earshot.cli.output import emit, refuse_outputs, save
from earshot.errors import EarshotError
from earshot.report import Format
from tests.raised import raised
from tests.report import samples
from tests.skips import lacking
from toolchain.paths import ROOT

OTHER_USER = 65534


@pytest.mark.parametrize(
    ("encoding", "written"),
    [("utf-8", "é → x\n"), ("latin-1", "é \\u2192 x\n"), ("ascii", "\\xe9 \\u2192 x\n")],
)
def test_characters_that_an_encoding_lacks_are_escaped(
    encoding: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    emit("é → x\n")
    sys.stdout.flush()
    assert raw.getvalue().decode(encoding) == written


def test_a_full_disk_behind_stdout_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        error = raised(EarshotError, emit, "x\n")
    assert str(error) == (
        "stdout: cannot be written (No space left on device)\n"
        "  fix: free space on that disk, then run the same command again"
    )


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    save(tmp_path / "link.json", "new")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "new"


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    save(pipe, "é\n")
    reader.join(60)
    assert read == ["é\n"]
    assert pipe.is_fifo()


def test_a_pipe_that_no_process_reads_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "READER_SECONDS", 0.1)
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(EarshotError, match="it is a pipe that no process reads"):
        save(pipe, "text")


def given_away(path: Path) -> None:
    """Makes ``path`` another user's, which takes root."""
    if os.geteuid():
        lacking("only root can give a file away")
    os.chown(path, OTHER_USER, OTHER_USER, follow_symlinks=False)


@pytest.mark.parametrize("chained", [False, True])
def test_a_link_of_another_user_is_not_followed(chained: bool, tmp_path: Path) -> None:
    link, target = tmp_path / "link.txt", tmp_path / "chosen.txt"
    link.symlink_to(target)
    given_away(link)
    if chained:
        (tmp_path / "own.txt").symlink_to("link.txt")
    with pytest.raises(EarshotError, match="symbolic link of another user"):
        save(tmp_path / "own.txt" if chained else link, "secret", 0o600)
    assert not target.exists()


def test_a_pipe_of_another_user_gets_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    given_away(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(EarshotError, match="is a pipe of another user"):
            save(pipe, "secret", 0o600)
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_a_report_has_no_more_permissions_than_the_umask_leaves(
    mask: int, mode: int, tmp_path: Path
) -> None:
    usual_mask = os.umask(mask)
    try:
        save(tmp_path / "report.txt", "x")
    finally:
        os.umask(usual_mask)
    assert (tmp_path / "report.txt").stat().st_mode & 0o777 == mode


def test_a_device_stays_one(tmp_path: Path) -> None:
    device = tmp_path / "null"
    device.symlink_to(os.devnull)
    save(device, "x")
    assert device.is_symlink() and Path(os.devnull).is_char_device()


def test_stdout_by_its_name_comes_with_the_rest_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "all.txt"
    with file.open("w") as opened:
        monkeypatch.setattr(sys, "stdout", opened)
        emit("before\n")
        save(Path(f"/dev/fd/{opened.fileno()}"), "report\n")
        emit("after\n")
    assert file.read_text() == "before\nreport\nafter\n"


GOLDENS = [
    file
    for folder in ("report", "lint")
    for file in sorted((ROOT / "tests" / folder / "goldens").iterdir())
]


@pytest.mark.parametrize(
    "golden", GOLDENS, ids=lambda file: f"{file.parent.parent.name}-{file.name}"
)
def test_a_report_of_any_format_is_replaced(golden: Path, tmp_path: Path) -> None:
    file = tmp_path / "report"  # a name without a suffix
    file.write_bytes(golden.read_bytes())
    refuse_outputs([file], [], force=False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", "# earshot\n\nAbout earshot doctor: PASS and FAIL.\n"),
        ("notes.txt", "to do\nearshot doctor: FAIL, see below\n"),
        ("package.json", '{\n  "version": 1,\n  "kind": "library"\n}\n'),
        ("other.sarif", '{"runs": [{"tool": {"driver": {"name": "another"}}}]}'),
        ("junit.xml", '<?xml version="1.0"?>\n<testsuites name="pytest tests"></testsuites>\n'),
        ("index.html", "<!doctype html>\n<html><head><title>About earshot</title></head></html>\n"),
        ("compose.yml", "services: {}\n"),
    ],
)
def test_a_file_of_others_is_refused_whatever_its_suffix(
    name: str, text: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(EarshotError, match="exists, and is not a report of earshot"):
        refuse_outputs([file], [], force=False)
    refuse_outputs([file], [], force=True)


def test_a_file_that_cannot_be_written_keeps_the_report_from_no_other_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    lost, written = tmp_path / "file" / "a.json", tmp_path / "b.json"
    with pytest.raises(EarshotError, match=r"a\.json: cannot be written"):
        output.show(samples.all_pass(), {lost: Format.JSON, written: Format.JSON}, None)
    assert capsys.readouterr().out.startswith("earshot validation: PASS")
    assert written.exists()
