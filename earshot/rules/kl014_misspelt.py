"""KL014: variables with a misspelt name, which set nothing; also properties (KL002).

Images pass every variable on, and Kafka ignores unknown properties, so that the intended one stays
unset. bitnami's variables have their own prefix; other images do not support it, and bitnami's
ignore variables without it.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from earshot.listeners.images import BITNAMI_PREFIX, Family, broker_property, variable_of
from earshot.rules.kl014_image import RULE as KL014
from earshot.rules.rule import Finding, Severity
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
_OTHERS = frozenset({"control.plane.listener.name", "rest.advertised.listener"})
"""Other valid properties with a similar name."""
_MIXED_UP = {"security.inter.broker.listener.name": "inter.broker.listener.name"}
"""Names that are mixed from two properties."""
_NEAR = 0.85


class MisspeltName(NamedTuple):
    """A variable with the property that it sets, and the intended variable and property."""

    name: str
    key: str
    intended: str
    intended_property: str

    def is_cause_of(self, finding: Finding) -> bool:
        """Whether ``finding`` is about the intended property or variable."""
        return self.intended_property in finding.inputs or self.intended in finding.observed

    def as_cause_of(self, finding: Finding) -> Finding:
        """``finding`` with this misspelling as its cause."""
        observed = f"{finding.observed}; {self.name} is set, which is none of Kafka's"
        return replace(
            finding,
            observed=observed,
            remedy=f"rename {self.name} to {self.intended}",
            inputs=(self.name, *finding.inputs),
        )

    def finding(self) -> Finding:
        """The warning for a broker without other findings."""
        effect = f"which becomes {self.key}: Kafka has no such property, and takes no notice of it"
        return KL014.finding(
            f"sets {self.name}, {effect if self.key else 'which the image drops'}",
            self.intended,
            remedy=f"rename it to {self.intended}",
            severity=Severity.WARNING,
            inputs=(self.name,),
        )


def misspelt_variables(container: Container) -> Iterator[MisspeltName]:
    """The misspelt variables of a broker's container whose intended property is not set.

    Empty for an unknown image, whose script may have any variables.
    """
    family = container.family
    if family is Family.UNKNOWN:
        return
    keys = {name: container.property_of(name) for name in container.env}
    for name, key in keys.items():
        meant = _property_of_other_image(family, name, key) or _nearest_property(key)
        if meant and meant not in keys.values():
            yield MisspeltName(name, key, variable_of(family, meant), meant)


def misspelt_properties(values: Mapping[str, str]) -> Iterator[MisspeltName]:
    """The misspelt keys of a broker's properties file whose intended property is not set."""
    for key in values:
        plain = re.sub(r"[^a-z0-9]+", ".", key.lower().removeprefix("kafka_")).strip(".")
        meant = plain if plain in _PROPERTIES else _nearest_property(key)
        if meant and meant not in values:
            yield MisspeltName(key, key, meant, meant)


def _property_of_other_image(family: Family, name: str, key: str) -> str:
    """The property that ``name`` sets in other images and not here, or an empty string."""
    other_family = ""
    if family is Family.BITNAMI and not key:
        other_family = broker_property(Family.APACHE, name)
    elif family is not Family.BITNAMI and name.startswith(BITNAMI_PREFIX):
        other_family = broker_property(Family.BITNAMI, name)
    return other_family if other_family in _PROPERTIES else ""


def _nearest_property(key: str) -> str:
    """The property with a name similar to ``key``, or an empty string."""
    if not key or key in _PROPERTIES or key in _OTHERS:
        return ""
    if key in _MIXED_UP:
        return _MIXED_UP[key]
    match = next(iter(difflib.get_close_matches(key, _PROPERTIES, 1, _NEAR)), "")
    return "" if key.endswith(f".{match}") else match  # a property of another component
