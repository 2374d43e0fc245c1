"""A broker or controller as it was found in a file: its settings, and where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from earshot.facts.container import Container
from earshot.facts.settings import inter_broker_name, roles_of
from earshot.listeners.images import Family, family_of
from earshot.listeners.properties import NodeSettings
from earshot.listeners.terms import Role
from earshot.sources.parsed_listener import ParsedListener


@dataclass(frozen=True)
class KafkaBroker:
    """One Kafka process of the source.

    ``raw`` are its properties as written, ``values`` those with what image and Kafka put where
    nothing is set, ``listeners`` those that can be read.
    """

    id: int
    name: str
    raw: NodeSettings
    values: Mapping[str, str]
    listeners: tuple[ParsedListener, ...]
    container: Container | None = None

    @property
    def is_broker(self) -> bool:
        return Role.BROKER in roles_of(self.values)

    @property
    def is_controller(self) -> bool:
        return Role.CONTROLLER in roles_of(self.values)

    @property
    def is_zookeeper(self) -> bool:
        """Set up for ZooKeeper: without `process.roles` Kafka takes itself for that."""
        return not self.values.get("process.roles", "").strip()

    @property
    def inter_broker(self) -> str:
        return inter_broker_name(self.values)

    @property
    def image(self) -> str:
        return self.container.image if self.container is not None else ""

    @property
    def family(self) -> Family:
        return family_of(self.image)
