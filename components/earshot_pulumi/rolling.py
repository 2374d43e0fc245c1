"""Which changes of listeners a rolling restart cannot make: those of how nodes reach each other.

A broker connects to another through the listener in its own `inter.broker.listener.name`; the other
has registered the address. A broker that is restarted with a listener that the others do not have,
or without the one that they use, never gets in sync.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from earshot.listeners.model import ClusterPlan


@dataclass(frozen=True)
class Links:
    """The listeners through which a node reaches the others, and is reached."""

    inter_broker: str
    """Empty for a node that is a controller alone."""
    controller: str
    protocols: Mapping[str, str]
    """By the name of each listener, the controller's too."""

    @classmethod
    def of_plan(cls, plan: ClusterPlan) -> Self:
        """The links of a plan's brokers, which are the same for all."""
        protocols = {
            item.name: str(item.protocol) for node in plan.brokers for item in node.listeners
        }
        protocols[plan.controller] = str(plan.controller_protocol)
        return cls(plan.inter_broker, plan.controller, protocols)

    @classmethod
    def of_settings(cls, values: Mapping[str, str]) -> Self:
        """The links of a node that was started with the Kafka settings ``values``."""
        pairs = (
            entry.strip().partition(":")
            for entry in values.get("listener.security.protocol.map", "").split(",")
            if entry.strip()
        )
        return cls(
            values.get("inter.broker.listener.name", "").strip().upper(),
            values.get("controller.listener.names", "").partition(",")[0].strip(),
            {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs},
        )

    def meets_brokers_of(self, other: Links) -> bool:
        """Whether brokers with these links and with the ``other`` ones reach each other."""
        if not self.inter_broker or not other.inter_broker:
            return True
        # each connects to the listener that its own settings name, and the other must have it
        return all(
            name in self.protocols and self.protocols[name] == other.protocols.get(name)
            for name in (self.inter_broker, other.inter_broker)
        )

    def through(self, name: str) -> str:
        """The listener ``name``, with its protocol."""
        return f"{name} ({self.protocols.get(name, 'no protocol')})"


def unrollable(running: Mapping[int, Links], wanted: Links, remedy: str) -> list[str]:
    """Why the ``running`` nodes, by id, cannot change to ``wanted`` one after the other.

    Empty where they can. A single node that differs can always be restarted: then all have the
    same links. That also reverts a half-done change. ``remedy`` says how to stop all nodes first.
    """
    to_brokers = wanted.through(wanted.inter_broker)
    to_controllers = wanted.through(wanted.controller)
    brokers = [it for it in running.values() if not it.meets_brokers_of(wanted)]
    nodes = [it for it in running.values() if it.through(it.controller) != to_controllers]
    found = []
    if len(brokers) > 1:
        found.append(("brokers", brokers[0].through(brokers[0].inter_broker), to_brokers))
    if len(nodes) > 1:
        found.append(("controllers", nodes[0].through(nodes[0].controller), to_controllers))
    return [
        f"the listener through which nodes reach the {role} would change from {old} to {new} while "
        "they run: the node that is restarted first would find no other that speaks as it does, "
        f"and never get in sync. {remedy}"
        for role, old, new in found
    ]
