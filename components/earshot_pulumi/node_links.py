"""The listeners between nodes, and changes of them that a rolling restart cannot make.

A broker connects to another through the listener in its own `inter.broker.listener.name`, at the
address that the other has registered. A broker that is restarted with a listener that the others
lack, or without the one that they use, never gets in sync.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from earshot.listeners.model import ClusterPlan


@dataclass(frozen=True)
class Links:
    """The listeners between a node and the others."""

    inter_broker: str
    """Empty for a separate controller."""
    controller: str
    protocols: Mapping[str, str]
    """Protocols by listener name, including the controller's."""

    @classmethod
    def of_plan(cls, plan: ClusterPlan) -> Self:
        """The links of a plan's brokers, which are the same for all."""
        protocols = {
            listener.name: str(listener.protocol)
            for node in plan.brokers
            for listener in node.listeners
        }
        protocols[plan.controller] = str(plan.controller_protocol)
        return cls(plan.inter_broker, plan.controller, protocols)

    @classmethod
    def of_settings(cls, values: Mapping[str, str]) -> Self:
        """The links of a node that was started with the Kafka settings ``values``."""
        pairs = (
            pair.strip().partition(":")
            for pair in values.get("listener.security.protocol.map", "").split(",")
            if pair.strip()
        )
        return cls(
            values.get("inter.broker.listener.name", "").strip().upper(),
            values.get("controller.listener.names", "").partition(",")[0].strip(),
            {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs},
        )

    def connects_brokers_with(self, links: Links) -> bool:
        """True if brokers with these links and brokers with ``links`` reach each other."""
        if not self.inter_broker or not links.inter_broker:
            return True
        # each connects to the listener in its own settings, which the other must have
        return all(
            name in self.protocols and self.protocols[name] == links.protocols.get(name)
            for name in (self.inter_broker, links.inter_broker)
        )

    @property
    def show_certificates(self) -> bool:
        """True if nodes show certificates to each other."""
        names = (self.inter_broker, self.controller)
        return any("SSL" in self.protocols.get(name, "") for name in names)

    def through(self, name: str) -> str:
        """The listener ``name``, with its protocol."""
        return f"{name} ({self.protocols.get(name, 'no protocol')})"


def unrollable(running: Mapping[int, Links], target: Links, remedy: str) -> list[str]:
    """Why the ``running`` nodes (by id) cannot change to ``target`` one after the other.

    Empty if they can. A single node that differs can always be restarted, as all nodes have the
    same links then; that also reverts an incomplete change. ``remedy`` ends each message.
    """
    to_brokers = target.through(target.inter_broker)
    to_controllers = target.through(target.controller)
    brokers = [links for links in running.values() if not links.connects_brokers_with(target)]
    nodes = [
        links for links in running.values() if links.through(links.controller) != to_controllers
    ]
    changes = []
    if len(brokers) > 1:
        changes.append(("brokers", brokers[0].through(brokers[0].inter_broker), to_brokers))
    if len(nodes) > 1:
        changes.append(("controllers", nodes[0].through(nodes[0].controller), to_controllers))
    return [
        f"the listener through which nodes reach the {role} would change from {former} to "
        f"{planned} while they run: the first restarted node could not connect to the others, and "
        f"would never get in sync. {remedy}"
        for role, former, planned in changes
    ]
