"""Containers that a script starts with `docker run`, `podman run` or `nerdctl run`.

A container without `--network` is on the default bridge, which resolves no names except those of
`--link`. On a network that the script does not create there may be containers of other scripts.
Sources: https://docs.docker.com/reference/cli/docker/container/run/ and
https://docs.podman.io/en/latest/markdown/podman-run.1.html.
"""

import contextlib
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from earshot.errors import EarshotError
from earshot.listeners.images import repository_of
from earshot.listeners.placeholders import is_known
from earshot.sources.compose_ports import read_known_ports
from earshot.sources.other_images import with_derived
from earshot.sources.service import Service
from earshot.sources.shell import Command, Script
from earshot.sources.substitution import Variables, read_env_file
from earshot.sources.values import COMPUTED
from earshot.topology.container import HOST_NETWORK, Container, JoinedNetwork

Read = Callable[[str], str]
_PROGRAMS = frozenset({"docker", "podman", "nerdctl"})
_COMPOSE = frozenset({"docker-compose", "podman-compose"})
_OF_OTHER_HOSTS = ("-H", "--host", "-c", "--context", "--url", "--remote", "--connection")
_OWN_ENGINE = re.compile(r"(?:unix|npipe):.*|default")
"""What these options name if the engine is that of the machine."""
_WITH_VALUE = frozenset(
    {"-l", "--log-level", "--config", "--tlscacert", "--tlscert", "--tlskey", "-n", "--namespace",
     "-a", "--address", "--root", "--runroot", "--storage-driver", "--storage-opt",
     "--cgroup-manager", "--events-backend", "--tmpdir", *_OF_OTHER_HOSTS}
)  # fmt: skip
"""Options before the subcommand whose value is the next word."""
_FLAGS = frozenset(
    {"detach", "interactive", "tty", "rm", "init", "privileged", "read-only", "publish-all",
     "no-healthcheck", "quiet", "help", "oom-kill-disable", "sig-proxy", "disable-content-trust",
     "replace", "no-hosts", "env-host", "http-proxy", "read-only-tmpfs", "tls-verify", "rmi"}
)  # fmt: skip
"""Long options without a value."""
PODMANS_HOSTS = ("host.containers.internal:host-gateway", "host.docker.internal:host-gateway")
"""Entries that Podman adds to the hosts file of a container, unless `--no-hosts` is given."""
_SHORT_FLAGS = "ditPq"
_LONG = {
    "e": "env",
    "p": "publish",
    "v": "volume",
    "h": "hostname",
    "P": "publish-all",
    "net": "network",
    "net-alias": "network-alias",
}
_OPTION = re.compile(r"-([A-Za-z]+)(?:=?(.*))?", re.DOTALL)
_IMAGE = re.compile(r"\$\{\w*(?:IMAGE|IMG|TAG|VERSION)\w*\}", re.IGNORECASE)
_TOOL = re.compile(r"(?:kafka-[a-z-]+(?:\.sh|\.bat)?|kcat|kafkacat)", re.ASCII)
_MACHINE = "this script"
_HOSTS_LINE = re.compile(
    r"([0-9]+(?:\.[0-9]+){3}|::1|\$\{?\w+\}?|\$\([^()\n]*\))(?:[ \t]|\\t)+"
    r"([A-Za-z][\w.-]*(?:[ \t]+[A-Za-z][\w.-]*)*)",
    re.ASCII,
)


@dataclass(frozen=True)
class StartedContainer:
    """A container, and the lines (from 1) of the command that starts it."""

    service: Service
    line: int
    last_line: int


@dataclass(frozen=True)
class StartedContainers:
    """The containers that a script starts, and the reasons why others were not read.

    ``services`` include the tools of Kafka that the script runs on the machine itself.
    """

    containers: tuple[StartedContainer, ...]
    not_read: tuple[str, ...] = ()
    clients: tuple[Service, ...] = ()
    cut: tuple[Command, ...] = ()
    """Commands for Kafka that a comment line ends before the image: the engine refuses them."""

    @property
    def services(self) -> tuple[Service, ...]:
        return (*(container.service for container in self.containers), *self.clients)


def started_containers(
    script: Script, read: Read | None = None, text: str = ""
) -> StartedContainers:
    """The containers that ``script`` starts on its own machine. ``text`` is that of the script.

    ``read`` returns a file by its path as written; it raises OSError.
    """
    runs = list(_runs(script))
    cut = tuple(_cut(script))
    known_lines = {command.line for command in cut}
    not_read = [
        f"line {line}: {reason}"
        for line, _, reason, _, _ in runs
        if reason and line not in known_lines
    ]
    # a container with computed options may be on any network, with any name
    has_all_options = all(COMPUTED not in options for *_, options, _ in runs)
    networks = _Networks(script, is_whole=has_all_options and not not_read)
    containers: dict[str, StartedContainer] = {}
    twice: set[str] = set()
    for line, last_line, reason, options, words in runs:
        if reason:
            continue
        service = _service(options, words, line, networks, read)
        started = StartedContainer(service, line, last_line)
        before = containers.setdefault(service.name, started)
        if before.service != service:
            twice.add(service.name)
    not_read += [f"container {name}: is started in two ways" for name in sorted(twice)]
    known = {name: started for name, started in containers.items() if name not in twice}
    is_whole = has_all_options and not not_read
    linked = tuple(
        replace(started, service=_with_known_links(started.service, known, is_whole=is_whole))
        for started in known.values()
    )
    return StartedContainers(linked, tuple(not_read), tuple(_clients(script, text)), cut)


def _cut(script: Script) -> Iterator[Command]:
    for command in script.commands:
        arguments = _arguments(command) if command.is_cut else None
        if arguments and not parse_options(arguments)[1] and "kafka" in " ".join(arguments).lower():
            yield command


def _with_known_links(
    service: Service, containers: Mapping[str, object], *, is_whole: bool
) -> Service:
    """``service``, whose networks may have other names if a container is not among the known."""
    container = service.container
    is_open = not is_whole or any(name not in containers for name in container.links.values())
    return replace(
        service, container=replace(container, open_networks=container.open_networks or is_open)
    )


Options = dict[str, list[str]]
_Run = tuple[int, int, str, Options, Sequence[str]]
"""First and last line, the reason if it was not read, options by long name, image and command."""


def _runs(script: Script) -> Iterator[_Run]:
    for command in script.commands:
        arguments = _arguments(command)
        if arguments is None:
            continue
        options, words = _options(command, arguments)
        lines = (command.line, command.last_line)
        image = words[0] if words else ""
        if not image:
            yield *lines, "the command ends before the image", options, words
        elif command.is_repeated and not _is_fixed(options):
            yield *lines, f"{image} is started in a loop", options, words
        else:
            yield *lines, "", options, words


def _is_fixed(options: Options) -> bool:
    """Whether each turn of a loop would start the same container."""
    return "name" in options and is_known(options["name"][-1])


def _arguments(command: Command) -> Sequence[str] | None:
    """The arguments of `run` and `create`, or None for other commands."""
    words = _subcommand(command) if command.program in _PROGRAMS else []
    if words[:1] == ["container"]:
        words.pop(0)
    return words[1:] if words[:1] in (["run"], ["create"]) else None


def _subcommand(command: Command) -> list[str]:
    """The words from the subcommand on; none if it is for the engine of another machine."""
    words = list(command.words[1:])
    while words and words[0].startswith("-"):
        option = words.pop(0)
        name, sign, value = option.partition("=")
        if not sign and name in _WITH_VALUE:
            value = words.pop(0) if words else ""
        if option.startswith(_OF_OTHER_HOSTS) and not _OWN_ENGINE.fullmatch(value):
            return []
    return words


def _options(command: Command, arguments: Sequence[str]) -> tuple[Options, Sequence[str]]:
    """`parse_options` of ``arguments``, with the hosts that the engine adds to those given."""
    options, rest = parse_options(arguments)
    if command.program == "podman" and "no-hosts" not in options:
        options["add-host"] = [*PODMANS_HOSTS, *options.get("add-host", ())]
    return options, rest


def parse_options(words: Sequence[str]) -> tuple[Options, Sequence[str]]:
    """Options by long name, and the words from the image on."""
    options: Options = {}
    rest = list(words)
    while rest:
        word = rest[0]
        if not word.startswith("-"):
            if len(rest) == 1 or is_known(word) or _IMAGE.search(word):
                break
            options.setdefault(COMPUTED, []).append(word)  # options that the script computes
            rest.pop(0)
            continue
        rest.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
            name = _LONG.get(name, name)
            if not sign and name not in _FLAGS:
                value = rest.pop(0) if rest else ""
            options.setdefault(name, []).append(value)
            continue
        letters = word[1:]
        while letters[:1] and letters[0] in _SHORT_FLAGS:
            options.setdefault(_LONG.get(letters[0], letters[0]), []).append("")
            letters = letters[1:]
        if letters:
            name, value = letters[0], letters[1:].removeprefix("=")
            if not letters[1:]:
                value = rest.pop(0) if rest else ""
            options.setdefault(_LONG.get(name, name), []).append(value)
    return options, rest


class _Networks:
    """The networks of a script: which it creates, and which containers it connects later."""

    def __init__(self, script: Script, *, is_whole: bool):
        self.created: set[str] = set()
        self.pods: dict[str, Options] = {}
        self.connected: list[tuple[str, str]] = []
        self.has_others = not is_whole
        for command in script.commands:
            words = [word for word in _subcommand(command) if not word.startswith("-")]
            if command.program in _COMPOSE or words[:1] == ["compose"]:
                self.has_others = True
            if command.program not in _PROGRAMS:
                continue
            if words[:2] == ["network", "create"] and len(words) > 2:
                self.created.add(words[-1])
            elif words[:2] == ["network", "connect"] and len(words) > 3:
                self.connected.append((words[-1], words[-2]))
            elif words[:2] == ["pod", "create"]:
                options, rest = _options(command, _subcommand(command)[2:])
                self.pods[(*options.get("name", ()), *rest, "")[0]] = options

    def is_open(self, network: str) -> bool:
        """Whether containers of elsewhere may be on ``network``."""
        return self.has_others or network not in self.created


def _service(
    options: Options,
    words: Sequence[str],
    line: int,
    networks: _Networks,
    read: Read | None,
) -> Service:
    image, *arguments = words
    unknown = ["options"] if COMPUTED in options else []
    pod = options.get("pod", [""])[-1].removeprefix("new:")
    outer = networks.pods.get(pod, options) if pod else options
    name = options["name"][-1] if "name" in options else f"{_plain(image)} (line {line})"
    joined, mode = _joined(outer, name, networks)
    if "publish-all" in outer:
        unknown.append("ports")
    links = dict(link_of(link) for link in options.get("link", ()))
    hosts = (host.replace("=", ":", 1).partition(":")[::2] for host in outer.get("add-host", ()))
    container = Container(
        name,
        image=image,
        hostname=(*outer.get("hostname", ()), "")[0],
        networks=joined,
        published=tuple(read_known_ports(outer.get("publish", ()), unknown)),
        env=dict(_variables(options, unknown, read)),
        mounts=tuple(_mounts(options)),
        network_mode=mode,
        unknown=tuple(dict.fromkeys(unknown)),
        extra_hosts={host.lower(): address.strip("[]") for host, address in hosts},
        open_networks=any(networks.is_open(network.name) for network in joined) or bool(pod),
        links=links,
    )
    entrypoint = options.get("entrypoint", [""])[-1].split()
    return Service(name, with_derived(container), (*entrypoint, *arguments))


def _plain(image: str) -> str:
    return posixpath.basename(repository_of(image)) if is_known(image) else image


def _joined(
    options: Options, name: str, networks: _Networks
) -> tuple[tuple[JoinedNetwork, ...], str]:
    """Its networks, and the mode if it is on none."""
    joined: list[JoinedNetwork] = []
    aliases = tuple(options.get("network-alias", ()))
    address = (*options.get("ip", ()), "")[0]
    for value in options.get("network", ()):
        settings = dict(part.partition("=")[::2] for part in value.split(","))
        network = settings.get("name") or value.partition(":")[0].partition(",")[0]
        if network in (HOST_NETWORK, "none") or value.startswith(("container:", "service:")):
            return (), value
        if network not in ("bridge", "default", "slirp4netns", "pasta", "private"):
            named = (*aliases, *filter(None, [settings.get("alias")]))
            joined.append(JoinedNetwork(network, named, settings.get("ip") or address))
    later = (network for container, network in networks.connected if container == name)
    joined += [JoinedNetwork(network) for network in later]
    return tuple(joined), "" if joined else "bridge"


def link_of(link: str) -> tuple[str, str]:
    """The name in lower case that a link gives, and its container."""
    container, _, alias = link.partition(":")
    return (alias or container).lower(), container


def _variables(
    options: Options, unknown: list[str], read: Read | None
) -> Iterator[tuple[str, str]]:
    for file in options.get("env-file", ()):
        text = None
        with contextlib.suppress(OSError, UnicodeDecodeError, EarshotError):
            if read is not None and is_known(file):
                text = read_env_file(read(file), file, Variables({}, keep=True))
        if text is None:
            unknown.append("env_file")
        else:
            yield from text.items()
    for word in options.get("env", ()):
        name, sign, value = word.partition("=")
        yield name, value if sign else f"${{{name}}}"


def _mounts(options: Options) -> Iterator[str]:
    for volume in options.get("volume", ()):
        parts = volume.split(":")
        yield parts[1] if len(parts) > 1 else parts[0]
    for mount in options.get("mount", ()):
        settings = dict(part.partition("=")[::2] for part in mount.split(","))
        yield settings.get("target") or settings.get("dst") or settings.get("destination") or ""


def hosts_written(text: str) -> dict[str, str]:
    """The names that commands add to the hosts file, with their addresses."""
    if "/etc/hosts" not in text:
        return {}
    return {
        name.lower(): address if is_known(address) else COMPUTED
        for address, names in _HOSTS_LINE.findall(text)
        for name in names.split()
    }


def machine(words: Sequence[str], text: str, name: str) -> Service:
    """The machine as a client: the ``words`` of its own commands, and its hosts file."""
    container = Container(name, network_mode=HOST_NETWORK, extra_hosts=hosts_written(text))
    return Service(name, container, tuple(words), is_machine=True)


def _clients(script: Script, text: str) -> Iterator[Service]:
    """The machine, if the script runs tools of Kafka there or writes its hosts file."""
    words = [
        word
        for command in script.commands
        if _TOOL.fullmatch(command.program)
        for word in command.words
    ]
    client = machine(words, text, _MACHINE)
    if words or client.container.extra_hosts:
        yield client
