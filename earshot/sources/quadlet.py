"""Podman's units for systemd (Quadlet): `*.container`, and their `*.pod`.

The names of a container on its networks are `ContainerName` (default: `systemd-UNIT`) and its
aliases; Podman's default network resolves no names. Containers of a pod share its network and
ports. Source: https://docs.podman.io/en/latest/markdown/podman-systemd.unit.5.html.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from earshot.sources.compose_ports import read_known_ports
from earshot.sources.docker_run import PODMANS_HOSTS, parse_options
from earshot.sources.other_images import with_derived
from earshot.sources.service import Service
from earshot.topology.container import HOST_NETWORK, Container, JoinedNetwork

Entries = Mapping[str, Sequence[str]]
_NO_SECTION = "-"
"""Ends the last section of a text: a drop-in begins outside of any."""
_POD_KEYS = frozenset({"PodName", "Network", "NetworkAlias", "PublishPort"})
_ARGUMENTS = {"publish": "PublishPort", "env": "Environment", "env-file": "EnvironmentFile",
              "network": "Network", "network-alias": "NetworkAlias"}  # fmt: skip
"""Keys that have the effect of options in `PodmanArgs`."""
_ENTRY = re.compile(r"([A-Za-z]+)[ \t]*=[ \t]*(.*)")


def merged_text(texts: Sequence[str]) -> str:
    """The text of a unit and of its drop-ins, in the order in which they are merged."""
    return f"\n\n[{_NO_SECTION}]\n".join(texts)


def read_units(units: Mapping[str, str]) -> tuple[Service, ...]:
    """The containers of ``units``, texts by file name."""
    pods = {name: _entries(text, "Pod") for name, text in units.items() if name.endswith(".pod")}
    containers = {
        name: _entries(text, "Container")
        for name, text in units.items()
        if name.endswith(".container")
    }
    services = [_service(name, _of_pod(entries), {}) for name, entries in pods.items()]
    services += [_service(name, entries, pods) for name, entries in containers.items()]
    return tuple(services)


def name_of(unit: str, text: str) -> str:
    """The name of a unit's container or pod."""
    return _name(unit, _entries(text, "Pod" if unit.endswith(".pod") else "Container"))


def _name(unit: str, entries: Entries) -> str:
    key = "PodName" if unit.endswith(".pod") else "ContainerName"
    return _last(entries, key) or f"systemd-{PurePosixPath(unit).stem}"


def _of_pod(entries: Entries) -> Entries:
    """The entries of a pod that are read."""
    return {key: values for key, values in entries.items() if key in _POD_KEYS}


def _service(unit: str, entries: Entries, pods: Mapping[str, Entries]) -> Service:
    """The service of a container or pod; ``pods`` are those that a container may be in."""
    entries = _with_arguments(entries)
    name, pod = _name(unit, entries), _last(entries, "Pod")
    unknown = ["env_file"] if "EnvironmentFile" in entries else []
    mode = _mode(entries)
    if pod in pods:
        mode = f"service:{_name(pod, pods[pod])}"
    elif pod:
        unknown.append("the pod")
    volumes = [entry.split(":") for entry in entries.get("Volume", ())]
    added = (*PODMANS_HOSTS, *entries.get("AddHost", ()))
    hosts = (entry.partition(":")[::2] for entry in added)
    container = Container(
        name,
        image=_last(entries, "Image"),
        networks=() if pod else tuple(_networks(entries)),
        published=() if pod else tuple(read_known_ports(entries.get("PublishPort", ()), unknown)),
        env=dict(_variables(entries)),
        mounts=tuple(volume[1] if len(volume) > 1 else volume[0] for volume in volumes),
        network_mode=mode,
        unknown=tuple(unknown),
        extra_hosts={host.lower(): address for host, address in hosts},
        open_networks="PodmanArgs" in entries,
    )
    words = (*_last(entries, "Entrypoint").split(), *_last(entries, "Exec").split())
    is_built = _last(entries, "Image").endswith((".build", ".image"))
    return Service(name, with_derived(container), words, is_built=is_built)


def _entries(text: str, section: str) -> Entries:
    """The entries of one section; an empty value removes earlier ones, as in systemd."""
    entries: dict[str, list[str]] = {}
    inside = False
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip().startswith(("#", ";")):
            continue
        if line.strip().startswith("["):
            inside = line.strip() == f"[{section}]"
        elif inside and (match := _ENTRY.fullmatch(line.strip())):
            values = entries.setdefault(match[1], [])
            values.clear() if not match[2] else values.append(match[2])
    return entries


def _with_arguments(entries: Entries) -> Entries:
    """``entries`` with what `PodmanArgs` adds to them."""
    options = parse_options(
        [word for line in entries.get("PodmanArgs", ()) for word in _words(line)]
    )
    added = {
        key: [f'"{value}"' if key == "Environment" else value for value in options[0][option]]
        for option, key in _ARGUMENTS.items()
        if option in options[0]
    }
    return {**entries, **{key: [*entries.get(key, ()), *values] for key, values in added.items()}}


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _last(entries: Entries, key: str) -> str:
    return next(iter(entries.get(key, ())[-1:]), "")


def _mode(entries: Entries) -> str:
    names = [entry.partition(":")[0] for entry in entries.get("Network", ())]
    if HOST_NETWORK in names:
        return HOST_NETWORK
    return "" if names else "bridge"


def _networks(entries: Entries) -> Iterator[JoinedNetwork]:
    aliases = tuple(entries.get("NetworkAlias", ()))
    for entry in entries.get("Network", ()):
        name = entry.partition(":")[0].removesuffix(".network")
        if name not in (HOST_NETWORK, "none", "bridge"):
            yield JoinedNetwork(name, aliases)


def _variables(entries: Entries) -> Iterator[tuple[str, str]]:
    for line in entries.get("Environment", ()):
        for word in _words(line):
            name, sign, value = word.partition("=")
            if sign:
                yield name, value
