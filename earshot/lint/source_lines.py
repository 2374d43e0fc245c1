"""The line of a mistake as it may be shown: with a caret, and without anybody's password."""

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from earshot.errors import without_users
from earshot.lint.model import Place
from earshot.listeners.secrets import MASK, SECRET_NAME, before_secret, reveals
from earshot.reading import open_regular, read_all
from earshot.report.visible import visible

MAX_CHARACTERS = 10_000
"""A longer line is data, and not shown."""
_CUT = "..."
_VALUE = re.compile(r"\s*(?:-\s+)?[\"']?value[\"']?\s*:\s*")
"""Of a pair of lines, as in a manifest: `name: KAFKA_SSL_KEY_PASSWORD`, `value: x`."""
_MARKED = re.compile(r"(?:[&!]\S*(?:\s+|$))*(?:#.*)?")
_KEY_OR_ITEM = re.compile(r"\s*(-\s|[\w.\"'-]+\s*[:=])")


class SourceLines:
    """The lines of files below ``root`` by name, read once; of what cannot be read there are none.

    Call it with a name.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, tuple[str, ...]] = {}

    def __call__(self, file: str) -> Sequence[str]:
        if file not in self._read:
            self._read[file] = _lines(self._root / file)
        return self._read[file]


def excerpt(lines: Sequence[str], place: Place, width: int) -> list[str]:
    """The line of ``place`` with its number, and a caret below its column where that is shown.

    Nothing where the line is not known; a line longer than ``width`` is cut to what is around the
    column.
    """
    if not 1 <= place.line <= len(lines):
        return []
    full = masked(lines, place.line)
    column = min(place.column, len(full) + 1) - 1 if place.column else -1
    if place.column > len(full) and full.endswith(MASK):
        column = -1  # it was in what is masked
    text, caret = _window(full, column, max(20, width - len(str(place.line)) - 6))
    number = str(place.line)
    shown = [f"  {number} | {visible(text)}".rstrip()]
    if column >= 0:
        ahead = "".join(char if char == "\t" else " " for char in visible(text[:caret]))
        shown.append(f"  {' ' * len(number)} | {ahead}^")
    return shown


def masked(lines: Sequence[str], number: int) -> str:
    """The line ``number``, counted from 1, with `MASK` for what may be a secret in it."""
    line = lines[number - 1].rstrip()
    blanks = line[: len(line) - len(line.lstrip())]
    if len(line) > MAX_CHARACTERS or _within_a_secret(lines, number - 1):
        return blanks + MASK
    match = before_secret(line) or _value_of_a_secret(lines, number - 1)
    head = line[: match.end()] if match else line
    if reveals("", head) or reveals("sasl.jaas.config", head) or without_users(head) != head:
        return blanks + MASK
    return head + MASK if match and match.end() < len(line) else line


def _value_of_a_secret(lines: Sequence[str], index: int) -> re.Match[str] | None:
    """The length of the line before a value that follows the name of a secret."""
    before, after = lines[max(0, index - 1) : index], lines[index + 1 : index + 2]
    beside = () if lines[index].lstrip().startswith("-") else before
    own = (*beside, *(line for line in after if not line.lstrip().startswith("-")))
    named = any(SECRET_NAME.search(line, 0, MAX_CHARACTERS) for line in own)
    return _VALUE.match(lines[index].rstrip()) if named else None


def _within_a_secret(lines: Sequence[str], index: int) -> bool:
    """Whether a line above begins a value that goes on here, and its name is a secret's."""
    own = _KEY_OR_ITEM.match(lines[index]) is not None
    for above, is_parent in _beginnings(lines, index):
        match = before_secret(above, MAX_CHARACTERS)
        if match is None:
            continue
        begins_here = not _MARKED.fullmatch(above[match.end() :])
        if begins_here or (is_parent and not own):
            return True
    return False


def _beginnings(lines: Sequence[str], index: int) -> Iterator[tuple[str, bool]]:
    """Lines above that line ``index`` is a part of, from the nearest up, and whether it is that."""
    depth, is_parent = _depth(lines[index]), True
    adjoins = True
    for above in reversed(lines[:index]):
        goes_on = adjoins and above.rstrip().endswith(("\\", ":"))
        adjoins = adjoins and above.rstrip().endswith("\\")  # of properties: so may the one before
        if not above.strip() or above.lstrip().startswith("#"):
            continue
        if _depth(above) < depth or goes_on:
            yield above.rstrip(), is_parent
            depth, is_parent = min(depth, _depth(above)), False
        if not depth and not adjoins:
            return


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _window(line: str, column: int, width: int) -> tuple[str, int]:
    """``line`` cut to ``width`` around ``column``, and where that is in it."""
    if len(line) <= width:
        return line, column
    start = min(max(0, column - width // 2), len(line) - width)
    before, after = (_CUT if start else ""), (_CUT if start + width < len(line) else "")
    return f"{before}{line[start : start + width]}{after}", column - start + len(before)


def _lines(file: Path) -> tuple[str, ...]:
    try:
        with open_regular(file) as opened:
            text = read_all(opened).decode("utf-8", "replace")
        return tuple(io.StringIO(text, newline=None).read().split("\n"))
    except (OSError, ValueError):
        return ()
