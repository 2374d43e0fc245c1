"""KL014: variables that are nearly called like one for listeners, and so set nothing.

Images hand over whatever they are given, and Kafka takes no notice of a property that it does not
have: what the variable was to set stays unset. bitnami's variables have a prefix of their own,
which no other image knows, and bitnami's drops those without it.
"""

import difflib
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from earshot.listeners.images import BITNAMI_PREFIX, Family, broker_property, variable_of
from earshot.rules.kl014_image import RULE as KL014
from earshot.rules.registry import Finding, Severity
from earshot.topology.container import Container

_PROPERTIES = (
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "controller.listener.names",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
    "process.roles",
    "node.id",
    "broker.id",
    "zookeeper.connect",
    "security.inter.broker.protocol",
)
_OTHERS = frozenset({"control.plane.listener.name"})
"""Properties of their own that are near to one."""
_MIXED_UP = {"security.inter.broker.listener.name": "inter.broker.listener.name"}
"""Made of two properties."""
_NEAR = 0.85


class MisspeltVariable(NamedTuple):
    """A variable, the property that it sets, and the variable that was meant, with its property."""

    name: str
    key: str
    intended: str
    intended_property: str

    def is_cause_of(self, finding: Finding) -> bool:
        """Whether ``finding`` is about what is missing for it."""
        return self.intended_property in finding.inputs or self.intended in finding.observed

    def as_cause_of(self, finding: Finding) -> Finding:
        """``finding``, which is about what is missing for it, with this cause."""
        observed = f"{finding.observed}; {self.name} is set, which is none of Kafka's"
        return replace(
            finding,
            observed=observed,
            remedy=f"rename {self.name} to {self.intended}",
            inputs=(self.name, *finding.inputs),
        )

    def finding(self) -> Finding:
        """What is said of it where nothing else is wrong with the broker."""
        effect = f"which becomes {self.key}: Kafka has no such property, and takes no notice of it"
        return KL014.finding(
            f"sets {self.name}, {effect if self.key else 'which the image drops'}",
            self.intended,
            remedy=f"rename it to {self.intended}",
            severity=Severity.WARNING,
            inputs=(self.name,),
        )


def misspelt_variables(container: Container) -> Iterator[MisspeltVariable]:
    """The variables of a broker's container that are near to one that is not set.

    None of an image that is not known: its script may have variables of its own.
    """
    family = container.family
    if family is Family.UNKNOWN:
        return
    keys = {name: container.property_of(name) for name in container.env}
    for name, key in keys.items():
        meant = _property_of_other_image(family, name, key) or _nearest_property(key)
        if meant and meant not in keys.values():
            yield MisspeltVariable(name, key, variable_of(family, meant), meant)


def _property_of_other_image(family: Family, name: str, key: str) -> str:
    """The property that ``name`` sets in other images; empty where it sets one here."""
    other_family = ""
    if family is Family.BITNAMI and not key:
        other_family = broker_property(Family.APACHE, name)
    elif family is not Family.BITNAMI and name.startswith(BITNAMI_PREFIX):
        other_family = broker_property(Family.BITNAMI, name)
    return other_family if other_family in _PROPERTIES else ""


def _nearest_property(key: str) -> str:
    """The property that ``key`` is near to, or an empty text."""
    if not key or key in _PROPERTIES or key in _OTHERS:
        return ""
    if key in _MIXED_UP:
        return _MIXED_UP[key]
    match = next(iter(difflib.get_close_matches(key, _PROPERTIES, 1, _NEAR)), "")
    return "" if key.endswith(f".{match}") else match  # of something else that has the same
