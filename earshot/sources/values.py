"""Values of parsed documents; a value of another type counts as empty."""

import re
from collections.abc import Mapping

COMPUTED = "${computed}"
"""The text of a command's output, or of another value that a script computes."""


def as_map(value: object) -> Mapping[str, object]:
    """``value`` if it is a map, else an empty map."""
    return {str(key): entry for key, entry in value.items()} if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[object]:
    """``value`` if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def text_in(section: Mapping[str, object], key: str) -> str:
    """The text at ``key``, or an empty string."""
    value = section.get(key)
    return value if isinstance(value, str) else ""


def number_in(section: Mapping[str, object], key: str) -> int | None:
    """The number of at most five digits that is written as text at ``key``, or None."""
    text = text_in(section, key)
    return int(text) if re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) else None
