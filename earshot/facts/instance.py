"""What a broker's EC2 instance has, as far as rules need it: who is let in, and which addresses
are its own to keep."""

from __future__ import annotations

from dataclasses import dataclass

from earshot.facts.security_groups import Ingress
from earshot.listeners.terms import UnknownHost


@dataclass(frozen=True)
class Instance:
    """One instance's inputs; None stands for what nobody has said."""

    ingress: tuple[Ingress, ...] | None = None
    """What all of its security groups together let in; a rule of all protocols opens every port,
    and a rule of another protocol than TCP is left out."""
    elastic: tuple[str | UnknownHost, ...] | None = None
    """Its Elastic IPs."""
