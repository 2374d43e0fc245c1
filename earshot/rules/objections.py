"""What a rule has against a node's properties, as objections, and these as findings."""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import Memo, StrictSettings, Unreadable
from earshot.listeners.terms import DEFAULT_KAFKA, Role
from earshot.rules.registry import Finding, Rule


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


Check = Callable[[StrictSettings], Iterator[Objection]]


def of_every_node(rule: Rule, check: Check, facts: ClusterFacts) -> Iterator[Finding]:
    """What ``check`` objects to, node by node, as findings of ``rule``."""
    for id, settings in facts.settings.items():
        view = strict_settings(settings.values, facts.kafka_version or DEFAULT_KAFKA)
        for item in readable(check, view):
            yield item.finding(rule, id, settings.role)


def strict_settings(
    values: Mapping[str, str], version: str, memo: Memo | None = None
) -> StrictSettings:
    """One node's properties as Kafka ``version`` ("4.1.1", "4.2.0-rc1") reads them."""
    numbers = re.findall(r"[0-9]+", version)[:3]
    return StrictSettings(values, tuple(map(int, numbers)), memo)


def readable(check: Check, view: StrictSettings) -> Iterator[Objection]:
    """What ``check`` objects to until it asks for a setting that is not known."""
    try:
        yield from check(view)
    except Unreadable:
        return


def with_prefixes(view: StrictSettings, key: str) -> Iterator[tuple[str, str | None]]:
    """Each property that sets ``key``, with the listener that it is for; None: for all."""
    names = {name.lower(): name for name in view.listeners}
    for held in view.values:
        prefix, _, _ = held.rpartition(key)
        if held == key:
            yield held, None
        elif held == f"{prefix}{key}" and prefix.startswith("listener.name."):
            name = names.get(prefix.removeprefix("listener.name.").removesuffix("."))
            if name is not None:
                yield held, name
