"""A file of Kafka's client properties, as Java reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from earshot.errors import EarshotError
from earshot.listeners.properties import malformed_keys, read_properties
from earshot.reading import content_of

_TRIMMED = "".join(map(chr, range(33)))
"""What Kafka takes away around every value, as `String.trim` does."""


def read_client_file(file: Path, source: str) -> dict[str, str]:
    """The properties in ``file``. Raises EarshotError, which calls the file ``source``."""
    data = content_of(file, source)
    text = data.decode("latin-1")  # as Java reads it
    values = dict(read_properties(text).values)
    if "\0" in text:
        observed, allowed = "is not text: it has the character U+0000", "lines of key=value"
    elif malformed := malformed_keys(text):
        observed = f"has a \\u without four hexadecimal digits in {_keys(malformed)}"
        allowed = "a backslash is written twice"
    elif ambiguous := _otherwise_in_utf8(data, values):
        observed = f"has characters beyond ASCII in {_keys(ambiguous)}, which Java reads as "
        observed += "ISO 8859-1 and others as UTF-8"
        allowed = "ASCII; any other character as \\uXXXX"
    elif not values:
        observed = "holds no property"
        allowed = "lines of key=value, such as security.protocol=SASL_SSL"
    else:
        return {key: value.strip(_TRIMMED) for key, value in values.items()}
    raise EarshotError(source, observed=observed, allowed=allowed)


def _otherwise_in_utf8(data: bytes, values: Mapping[str, str]) -> list[str]:
    """The keys that ``data`` has other values for if it is UTF-8; none where it cannot be."""
    try:
        others = read_properties(data.decode()).values
    except UnicodeDecodeError:
        return []
    return sorted(key for key in values if others.get(key) != values[key])


def _keys(names: Iterable[str]) -> str:
    """``names`` in a message; one that is no plain word may be a secret that a line broke off."""
    keys = (name if re.fullmatch(r"[a-z0-9._-]+", name) else "a key" for name in names)
    return ", ".join(dict.fromkeys(keys))
