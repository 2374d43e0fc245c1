"""Variable substitution of Docker Compose, and files of `NAME=value` lines.

Forms: `$X`, `${X}`, `${X:-default}` and `${X-default}` (where X is unset or, with the colon,
empty), `${X:?message}` and `${X?message}` (required), `${X:+other}` and `${X+other}` (where X is
set), and `$$` for a dollar sign. Defaults may hold variables themselves.

Files are `.env` and those of `env_file`. `export` and blanks before the name are skipped, `#`
begins a comment (inside a value only after a blank), single-quoted text is literal, double-quoted
text has escapes and variables, and other values may contain variables. python-dotenv differs: 1.2.4
does not replace `$NAME` and `${NAME:?...}`, and skips `NAME: value` and lines that Compose refuses.
"""

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from earshot.errors import EarshotError
from earshot.listeners.secrets import before_secret

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OPERATOR = re.compile(r":?[-?+]")
_KEPT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
MAX_DEPTH = 20
_LOOKED_BACK = 200
ALLOWED = "$X, ${X}, ${X:-default}, ${X:?message}, ${X:+other}, and $$ for a dollar sign"
_LINE = re.compile(
    r"\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)\s*(?:(?P<sign>[=:])[ \t]*(?P<value>.*))?",
    re.ASCII | re.DOTALL,
)
_DOUBLE = re.compile(r'"((?:\\.|[^"\\])*)"\s*(?:#.*)?', re.DOTALL)
_SINGLE = re.compile(r"'([^']*)'\s*(?:#.*)?", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$$"}


@dataclass
class Variables:
    """The variables that a file may use, and those that it used and that are not set."""

    values: Mapping[str, str]
    missing: dict[str, None] = field(default_factory=dict)
    keep: bool = False
    """Leave an unset variable as `${NAME}`: its value is unknown."""
    malformed: dict[str, None] = field(default_factory=dict)
    """Places of invalid expressions, each with the problem."""

    def substitute(self, text: str, where: str = "", setting: str = "") -> str:
        """``text`` with every variable replaced; an unset one becomes empty, or `${NAME}`.

        ``setting`` is what the text is the value of, if ``where`` does not end in it. Raises
        EarshotError for an invalid expression and an unset required variable.
        """
        if "$" not in text:
            return text
        return _Substitution(self, text, where, setting or where).until("", 0)

    def value(self, name: str, shown: str = "") -> str:
        """The value of one variable; an unset one is noted as missing, by what is ``shown``
        instead of its name, and empty or `${NAME}`."""
        value = self.values.get(name)
        if value is None:
            self.missing[shown or name] = None
            return f"${{{name}}}" if self.keep else ""
        if self.keep:  # another file, such as `.env`, may have kept a variable in the value
            kept = _KEPT.findall(value)
            self.missing.update(dict.fromkeys([shown] if kept and shown else kept))
        return value

    def value_from_environment(self, name: str) -> str | None:
        """The value of a variable that a file names without a value; None if it is not set."""
        return self.value(name) if self.keep or name in self.values else None


@dataclass
class _Substitution:
    variables: Variables
    text: str
    where: str
    setting: str
    at: int = 0

    def until(self, end: str, depth: int) -> str:
        """The replaced text up to ``end``, or up to its end if ``end`` is empty."""
        if depth > MAX_DEPTH:
            raise self._error("is nested too deeply")
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == end:
                self.at += 1
                return "".join(parts)
            self.at += 1
            parts.append(self._dollar(depth) if char == "$" else char)
        if end:
            raise self._error("has a ${ that is not closed")
        return "".join(parts)

    def _dollar(self, depth: int) -> str:
        if self.text.startswith("$", self.at):
            self.at += 1
            return "$"
        if self.text.startswith("{", self.at):
            self.at += 1
            return self._braced(depth)
        name = self._name()
        return self.variables.value(name, self._instead())

    def _instead(self) -> str:
        """What is shown instead of a variable's name that may be a part of a password: `pa$word`
        has one, because its dollar sign is not doubled."""
        before = self.text[max(0, self.at - _LOOKED_BACK) : self.at].rsplit(maxsplit=1)[-1]
        if before_secret(f"{self.setting}=") or before_secret(before):
            return f"a variable in {self.where.rpartition(': ')[2] or 'a secret'}"
        return ""

    def _braced(self, depth: int) -> str:
        name = self._name()
        if self.text.startswith("}", self.at):
            shown = self._instead() if name in self.variables.values else ""
            self.at += 1
            return self.variables.value(name, shown)
        operator = _OPERATOR.match(self.text, self.at)
        if operator is None:
            open_end = self.at >= len(self.text)
            problem = "${ that is not closed" if open_end else "form that compose does not know"
            raise self._error(f"has a {problem}")
        self.at = operator.end()
        missing = dict(self.variables.missing)
        rest = self.until("}", depth + 1)
        value = self.variables.values.get(name)
        is_set = bool(value) if operator[0].startswith(":") else value is not None
        kind = operator[0][-1]
        if (kind == "+") is not is_set:
            self.variables.missing = missing  # variables of the unused part are not missing
        if kind == "-":
            return str(value) if is_set else rest
        if kind == "+":
            return rest if is_set else ""
        if not is_set and self.variables.keep:
            return self.variables.value(name)
        if not is_set:
            raise EarshotError(
                self.where or f"variable {name}",
                observed=f"the variable {name} is required, and not set"
                + (f" ({rest})" if rest and not before_secret(f"{name}={self.where}=") else ""),
                remedy=f"set {name} in the environment, in .env, or in a file for --env-file",
            )
        return str(value)

    def _name(self) -> str:
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise self._error("has a $ that no variable's name follows")
        self.at = match.end()
        return match[0]

    def _error(self, observed: str) -> EarshotError:
        return EarshotError(
            self.where or "text",
            observed=f"{observed} (at character {min(self.at, len(self.text)) + 1})",
            allowed=ALLOWED,
        )


def is_env_file(name: str) -> bool:
    """Whether the name is that of a file of variables: `.env`, `.env.local`, `kafka.env`."""
    return name.startswith(".env.") or name.endswith(".env")


def read_env_file(text: str, file_name: str, environment: Variables) -> dict[str, str]:
    """The variables of a file; its values may use those of ``environment`` and its own.

    A name without a value takes it from ``environment``, or is left out. ``environment`` collects
    missing variables and decides whether they stay as `${NAME}`. Raises EarshotError.
    """
    variables_read: dict[str, str] = {}
    # a view: a copy for each line would take the square of their number
    values = ChainMap(dict(environment.values), variables_read)
    variables = Variables(values, environment.missing, environment.keep)
    lines = _lines(text)
    for number, line in lines:
        where = f"{file_name}, line {number}"
        match = _LINE.fullmatch(line)
        if match is None:
            raise _no_assignment(where)
        name, value = match["name"], match["value"]
        if match["sign"] is None:
            variables_read |= _handed_through(name, environment)
            continue
        if _is_open(value):
            value = _with_following(value, lines, where)
        variables_read[name] = _value(value, variables, where, name)
    return variables_read


def _with_following(value: str, lines: Iterator[tuple[int, str]], where: str) -> str:
    """A quoted value of several lines, of which ``value`` is the first. Raises EarshotError."""
    parts = [value]
    for _, line in lines:
        parts.append(line)
        if value[0] in line and not _is_open("\n".join(parts)):
            return "\n".join(parts)
    raise EarshotError(where, observed="has a quote that is not closed")


def read_raw_env_file(text: str, file_name: str, variables: Variables) -> dict[str, str]:
    """The variables of an `env_file` with `format: raw`, whose values are unchanged text.

    Source: the Compose Specification, and kvfile of Docker's CLI. Raises EarshotError.
    """
    variables_read: dict[str, str] = {}
    for number, line in _lines(text):
        name, sign, value = line.lstrip().partition("=")
        if not name or re.search(r"\s", name):
            raise _no_assignment(f"{file_name}, line {number}")
        variables_read |= {name: value} if sign else _handed_through(name, variables)
    return variables_read


def _no_assignment(where: str) -> EarshotError:
    allowed = "NAME=value, or a comment after #"
    return EarshotError(where, observed="is no assignment", allowed=allowed)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, without blank lines, comments and a byte order mark."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _handed_through(name: str, variables: Variables) -> dict[str, str]:
    value = variables.value_from_environment(name)
    return {} if value is None else {name: value}


def _is_open(value: str) -> bool:
    quote = value[:1]
    shape = {'"': _DOUBLE, "'": _SINGLE}.get(quote)
    # Compose reads text after a closing quote as part of the value
    is_closed = quote in re.sub(r"\\.", "", value[1:], flags=re.DOTALL)
    return shape is not None and shape.fullmatch(value) is None and not is_closed


def _value(text: str, variables: Variables, where: str, setting: str) -> str:
    if single := _SINGLE.fullmatch(text):
        return single[1]
    if double := _DOUBLE.fullmatch(text):
        escaped = re.sub(
            r"\\(.)", lambda m: _ESCAPES.get(m[1], "\\" + m[1]), double[1], flags=re.DOTALL
        )
        return variables.substitute(escaped, where, setting)
    plain = re.split(r"(?:^|\s)#", text, maxsplit=1)[0].strip()
    return variables.substitute(plain, where, setting)
