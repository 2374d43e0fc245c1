"""Makes users and permissions of the brokers of this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.dynamic import Props
from components.local.changes import started_with
from components.local.quorum import node_directory
from components.users import UsersProvider
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import read_properties
from earshot.listeners.security import own_access
from earshot.project import Project
from earshot.users.order import UsersOrder, carry_out


class LocalUsersProvider(UsersProvider):
    """Brokers that this process reaches by the addresses that they advertise."""

    def access(self, props: Props) -> Mapping[str, str]:
        root, first = Project.find().here(Path(props["root"])), next(iter(props["brokers"]))
        return own_access(read_properties(started_with(node_directory(root, int(first)))).values)

    def carry_out(self, order: UsersOrder, props: Props) -> None:
        carry_out(order)


def reached(plan: ClusterPlan) -> dict[str, Any]:
    """The addresses of the brokers, and of those where users log in."""
    names = (it.name for node in plan.brokers for it in node.listeners if it.protocol.sasl)
    return {
        "brokers": _addresses(plan, plan.inter_broker),
        "logins": _addresses(plan, next(names, "")),
    }


def _addresses(plan: ClusterPlan, name: str) -> dict[str, str]:
    found = ((str(node.id), node.listener(name)) for node in plan.brokers)
    return {id: str(item.advertised) for id, item in found if item is not None}
