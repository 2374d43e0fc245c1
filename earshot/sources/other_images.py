"""Images with their own variables for a broker's listeners and its ZooKeeper.

Sources: `setup-and-run.sh` of lensesio/fast-data-dev (ADV_HOST), `docker-entrypoint.sh` in `kafka`
of debezium/container-images (HOST_NAME, ADVERTISED_HOST_NAME, PORT, CLUSTER_ID, ZOOKEEPER_CONNECT),
and `start-kafka.sh` of spotify/docker-kafka (ADVERTISED_HOST, ADVERTISED_PORT).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from earshot.listeners.images import Family, family_of, is_broker, repository_of
from earshot.sources.service import derives_no_more
from earshot.topology.container import Container

_LENSES = re.compile(r"(?:.*/)?(?:landoop|lensesio)/(?:fast-data-dev|box|kafka-lenses-dev)")
_DEBEZIUM = re.compile(r"(?:.*/)?debezium/kafka")
_HOSTS_OF_DEBEZIUM = {"HOST_NAME", "ADVERTISED_HOST_NAME", "KAFKA_ADVERTISED_HOST_NAME"}
"""Variables without which debezium/kafka advertises the address that `ip addr` prints."""
_SPOTIFY = re.compile(r"(?:.*/)?spotify/kafka(?:proxy)?")


class _Variables(NamedTuple):
    """The variables of an image for the address that it advertises and the one that it binds."""

    image: re.Pattern[str]
    hosts: Sequence[str]
    ports: Sequence[str]
    bound_host: str = ""
    bound_port: str = ""


_VARIABLES = (
    _Variables(_LENSES, ("ADV_HOST",), ("BROKER_PORT",), bound_port="BROKER_PORT"),
    _Variables(
        _DEBEZIUM,
        ("ADVERTISED_HOST_NAME", "HOST_NAME"),
        ("ADVERTISED_PORT", "PORT"),
        bound_host="HOST_NAME",
        bound_port="PORT",
    ),
    _Variables(_SPOTIFY, ("ADVERTISED_HOST",), ("ADVERTISED_PORT",)),
)
_LIKE_A_BROKER = re.compile(r"(?:.*/)?(?:apache-)?kafka(?:-(?:kraft|server|broker|docker|alpine))?")


def with_derived(container: Container) -> Container:
    """``container`` with the Kafka variables that its image derives from its own."""
    env, derived = dict(container.env), _listeners(container)
    if variable := zookeeper_variable(container):
        env["KAFKA_ZOOKEEPER_CONNECT"] = env[variable]
    if not derived or "KAFKA_ADVERTISED_LISTENERS" in env:
        return replace(container, env=env) if variable else container
    advertises_address = _DEBEZIUM.fullmatch(repository_of(container.image)) is not None
    advertises_address &= not (_HOSTS_OF_DEBEZIUM & set(env) or container.on_host_network)
    advertises_address &= not derives_no_more(container)
    return replace(container, env={**derived, **env}, advertises_address=advertises_address)


def zookeeper_variable(container: Container) -> str:
    """The variable of its own with which the image is led to a ZooKeeper elsewhere, or empty.

    debezium/kafka sets `zookeeper.connect` to it, whatever KAFKA_ZOOKEEPER_CONNECT contains. Links
    of the default bridge may give it as well.
    """
    if not _DEBEZIUM.fullmatch(repository_of(container.image)) or "CLUSTER_ID" in container.env:
        return ""
    return "ZOOKEEPER_CONNECT" if container.env.get("ZOOKEEPER_CONNECT") else ""


def _listeners(container: Container) -> Mapping[str, str]:
    env, image = container.env, repository_of(container.image)
    for variables in _VARIABLES:
        if variables.image.fullmatch(image):
            break
    else:
        return {}
    bound = f"{env.get(variables.bound_host, '')}:{env.get(variables.bound_port, '9092')}"
    host = next((env[name] for name in variables.hosts if name in env), "")
    port = next((env[name] for name in variables.ports if name in env), "9092")
    if not host and derives_no_more(container):
        host, port = f"${{{variables.hosts[0]}}}", f"${{{variables.ports[0]}}}"
    advertised = f"PLAINTEXT://{host or container.hostname or container.name}:{port}"
    return {
        "KAFKA_LISTENERS": f"PLAINTEXT://{bound}",
        "KAFKA_ADVERTISED_LISTENERS": advertised,
    }


def may_be_broker(container: Container) -> bool:
    """Whether the image's name suggests a broker, and its use of variables is unknown."""
    image = repository_of(container.image)
    is_known_image = family_of(image) is not Family.UNKNOWN or is_broker(image, container.env)
    return not is_known_image and _LIKE_A_BROKER.fullmatch(image) is not None
