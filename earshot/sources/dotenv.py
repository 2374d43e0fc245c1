"""Files of `NAME=value` lines: `.env`, and what a service names under `env_file`.

As Docker Compose reads them: `export` and blanks before the name are passed over, `#` begins a
comment (inside a value only after a blank), single quotes keep the text as it is, double quotes
know escapes, and other values may name variables. python-dotenv reads otherwise: 1.2.4 leaves
`$NAME` and `${NAME:?...}` as they are and passes over `NAME: value` and lines that Compose refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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


def read_env_file(text: str, shown: str, known: Variables) -> dict[str, str]:
    """The variables of a file; ``known`` are those that its values may name besides its own.

    A name alone on its line takes its value from ``known``, or is left out. What is missing, and
    whether that is kept as `${NAME}`, is the business of ``known``. Raises EarshotError.
    """
    found: dict[str, str] = {}
    lines = _lines(text)
    for number, line in lines:
        where = f"{shown}, line {number}"
        match = _LINE.fullmatch(line)
        if match is None:
            raise _no_assignment(where)
        name, value = match["name"], match["value"]
        if match["sign"] is None:
            found |= _handed_through(name, known)
            continue
        while _is_open(value):  # a quoted value may go on for lines
            following = next(lines, None)
            if following is None:
                raise EarshotError(where, observed="has a quote that is not closed")
            value += "\n" + following[1]
        variables = Variables({**found, **known.values}, keep=known.keep)
        found[name] = _value(value, variables, where)
        known.missing.update(variables.missing)
    return found


def read_raw_env_file(text: str, shown: str, known: Variables) -> dict[str, str]:
    """The same of an `env_file` with `format: raw`: what follows `=` is the value as it stands.

    Source: the Compose Specification, and kvfile of Docker's CLI. Raises EarshotError.
    """
    found: dict[str, str] = {}
    for number, line in _lines(text):
        name, sign, value = line.lstrip().partition("=")
        if not name or re.search(r"\s", name):
            raise _no_assignment(f"{shown}, line {number}")
        found |= {name: value} if sign else _handed_through(name, known)
    return found


def _no_assignment(where: str) -> EarshotError:
    allowed = "NAME=value, or a comment after #"
    return EarshotError(where, observed="is no assignment", allowed=allowed)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, but for blank ones, comments and the mark that Windows puts
    before UTF-8."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _handed_through(name: str, known: Variables) -> dict[str, str]:
    value = known.handed_through(name)
    return {} if value is None else {name: value}


def _is_open(value: str) -> bool:
    quote = value[:1]
    shape = {'"': _DOUBLE, "'": _SINGLE}.get(quote)
    # what follows a closing quote compose takes as part of the value
    is_closed = quote in re.sub(r"\\.", "", value[1:], flags=re.DOTALL)
    return shape is not None and shape.fullmatch(value) is None and not is_closed


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
