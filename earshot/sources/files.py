"""Reads a source file, files next to it, and its `.env`."""

import io
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from earshot.errors import EarshotError, remedy_of
from earshot.files.reading import open_regular, read_all, read_bytes
from earshot.sources.substitution import Variables, read_env_file

PROPERTIES = ".properties"
MAX_FILES = 1000
"""How many files of a folder are read."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Characters that no configuration file contains; ISO-8859-1 decodes any bytes."""


def text_of(file: Path) -> str:
    """The text of ``file``. Raises EarshotError if it cannot be read.

    A properties file that is not UTF-8 is decoded as ISO-8859-1, as Java does.
    """
    try:
        content = read_bytes(file)
        try:
            text = _decoded(content, "utf-8")
        except UnicodeDecodeError:
            if PROPERTIES not in file.suffixes:
                raise
            text = _decoded(content, "latin-1")
    except OSError as reason:
        observed = f"cannot be read ({reason.strerror})"
        raise EarshotError(f"file {file}", observed=observed, remedy=remedy_of(reason)) from None
    except UnicodeDecodeError:
        raise EarshotError(f"file {file}", observed="is no UTF-8 text") from None
    if control := _CONTROL.search(text):
        where = f"line {text.count(chr(10), 0, control.start()) + 1}"
        observed = f"is not text: {where} holds the control character U+{ord(control[0]):04X}"
        raise EarshotError(f"file {file}", observed=observed, allowed="a text file in UTF-8")
    return text


def _decoded(content: bytes, encoding: str) -> str:
    """The text with universal newlines."""
    return io.TextIOWrapper(io.BytesIO(content), encoding).read()


def beside(file: Path) -> Callable[[str], str]:
    """A reader of paths that are relative to ``file``; it raises OSError."""

    def read(path: str) -> str:
        with open_regular(file.parent / path) as opened:  # a device or a pipe may never end
            return _decoded(read_all(opened), "utf-8")

    return read


def texts_beside(file: Path, endings: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Path and text of each readable file in the folder of ``file`` with one of the ``endings``."""
    with suppress(OSError), os.scandir(file.parent) as entries:
        versions = [
            (entry.path, entry.stat().st_mtime_ns, entry.stat().st_size)
            for entry in entries
            if entry.name.endswith(endings)
        ]
        return _texts(tuple(sorted(versions)[:MAX_FILES]))
    return ()


@lru_cache(maxsize=2)  # the files of a folder are checked one after the other
def _texts(versions: tuple[tuple[str, int, int], ...]) -> tuple[tuple[str, str], ...]:
    """Path and text of files; a path with its time and size is a version of its file."""
    texts = []
    for path, _, _ in versions:
        with suppress(EarshotError):
            texts.append((str(Path(path)), text_of(Path(path))))
    return tuple(texts)


def variables_for(
    file: Path, environment: Mapping[str, str], env_file: Path | None = None, *, keep: bool = False
) -> dict[str, str]:
    """The variables of ``env_file`` (default: the `.env` next to ``file``), which those of the
    environment override.

    With ``keep``, unset variables stay as `${NAME}`. Raises EarshotError.
    """
    dotenv = env_file or file.parent / ".env"
    if env_file is None and not dotenv.is_file():
        return dict(environment)
    variables = Variables(environment, keep=keep)
    return read_env_file(text_of(dotenv), str(dotenv), variables) | dict(environment)
