"""The inputs of a `docker.Container`, read into what rules know a container by.

What is not known yet is named in a list that the caller hands in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from earshot.rules.container import Network, PublishedPort

Envs = Mapping[str, str | None] | Iterable[str | None]
"""By name, or as `NAME=value` texts; None stands for what is not known yet."""
Inputs = Iterable[Mapping[str, object] | None]
"""As the properties of `docker.Container`; None, or a value of None, is not known yet."""


def read_variables(envs: Envs, unknown: list[str]) -> dict[str, str]:
    """The variables whose values are known."""
    pairs = envs.items() if isinstance(envs, Mapping) else [_pair(text) for text in envs]
    found = {}
    for name, value in pairs:
        if value is None:
            unknown.append(f"variable {name}" if name else "a variable")
        else:
            found[name] = value
    return found


def _pair(text: str | None) -> tuple[str, str | None]:
    if text is None:
        return "", None
    name, _, value = text.partition("=")
    return name, value


def read_ports(ports: Inputs, unknown: list[str]) -> Iterator[PublishedPort]:
    """Published ports: maps with `internal`, `external`, `ip` and `protocol`."""
    for item in ports:
        if item is None or (internal := item.get("internal")) is None:
            unknown.append("a published port")
            continue
        if "external" in item and item["external"] is None:
            unknown.append(f"the host's port for {_whole(internal)}")
        external = item.get("external")
        yield PublishedPort(
            _whole(internal),
            None if external is None else _whole(external),
            str(item.get("ip") or ""),
            str(item.get("protocol") or "tcp"),
        )


def read_networks(networks: Inputs, unknown: list[str]) -> Iterator[Network]:
    """Networks: maps with `name`, `aliases` and `ipv4Address`."""
    for item in networks:
        if item is None or item.get("name") is None:
            unknown.append("a network")
            continue
        aliases = item.get("aliases") or ()
        yield Network(
            str(item["name"]),
            tuple(str(alias) for alias in aliases) if isinstance(aliases, (list, tuple)) else (),
            str(item.get("ipv4Address") or ""),
        )


def _whole(value: object) -> int:
    return int(str(value).removesuffix(".0"))  # Pulumi hands numbers over as floats
