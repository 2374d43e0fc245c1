"""Text made safe to print."""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    """``text`` with control characters spelled out, so that a broker's answer cannot steer a
    terminal, hide text in a log, or break an XML file."""
    return "".join(
        char if char in "\n\t" or not _unprintable(char) else f"\\u{ord(char):04x}" for char in text
    )


def _unprintable(char: str) -> bool:
    # Cc: control, Cf: direction marks and the like, Cs: lone surrogates; the last two are no XML
    return unicodedata.category(char) in ("Cc", "Cf", "Cs") or char in "\ufffe\uffff"
