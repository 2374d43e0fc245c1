"""Variables for a broker's container, in a file by themselves: what Kafka refuses, and advice.

Only their names can show which image they are for, and the service may set others.
"""

from __future__ import annotations

from collections.abc import Mapping

from earshot.checks.deployment import refusals
from earshot.checks.security_advice import advice_on_services
from earshot.facts.container import Container
from earshot.rules.finding import Finding
from earshot.sources.compose import Service
from earshot.sources.deployment import brokers_among, settings_of


def are_of_broker(variables: Mapping[str, str]) -> bool:
    """Whether they set what only a broker or a controller is given."""
    return bool(brokers_among([_service(variables, None)]))


def mistakes_in_variables(
    variables: Mapping[str, str], release: tuple[int, int] | None = None
) -> tuple[Finding, ...]:
    """What Kafka, of this ``release`` where one is given, refuses whatever else is set."""
    service = _service(variables, release)
    return tuple(refusals(service, settings_of(service)))


def advice_in_variables(
    variables: Mapping[str, str], release: tuple[int, int] | None = None
) -> tuple[Finding, ...]:
    """How secure the broker is, of which Kafka has nothing to say: one piece of advice, or none."""
    return advice_on_services([_service(variables, release)])


def _service(variables: Mapping[str, str], release: tuple[int, int] | None) -> Service:
    container = Container("", env=variables, unknown=("variables",))
    return Service("", container, release=release)
