"""Makes text safe to print."""

import unicodedata

_COLOUR = "<{%"
"""The beginning of a colour in Pulumi's messages. Its CLI panics at a colour that it lacks."""


def visible(text: str) -> str:
    """``text`` with control characters spelled out, so that a broker's answer cannot steer a
    terminal, hide text in a log, or break an XML file."""
    return "".join(map(_visible, text)).replace(_COLOUR, "\\u003c{%")


def one_line(text: str) -> str:
    """Like `visible`, on one line: text from a broker or a file must not begin a line."""
    return visible(" ".join(text.split()))


def _visible(char: str) -> str:
    # Cc: control, Cf: direction marks and the like, Cs: lone surrogates, which XML does not allow;
    # nor does it allow U+FFFE and U+FFFF
    hidden = unicodedata.category(char) in ("Cc", "Cf", "Cs") or char in "\ufffe\uffff"
    return f"\\u{ord(char):04x}" if hidden and char not in "\n\t" else char
