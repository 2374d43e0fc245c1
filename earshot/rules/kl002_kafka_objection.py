"""What KL002's checks object to, and what they ask about a host."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from earshot.listeners.terms import Role
from earshot.rules.finding import Finding
from earshot.rules.registry import Rule


@dataclass(frozen=True)
class Objection:
    """What Kafka refuses, or takes in another sense than its author."""

    check: str
    """Its id: a letter for the subject, a number, as in the rules' documentation."""
    key: str
    observed: str
    expected: str
    remedy: str = ""
    listener: str | None = None
    instead: str = ""
    """What Kafka does where it does not refuse to start."""
    grave: bool = True

    @property
    def refused(self) -> bool:
        return not self.instead

    def finding(self, rule: Rule, node: int | None = None, role: Role = Role.BROKER) -> Finding:
        """The same as a finding of ``rule``."""
        return rule.finding(
            self.observed,
            self.expected,
            node=node,
            role=role,
            listener=self.listener,
            remedy=self.remedy,
            inputs=(self.key,),
        )


def family(host: str) -> int | None:
    """4 or 6 for an IP address, None for a name or an empty host."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


def is_wildcard(host: str) -> bool:
    """Whether ``host`` binds every interface, so that no client can connect to it."""
    return not host or (family(host) is not None and ipaddress.ip_address(host).is_unspecified)
