"""Files of `NAME=value` lines: `.env`, and what a service names under `env_file`.

As Docker Compose reads them: `export` and blanks before the name are passed over, `#` begins a
comment (inside a value only after a blank), single quotes keep the text as it is, double quotes
know escapes, and other values may name variables. python-dotenv reads otherwise: 1.2.4 leaves
`$NAME` and `${NAME:?...}` as they are and passes over `NAME: value` and lines that Compose refuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from earshot.errors import EarshotError
from earshot.sources.substitution import Variables

_LINE = re.compile(
    r"\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)\s*(?:(?P<sign>[=:])[ \t]*(?P<value>.*))?",
    re.ASCII | re.DOTALL,
)
_DOUBLE = re.compile(r'"((?:\\.|[^"\\])*)"\s*(?:#.*)?', re.DOTALL)
_SINGLE = re.compile(r"'([^']*)'\s*(?:#.*)?", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$$"}


def is_env_file(name: str) -> bool:
    """Whether a file of this name is one: `.env`, `.env.local`, `kafka.env`."""
    return name.startswith(".env.") or name.endswith(".env")


def read_env_file(
    text: str, shown: str, known: Mapping[str, str], *, keep: bool = False
) -> dict[str, str]:
    """The variables of a file; ``known`` are those that its values may name besides its own.

    A name alone on its line takes its value from ``known``, or is left out; to ``keep`` is to leave
    what nobody has set as `${NAME}`. Raises EarshotError.
    """
    found: dict[str, str] = {}
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise EarshotError(
                f"{shown}, line {number}",
                observed="is no assignment",
                allowed="NAME=value, or a comment after #",
            )
        name, value = match["name"], match["value"]
        if match["sign"] is None:
            if name in known:
                found[name] = known[name]
            continue
        while _is_open(value):  # a quoted value may go on for lines
            following = next(lines, None)
            if following is None:
                raise EarshotError(
                    f"{shown}, line {number}", observed="has a quote that is not closed"
                )
            value += "\n" + following[1]
        found[name] = _value(
            value, Variables({**found, **known}, keep=keep), f"{shown}, line {number}"
        )
    return found


def _is_open(value: str) -> bool:
    quote = value[:1]
    shape = {'"': _DOUBLE, "'": _SINGLE}.get(quote)
    return shape is not None and shape.fullmatch(value) is None and not _closed(value, quote)


def _closed(value: str, quote: str) -> bool:
    # something follows the closing quote, which compose takes as part of the value
    return len(re.sub(r"\\.", "", value[1:], flags=re.DOTALL).split(quote)) > 1


def _value(text: str, variables: Variables, where: str) -> str:
    if single := _SINGLE.fullmatch(text):
        return single[1]
    if double := _DOUBLE.fullmatch(text):
        escaped = re.sub(
            r"\\(.)", lambda m: _ESCAPES.get(m[1], "\\" + m[1]), double[1], flags=re.DOTALL
        )
        return variables.substitute(escaped, where)
    plain = re.split(r"(?:^|\s)#", text, maxsplit=1)[0].strip()
    return variables.substitute(plain, where)
