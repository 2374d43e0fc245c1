"""Marks, colours and columns, and what a stream can show of them."""

import io
import os

import pytest

from earshot.report.terminal import Terminal, column_widths, columns
from earshot.validation.terms import Verdict


class Screen(io.StringIO):
    """Double of a terminal; ``None`` is an encoding that it does not know."""

    encoding: str | None = "utf-8"  # type: ignore[assignment]
    number: int | Exception = 7

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        if isinstance(self.number, Exception):
            raise self.number
        return self.number


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("size", "width"), [(132, 132), (0, 100)])
def test_a_terminal_is_as_wide_as_it_says(
    size: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda number: os.terminal_size((size, 24)))
    assert Terminal.of(Screen()) == Terminal(colour=True, signs=True, width=width)


@pytest.mark.parametrize("reason", [OSError("no file behind it"), ValueError("closed")])
def test_a_terminal_that_cannot_be_asked_is_as_wide_as_a_log(reason: Exception) -> None:
    screen = Screen()
    screen.number = reason
    assert Terminal.of(screen).width == 100


def test_a_stream_without_an_encoding_gets_no_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    screen.encoding = None
    screen.number = OSError("no file behind it")
    assert Terminal.of(screen) == Terminal(colour=True)


def test_marks() -> None:
    order = (Verdict.PASS, Verdict.FAIL, Verdict.SKIP, Verdict.INCONCLUSIVE)
    assert [Terminal().mark(it) for it in order] == ["ok", "FAIL", "--", "??"]
    assert [Terminal(signs=True).mark(it) for it in order] == ["✔", "✘", "–", "?"]  # noqa: RUF001


def test_colours() -> None:
    ink = Terminal(colour=True)
    order = (Verdict.PASS, Verdict.FAIL, Verdict.SKIP, Verdict.INCONCLUSIVE)
    codes = [ink.tint("x", it).removesuffix("x\x1b[0m") for it in order]
    assert codes == ["\x1b[32m", "\x1b[1;31m", "\x1b[2m", "\x1b[33m"]
    assert ink.bold("x") == "\x1b[1mx\x1b[0m"
    assert (ink.bold("  "), ink.bold("")) == ("  ", "")
    assert Terminal().bold("x") == "x"


@pytest.mark.parametrize(("width", "room"), [(60, 46), (44, 30), (20, 30)])
def test_a_text_is_wrapped_under_itself(width: int, room: int) -> None:
    whole = "a" * (room - 2) + " b"
    assert Terminal(width=width).field("label", whole, 10) == f"  label       {whole}"
    longer = "a" * (room - 1) + " b"
    assert Terminal(width=width).field("label", longer, 10) == (
        f"  label       {'a' * (room - 1)}\n{' ' * 14}b"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("one\n\ntwo", "one\n          \n          two"),
        ("short " + "x" * 40, "short\n          " + "x" * 40),
        ("a " * 12 + "well-known-name", "a " * 11 + "a\n          well-known-name"),
        ("\x1b[2J", "\\u001b[2J"),
    ],
    ids=["empty", "paragraphs", "long word", "hyphens", "control"],
)
def test_what_may_be_copied_stays_whole(text: str, shown: str) -> None:
    assert Terminal(width=40).field("reason", text, 6) == f"  reason  {shown}"


def test_columns_are_as_wide_as_their_widest_text() -> None:
    rows = [("a", "bbb", "c"), ("aaaa",), ("", "b", "cc", "d")]
    assert column_widths(rows) == [4, 3, 2, 1]
    assert columns(rows) == ["a     bbb  c", "aaaa", "      b    cc  d"]
    assert (column_widths([]), columns([])) == ([], [])
