"""One node's broker properties, and the two texts that carry them: a file and an environment.

The file is Java's (`java.util.Properties.load`), the environment is what the `apache/kafka` image
makes of `KAFKA_*` variables (its `KafkaDockerWrapper`, from 4.0 on).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from earshot.errors import EarshotError
from earshot.listeners.model import Role

NOTE = "#earshot."
"""What Kafka's own settings cannot hold stands in comment lines of this prefix."""
VARIABLE = "EARSHOT_"
"""… and, in an environment, in variables of this prefix, which images do not map."""

UNMAPPED = frozenset(
    f"KAFKA_{name}"
    for name in (
        "VERSION",
        "HEAP_OPTS",
        "LOG4J_OPTS",
        "OPTS",
        "JMX_OPTS",
        "JVM_PERFORMANCE_OPTS",
        "GC_LOG_OPTS",
        "LOG4J_ROOT_LOGLEVEL",
        "LOG4J_LOGGERS",
        "TOOLS_LOG4J_LOGLEVEL",
        "JMX_HOSTNAME",
    )
)
"""Variables that the image's scripts use themselves."""

_LINE = re.compile(r"\r\n|\r|\n")
_ENTRY = re.compile(
    r"(?P<key>(?:\\.|[^\\ \t\f=:])*)[ \t\f]*(?:[=:][ \t\f]*)?(?P<value>.*)", re.DOTALL
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True)
class Settings:
    """One node's broker properties, and what earshot noted beside them."""

    values: Mapping[str, str]
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def role(self) -> Role:
        """What to call the node: a broker, unless it is a controller alone."""
        alone = self.values.get("process.roles", "").strip() == Role.CONTROLLER
        return Role.CONTROLLER if alone else Role.BROKER


def read_properties(text: str) -> Settings:
    """The settings in the text of a properties file; of a repeated key the last one counts."""
    values: dict[str, str] = {}
    notes: dict[str, str] = {}
    for line, is_comment in _logical_lines(text):
        if not is_comment:
            match = _ENTRY.fullmatch(line)
            if match is not None:
                values[_unescaped(match["key"])] = _unescaped(match["value"])
        elif line.startswith(NOTE):
            key, _, value = line.removeprefix(NOTE).partition("=")
            notes[key] = value
    return Settings(values, notes)


def write_properties(settings: Settings) -> str:
    """The text of a properties file; `read_properties` gives the same settings back.

    Keys and values are what `owned.check_property` lets through, so nothing needs an escape.
    """
    lines = [f"{NOTE}{key}={value}" for key, value in settings.notes.items()]
    lines += [f"{key}={value}" for key, value in settings.values.items()]
    return "\n".join(lines) + "\n"


def read_environment(variables: Mapping[str, str]) -> Settings:
    """The settings in `KAFKA_*` variables, as the `apache/kafka` image (4.0+) maps them."""
    values: dict[str, str] = {}
    notes: dict[str, str] = {}
    for name, value in variables.items():
        if name.startswith("KAFKA_") and name not in UNMAPPED:
            values[property_of(name)] = value
        elif name.startswith(VARIABLE):
            notes[name.removeprefix(VARIABLE).lower()] = value
    return Settings(values, notes)


def write_environment(settings: Settings) -> dict[str, str]:
    """The variables of ``settings``; raises EarshotError for a key that no variable can stand for.

    `read_environment` gives the same settings back.
    """
    values: dict[str, str] = {}
    for key, value in settings.values.items():
        name = variable(key)
        if property_of(name) != key or name in UNMAPPED:
            raise EarshotError(
                f"broker property {key}",
                observed=f"would arrive as {property_of(name)!r} through the variable {name}",
                allowed="lower-case keys in which no two of the characters . _ - meet",
                remedy="put it into a mounted properties file instead",
            )
        values[name] = value
    return values | {VARIABLE + key.upper(): value for key, value in settings.notes.items()}


def variable(key: str) -> str:
    """The variable of a property: `.` becomes `_`, `_` becomes `__`, `-` becomes `___`."""
    escaped = key.replace("_", "__").replace("-", "___").replace(".", "_")
    return f"KAFKA_{escaped.upper()}"


def property_of(variable: str) -> str:
    """The property that the image makes of a variable; the inverse of `variable`."""
    text = variable.removeprefix("KAFKA_").lower().replace("_", ".")
    return text.replace("...", "-").replace("..", "_")


def _logical_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Lines and whether each is a comment; leading blanks cut, continued lines joined."""
    whole, continued = "", False
    for line in _LINE.split(text):
        part = line.lstrip(" \t\f")
        if not whole and part[:1] in ("#", "!"):
            continued = False  # a comment ends with its line
            yield part, True
            continue
        whole += part
        continued = bool((len(whole) - len(whole.rstrip("\\"))) % 2)
        if continued:
            whole = whole[:-1]
        elif whole:
            yield whole, False
            whole = ""
    if continued:
        yield whole, False


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code, letter = match.groups()
        return chr(int(code, 16)) if code else _NAMED.get(letter, letter)

    return _ESCAPE.sub(replace, text) if "\\" in text else text
