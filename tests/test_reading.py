"""What users name is read to its end, or not at all: a device has none."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from earshot import reading
from earshot.cli import report
from earshot.errors import EarshotError
from earshot.lint.baseline import read_baseline
from earshot.placement.standpoint import read_standpoints
from earshot.reading import MOST, read_bytes
from earshot.sources.files import text_of
from earshot.validation.client_file import read_client_file

ENDLESS = Path("/dev/zero")


def test_a_file_of_the_most_bytes_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    os.truncate(file, MOST)
    assert len(read_bytes(file)) == MOST
    os.truncate(file, MOST + 1)
    with pytest.raises(OSError, match="it holds more than 64 MiB"):
        read_bytes(file)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (text_of, "file /dev/zero: cannot be read (it holds more than 64 MiB)"),
        (
            lambda file: read_client_file(file, f"--client-config {file}"),
            "--client-config /dev/zero: cannot be read (it holds more than 64 MiB)",
        ),
        (
            read_baseline,
            (
                "--baseline /dev/zero: cannot be read (it holds more than 64 MiB); "
                "fix: earshot lint PATH --write-baseline /dev/zero"
            ),
        ),
        (
            read_standpoints,
            "file /dev/zero: cannot be read (it holds more than 64 MiB)",
        ),
        (
            lambda file: report.run([str(file)], None, None, []),
            "file /dev/zero: cannot be read (it holds more than 64 MiB)",
        ),
    ],
)
def test_a_file_without_an_end_is_one_error(read: Callable[[Path], object], message: str) -> None:
    with pytest.raises(EarshotError) as error:
        read(ENDLESS)
    assert error.value.line == message


def test_a_pipe_that_no_process_writes_to_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WRITER_SECONDS", 0.1)
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(EarshotError, match="it is a pipe that no process writes to"):
        text_of(pipe)


@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_a_pipe_is_read_to_its_end_however_late_it_begins(
    pause: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WRITER_SECONDS", 0.1 if pause else 5.0)
    os.mkfifo(pipe := tmp_path / "pipe")
    writer = os.open(pipe, os.O_RDWR)

    def write() -> None:
        time.sleep(pause)
        for _ in range(3):
            os.write(writer, b"x" * 4096)
            time.sleep(0.02)
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    assert read_bytes(pipe) == b"x" * 3 * 4096
    thread.join()


def test_an_anonymous_pipe_may_be_empty() -> None:
    reader, writer = os.pipe()
    os.close(writer)
    assert read_bytes(Path(f"/dev/fd/{reader}")) == b""
    os.close(reader)
