"""Compose files as sections: variables, `extends` and `include` resolved, files merged.

`Read` returns the files that a Compose file names, by their path as written (relative to the
Compose file). Source: the Compose Specification.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from earshot.errors import EarshotError
from earshot.json_object import JsonObject
from earshot.listeners.secrets import before_secret
from earshot.sources.compose_sections import (
    Section,
    list_of,
    map_of,
    merged_section,
    misspelt_keys,
    normalized_section,
    texts_of,
    with_inline,
)
from earshot.sources.substitution import Variables
from earshot.yaml_reading.document import read_yaml_texts
from earshot.yaml_reading.tags import Keys, UnknownValue, tagged, untagged, without

Read = Callable[[str], str]
"""The text of a file; raises OSError."""
MAX_EXTENDS = 20
"""Services in one chain of `extends`."""
MAX_INCLUDED = 50
"""Included files that are read for one Compose file."""
_OF_OTHER_TOOLS = re.compile(r"\$\{[A-Za-z][\w-]*(?:\.[\w-]+)+\}", re.ASCII)
"""A property of Maven, Gradle or Spring, which replace it before Compose reads the file."""
UNKNOWN = "x-earshot-unknown"
"""The key of a section for its unreadable parts."""
GONE = "x-earshot-gone"
"""The key of a section for the keys of the extended service that it removes (`!reset`)."""
KNOWN_TOP = {"services", "version", "networks", "volumes", "configs", "secrets", "name", "include"}


_DOCUMENT = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_CONTENT = re.compile(r"^[ \t]*[^\s#]", re.MULTILINE)
_MAX_DOCUMENTS = 100


def documents_of(text: str) -> Sequence[str]:
    """The YAML documents of ``text``, each at its lines; without those that have no content.

    More than `_MAX_DOCUMENTS` stay one text, which no reader of one document takes.
    """
    documents: list[str] = []
    line = 0
    for part in _DOCUMENT.split(text):
        if _CONTENT.search(part):
            documents.append("\n" * line + part)
            if len(documents) > _MAX_DOCUMENTS:
                return [text]
        line += part.count("\n")
    return documents or [text]


def compose_document(text: str, file_name: str) -> tuple[object, bool]:
    """The values in ``text``, of which none may be changed, and whether no key occurs twice in one
    map. Raises EarshotError."""
    try:
        return _document(text)
    except EarshotError as error:
        raise EarshotError(
            file_name, observed=error.observed, allowed=error.allowed, remedy=error.remedy
        ) from None


@lru_cache(maxsize=4)  # a file is recognized first, and then read
def _document(text: str) -> tuple[object, bool]:
    try:
        return read_yaml_texts(text, "", lenient=True), True
    except EarshotError:
        return read_yaml_texts(text, "", unique=False, lenient=True), False


@dataclass
class ComposeFiles:
    """Reads a Compose file and the files that it names, as Compose does.

    ``roots`` are the names of the file and of its overriding files. If ``lenient``, unreadable
    parts are noted instead of raising EarshotError.
    """

    roots: Sequence[str]
    variables: Variables
    read: Read
    lenient: bool
    is_whole: bool = True
    """No other file has services on the same networks."""
    has_unique_keys: bool = True
    """No key of a file occurs twice in one map."""
    misspelt: list[tuple[str, str, str]] = field(default_factory=list)
    """Keys that Compose refuses: service, key and the similar one."""
    texts_included: dict[str, str] = field(default_factory=dict)
    not_included: dict[str, None] = field(default_factory=dict)
    _includes: list[tuple[str, object]] = field(default_factory=list)
    """Entries of `include` that are not read yet, each with its file."""
    _inclusions: dict[str, list[str]] = field(default_factory=dict)
    """The files that a file includes, as normalized paths."""
    _others: dict[str, dict[str, object]] = field(default_factory=dict)
    configs: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.read = with_inline(self.read, self.configs)

    def sections(
        self, text: str, file_name: str
    ) -> tuple[dict[str, object], Section, tuple[Keys, ...]]:
        """The service sections and networks of a file with variables replaced, and the keys of
        overridden files that it removes."""
        document = self._document(text, file_name)
        if not isinstance(document, Mapping) or not document:
            raise EarshotError(file_name, observed="holds no services", allowed="a compose file")
        if "include" in document and not self.lenient:
            raise EarshotError(
                f"{file_name}: include",
                observed="files that include others are not read",
                remedy="adopt the output of `docker compose config` instead",
            )
        entries = list_of(document.get("include"), f"{file_name}: include")
        self._includes += [(file_name, entry) for entry in entries]
        services = document.get("services")
        if "services" not in document and not KNOWN_TOP & set(document):
            services = document  # the oldest format: services without a heading
        may_be_empty = entries or file_name not in self.roots[:1]
        if may_be_empty and services is None:
            services = {}
        if not isinstance(untagged(services), Mapping) or not (services or may_be_empty):
            raise EarshotError(f"{file_name}: services", observed="is no map of services, or empty")
        both = {"services": services, "networks": document.get("networks")}
        gone = tuple(tagged(both))
        both["configs"] = document.get("configs")
        walked = self._substituted(untagged(both), file_name, ())
        assert isinstance(walked, dict)
        networks, sections = walked.get("networks"), sections_of(walked.get("services"))
        self.configs |= sections_of(walked.get("configs")) if file_name in self.roots else {}
        if "services" in document:
            self.misspelt += (
                (name, *keys)
                for name, section in sections.items()
                if isinstance(section, Mapping)
                for keys in misspelt_keys(section)
            )
        for path in gone:
            if len(path) > 1 and isinstance(section := sections.get(path[1]), dict):
                section[GONE] = (*section.get(GONE, ()), path[2:])
        return sections, networks if isinstance(networks, Mapping) else {}, gone

    def _document(self, text: str, file_name: str) -> object:
        if not self.lenient:
            return read_yaml_texts(text, file_name)
        document, has_unique_keys = compose_document(text, file_name)
        self.has_unique_keys = self.has_unique_keys and has_unique_keys
        return document

    def included(self) -> Iterator[tuple[str, dict[str, object], Section, bool]]:
        """The files under `include`, also of files that are included: path, services, networks,
        and whether it overrides the files before it, as all but the first of one entry do.

        An entry with variables or with a folder, and a file that cannot be read, is noted in
        ``not_included``. Raises EarshotError for files that include each other.
        """
        while self._includes:
            file_name, entry = self._includes.pop(0)
            section = entry if isinstance(entry, Mapping) else {"path": entry}
            folder = posixpath.dirname(file_name) if file_name not in self.roots else ""
            path_texts = texts_of(section.get("path"), f"{file_name}: include")
            for i, path_text in enumerate(path_texts):
                path = posixpath.join(
                    folder, str(self._substituted(path_text, file_name, ("include",)))
                )
                self._note_include(file_name, path)
                if path in self.texts_included or path in self.roots:
                    continue
                try:
                    text = self.read(path)
                except (OSError, UnicodeDecodeError):
                    text = ""
                if set(section) - {"path"} or not text or len(self.texts_included) >= MAX_INCLUDED:
                    self.not_included[path] = None
                    self.is_whole = False
                    continue
                self.texts_included[path] = text
                yield path, *self.sections(text, path)[:2], i > 0

    def _note_include(self, file_name: str, path: str) -> None:
        """Notes that ``file_name`` includes ``path``. Refuses a cycle, as Compose does."""
        including, first = posixpath.normpath(file_name), posixpath.normpath(path)
        self._inclusions.setdefault(including, []).append(first)
        ways, seen = [[first]], {first}
        for way in ways:
            if way[-1] == including:
                chain = " -> ".join([including, *way])
                raise EarshotError(
                    f"{file_name}: include",
                    observed=f"{chain}: docker compose refuses the cycle",
                    remedy=f"delete the entry {path}",
                )
            following = [file for file in self._inclusions.get(way[-1], ()) if file not in seen]
            ways += [[*way, file] for file in following]
            seen.update(following)

    def resolve_extends(
        self, name: str, sections: Mapping[str, object], file_name: str, chain: tuple[str, ...]
    ) -> Section:
        """A service's section, merged into the one that it extends."""
        where, mark = f"{file_name}: services.{name}", f"{file_name}#{name}"
        if mark in chain:
            raise EarshotError(where, observed="extends itself, by way of others")
        if len(chain) >= MAX_EXTENDS:
            raise EarshotError(
                f"{where}.extends",
                observed=f"is at the end of {MAX_EXTENDS} services that extend each other",
                remedy="adopt the output of `docker compose config` instead",
            )
        section = map_of(sections[name], where)
        extends = section.get("extends")
        folder = posixpath.dirname(file_name) if file_name not in self.roots else ""
        own_section = normalized_section(section, where, folder)
        if extends in (None, ""):
            return own_section
        target = {"service": extends} if isinstance(extends, str) else map_of(extends, where)
        if (
            self.lenient
            and target.get("file")
            and not self._is_readable(str(target["file"]), folder)
        ):
            return {**own_section, UNKNOWN: (*noted(own_section, UNKNOWN), "extends")}
        base_name, file = str(target.get("service") or name), target.get("file")
        base_sections, base_shown = sections, file_name
        if file:
            base_shown = posixpath.join(folder, str(file))
            base_sections = self._extended_file(base_shown, where)
        if base_name not in base_sections:
            raise EarshotError(
                f"{where}.extends",
                observed=f"names the service {base_name}, which {base_shown} does not have",
                allowed=", ".join(base_sections),
            )
        base = self.resolve_extends(base_name, base_sections, base_shown, (*chain, mark))
        return merged_section(without(base, noted(section, GONE)), own_section)

    def _substituted(self, value: object, file_name: str, path: tuple[str, ...]) -> object:
        """``value`` with variables replaced in texts, not in keys."""
        if isinstance(value, UnknownValue):
            setting = ".".join(path)
            # `!word` without quotes may be a password
            name = "" if before_secret(f"{setting}=") else f" (!{value.name})"
            self.variables.malformed[f"{setting} has a custom tag{name}"] = None
        elif isinstance(value, str):
            try:
                return self.variables.substitute(value, f"{file_name}: {'.'.join(path)}")
            except EarshotError as error:
                if not (self.variables.keep and _OF_OTHER_TOOLS.search(value)):
                    raise
                self.variables.malformed[f"{'.'.join(path)} {error.observed}"] = None
        elif isinstance(value, Mapping):
            return {
                str(key): self._substituted(item, file_name, (*path, str(key)))
                for key, item in value.items()
            }
        elif isinstance(value, list):
            return [self._substituted(it, file_name, (*path, str(i))) for i, it in enumerate(value)]
        return value  # a text for another tool, too: its dollar sign says that it is not known

    def _is_readable(self, file: str, folder: str) -> bool:
        try:
            self.read(posixpath.join(folder, file))
        except (OSError, UnicodeDecodeError):
            return False
        return True

    def _extended_file(self, path: str, where: str) -> dict[str, object]:
        if path not in self._others:
            self._others[path] = self.sections(self.text_of(path, f"{where}.extends"), path)[0]
        return self._others[path]

    def text_of(self, path: str, where: str) -> str:
        try:
            return self.read(path)
        except (OSError, UnicodeDecodeError) as reason:
            why = getattr(reason, "strerror", None) or "it is no UTF-8 text"
            raise EarshotError(where, observed=f"{path} cannot be read ({why})") from None


def noted(section: Section, key: str) -> tuple[Any, ...]:
    """The tuple at `UNKNOWN` or `GONE`; values of a file are never tuples."""
    value = section.get(key)
    return value if isinstance(value, tuple) else ()


def sections_of(value: object) -> JsonObject:
    return dict(value) if isinstance(value, Mapping) else {}
