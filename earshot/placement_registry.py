"""The placements of brokers, and their differences.

To add one, enter it here and write its modules, which are found by its name: the model of
`earshot:cluster` (`earshot.config.NAME`), its plan (`earshot.placement.NAME`) and its resources
(`earshot_pulumi.NAME`). docs/architecture.md lists them.
"""

from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any


class ClientLocation(StrEnum):
    """The location of a client relative to the broker; the value is part of a sentence."""

    THIS_MACHINE = "on the broker's own machine"
    SAME_NETWORK = "in the broker's Docker network"
    OTHER_NETWORK = "in another Docker network of that machine"
    OUTSIDE = "on another machine (LAN or internet)"
    SAME_VPC = "in the broker's VPC"
    PEERED_VPC = "in a peered VPC"


@dataclass(frozen=True)
class Placement:
    """One placement."""

    name: str
    internal: ClientLocation
    """The location of clients of scope internal, including other brokers."""
    plugin: bool
    """Whether its resources need the Pulumi provider of its name."""
    reasons: bool
    """Whether its stack file needs a reason for each listener in plain text."""

    def module(self, package: str, name: str = "") -> Any:
        """The placement's module in ``package``, imported here because some are slow to import."""
        return import_module(".".join(filter(None, (package, self.name, name))))


PLACEMENTS = {
    placement.name: placement
    for placement in (
        Placement("local", ClientLocation.THIS_MACHINE, plugin=False, reasons=False),
        Placement("docker", ClientLocation.SAME_NETWORK, plugin=True, reasons=False),
        Placement("aws", ClientLocation.SAME_VPC, plugin=True, reasons=True),
    )
}


def internal_location(placement: str) -> ClientLocation:
    """The location of clients of scope internal; the widest for an unknown placement."""
    entry = PLACEMENTS.get(placement)
    return entry.internal if entry is not None else ClientLocation.OUTSIDE


def on_this_machine(placement: str) -> bool:
    """True if brokers are processes of this machine, with its names and addresses."""
    return internal_location(placement) is ClientLocation.THIS_MACHINE


def in_containers(placement: str) -> bool:
    """True if brokers are containers, whose networks are not visible from here."""
    return internal_location(placement) is ClientLocation.SAME_NETWORK


def has_reasons(placement: str) -> bool:
    """True if the stack file has a reason for each listener in plain text."""
    return placement in PLACEMENTS and PLACEMENTS[placement].reasons
