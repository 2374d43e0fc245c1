"""KL014: a container in the network of another that publishes ports, which no engine creates."""

from collections.abc import Iterator

from earshot.rules.kl014_image import RULE as KL014
from earshot.rules.registry import Finding
from earshot.topology.container import Container
from earshot.topology.names import SHARED

_SOURCE = "https://docs.docker.com/engine/network/#container-networks"


def refusals(service: str, container: Container) -> Iterator[Finding]:
    """A finding if ``container`` publishes ports in another container's network."""
    mode = container.network_mode
    if not (container.published and mode.startswith(SHARED)):
        return
    other = mode.partition(":")[2]
    yield KL014.finding(
        f"publishes ports, and is in the network of {other}: the container is not created",
        f"ports at {other}, whose network it is",
        remedy=f"publish the ports at {other}, or write no network_mode",
        container=service,
        inputs=("ports", "network_mode"),
        source=_SOURCE,
    )
