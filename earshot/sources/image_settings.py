"""The broker properties that a container's image passes to Kafka, and Kafka's defaults."""

from collections.abc import Mapping

from earshot.listeners.images import APACHE_DEFAULTS, Family, derived_listeners
from earshot.listeners.placeholders import is_known
from earshot.topology.container import Container

DERIVE = (Family.APACHE, Family.CONFLUENT, Family.UNKNOWN)
"""Images that derive `listeners` from `advertised.listeners`; unknown ones count as such."""


def image_properties(container: Container) -> dict[str, str]:
    """The broker properties that the image passes to Kafka: those given, and its own."""
    values = dict(container.settings.values)
    if not values and container.family is Family.APACHE:
        return dict(APACHE_DEFAULTS)
    advertised = values.get("advertised.listeners", "")
    if advertised and not values.get("listeners") and container.family in DERIVE:
        values["listeners"] = derived_listeners(advertised)
    return values


def effective_properties(container: Container) -> dict[str, str]:
    """The broker properties with the defaults of the image and of Kafka."""
    return with_default_listeners(image_properties(container), derives=container.family in DERIVE)


def with_default_listeners(values: Mapping[str, str], *, derives: bool = False) -> dict[str, str]:
    """``values`` with the default listeners of Kafka, and of an image that ``derives`` them."""
    properties = dict(values)
    host = properties.get("advertised.host.name")
    if "advertised.listeners" not in properties and host:  # Kafka before 3.0
        port = properties.get("advertised.port", properties.get("port", "9092"))
        properties["advertised.listeners"] = f"PLAINTEXT://{host}:{port}"
        if derives:
            properties.setdefault(
                "listeners", derived_listeners(properties["advertised.listeners"])
            )
    properties.setdefault("listeners", f"PLAINTEXT://:{properties.get('port', '9092')}")
    return properties


def hidden_variables(container: Container) -> list[str]:
    """The variables for broker properties with unknown values."""
    env = container.env
    return [
        name for name, value in env.items() if not is_known(value) and container.property_of(name)
    ]
