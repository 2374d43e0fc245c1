"""Writes results to stdout in a form that the terminal can show, and to files by their suffix."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from earshot.errors import EarshotError, remedy_of
from earshot.files import cache, umask
from earshot.files.reading import OPENING, open_regular
from earshot.files.streams import silence
from earshot.report import Format, render
from earshot.report.terminal import Terminal

if TYPE_CHECKING:
    from earshot.validation.result import Report

Kind = TypeVar("Kind", bound=StrEnum)

STDOUT = Path("-")
"""The name of standard output in options for files."""

SUFFIXES = {
    ".txt": Format.TEXT,
    ".json": Format.JSON,
    ".xml": Format.JUNIT,
    ".md": Format.MARKDOWN,
    ".html": Format.HTML,
}


READ_BYTES = 4096
READER_SECONDS = 5.0
"""Seconds to wait for a reader of a named pipe."""
MAX_LINKS = 40
"""The maximum number of symbolic links that Linux follows in a path."""
REPORT_START = re.compile(
    rb"""
    \A(?:\#\ \S+\ )?earshot\ (?:validation|doctor|lint):    # text and Markdown
    | \A<\?xml[^>]*>\s*<testsuites\ name="earshot\                 # JUnit
    | \A<!doctype\ html>(?s:.*)<title>earshot\ (?:validation|doctor):
    | \A\{\s*"version":\ 1,\s*"kind":\ "(?:validation|doctor)"     # JSON of a report
    | \A\{\s*"version":\ 1,\s*"summary":\ \{\s*"checked":            # JSON of lint
    | \A\{(?s:.*)"driver":\s*\{\s*"name":\ "earshot"               # SARIF
    """,
    re.VERBOSE,
)
"""The beginning of each format, within `READ_BYTES`."""
LAST_LINE = re.compile(
    rb"(?:earshot lint: )?(?:\d+ \S+ checked: [^\n]*|nothing to check[^\n]*)\n\Z"
)
"""The end of lint's text and annotations, which begin with findings."""


def formats(
    files: Sequence[Path], format: Kind | None, suffixes: Mapping[str, Kind]
) -> dict[Path, Kind]:
    """The format of each file: ``format`` if given, else by suffix; text for `-`.

    Raises EarshotError for a file with an unknown suffix, or one that cannot be written.
    """
    chosen = {}
    for file in files:
        if file == STDOUT:
            chosen[file] = format or suffixes[".txt"]
            continue
        kind = format or suffixes.get(file.suffix)
        if kind is None:
            raise EarshotError(
                f"--output {file}",
                observed="its suffix names no format",
                allowed=", ".join(suffixes),
                remedy="name a --format",
            )
        if file.is_dir():
            raise EarshotError(f"--output {file}", observed="is a folder", allowed="a file")
        chosen[file] = kind
    return chosen


def show(report: Report, files: dict[Path, Format], format: Format | None) -> None:
    """Writes ``report`` to ``files``, and prints it in the format of `printed`.

    Raises EarshotError if a file cannot be written, after the other files and stdout.
    """
    with ExitStack() as cleanup:
        text = render(report, printed(files, format, Format.TEXT), Terminal.of(sys.stdout))
        cleanup.callback(emit, text)
        for file, chosen in reversed(files.items()):
            if file != STDOUT:
                cleanup.callback(save, file, render(report, chosen))


def printed(files: Mapping[Path, Kind], format: Kind | None, text: Kind) -> Kind:
    """The format for stdout: ``format``, but ``text`` if there are ``files`` without `-`."""
    return files.get(STDOUT, text) if files else format or text


def refuse_outputs(files: Sequence[Path], read: Iterable[Path], force: bool) -> None:
    """Raises EarshotError if one of ``files`` is in ``read``, or exists and is not a report.

    Reports of earlier runs may be replaced, and with ``force`` any file.
    """
    refuse_read(files, read)
    for file in files:
        if not force and not _is_report(file):
            refuse_replacing(file, "a report of earshot")


def _is_report(file: Path) -> bool:
    """True if a command of earshot has written ``file``, in any format."""
    with suppress(OSError), open_regular(file) as stream:
        start = stream.read(READ_BYTES)
        stream.seek(max(stream.seek(0, os.SEEK_END) - READ_BYTES, 0))
        return bool(REPORT_START.search(start) or LAST_LINE.search(stream.read()))
    return False


def refuse_read(files: Sequence[Path], read: Iterable[Path]) -> None:
    """Raises EarshotError if one of the output ``files`` is also among the input files ``read``."""
    existing_files = [file for file in files if file != STDOUT and file.is_file()]
    sources = {path.resolve() for path in read} if existing_files else set()
    for file in existing_files:
        if file.resolve() in sources:
            observed = "is a file that is read"
            raise EarshotError(f"output {file}", observed=observed, allowed="another file")


def refuse_replacing(file: Path, own: str) -> None:
    """Raises EarshotError if ``file`` has other content than ``own``, which describes it.

    Devices, pipes and the target of stdout are written to and not replaced, so they pass.
    """
    if file == STDOUT or _is_stdout(file) or not file.is_file() or not file.stat().st_size:
        return
    raise EarshotError(
        f"output {file}",
        observed=f"exists, and is not {own}",
        allowed=f"a new file, or {own}",
        remedy="name another file, or add --force to replace this one",
    )


def save(file: Path, text: str, mode: int = 0o644) -> None:
    """Writes ``text`` to ``file`` atomically, with the permissions ``mode`` and the umask. Raises
    EarshotError.

    Symbolic links are followed; `-` is stdout. Devices and pipes, such as `/dev/stdout`, are
    written to. A link or a pipe of another user is refused, because that user would get the text,
    or choose where it is written.
    """
    try:
        if file == STDOUT or _is_stdout(file):
            emit(text)
            return
        _refuse_strangers(file)
        if file.exists() and not file.is_file():
            with open(file, "w", encoding="utf-8", opener=_open_special) as stream:
                _refuse_pipe(file, os.fstat(stream.fileno()))  # the file may have been replaced
                stream.write(text)
        else:
            cache.write(file.resolve(), text, umask.allowed(mode))
    except OSError as reason:
        observed = f"cannot be written ({reason.strerror})"
        raise EarshotError(f"file {file}", observed=observed, remedy=remedy_of(reason)) from None


def _open_special(path: str, flags: int) -> int:
    """A descriptor of a device or a pipe. Raises OSError if no process reads a pipe in time."""
    end = time.monotonic() + READER_SECONDS
    while True:
        try:
            descriptor = os.open(path, flags | OPENING)
        except OSError as reason:
            if reason.errno != errno.ENXIO or not Path(path).is_fifo():
                raise
            if time.monotonic() > end:
                raise OSError(errno.ENXIO, "it is a pipe that no process reads") from None
            time.sleep(0.05)
        else:
            os.set_blocking(descriptor, True)
            return descriptor


def _refuse_strangers(file: Path) -> None:
    """Raises EarshotError if ``file`` or its target is a link or a pipe of another user."""
    link = file
    for _ in range(MAX_LINKS):
        if not link.is_symlink():
            break
        _refuse_owner(file, link.lstat(), f"{link} is a symbolic link")
        link = link.parent / link.readlink()
    with suppress(FileNotFoundError):
        _refuse_pipe(file, file.stat())


def _refuse_pipe(file: Path, status: os.stat_result) -> None:
    if stat.S_ISFIFO(status.st_mode):
        _refuse_owner(file, status, "is a pipe")


def _refuse_owner(file: Path, status: os.stat_result, kind_text: str) -> None:
    if status.st_uid in (os.geteuid(), 0):
        return
    raise EarshotError(
        f"output {file}",
        observed=f"{kind_text} of another user (uid {status.st_uid})",
        allowed="a file, link or pipe of this user",
        remedy="name another file, in a folder that only this user can write",
    )


def replaced(file: Path, old_text: str, new_text: str) -> bool:
    """Replaces ``old_text``, the content of ``file``, with ``new_text``. Returns False if the
    file has changed. Raises EarshotError."""
    old_bytes, new_bytes = old_text.encode(), new_text.encode()
    is_replaced = False

    def change(content: bytes) -> bytes | None:
        nonlocal is_replaced
        is_replaced = content == old_bytes
        return new_bytes if is_replaced else None

    try:
        cache.rewrite(file, change)
    except OSError as reason:
        observed = f"cannot be written ({reason.strerror})"
        raise EarshotError(f"file {file}", observed=observed) from None
    return is_replaced


def emit(text: str) -> None:
    """Prints ``text`` on stdout. A closed pipe (`| head`) is ignored."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as reason:
        silence(sys.stdout)
        observed = f"cannot be written ({reason.strerror or reason})"
        raise EarshotError("stdout", observed=observed, remedy=remedy_of(reason)) from None
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _is_stdout(file: Path) -> bool:
    try:
        return os.path.samestat(file.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # ValueError: stdout has no file
        return False
