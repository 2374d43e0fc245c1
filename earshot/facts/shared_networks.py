"""Whose network a container has: by `network_mode: service:x` that of another, with its ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from earshot.facts.container import Container

_OF_SERVICE = "service:"
SHARED = (_OF_SERVICE, "container:")
"""What `network_mode` begins with where it means another container."""


def owners(containers: Mapping[str, Container]) -> Mapping[str, str]:
    """By service the one whose network it has: its own name, unless the file shows another."""
    found: dict[str, str] = {}
    for name in containers:
        owner, seen = name, {name}
        while (mode := containers[owner].network_mode).startswith(_OF_SERVICE):
            other = mode.removeprefix(_OF_SERVICE)
            if other in seen or other not in containers:
                break
            seen.add(other)
            owner = other
        found[name] = owner
    return found


def sharing(owners: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """The services of each network by its owner, who comes first."""
    found: dict[str, list[str]] = {}
    for name, owner in owners.items():
        others = found.setdefault(owner, [owner])
        if name != owner:
            others.append(name)
    return found
