"""Marks, colours and columns, and what a stream can show of them."""

import io
import os

import pytest

from earshot.report.terminal import Terminal, column_widths, columns
from earshot.validation.terms import Verdict


class Screen(io.StringIO):
    """Double of a stream without a size; ``None`` is an unknown encoding."""

    def __init__(self, encoding: str | None = "utf-8", *, is_terminal: bool = True) -> None:
        super().__init__()
        self._encoding = encoding
        self._is_terminal = is_terminal
        self.number: int | Exception = OSError("no file behind it")

    @property
    def encoding(self) -> str | None:  # type: ignore[override]  # typeshed has no None
        return self._encoding

    def isatty(self) -> bool:
        return self._is_terminal

    def fileno(self) -> int:
        if isinstance(self.number, Exception):
            raise self.number
        return self.number


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("screen", "variables", "expected"),
    [
        (Screen(is_terminal=False), {}, Terminal()),
        (Screen(), {"TERM": "dumb"}, Terminal()),
        (Screen(), {}, Terminal(colour=True, signs=True)),
        (Screen(), {"NO_COLOR": "1"}, Terminal(signs=True)),
        (Screen("ascii"), {}, Terminal(colour=True)),
        (Screen(None), {}, Terminal(colour=True)),
    ],
)
def test_what_a_stream_can_show(
    screen: Screen,
    variables: dict[str, str],
    expected: Terminal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Terminal.of(screen) == expected


@pytest.mark.parametrize(
    ("number", "size", "width"),
    [
        (7, 132, 132),
        (7, 0, 100),
        (OSError("no file behind it"), 132, 100),
        (ValueError("closed"), 132, 100),
    ],
)
def test_the_width_is_the_terminal_s_or_that_of_a_log(
    number: int | Exception, size: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda number: os.terminal_size((size, 24)))
    screen = Screen()
    screen.number = number
    assert Terminal.of(screen) == Terminal(colour=True, signs=True, width=width)


VERDICTS = (Verdict.PASS, Verdict.FAIL, Verdict.SKIP, Verdict.INCONCLUSIVE)


def test_marks_and_colours() -> None:
    assert [Terminal().mark(verdict) for verdict in VERDICTS] == ["ok", "FAIL", "--", "??"]
    signs = [Terminal(signs=True).mark(verdict) for verdict in VERDICTS]
    assert signs == ["✔", "✘", "–", "?"]  # noqa: RUF001
    terminal = Terminal(colour=True)
    codes = [terminal.tint("x", verdict).removesuffix("x\x1b[0m") for verdict in VERDICTS]
    assert codes == ["\x1b[32m", "\x1b[1;31m", "\x1b[2m", "\x1b[33m"]
    assert terminal.bold("x") == "\x1b[1mx\x1b[0m"
    assert (terminal.bold("  "), terminal.bold("")) == ("  ", "")
    assert Terminal().bold("x") == "x"


@pytest.mark.parametrize(("width", "room"), [(60, 46), (44, 30), (20, 30)])
def test_a_text_is_wrapped_under_itself(width: int, room: int) -> None:
    fitting_text = "a" * (room - 2) + " b"
    assert Terminal(width=width).field("label", fitting_text, 10) == f"  label       {fitting_text}"
    longer_text = "a" * (room - 1) + " b"
    assert Terminal(width=width).field("label", longer_text, 10) == (
        f"  label       {'a' * (room - 1)}\n{' ' * 14}b"
    )


@pytest.mark.parametrize(("text", "expected"), [
    ("", ""),
    ("one\n\ntwo", "one\n          \n          two"),
    ("short " + "x" * 40, "short\n          " + "x" * 40),
    ("a " * 12 + "well-known-name", "a " * 11 + "a\n          well-known-name"),
    ("\x1b[2J", "\\u001b[2J"),
], ids=["empty", "paragraphs", "long word", "hyphens", "control"])  # fmt: skip
def test_what_may_be_copied_stays_whole(text: str, expected: str) -> None:
    assert Terminal(width=40).field("reason", text, 6) == f"  reason  {expected}"


def test_columns_are_as_wide_as_their_widest_text() -> None:
    rows = [("a", "bbb", "c"), ("aaaa",), ("", "b", "cc", "d")]
    assert column_widths(rows) == [4, 3, 2, 1]
    assert columns(rows) == ["a     bbb  c", "aaaa", "      b    cc  d"]
    assert (column_widths([]), columns([])) == ([], [])
