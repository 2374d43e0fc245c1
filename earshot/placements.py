"""The placements: where the brokers of a stack can run, and what is different there.

To add one, enter it here and write its own modules, which are found by its name: the model of
`earshot:cluster` (`earshot.config.NAME`), its plan (`earshot.placement.NAME`) and its resources
(`earshot_pulumi.NAME`). docs/architecture.md lists them.
"""

from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any


class ClientLocation(StrEnum):
    """Where a client is, as seen from the broker; the value reads in a sentence."""

    THIS_MACHINE = "on the broker's own machine"
    SAME_NETWORK = "in the broker's Docker network"
    OTHER_NETWORK = "in another Docker network of that machine"
    OUTSIDE = "on another machine (LAN or internet)"
    SAME_VPC = "in the broker's VPC"
    PEERED_VPC = "in a peered VPC"


@dataclass(frozen=True)
class Placement:
    """One place for brokers."""

    name: str
    internal: ClientLocation
    """Where the clients of scope internal are, including other brokers."""
    plugin: bool
    """Whether its resources take the Pulumi provider plugin of its name."""
    reasons: bool
    """Whether its stack file has to give a reason for each listener in plain text."""

    def module(self, package: str, name: str = "") -> Any:
        """Its own module in ``package``, imported when it is needed: some are slow to import."""
        return import_module(".".join(filter(None, (package, self.name, name))))


PLACEMENTS = {
    item.name: item
    for item in (
        Placement("local", ClientLocation.THIS_MACHINE, plugin=False, reasons=False),
        Placement("docker", ClientLocation.SAME_NETWORK, plugin=True, reasons=False),
        Placement("aws", ClientLocation.SAME_VPC, plugin=True, reasons=True),
    )
}


def internal_location(placement: str) -> ClientLocation:
    """Where clients of scope internal are; an unknown placement counts as the widest."""
    known = PLACEMENTS.get(placement)
    return known.internal if known is not None else ClientLocation.OUTSIDE


def on_this_machine(placement: str) -> bool:
    """Whether brokers are processes of this machine, whose names and addresses are theirs."""
    return internal_location(placement) is ClientLocation.THIS_MACHINE


def in_containers(placement: str) -> bool:
    """Whether brokers are containers: their hosts' addresses, and who else is in their networks,
    are not seen from here."""
    return internal_location(placement) is ClientLocation.SAME_NETWORK


def has_reasons(placement: str) -> bool:
    """Whether the stack file gives a reason for each listener in plain text."""
    return placement in PLACEMENTS and PLACEMENTS[placement].reasons
