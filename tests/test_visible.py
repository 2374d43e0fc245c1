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
        ("a ##[error]b ##vso[task.x] # ## c", "a #\\u0023[error]b #\\u0023vso[task.x] # ## c"),
        ("::add-mask::a\n ::error file=b::c", ":\\u003aadd-mask::a\n :\\u003aerror file=b::c"),
        ("::1 ::ffff:1.2.3.4 :: a::b [::1]", "::1 ::ffff:1.2.3.4 :: a::b [::1]"),
    ],
)
def test_what_cannot_be_printed_is_spelled_out(text: str, expected: str) -> None:
    assert visible(text) == expected
