"""The services of a compose file: variables replaced, `extends` and `env_file` followed.

Pure: files that the compose file names are asked for from `Read`, by their path as written
(relative to the compose file). Source: the Compose Specification.
"""

import contextlib
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from earshot.errors import EarshotError
from earshot.facts.settings import is_broker_configuration
from earshot.listeners.properties import read_properties
from earshot.sources.commented import Commented, commented_values
from earshot.sources.compose_files import (
    KNOWN_TOP,
    UNKNOWN,
    ComposeFiles,
    Read,
    noted,
    sections_of,
)
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
    volumes_of,
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
from earshot.yaml_document import read_yaml_texts, untagged, without

LISTENERS = re.compile(r"^[ \t]*(?:advertised\.)?listeners[ \t]*[=:]", re.MULTILINE)
"""What a properties file of a broker has."""
BASE_FILE = "the file that it is laid over"
"""What is not known of a service without an image, as `Container.unknown` has it."""
_OF_CLIENTS = (".properties", ".yml", ".yaml", ".conf", ".toml")


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
    """The place of a `${name.with.dots}`, which another tool replaces before Compose reads it."""
    included: tuple[tuple[str, str], ...] = ()
    """The files under `include` that were read, each as its text and path."""
    not_included: tuple[str, ...] = ()
    """The entries of `include` that were not read."""


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
        whole, networks = sections_of(below.get("services")), map_of(below.get("networks"), name)
        own = {it: files.resolve_extends(it, sections, name, ()) for it in sections}
        whole |= {it: merged_section(whole[it], own[it]) if it in whole else own[it] for it in own}
        networks = merged_maps(networks, declared)
    for path, sections, declared in files.included():
        others = {it: files.resolve_extends(it, sections, path, ()) for it in sections}
        whole, networks = {**others, **whole}, merged_maps(declared, networks)
    if not whole and not files.not_included:
        raise EarshotError(f"{shown}: services", observed="is no map of services, or empty")
    files.is_whole = files.is_whole and not is_overlay(whole)
    services = tuple(
        replace(files.service(name, section, networks, shown), commented=switched_off.get(name, {}))
        for name, section in whole.items()
    )
    return Compose(
        services,
        tuple(files.variables.missing),
        tuple(files.variables.malformed),
        tuple((content, path) for path, content in files.texts_included.items()),
        tuple(files.not_included),
    )


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
    if "include" in document:
        return all(map(_is_include, list_of(document["include"], shown)))
    items = [item for key, item in document.items() if not str(key).startswith("x-")]
    known = bool(KNOWN_TOP & set(document)) or "apiVersion" in document
    return not known and bool(items) and all(map(_is_service, items))


def _is_service(item: object) -> bool:
    return isinstance(item, Mapping) and bool({"image", "build", "extends"} & set(item))


def _is_include(item: object) -> bool:
    """Whether an entry of `include` is Compose's: GitLab's has other keys."""
    return isinstance(item, str) or (isinstance(item, Mapping) and "path" in item)


@dataclass
class _Files(ComposeFiles):
    """The services of what was read."""

    def service(self, name: str, section: Section, top: Section, shown: str) -> Service:
        where = f"{shown}: services.{name}"
        mode = str(section.get("network_mode") or "")
        unknown = list(noted(section, UNKNOWN))
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
        volumes = [*volumes_of(section, where), *configs_of(section, self.configs)]
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
                text = self.text_of(path, f"{where}.env_file[{i}]")
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
