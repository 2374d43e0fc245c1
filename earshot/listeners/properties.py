"""One node's broker properties, and the two texts that carry them: a file and an environment.

The file is Java's (`java.util.Properties.load`), the environment is what the `apache/kafka` image
makes of `KAFKA_*` variables (its `KafkaDockerWrapper`, from 4.0 on).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from earshot.errors import EarshotError
from earshot.listeners.problems import shown
from earshot.listeners.terms import Role

NOTE = "#earshot."
"""Comment lines with this prefix contain what Kafka's own settings cannot express."""
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
_REFERENCE = re.compile(r"\$\{[^}:]+:[^}]*\}")
"""A value from a config provider: https://kafka.apache.org/documentation/#config_providers"""
_MALFORMED = re.compile(r"\\u(?![0-9A-Fa-f]{4})")
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LETTER = {char: f"\\{letter}" for letter, char in _NAMED.items()} | {"\\": "\\\\"}
_NOT_IN_KEYS = frozenset(" =:#!")
_PLAIN = re.compile(r"[ -\[\]-~]*", re.ASCII)  # printable, no backslash


@dataclass(frozen=True)
class NodeSettings:
    """One node's broker properties, and what earshot noted beside them."""

    values: Mapping[str, str]
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def role(self) -> Role:
        """What to call the node: a broker, unless it is a controller alone."""
        is_controller = self.values.get("process.roles", "").strip() == Role.CONTROLLER
        return Role.CONTROLLER if is_controller else Role.BROKER


def read_properties(text: str) -> NodeSettings:
    """The settings in the text of a properties file; of a repeated key the last one counts."""
    values: dict[str, str] = {}
    notes: dict[str, str] = {}
    for line, is_comment in _logical_lines(text):
        if is_comment and not line.startswith(NOTE):
            continue
        match = _ENTRY.fullmatch(line.removeprefix(NOTE) if is_comment else line)
        if match is not None:
            target = notes if is_comment else values
            target[_unescaped(match["key"])] = _unescaped(match["value"])
    return NodeSettings(values, notes)


def malformed_keys(text: str) -> list[str]:
    r"""The keys, in a properties file's ``text``, of entries with a `\u` that Java refuses.

    It wants four hexadecimal digits, and loads no such file; `read_properties` lets them pass.
    """
    lines = [line for line, is_comment in _logical_lines(text) if not is_comment]
    entries = filter(None, map(_ENTRY.fullmatch, lines))
    return [entry["key"] for entry in entries if _MALFORMED.search(entry[0].replace(r"\\", ""))]


def write_properties(settings: NodeSettings) -> str:
    """The text of a properties file, in ASCII; `read_properties` gives the same settings back.

    Only characters that Java would read differently are escaped.
    """
    lines = [NOTE + _line(key, value) for key, value in settings.notes.items()]
    lines += [_line(key, value) for key, value in settings.values.items()]
    return "\n".join(lines) + "\n"


def without_references(text: str) -> str:
    """``text`` of a properties file without values that only a node can read (`${file:…}`).

    Nor with the providers of such values: elsewhere their files are not there.
    """
    texts = read_properties(text)
    values = {
        key: value
        for key, value in texts.values.items()
        if not _REFERENCE.search(value) and not key.startswith("config.providers")
    }
    return write_properties(NodeSettings(values, texts.notes))


def read_environment(variables: Mapping[str, str]) -> NodeSettings:
    """The settings in `KAFKA_*` variables, as the `apache/kafka` image (4.0+) maps them."""
    values: dict[str, str] = {}
    notes: dict[str, str] = {}
    for name, value in variables.items():
        if name.startswith("KAFKA_") and name not in UNMAPPED:
            values[property_of(name)] = value
        elif name.startswith(VARIABLE):
            notes[name.removeprefix(VARIABLE).lower()] = value
    return NodeSettings(values, notes)


def write_environment(
    settings: NodeSettings, reads: Callable[[str], str] | None = None
) -> dict[str, str]:
    """The variables of ``settings``; `read_environment` gives the same settings back.

    ``reads`` returns the property that the image derives from a variable (default: `property_of`).
    Raises EarshotError for a key that no variable can set, and for a value that would reach
    the broker changed: the image writes it into a properties file without an escape.
    """
    values: dict[str, str] = {}
    for key, value in settings.values.items():
        name = variable(key)
        arrives = (reads or property_of)(name)
        if arrives != key or name in UNMAPPED:
            raise EarshotError(
                f"broker property {key}",
                observed=f"would arrive as {arrives!r} through the variable {name}",
                allowed="lower-case keys in which no two of the characters . _ - meet",
                remedy="put it into a mounted properties file instead",
            )
        if not _PLAIN.fullmatch(value) or value != value.lstrip(" "):
            raise EarshotError(
                f"broker property {key}",
                observed=f"found {shown(value)}, which would arrive changed through the variable "
                f"{name}: images copy it into a properties file without an escape",
                allowed="printable ASCII without backslashes and leading blanks",
                remedy="choose a value without these characters",
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


def property_of_3(variable: str) -> str:
    """The same of apache/kafka 3, whose script takes every `KAFKA_` out of a name."""
    return property_of("KAFKA_" + variable.replace("KAFKA_", ""))


def _logical_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Lines and whether each is a comment; leading blanks cut, continued lines joined."""
    parts: list[str] = []
    """Of a line that goes on, in which none is empty."""
    continued = False
    for line in _LINE.split(text):
        part = line.lstrip(" \t\f")
        if not parts and part[:1] in ("#", "!"):
            continued = False  # a comment ends with its line
            yield part, True
            continue
        continued = bool((len(part) - len(part.rstrip("\\"))) % 2)
        if part := part[: len(part) - continued]:
            parts.append(part)
        if parts and not continued:
            yield "".join(parts), False
            parts = []
    if continued:
        yield "".join(parts), False


def _line(key: str, value: str) -> str:
    name = "".join(f"\\{char}" if char in _NOT_IN_KEYS else _escaped(char) for char in key)
    content = "".join(map(_escaped, value))
    return f"{name}={chr(92) if content.startswith(' ') else ''}{content}"


def _escaped(char: str) -> str:
    if char in _LETTER:
        return _LETTER[char]
    if " " <= char <= "~":
        return char
    units = char.encode("utf-16-be", "surrogatepass").hex()  # Java's characters: one or a pair
    return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code, letter = match.groups()
        return chr(int(code, 16)) if code else _NAMED.get(letter, letter)

    if "\\" not in text:
        return text
    units = _ESCAPE.sub(replace, text).encode("utf-16", "surrogatepass")
    return units.decode("utf-16", "replace")  # a pair of surrogates is one character here
