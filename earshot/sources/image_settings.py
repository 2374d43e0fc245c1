"""The broker properties that a container's image hands to Kafka, and those that Kafka adds."""

from __future__ import annotations

from earshot.facts.container import Container
from earshot.listeners.images import APACHE_DEFAULTS, Family, broker_settings, derived_listeners

_DERIVE = (Family.APACHE, Family.CONFLUENT, Family.UNKNOWN)
"""Images that bind what is advertised where nothing else is given; unknown ones count as such."""


def handed_over(container: Container) -> dict[str, str]:
    """The broker properties that the image hands to Kafka: as given, with what it adds itself."""
    values = dict(broker_settings(container.family, container.env, container.image).values)
    if not values and container.family is Family.APACHE:
        return dict(APACHE_DEFAULTS)
    advertised = values.get("advertised.listeners", "")
    if advertised and not values.get("listeners") and container.family in _DERIVE:
        values["listeners"] = derived_listeners(advertised)
    return values


def effective(container: Container) -> dict[str, str]:
    """The broker properties with what the image and Kafka put where nothing is set."""
    values = handed_over(container)
    host = values.get("advertised.host.name")
    if "advertised.listeners" not in values and host:  # Kafka before 3.0
        port = values.get("advertised.port", values.get("port", "9092"))
        values["advertised.listeners"] = f"PLAINTEXT://{host}:{port}"
        if container.family in _DERIVE:
            values.setdefault("listeners", derived_listeners(values["advertised.listeners"]))
    values.setdefault("listeners", f"PLAINTEXT://:{values.get('port', '9092')}")
    return values
