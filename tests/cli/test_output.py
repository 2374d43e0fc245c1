"""Text on stdout, whatever stands behind it."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from earshot.cli.output import emit, save
from earshot.errors import EarshotError


@pytest.mark.parametrize(
    ("encoding", "written"),
    [("utf-8", "é → x\n"), ("latin-1", "é \\u2192 x\n"), ("ascii", "\\xe9 \\u2192 x\n")],
)
def test_what_an_encoding_lacks_is_escaped(
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
        with pytest.raises(EarshotError) as caught:
            emit("x\n")
    assert str(caught.value) == (
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
    reader.join(10)
    assert read == ["é\n"]
    assert pipe.is_fifo()


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
