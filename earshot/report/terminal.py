"""The style of text on a terminal: marks, colours and aligned columns, or plain ASCII."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from earshot.validation.terms import Verdict
from earshot.visible import visible

_MARKS = {
    Verdict.PASS: ("ok", "\N{HEAVY CHECK MARK}", "32"),
    Verdict.FAIL: ("FAIL", "\N{HEAVY BALLOT X}", "1;31"),
    Verdict.SKIP: ("--", "\N{EN DASH}", "2"),
    Verdict.INCONCLUSIVE: ("??", "?", "33"),
}
"""The ASCII text, the sign and the ANSI colour code of each verdict."""


@dataclass(frozen=True)
class Terminal:
    """The capabilities of an output stream. The defaults suit a log file."""

    colour: bool = False
    signs: bool = False
    width: int = 100

    @classmethod
    def of(cls, stream: TextIO) -> Terminal:
        """The capabilities of ``stream``. Respects `NO_COLOR` (no-color.org) and `TERM=dumb`."""
        if not stream.isatty() or os.environ.get("TERM") == "dumb":
            return cls()
        try:
            width = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):
            width = 0
        return cls(
            colour=not os.environ.get("NO_COLOR"),
            signs="utf" in (getattr(stream, "encoding", "") or "").lower(),
            width=width or cls.width,  # a terminal of unknown size reports 0
        )

    def mark(self, verdict: Verdict) -> str:
        return _MARKS[verdict][self.signs]

    def tint(self, text: str, verdict: Verdict) -> str:
        return self._ink(text, _MARKS[verdict][2])

    def bold(self, text: str) -> str:
        return self._ink(text, "1")

    def _ink(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text.strip() else text

    def lines(self, text: str) -> list[str]:
        """``text`` (one line) wrapped to the width. Long words are not broken."""
        return textwrap.wrap(
            text,
            self.width,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )

    def field(self, label: str, text: str, label_width: int) -> str:
        """`  label  text`, with the text wrapped. Long words are not broken, so that they can be
        copied."""
        text_width = max(30, self.width - label_width - 4)
        lines: list[str] = []
        for paragraph in visible(text).splitlines() or [""]:
            wrapped = textwrap.wrap(
                paragraph, text_width, break_long_words=False, break_on_hyphens=False
            )
            lines += wrapped or [""]
        indent = "\n" + " " * (label_width + 4)
        return f"  {label:<{label_width}}  {indent.join(lines)}"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """``rows`` as lines. Each column is as wide as its widest text; lines do not end in blanks."""
    widths = column_widths(rows)
    return [
        "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    ]


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column. Rows may have different lengths."""
    count = max((len(row) for row in rows), default=0)
    return [max(len(row[i]) for row in rows if i < len(row)) for i in range(count)]
