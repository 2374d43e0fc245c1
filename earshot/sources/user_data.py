"""Broker properties in EC2 user data of any author.

Supported are `write_files` of a cloud-config and here-documents of shell scripts, also as parts of
a MIME archive. Source: cloud-init's documentation of user-data formats.
"""

import base64
import binascii
import email
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from earshot.errors import EarshotError
from earshot.facts.settings import is_broker_configuration
from earshot.json_object import Document
from earshot.listeners.listed import by_key
from earshot.listeners.properties import NodeSettings, read_properties
from earshot.listeners.secrets import MASK, before_secret, without_secrets
from earshot.sources.values import list_of
from earshot.yaml_reading.document import read_cloud_config

PLACE = "computed-{}.invalid"
"""Placeholder for a host that an instance computes."""
_PLACE = re.compile(r"computed-\d+\.invalid", re.ASCII)
_MAX_LENGTH = 1 << 20
"""Maximum size in bytes after unpacking; user data are limited to 16 KiB before."""
_LAYERS = 8
"""Maximum nesting of archives and templates."""
_UNREADABLE = (binascii.Error, OSError, EOFError, zlib.error, UnicodeDecodeError)
_MIME = ("content-type:", "mime-version:")
_JINJA_HEAD = "## template: jinja"
_CLOUD_HEAD = "#cloud-config"
_SCRIPT_HEAD = "#!"
_HERE = re.compile(r"(?<!<)<<(-?)[ \t]*(?:'([^']+)'|\"([^\"]+)\"|\\(\w+)|(\w+))")
READ_PLACES = (
    "read are files in a cloud-config, and here-documents, `echo` and `sed -i` in a script"
)
"""Where properties are read, for messages."""
_WORD = r"(\"[^\"]+\"|'[^']+'|[^\s;|&<>]+)"
_TEE = re.compile(rf"\btee\s+(-a\s+|--append\s+)?{_WORD}")
_INTO = re.compile(rf"(?<![0-9&])(>>?)[ \t]*{_WORD}")
_QUOTED = r"(\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s;|&<>\"']+)"
_ECHO = re.compile(rf"[ \t]*(?:sudo[ \t]+)?echo[ \t]+{_QUOTED}[ \t]*[>|]")
_SED = re.compile(
    r"[ \t]*(?:sudo[ \t]+)?sed[ \t]+(?:-[nrE]+[ \t]+)*-i\S*[ \t]+(?:-[eE][ \t]+)*"
    rf"{_QUOTED}[ \t]+{_WORD}"
)
_SUBSTITUTION = re.compile(r"s([^\w\s])((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)\1[gi]*")
_BRANCH = re.compile(r"[ \t]*(?:if|case|for|while|until|(?:function[ \t]+)?\w+[ \t]*\(\))(?!\w)")
_BRANCH_END = re.compile(r"(?:^[ \t]*\}|\b(?:fi|esac|done))[ \t]*(?:;|#|$)")
_ASSIGNED = re.compile(r"^[ \t]*(?:export[ \t]+|readonly[ \t]+)?([A-Za-z_]\w*)=(.*)$", re.MULTILINE)
_LITERAL = re.compile(r"(?:\"([^\"$`\\]*)\"|'([^']*)'|([^\s\"'$`\\;&|()]*))[ \t]*(?:#.*)?")
_SHELL = re.compile(
    r"\\(?P<escaped>[$`\\])|\\\n"
    r"|(?:\$\{(?P<braced>[^}]{0,200})\}|\$(?P<name>[A-Za-z_]\w*)"
    r"|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`)"
)
_ADVERTISED = re.compile(
    r"advertised[._]listeners|advertised_kafka_api|advertise-kafka-addr", re.IGNORECASE
)
_JINJA = re.compile(r"\{\{.{0,200}?\}\}|\{%.{0,200}?%\}", re.DOTALL)
# bounded, so that unclosed expressions take linear time
_HOST_ALONE = re.compile(rf"//({_PLACE.pattern}):")


@dataclass(frozen=True)
class UserDataFile:
    """One broker's properties file."""

    path: str
    """The target path as written; empty if unknown."""
    settings: NodeSettings
    """The known settings; a host that the instance computes is a `PLACE`."""
    computed: Mapping[str, str] = field(default_factory=dict)
    """Expressions that the instance computes, by omitted property or by `PLACE` of a host."""
    whole: bool = True
    """False if the text is appended to a file of unknown content."""

    @property
    def written(self) -> dict[str, str]:
        """The known properties, with computed hosts as written."""
        properties = dict(self.settings.values)
        for key in properties:
            for place in self.places:
                properties[key] = properties[key].replace(place, self.computed[place])
        return properties

    def shown(self, key: str) -> str:
        """The computed expression of ``key``, with secrets masked."""
        return MASK if before_secret(f"{key}=") else without_secrets(self.computed[key])

    @property
    def complete(self) -> bool:
        """Whether all properties are known, but for hosts that the instance computes."""
        return self.whole and set(self.computed) == self.places

    @property
    def places(self) -> frozenset[str]:
        """The placeholders of computed hosts."""
        return frozenset(key for key in self.computed if _PLACE.fullmatch(key))


def decode_user_data(text: str) -> str:
    """Decodes user data in base64, with or without gzip. Raises ValueError for other texts."""
    try:
        data = base64.b64decode(text, validate=False)
        return _unpacked(data).decode()
    except _UNREADABLE as error:
        raise ValueError(f"cannot be read: {error}") from None


def plain_user_data(text: str) -> str:
    """User data as an instance gets them: the provider does not encode base64 a second time."""
    try:
        decoded = _unpacked(base64.b64decode(text, validate=True)).decode()
    except (*_UNREADABLE, ValueError):
        return text
    return decoded if is_user_data(decoded) else text


def broker_files(text: str) -> tuple[UserDataFile, ...]:
    """The brokers' properties files that user data write, in their order."""
    files: dict[str, _File] = {}
    for file in _files(text, _LAYERS):
        earlier = files.get(file.path)
        if file.added and earlier is not None:
            file = _File(file.path, f"{earlier.content}\n{file.content}", earlier.added,
                         {**earlier.computed, **file.computed})  # fmt: skip
        files[file.path] = file
    broker_candidates = map(_user_data_file, files.values())
    return tuple(file for file in broker_candidates if _is_broker(file))


def is_user_data(text: str) -> bool:
    """Whether cloud-init accepts ``text``: a cloud-config, a script or an archive of them."""
    return text.lstrip()[:64].lower().startswith((*_MIME, _JINJA_HEAD, _CLOUD_HEAD, _SCRIPT_HEAD))


def speaks_of_brokers(text: str) -> bool:
    """Whether the text mentions a setting or a variable with a broker's advertised addresses."""
    return _ADVERTISED.search(text) is not None


@dataclass(frozen=True)
class _File:
    path: str
    content: str
    added: bool = False
    computed: Mapping[str, str] = field(default_factory=dict)


def _is_broker(file: UserDataFile) -> bool:
    return is_broker_configuration({**file.settings.values, **file.computed})


def _user_data_file(file: _File) -> UserDataFile:
    settings = read_properties(file.content)
    values: dict[str, str] = {}
    computed: dict[str, str] = {}
    for key, value in settings.values.items():
        marks = [mark for mark in file.computed if mark in value]
        if not marks:
            values[key] = value
        elif key.endswith("listeners") and set(marks) <= set(_HOST_ALONE.findall(value)):
            values[key] = value
            computed |= {mark: file.computed[mark] for mark in marks}
        else:
            computed[key] = value
            for mark in marks:
                computed[key] = computed[key].replace(mark, file.computed[mark])
    return UserDataFile(file.path, NodeSettings(values, settings.notes), computed, not file.added)


def _files(text: str, layers: int) -> Iterator[_File]:
    head = text.lstrip()[:64].lower()
    if layers == 0 or len(text) > _MAX_LENGTH:
        return
    if head.startswith(_MIME):
        for part in _parts(text.lstrip()):
            yield from _files(part, layers - 1)
    elif head.startswith(_JINJA_HEAD):
        rest = text.lstrip().partition("\n")[2]
        yield from map(_templated, _files(rest, layers - 1))
    elif head.startswith(_CLOUD_HEAD):
        yield from _cloud_config(text)
    elif head.startswith(_SCRIPT_HEAD):
        yield from _script(text)


def _parts(archive: str) -> list[str]:
    try:
        walked = email.message_from_string(archive).walk()
        parts = [part.get_payload(decode=True) for part in walked]
    except RecursionError:
        return []
    return [part.decode(errors="replace") for part in parts if isinstance(part, bytes)]


def _cloud_config(text: str) -> Iterator[_File]:
    try:
        document = read_cloud_config(text, "user data")
    except EarshotError:
        return
    config: Document = document if isinstance(document, dict) else {}
    for file in list_of(config.get("write_files")):
        if isinstance(file, dict) and (content := _content(file)) is not None:
            yield _File(str(file.get("path", "")), content, bool(file.get("append")))
    for key in ("bootcmd", "runcmd"):
        commands = list_of(config.get(key))
        yield from _script("\n".join(line for line in commands if isinstance(line, str)))


def _content(entry: Mapping[str, object]) -> str | None:
    content, encoding = entry.get("content"), str(entry.get("encoding", ""))
    data = content.encode() if isinstance(content, str) else content
    if not isinstance(data, bytes):
        return None
    try:
        if "b64" in encoding or "base64" in encoding:
            data = base64.b64decode(data)
        return _unpacked(data).decode()
    except _UNREADABLE:
        return None


def _unpacked(data: bytes) -> bytes:
    if data[:2] != b"\x1f\x8b":
        return data
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        return packed.read(_MAX_LENGTH)


def _script(text: str) -> Iterator[_File]:
    assigned = _assignments(text)
    lines = iter(text.splitlines())
    depth = 0
    for line in lines:
        match = _HERE.search(line)
        depth += bool(_BRANCH.match(line)) - bool(_BRANCH_END.search(line))
        if depth <= 0 and match is None:
            yield from _edited(line, assigned)
        if match is None or line.lstrip().startswith("#"):
            continue
        dash, *quoted, bare = match.groups()
        end = bare or next(filter(None, quoted))
        body = []
        for inner in lines:
            inner = inner.lstrip("\t") if dash else inner
            if inner == end:
                break
            body.append(inner)
        path, added = _target(line[: match.start()] + line[match.end() :])
        file = _File(path, "\n".join(body), added)
        yield file if bare is None else _expanded(file, assigned)


def _edited(line: str, assigned: Mapping[str, str]) -> Iterator[_File]:
    """The property that an `echo` or `sed -i` outside of a branch writes into a file."""
    if match := _ECHO.match(line):
        path, added = _target(line[match.end(1) :])
        content = _unquoted(match[1], assigned)
    elif match := _SED.match(line):
        path, added, expression = match[2].strip("\"'"), True, _unquoted(match[1], assigned)
        parts = _SUBSTITUTION.fullmatch(expression.content)
        content = replace(expression, content=_plain(parts[3]) if parts else "")
        if parts is None or content.content.partition("=")[0] not in _plain(parts[2]):
            return
    else:
        return
    yield replace(content, path=path, added=added)


def _unquoted(word: str, assigned: Mapping[str, str]) -> _File:
    """A word of a command as the shell expands it."""
    file = _File("", word.strip("\"'"))
    return file if word.startswith("'") else _expanded(file, assigned)


def _plain(text: str) -> str:
    """A part of an expression of `sed` without backslashes."""
    return re.sub(r"\\(.)", r"\1", text)


def _target(line: str) -> tuple[str, bool]:
    if match := _TEE.search(line):
        return match[2].strip("\"'"), match[1] is not None
    if match := _INTO.search(line):
        return match[2].strip("\"'"), match[1] == ">>"
    return "", False


def _assignments(script: str) -> dict[str, str]:
    """Variables that are assigned once, with a literal value."""
    literals = {}
    for name, (value, *more) in by_key(_ASSIGNED.findall(script)).items():
        match = _LITERAL.fullmatch(value.strip())
        if match is not None and not more:
            literals[name] = next((group for group in match.groups() if group is not None), "")
    return literals


def _expanded(file: _File, assigned: Mapping[str, str]) -> _File:
    """An unquoted here-document as the shell expands it."""
    computed: dict[str, str] = {}

    def shown(match: re.Match[str]) -> str:
        if match["escaped"]:
            return match["escaped"]
        if match[0] == "\\\n":
            return ""
        name = match["braced"] or match["name"] or ""
        return assigned[name] if name in assigned else _place(computed, match[0])

    return _File(file.path, _SHELL.sub(shown, file.content), file.added, computed)


def _templated(file: _File) -> _File:
    computed = dict(file.computed)
    content = _JINJA.sub(lambda match: _place(computed, match[0]), file.content)
    return _File(file.path, content, file.added, computed)


def _place(computed: dict[str, str], text: str) -> str:
    place = PLACE.format(zlib.crc32(text.encode()))  # the same for one text in every file
    computed[place] = text
    return place
