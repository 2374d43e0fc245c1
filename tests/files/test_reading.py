"""Files that users name: read to their end, or refused, as a device has no end."""

import contextlib
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from earshot.cli import report
from earshot.cli.output import refuse_outputs
from earshot.errors import EarshotError
from earshot.files import reading
from earshot.files.reading import MOST, read_all, read_bytes
from earshot.lint.baseline import read_baseline
from earshot.lint.files import choose
from earshot.lint.source_lines import SourceLines
from earshot.placement.standpoint import read_standpoints
from earshot.sources.files import beside, text_of
from earshot.validation.client_file import read_client_file
from tests.raised import raised

ENDLESS = Path("/dev/zero")
Hook = Callable[[str, tuple[object, ...]], None]
_hooks: list[Hook] = []


@contextlib.contextmanager
def audited(hook: Hook) -> Iterator[None]:
    """Calls ``hook`` at each event of the interpreter's audit; Python removes no hook."""
    if not _hooks:
        sys.addaudithook(lambda *event: _hooks[-1](*event) if _hooks[-1:] else None)
    _hooks.append(hook)
    try:
        yield
    finally:
        _hooks[-1] = lambda *_: None


def test_a_file_of_the_most_bytes_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    os.truncate(file, MOST)
    assert len(read_bytes(file)) == MOST
    os.truncate(file, MOST + 1)
    with pytest.raises(OSError, match="it holds more than 64 MiB"):
        read_bytes(file)


@pytest.mark.parametrize(("read", "message"), [
    (text_of, "file /dev/zero: cannot be read (it holds more than 64 MiB)"),
    (lambda file: read_client_file(file, f"--client-config {file}"),
     "--client-config /dev/zero: cannot be read (it holds more than 64 MiB)"),
    (read_baseline, ("--baseline /dev/zero: cannot be read (it holds more than 64 MiB); "
                     "fix: earshot lint PATH --write-baseline /dev/zero")),
    (read_standpoints, "file /dev/zero: cannot be read (it holds more than 64 MiB)"),
    (lambda file: report.run([str(file)], None, None, []),
     "file /dev/zero: cannot be read (it holds more than 64 MiB)"),
])  # fmt: skip
def test_a_file_without_an_end_is_one_error(read: Callable[[Path], object], message: str) -> None:
    assert raised(EarshotError, read, ENDLESS).line == message


def test_a_pipe_that_no_process_writes_to_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WRITER_SECONDS", 0.1)
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(EarshotError, match="it is a pipe that no process writes to"):
        text_of(pipe)


def test_a_terminal_is_read_to_its_end_and_a_silent_device_is_one_error() -> None:
    keyboard, terminal = pty.openpty()
    with os.fdopen(keyboard, "wb", buffering=0) as typed, os.fdopen(terminal, "rb") as device:
        later = threading.Timer(0.2, typed.write, (b"a\nb\n\4",))
        later.start()
        assert read_bytes(Path(os.ttyname(terminal))) == b"a\nb\n"
        later.join()
        os.set_blocking(terminal, False)
        with pytest.raises(OSError, match="it has no content yet"):
            read_all(device)


def test_a_terminal_that_closes_after_it_was_read_does_not_end_the_process() -> None:
    program = """
import os, pty; from pathlib import Path; from earshot.files.reading import read_bytes
keyboard, terminal = pty.openpty()
os.write(keyboard, b"a\\n\\4")
print(read_bytes(Path(os.ttyname(terminal))))
os.close(terminal)
os.close(keyboard)
print("alive")
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, start_new_session=True, capture_output=True, text=True)
    assert done.stdout == "b'a\\n'\nalive\n"


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


@pytest.mark.parametrize(
    "read",
    [
        read_bytes,
        lambda file: beside(file)(file.name),
        lambda file: choose([file.parent]),
        lambda file: SourceLines(file.parent)(file.name),
        lambda file: refuse_outputs([file], [], force=False),
    ],
)
def test_a_file_that_becomes_a_pipe_before_it_is_opened_blocks_no_command(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WRITER_SECONDS", 0.1)
    file = tmp_path / "compose.yaml"
    file.write_text("services: {kafka: {}}\n")
    os.mkfifo(tmp_path / "pipe")

    def replace(event: str, about: tuple[object, ...]) -> None:
        """Puts the pipe in the place of the file at the moment at which it is opened."""
        if event == "open" and about[0] in (file, str(file)) and not file.is_fifo():
            (tmp_path / "pipe").rename(file)

    with ThreadPoolExecutor() as pool, audited(replace):
        done, waiting = wait([pool.submit(read, file)], timeout=60.0)
        os.close(os.open(file, os.O_RDWR | os.O_NONBLOCK))  # lets a reader that waits go
    assert file.is_fifo() and not waiting
    assert isinstance(done.pop().exception(), OSError | EarshotError | None)
