"""Facts about one container from its own inputs, without a view of the whole cluster.

The inputs are those of any `docker.Container` (or of a compose service): what reads the same is
enough for the rules that need no other node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.facts.container import Container
from earshot.facts.settings import (
    asks_itself_alone,
    controller_names,
    inter_broker_name,
    node_id,
)
from earshot.listeners.address import Address
from earshot.listeners.images import (
    Family,
    broker_settings,
    family_of,
    tag_of,
)
from earshot.listeners.properties import NodeSettings
from earshot.listeners.terms import Scope
from earshot.sources.audience import Audience, Context, audience
from earshot.sources.image_settings import effective, handed_over
from earshot.sources.parsed_listener import ParsedListener, lone_plan, parsed_listeners

if TYPE_CHECKING:
    from earshot.listeners.model import ClusterPlan

_VERSION = re.compile(r"(3\.9|[4-9]\.\d+)\.\d+", re.ASCII)


def facts_of(
    container: Container, declared: Mapping[str, tuple[Scope, ...]] | None = None
) -> ClusterFacts:
    """The facts about a container whose inputs have been read; ``declared`` are scopes by name."""
    values = effective(container)
    notes = dict(broker_settings(container.family, container.env, container.image).notes)
    if version := version_of(container.image):
        notes["kafka_version"] = version
    id = node_id(values)
    return ClusterFacts(
        plan=None if container.unknown else _plan(container, values, id, notes, declared or {}),
        settings={id: NodeSettings(handed_over(container), notes)},
        placement="docker",
        containers={id: container},
    )


def version_of(image: str) -> str:
    """The Kafka version that an apache/kafka image says it is, or an empty text."""
    tag = tag_of(image)
    known = family_of(image) is Family.APACHE and _VERSION.fullmatch(tag)
    return tag if known else ""


def listeners_in(
    container: Container,
    values: Mapping[str, str],
    declared: Mapping[str, tuple[Scope, ...]] | None = None,
) -> list[ParsedListener]:
    """The listeners of the node in ``container``; ``declared`` are scopes by listener name."""
    known = {**_noted(container), **(declared or {})}
    context = Context(
        inter_broker_name(values), controller_names(values), known, asks_itself_alone(values)
    )

    def tell(name: str, bind_port: int, advertised: Address) -> Audience:
        return audience(name, bind_port, advertised, container, context)

    return parsed_listeners(values, tell, container.name)


def _plan(
    container: Container,
    values: Mapping[str, str],
    id: int,
    notes: Mapping[str, str],
    declared: Mapping[str, tuple[Scope, ...]],
) -> ClusterPlan | None:
    return lone_plan(id, values, notes, listeners_in(container, values, declared))


def _noted(container: Container) -> dict[str, tuple[Scope, ...]]:
    found = {}
    for entry in filter(None, container.env.get("EARSHOT_SCOPES", "").split(",")):
        name, _, listed = entry.partition(":")
        scopes = [part for part in listed.split("+") if part in list(Scope)]
        found[name.strip()] = tuple(Scope(part) for part in scopes)
    return found
