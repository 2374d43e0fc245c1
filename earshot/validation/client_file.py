"""Reads a file of Kafka's client properties like Java."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from earshot.errors import EarshotError
from earshot.files.reading import content_of
from earshot.listeners.properties import malformed_keys, read_properties

_TRIMMED = "".join(map(chr, range(33)))
"""Characters that Kafka strips from every value (`String.trim`)."""


def read_client_file(file: Path, source: str) -> dict[str, str]:
    """The properties in ``file``. Raises EarshotError, with ``source`` as the file's name."""
    data = content_of(file, source)
    text = data.decode("latin-1")  # as Java reads it
    values = dict(read_properties(text).values)
    if "\0" in text:
        observed, allowed = "is not text: it contains the character U+0000", "lines of key=value"
    elif malformed := malformed_keys(text):
        observed = f"has a \\u without four hexadecimal digits in {_keys(malformed)}"
        allowed = "two backslashes for a literal backslash"
    elif ambiguous := _keys_that_differ_in_utf8(data, values):
        observed = f"has characters beyond ASCII in {_keys(ambiguous)}, which Java reads as "
        observed += "ISO 8859-1 and other programs as UTF-8"
        allowed = "ASCII; any other character as \\uXXXX"
    elif not values:
        observed = "contains no property"
        allowed = "lines of key=value, such as security.protocol=SASL_SSL"
    else:
        return {key: value.strip(_TRIMMED) for key, value in values.items()}
    raise EarshotError(source, observed=observed, allowed=allowed)


def _keys_that_differ_in_utf8(data: bytes, values: Mapping[str, str]) -> list[str]:
    """The keys whose value differs if ``data`` is read as UTF-8; none if it is not UTF-8."""
    try:
        utf8_values = read_properties(data.decode()).values
    except UnicodeDecodeError:
        return []
    return sorted(key for key in values if utf8_values.get(key) != values[key])


def _keys(names: Iterable[str]) -> str:
    """``names`` in a message. A name with unusual characters may be part of a secret, and is
    hidden."""
    keys = (name if re.fullmatch(r"[a-z0-9._-]+", name) else "a key" for name in names)
    return ", ".join(dict.fromkeys(keys))
