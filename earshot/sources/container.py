"""Facts about one container from its own inputs, for rules that need no other node.

The container is any `docker.Container` or Compose service.
"""

import re
from collections.abc import Mapping
from functools import partial

from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import node_id
from earshot.listeners.images import Family, family_of, tag_of
from earshot.listeners.properties import NodeSettings
from earshot.listeners.terms import Scope
from earshot.sources.image_settings import effective_properties, image_properties
from earshot.sources.parsed_listener import (
    ParsedListener,
    audience,
    lone_plan,
    noted_scopes,
    parsed_listeners,
)
from earshot.topology.container import Container

_VERSION = re.compile(r"(3\.9|[4-9]\.\d+)\.\d+", re.ASCII)


def facts_of(container: Container) -> ClusterFacts:
    """The facts about ``container``; without a plan if some of its inputs are unknown."""
    values = effective_properties(container)
    notes = dict(container.settings.notes)
    if version := version_of(container.image):
        notes["kafka_version"] = version
    id = node_id(values)
    plan = None
    if not container.unknown:
        plan = lone_plan(id, values, notes, listeners_in(container, values))
    return ClusterFacts(
        plan=plan,
        settings={id: NodeSettings(image_properties(container), notes)},
        placement="docker",
        containers={id: container},
    )


def version_of(image: str) -> str:
    """The Kafka version in the tag of an apache/kafka image, or an empty string."""
    tag = tag_of(image)
    has_release = family_of(image) is Family.APACHE and _VERSION.fullmatch(tag)
    return tag if has_release else ""


def listeners_in(
    container: Container,
    values: Mapping[str, str],
    declared: Mapping[str, tuple[Scope, ...]] | None = None,
) -> list[ParsedListener]:
    """The listeners of the node in ``container``; ``declared`` are scopes by listener name."""
    scopes_by_name = noted_scopes(container.env.get("EARSHOT_SCOPES", "")) | dict(declared or {})
    audience_of = partial(audience, container=container, values=values)
    return parsed_listeners(values, audience_of, container.name, scopes_by_name=scopes_by_name)
