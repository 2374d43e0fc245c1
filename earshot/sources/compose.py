"""The services of a Compose file, with variables, `extends` and `env_file` resolved.

`Read` returns the files that the Compose file names, by their path as written (relative to the
Compose file). Source: the Compose Specification.
"""

import contextlib
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from earshot.errors import EarshotError
from earshot.facts.settings import is_broker_configuration
from earshot.listeners.properties import read_properties
from earshot.sources.commented import Commented, commented_values
from earshot.sources.compose_files import (
    KNOWN_TOP,
    UNKNOWN,
    ComposeFiles,
    Read,
    compose_document,
    noted,
    sections_of,
)
from earshot.sources.compose_ports import read_known_ports, read_port, refuse_impossible_port
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
    needs_of,
    volumes_of,
    words_of,
)
from earshot.sources.other_images import with_derived
from earshot.sources.service import BASE_FILE, Service
from earshot.sources.substitution import Variables, read_env_file, read_raw_env_file
from earshot.sources.values import as_map
from earshot.topology.container import (
    HOST_NETWORK,
    MOUNTED,
    Container,
    configures_proxy,
    may_be_configuration,
)
from earshot.yaml_reading.tags import untagged, without

LISTENERS = re.compile(r"^[ \t]*(?:advertised\.)?listeners[ \t]*[=:]", re.MULTILINE)
"""A setting that shows a broker's properties file."""
_OF_CLIENTS = (".properties", ".yml", ".yaml", ".conf", ".toml")


@dataclass(frozen=True)
class Compose:
    """All services, and the variables that are used and not set."""

    services: tuple[Service, ...]
    missing: tuple[str, ...]
    malformed: tuple[str, ...] = ()
    """The place of a `${name.with.dots}`, which another tool replaces before Compose reads it."""
    included: tuple[tuple[str, str], ...] = ()
    """The files under `include` that were read, each as its text and path."""
    not_included: tuple[str, ...] = ()
    """The entries of `include` that were not read."""
    has_unique_keys: bool = True
    """No key of a file occurs twice in one map."""
    misspelt: tuple[tuple[str, str, str], ...] = ()
    """Keys that Compose refuses: service, key and the similar one."""


def read_compose(
    text: str,
    file_name: str,
    variables: Mapping[str, str],
    read: Read,
    *,
    lenient: bool = False,
    over: Sequence[tuple[str, str]] = (),
) -> Compose:
    """The services of ``text`` in its order; messages have ``file_name``.

    ``over`` are overriding files (text, name) in their order, as in `docker compose -f FILE -f
    FILE`; their paths are relative to the first file. ``variables`` are those of the environment
    and `.env`.

    If ``lenient``, missing parts are named in `Container.unknown` and unset variables stay as
    `${NAME}`; otherwise they raise EarshotError.
    """
    roots = (file_name, *(name for _, name in over))
    files = _Files(roots, Variables(variables, keep=lenient), read, lenient)
    whole: dict[str, Section] = {}
    networks: Section = {}
    switched_off: dict[str, Commented] = {}
    for file_text, name in ((text, file_name), *over):
        sections, declared, gone = files.sections(file_text, name)
        switched_off |= commented_values(file_text, name)
        below = without({"services": whole, "networks": networks}, gone)
        whole, networks = sections_of(below.get("services")), map_of(below.get("networks"), name)
        resolved = {
            service: files.resolve_extends(service, sections, name, ()) for service in sections
        }
        whole |= {name: merged_section(whole.get(name, {}), resolved[name]) for name in resolved}
        networks = merged_maps(networks, declared)
    included: dict[str, Section] = {}
    for path, sections, declared, is_over in files.included():
        merged: dict[str, Section] = {}
        for name in sections:
            section = files.resolve_extends(name, sections, path, ())
            earlier = included.get(name, {})
            merged[name] = merged_section(*((earlier, section) if is_over else (section, earlier)))
        included = {**merged, **included, **merged}
        networks = merged_maps(declared, networks)
    whole = included | {
        name: merged_section(included.get(name, {}), section) for name, section in whole.items()
    }
    if not whole and not files.not_included:
        raise EarshotError(f"{file_name}: services", observed="is no map of services, or empty")
    files.is_whole = files.is_whole and not is_overlay(whole)
    services = tuple(
        replace(
            files.service(name, section, networks, file_name), commented=switched_off.get(name, {})
        )
        for name, section in whole.items()
    )
    return Compose(
        services,
        tuple(files.variables.missing),
        tuple(files.variables.malformed),
        tuple((content, path) for path, content in files.texts_included.items()),
        tuple(files.not_included),
        files.has_unique_keys,
        tuple(files.misspelt),
    )


def started_services(services: Sequence[Service], profiles: Collection[str]) -> tuple[Service, ...]:
    """The services that Compose starts with ``profiles`` (`*` is every profile).

    Without ``profiles`` any service may be started. A service with `replicas: 0` never is.
    """
    replicated = tuple(service for service in services if service.replicas != "0")
    if not profiles:
        return replicated
    return tuple(
        # chosen services run together, so that none is an alternative
        replace(service, container=replace(service.container, profiles=()))
        for service in replicated
        if not service.container.profiles
        or "*" in profiles
        or set(service.container.profiles) & set(profiles)
    )


def is_compose(text: str, file_name: str) -> bool:
    """Whether the top level of ``text`` is that of a Compose file. Raises EarshotError."""
    document, _ = compose_document(text, file_name)
    if not isinstance(document, Mapping):
        return False
    if "services" in document:
        return isinstance(untagged(document["services"]), Mapping)
    if "include" in document:
        return all(map(_is_include, list_of(document["include"], file_name)))
    if (KNOWN_TOP | {"apiVersion"}) & set(document):
        return False
    sections = [section for key, section in document.items() if not str(key).startswith("x-")]
    return bool(sections) and all(
        isinstance(section, Mapping) and {"image", "build", "extends"} & set(section)
        for section in sections
    )


def may_be_merged(text: str, file_name: str) -> bool:
    """Whether ``text`` can be merged into a Compose file: it may have no services, but networks.
    Raises EarshotError."""
    document, _ = compose_document(text, file_name)
    keys = set(document) if isinstance(document, Mapping) else set()
    return is_compose(text, file_name) or bool(keys & KNOWN_TOP and "services" not in keys)


def _is_include(entry: object) -> bool:
    """Whether an entry of `include` is Compose's: GitLab's has other keys."""
    return isinstance(entry, str) or (isinstance(entry, Mapping) and "path" in entry)


@dataclass
class _Files(ComposeFiles):
    """Reads the services of the files."""

    def service(self, name: str, section: Section, top: Section, file_name: str) -> Service:
        where = f"{file_name}: services.{name}"
        mode = str(section.get("network_mode") or "")
        unknown = list(noted(section, UNKNOWN))
        if self.lenient and not (section.get("image") or "build" in section or unknown):
            unknown.append(BASE_FILE)
        ports = list_of(section.get("ports"), f"{where}.ports")
        places = [f"{where}.ports[{i}]" for i in range(len(ports))]
        if self.lenient:
            for entry, place in zip(ports, places, strict=True):
                refuse_impossible_port(entry, place)
            published = [*read_known_ports(ports, unknown)]
        else:
            published = [port for entry in map(read_port, ports, places) for port in entry]
        volumes = [*volumes_of(section, where), *configs_of(section, self.configs)]
        sources = [source for source, _ in volumes if source.startswith(".") and self.lenient]
        yaml_files = [source for source in sources if source.endswith((".yaml", ".yml"))]
        properties_files = [
            path if path.endswith(".properties") else posixpath.join(path, "server.properties")
            for path in sources
        ]
        properties = self._first_read(properties_files, _is_of_broker)
        if self.lenient and not properties and any(may_be_configuration(to) for _, to in volumes):
            unknown.append(MOUNTED)
        container = with_derived(
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
                needs=needs_of(section),
                has_proxy_labels=any(map(configures_proxy, _labels(section))),
            )
        )
        words = (*words_of(section.get("entrypoint")), *words_of(section.get("command")))
        deploy = as_map(section.get("deploy"))
        # with `mode: global` the number of a Swarm's nodes counts
        is_replicated = deploy.get("mode") in (None, "replicated")
        replicas = section.get("scale") or (deploy.get("replicas") if is_replicated else "")
        return Service(
            name,
            container,
            words,
            str(replicas or ""),
            properties,
            self._first_read(file for file in yaml_files if "redpanda" in posixpath.basename(file)),
            dict(self._mounted(volumes)) if self.lenient else {},
            "build" in section,
            health_check=words_of(as_map(section.get("healthcheck")).get("test")),
        )

    def _first_read(self, paths: Iterable[str], fits: Callable[[str], bool] = bool) -> str:
        """The first readable text that ``fits``, or an empty string."""
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
        env: dict[str, str] = {}
        for i, file in enumerate(list_of(section.get("env_file"), f"{where}.env_file")):
            entry = file if isinstance(file, Mapping) else {"path": file}
            path = str(entry.get("path") or "")
            try:
                text = self.text_of(path, f"{where}.env_file[{i}]")
            except EarshotError:
                if str(entry.get("required")).lower() == "false":
                    continue
                if not self.lenient:
                    raise
                unknown.append("env_file")
                continue
            read = read_raw_env_file if entry.get("format") == "raw" else read_env_file
            env |= read(text, path, self.variables)
        for name, value in map_of(section.get("environment"), f"{where}.environment").items():
            if value is not None:
                env[name] = str(value)
            elif (handed := self.variables.value_from_environment(name)) is not None:
                env[name] = handed
        return env


def _labels(section: Section) -> Iterator[str]:
    """The labels of a service and of its tasks in a Swarm, each with or without its value."""
    for labels in (section.get("labels"), as_map(section.get("deploy")).get("labels")):
        yield from map(str, labels if isinstance(labels, (list, Mapping)) else ())


def _is_of_broker(text: str) -> bool:
    """Whether a properties file is a broker's, and not that of a REST server."""
    return bool(LISTENERS.search(text)) and is_broker_configuration(read_properties(text).values)
