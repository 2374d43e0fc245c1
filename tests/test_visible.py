"""Text of others that is safe to print."""

import pytest

from earshot.visible import visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ä\n\t€😀", "ä\n\t€😀"),
        ("\x1b[2J", "\\u001b[2J"),
        ("\u202e", "\\u202e"),
        ("\ud800", "\\ud800"),
        ("\ufffe\uffff", "\\ufffe\\uffff"),
        ("<{%red%}> <{x", "\\u003c{%red%}> <{x"),
    ],
)
def test_what_cannot_be_printed_is_spelled_out(text: str, expected: str) -> None:
    assert visible(text) == expected
