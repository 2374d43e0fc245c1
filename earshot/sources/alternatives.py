"""Containers of one file that are alternatives: of other targets, or under other conditions."""

from collections.abc import Sequence
from dataclasses import replace

from earshot.listeners.placeholders import is_known
from earshot.topology.container import Container


def with_alternatives(containers: Sequence[Container], groups: Sequence[str]) -> list[Container]:
    """``containers``, each of which is started with others of its group only, or always if the
    group is empty. Those of two groups that need one name or one port of the machine are
    alternatives, and get the profile of their group."""
    pairs = list(zip(groups, containers, strict=True))
    return [
        replace(container, profiles=(group,))
        if group
        and any(
            other_group not in ("", group) and _exclude(container, other)
            for other_group, other in pairs
        )
        else container
        for group, container in pairs
    ]


def _exclude(first: Container, second: Container) -> bool:
    """Whether one machine cannot run both."""
    is_same_name = first.name == second.name != "" and is_known(first.name)
    return is_same_name or any(
        port.excludes(other) for port in first.published for other in second.published
    )
