"""Shows the line of a mistake with a caret, and with secrets masked."""

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from earshot.errors import without_users
from earshot.files.reading import open_regular, read_all
from earshot.lint.model import Place
from earshot.listeners.secrets import MASK, SECRET_NAME, before_secret, reveals
from earshot.visible import visible

MAX_CHARACTERS = 10_000
"""Longer lines are data, and are not shown."""
_CUT = "..."
_VALUE = re.compile(r"\s*(?:-\s+)?[\"']?value[\"']?\s*:\s*")
"""The second of a pair of lines in a manifest: `name: KAFKA_SSL_KEY_PASSWORD`, `value: x`."""
_NO_VALUE = re.compile(r"(?:[&!]\S*(?:\s+|$))*(?:#.*)?")
_KEY_OR_ITEM = re.compile(r"\s*(-\s|[\w.\"'-]+\s*[:=])")


class SourceLines:
    """Returns the lines of files below ``root`` when called with a name. Each file is read once;
    an unreadable file has no lines."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lines_by_file: dict[str, tuple[str, ...]] = {}

    def __call__(self, file: str) -> Sequence[str]:
        if file not in self._lines_by_file:
            self._lines_by_file[file] = _lines(self._root / file)
        return self._lines_by_file[file]


def excerpt(lines: Sequence[str], place: Place, width: int) -> list[str]:
    """The line of ``place`` with its number, and a caret below the column.

    Empty if the line is unknown. A line longer than ``width`` is cut around the column.
    """
    if not 1 <= place.line <= len(lines):
        return []
    masked_line = masked(lines, place.line)
    column = min(place.column, len(masked_line) + 1) - 1 if place.column else -1
    if place.column > len(masked_line) and masked_line.endswith(MASK):
        column = -1  # the column is in the masked part
    text, caret = _window(masked_line, column, max(20, width - len(str(place.line)) - 6))
    number = str(place.line)
    excerpt_lines = [f"  {number} | {visible(text)}".rstrip()]
    if column >= 0:
        indent = "".join(char if char == "\t" else " " for char in visible(text[:caret]))
        excerpt_lines.append(f"  {' ' * len(number)} | {indent}^")
    return excerpt_lines


def masked(lines: Sequence[str], number: int) -> str:
    """The line ``number`` (from 1), with `MASK` for possible secrets."""
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
    """Matches the line up to its value, if the line before or after has the name of a secret."""
    lines_before, lines_after = lines[max(0, index - 1) : index], lines[index + 1 : index + 2]
    name_before = () if lines[index].lstrip().startswith("-") else lines_before
    pair_lines = (
        *name_before,
        *(line for line in lines_after if not line.lstrip().startswith("-")),
    )
    is_secret = any(SECRET_NAME.search(line, 0, MAX_CHARACTERS) for line in pair_lines)
    return _VALUE.match(lines[index].rstrip()) if is_secret else None


def _within_a_secret(lines: Sequence[str], index: int) -> bool:
    """True if the line continues a value whose name, on a line above, is that of a secret."""
    has_own_key = _KEY_OR_ITEM.match(lines[index]) is not None
    for line_above, is_parent in _enclosing_lines(lines, index):
        match = before_secret(line_above, MAX_CHARACTERS)
        if match is None:
            continue
        has_value = not _NO_VALUE.fullmatch(line_above[match.end() :])
        if has_value or (is_parent and not has_own_key):
            return True
    return False


def _enclosing_lines(lines: Sequence[str], index: int) -> Iterator[tuple[str, bool]]:
    """Yields the lines above that line ``index`` belongs to, nearest first, with True for its
    parent."""
    depth, is_parent = _depth(lines[index]), True
    is_adjacent = True
    for line_above in reversed(lines[:index]):
        is_continued = is_adjacent and line_above.rstrip().endswith(("\\", ":"))
        # in properties, the line before may be continued too
        is_adjacent = is_adjacent and line_above.rstrip().endswith("\\")
        if not line_above.strip() or line_above.lstrip().startswith("#"):
            continue
        if _depth(line_above) < depth or is_continued:
            yield line_above.rstrip(), is_parent
            depth, is_parent = min(depth, _depth(line_above)), False
        if not depth and not is_adjacent:
            return


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _window(line: str, column: int, width: int) -> tuple[str, int]:
    """``line`` cut to ``width`` around ``column``, and the new column."""
    if len(line) <= width:
        return line, column
    start = min(max(0, column - width // 2), len(line) - width)
    cut_before, cut_after = (_CUT if start else ""), (_CUT if start + width < len(line) else "")
    return f"{cut_before}{line[start : start + width]}{cut_after}", column - start + len(cut_before)


def _lines(file: Path) -> tuple[str, ...]:
    try:
        with open_regular(file) as stream:
            text = read_all(stream).decode("utf-8", "replace")
        return tuple(io.StringIO(text, newline=None).read().split("\n"))
    except (OSError, ValueError):
        return ()
