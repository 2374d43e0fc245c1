"""The services of a compose file: variables replaced, `extends` and `env_file` followed.

Pure: files that the compose file names are asked for from `Read`, by their path as written
(relative to the compose file). Source: the Compose Specification.
"""

import contextlib
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from earshot.errors import EarshotError
from earshot.facts.settings import is_broker_configuration
from earshot.listeners.properties import read_properties
from earshot.sources.commented import Commented, commented_values
from earshot.sources.compose_ports import read_hidden_port, read_port
from earshot.sources.compose_sections import (
    Section,
    configs_of,
    extra_hosts_of,
    has_other_names,
    is_overlay,
    joined_networks,
    links_of,
    list_of,
    map_of,
    merged_maps,
    merged_section,
    normalized_section,
    volumes_of,
    with_inline,
    words_of,
)
from earshot.sources.other_images import with_listeners
from earshot.sources.substitution import Variables, read_env_file, read_raw_env_file
from earshot.topology.container import (
    HOST_NETWORK,
    MOUNTED,
    Container,
    PublishedPort,
    may_be_configuration,
)
from earshot.yaml_document import Keys, read_yaml_texts, tagged, untagged, without

Read = Callable[[str], str]
"""The text of a file; raises OSError."""
MAX_EXTENDS = 20
"""Services in one chain of `extends`."""
LISTENERS = re.compile(r"^[ \t]*(?:advertised\.)?listeners[ \t]*[=:]", re.MULTILINE)
"""What a properties file of a broker has."""
BASE_FILE = "the file that it is laid over"
"""What is not known of a service without an image, as `Container.unknown` has it."""
_OF_CLIENTS = (".properties", ".yml", ".yaml", ".conf", ".toml")
_UNKNOWN = "x-earshot-unknown"
"""Where a section remembers what could not be read of it."""
_GONE = "x-earshot-gone"
"""Where a section remembers which keys of what it extends it takes away."""
_KNOWN_TOP = {"services", "version", "networks", "volumes", "configs", "secrets", "name", "include"}


@dataclass(frozen=True)
class Service:
    """One service: its container, and what its command is where the file gives one."""

    name: str
    container: Container
    command: tuple[str, ...] = ()
    replicas: str = ""
    """`deploy.replicas` or `scale` as written."""
    properties: str = ""
    """A properties file of a broker that is mounted from beside the compose file: its text."""
    redpanda: str = ""
    """A mounted redpanda.yaml: its text."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Other files with Kafka in them that are mounted from there: by their path, the text."""
    is_built: bool = False
    """Its image is made from a Dockerfile that was not read."""
    release: tuple[int, int] | None = None
    """Which Kafka is in the image, where the user says so and the image does not."""
    commented: Commented = field(default_factory=dict)
    """What its comments hold of the addresses that it advertises."""
    health_check: tuple[str, ...] = ()
    """The command of its health check."""


@dataclass(frozen=True)
class Compose:
    """All services, and the variables that the file names and that are not set."""

    services: tuple[Service, ...]
    missing: tuple[str, ...]
    malformed: tuple[str, ...] = ()
    """The place of a `$` in a form that Compose refuses, and the problem."""


def read_compose(
    text: str,
    shown: str,
    variables: Mapping[str, str],
    read: Read,
    *,
    lenient: bool = False,
    over: Sequence[tuple[str, str]] = (),
) -> Compose:
    """The services in ``text``, in its order; ``shown`` names the file in messages.

    ``over`` are files that are laid over it, in their order, each as its text and name, as
    `docker compose -f FILE -f FILE` does: paths in them are relative to the first.

    ``variables`` are those of the environment and of `.env`. Raises EarshotError. Where it is
    ``lenient``, what the file alone does not show is left out and named in `Container.unknown`, and
    a variable that is not set stays as `${NAME}`.
    """
    roots = (shown, *(name for _, name in over))
    files = _Files(roots, Variables(variables, keep=lenient), read, lenient)
    whole: dict[str, Section] = {}
    networks: Section = {}
    switched_off: dict[str, Commented] = {}
    for each, name in ((text, shown), *over):
        sections, declared, gone = files.sections(each, name)
        switched_off |= commented_values(each, name)
        below = without({"services": whole, "networks": networks}, gone)
        whole, networks = _sections(below.get("services")), map_of(below.get("networks"), name)
        own = {section: files.resolve_extends(section, sections, name, ()) for section in sections}
        whole |= {it: merged_section(whole[it], own[it]) if it in whole else own[it] for it in own}
        networks = merged_maps(networks, declared)
    files.is_whole = files.is_whole and not is_overlay(whole)
    services = tuple(
        replace(files.service(name, section, networks, shown), commented=switched_off.get(name, {}))
        for name, section in whole.items()
    )
    return Compose(services, tuple(files.variables.missing), tuple(files.variables.malformed))


def started_services(services: Sequence[Service], profiles: Collection[str]) -> tuple[Service, ...]:
    """Those of ``services`` that Compose starts with ``profiles``: all that have none, and those
    of one that is named (`*` names all). Where none is named these are all: any may be started.
    What runs in no container (`replicas: 0`) is none of them."""
    started = tuple(service for service in services if service.replicas != "0")
    if not profiles:
        return started
    return tuple(
        # what is chosen runs with the others: none of them is an alternative any more
        replace(item, container=replace(item.container, profiles=()))
        for item in started
        if not item.container.profiles
        or "*" in profiles
        or set(item.container.profiles) & set(profiles)
    )


def is_compose(text: str, shown: str) -> bool:
    """Whether ``text`` is a Compose file, by its top level. Raises EarshotError."""
    document = read_yaml_texts(text, shown, unique=False)
    if not isinstance(document, Mapping):
        return False
    if "services" in document:
        return isinstance(untagged(document["services"]), Mapping)
    items = [item for key, item in document.items() if not str(key).startswith("x-")]
    known = bool(_KNOWN_TOP & set(document)) or "apiVersion" in document
    return not known and bool(items) and all(map(_is_service, items))


def _is_service(item: object) -> bool:
    return isinstance(item, Mapping) and bool({"image", "build", "extends"} & set(item))


@dataclass
class _Files:
    roots: Sequence[str]
    variables: Variables
    read: Read
    lenient: bool
    is_whole: bool = True
    """No other file has services that these may meet."""
    _others: dict[str, dict[str, object]] = field(default_factory=dict)
    _configs: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.read = with_inline(self.read, self._configs)

    def sections(
        self, text: str, shown: str
    ) -> tuple[dict[str, object], Section, tuple[Keys, ...]]:
        """The services of a file as sections, and its networks, with variables replaced; and what
        of the files below it is taken away."""
        document = read_yaml_texts(text, shown, unique=not self.lenient)
        if not isinstance(document, Mapping) or not document:
            raise EarshotError(shown, observed="holds no services", allowed="a compose file")
        if "include" in document and not self.lenient:
            raise EarshotError(
                f"{shown}: include",
                observed="files that include others are not read",
                remedy="adopt the output of `docker compose config` instead",
            )
        services = document.get("services")
        if "services" not in document and not _KNOWN_TOP & set(document):
            services = document  # the oldest format: services without a heading
        if not isinstance(untagged(services), Mapping) or not services:
            raise EarshotError(f"{shown}: services", observed="is no map of services, or empty")
        both = {"services": services, "networks": document.get("networks")}
        gone = tuple(tagged(both))
        both["configs"] = document.get("configs")
        walked = self._substituted(untagged(both), shown, ())
        assert isinstance(walked, dict)
        networks, sections = walked.get("networks"), _sections(walked.get("services"))
        self._configs |= _sections(walked.get("configs")) if shown in self.roots else {}
        self.is_whole = self.is_whole and "include" not in document
        for path in gone:
            if len(path) > 1 and isinstance(section := sections.get(path[1]), dict):
                section[_GONE] = (*section.get(_GONE, ()), path[2:])
        return sections, networks if isinstance(networks, Mapping) else {}, gone

    def resolve_extends(
        self, name: str, sections: Mapping[str, object], shown: str, seen: tuple[str, ...]
    ) -> Section:
        """A service's section, with what it extends below it."""
        where, mark = f"{shown}: services.{name}", f"{shown}#{name}"
        if mark in seen:
            raise EarshotError(where, observed="extends itself, by way of others")
        if len(seen) >= MAX_EXTENDS:
            raise EarshotError(
                f"{where}.extends",
                observed=f"is at the end of {MAX_EXTENDS} services that extend each other",
                remedy="adopt the output of `docker compose config` instead",
            )
        section = map_of(sections[name], where)
        extends = section.get("extends")
        folder = posixpath.dirname(shown) if shown not in self.roots else ""
        own = normalized_section(section, where, folder)
        if extends in (None, ""):
            return own
        target = {"service": extends} if isinstance(extends, str) else map_of(extends, where)
        if (
            self.lenient
            and target.get("file")
            and not self._is_readable(str(target["file"]), folder)
        ):
            return {**own, _UNKNOWN: (*_noted(own, _UNKNOWN), "extends")}
        base_name, file = str(target.get("service") or name), target.get("file")
        others, base_shown = sections, shown
        if file:
            base_shown = posixpath.join(folder, str(file))
            others = self._extended_file(base_shown, where)
        if base_name not in others:
            raise EarshotError(
                f"{where}.extends",
                observed=f"names the service {base_name}, which {base_shown} does not have",
                allowed=", ".join(others),
            )
        base = self.resolve_extends(base_name, others, base_shown, (*seen, mark))
        return merged_section(without(base, _noted(section, _GONE)), own)

    def _substituted(self, value: object, shown: str, path: tuple[str, ...]) -> object:
        """``value`` with variables replaced in every text; keys are left alone."""
        if isinstance(value, str):
            try:
                return self.variables.substitute(value, f"{shown}: {'.'.join(path)}")
            except EarshotError as error:
                if not self.variables.keep:
                    raise
                self.variables.malformed[f"{'.'.join(path)} {error.observed}"] = None
        elif isinstance(value, Mapping):
            return {
                str(key): self._substituted(item, shown, (*path, str(key)))
                for key, item in value.items()
            }
        elif isinstance(value, list):
            return [self._substituted(it, shown, (*path, str(i))) for i, it in enumerate(value)]
        return value  # a malformed text, too: its dollar sign says that it is not known

    def _is_readable(self, file: str, folder: str) -> bool:
        try:
            self.read(posixpath.join(folder, file))
        except (OSError, UnicodeDecodeError):
            return False
        return True

    def _extended_file(self, path: str, where: str) -> dict[str, object]:
        if path not in self._others:
            self._others[path] = self.sections(self._text(path, f"{where}.extends"), path)[0]
        return self._others[path]

    def _text(self, path: str, where: str) -> str:
        try:
            return self.read(path)
        except (OSError, UnicodeDecodeError) as reason:
            why = getattr(reason, "strerror", None) or "it is no UTF-8 text"
            raise EarshotError(where, observed=f"{path} cannot be read ({why})") from None

    def service(self, name: str, section: Section, top: Section, shown: str) -> Service:
        where = f"{shown}: services.{name}"
        mode = str(section.get("network_mode") or "")
        unknown = list(_noted(section, _UNKNOWN))
        if self.lenient and not (section.get("image") or "build" in section or unknown):
            unknown.append(BASE_FILE)
        published: list[PublishedPort] = []
        for i, item in enumerate(list_of(section.get("ports"), f"{where}.ports")):
            try:
                published += read_port(item, f"{where}.ports[{i}]")
            except EarshotError:
                if not self.lenient:
                    raise
                hidden = read_hidden_port(item)
                published += hidden
                unknown += [] if hidden else ["ports"]
        volumes = [*volumes_of(section, where), *configs_of(section, self._configs)]
        beside = [volume for volume, _ in volumes if volume.startswith(".") and self.lenient]
        yamls = [it for it in beside if it.endswith((".yaml", ".yml"))]
        of_kafka = [
            it if it.endswith(".properties") else posixpath.join(it, "server.properties")
            for it in beside
        ]
        properties = self._first_read(of_kafka, _is_of_broker)
        if self.lenient and not properties and any(may_be_configuration(to) for _, to in volumes):
            unknown.append(MOUNTED)
        container = with_listeners(
            Container(
                name=str(section.get("container_name") or name),
                image=str(section.get("image") or ""),
                hostname=str(section.get("hostname") or ""),
                networks=() if mode else tuple(joined_networks(name, section, top, where)),
                published=() if mode == HOST_NETWORK else tuple(dict.fromkeys(published)),
                env=self._environment(section, where, unknown),
                mounts=tuple(target for _, target in volumes),
                network_mode=mode,
                unknown=tuple(dict.fromkeys(unknown)),
                extra_hosts=dict(extra_hosts_of(section, where)),
                open_networks=not self.is_whole or has_other_names(section, top),
                links=dict(links_of(section, where)),
                profiles=tuple(map(str, list_of(section.get("profiles"), f"{where}.profiles"))),
            )
        )
        words = (*words_of(section.get("entrypoint")), *words_of(section.get("command")))
        deploy, health = section.get("deploy"), section.get("healthcheck")
        deployed = deploy.get("replicas") if isinstance(deploy, Mapping) else ""
        return Service(
            name,
            container,
            words,
            str(section.get("scale") or deployed or ""),
            properties,
            self._first_read(it for it in yamls if "redpanda" in posixpath.basename(it)),
            dict(self._mounted(volumes)) if self.lenient else {},
            "build" in section,
            health_check=words_of(health.get("test") if isinstance(health, Mapping) else ""),
        )

    def _first_read(self, paths: Iterable[str], fits: Callable[[str], bool] = bool) -> str:
        """The first text that can be read, and ``fits``; else an empty one."""
        for path in paths:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                text = self.read(path)
                if fits(text):
                    return text
        return ""

    def _mounted(self, volumes: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for source, target in volumes:
            if source.startswith(".") and source.endswith(_OF_CLIENTS):
                with contextlib.suppress(OSError, UnicodeDecodeError):
                    text = self.read(source)
                    if "kafka" in text.lower() or "bootstrap" in text:
                        yield target, text

    def _environment(self, section: Section, where: str, unknown: list[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for i, item in enumerate(list_of(section.get("env_file"), f"{where}.env_file")):
            entry = item if isinstance(item, Mapping) else {"path": item}
            path = str(entry.get("path") or "")
            try:
                text = self._text(path, f"{where}.env_file[{i}]")
            except EarshotError:
                if str(entry.get("required")).lower() == "false":
                    continue
                if not self.lenient:
                    raise
                unknown.append("env_file")
                continue
            read = read_raw_env_file if entry.get("format") == "raw" else read_env_file
            found |= read(text, path, self.variables)
        for name, value in map_of(section.get("environment"), f"{where}.environment").items():
            if value is not None:
                found[name] = str(value)
            elif (handed := self.variables.value_from_environment(name)) is not None:
                found[name] = handed
        return found


def _is_of_broker(text: str) -> bool:
    """Whether a properties file has listeners of a broker, and not those of a REST server."""
    return bool(LISTENERS.search(text)) and is_broker_configuration(read_properties(text).values)


def _noted(section: Section, key: str) -> tuple[Any, ...]:
    """What `_UNKNOWN` or `_GONE` has, which no file can: its lists are no tuples."""
    found = section.get(key)
    return found if isinstance(found, tuple) else ()


def _sections(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
