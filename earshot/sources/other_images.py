"""Images with their own variables for a broker's listeners and its ZooKeeper.

Sources: `setup-and-run.sh` of lensesio/fast-data-dev (ADV_HOST), `docker-entrypoint.sh` in `kafka`
of debezium/container-images (HOST_NAME, ADVERTISED_HOST_NAME, PORT, CLUSTER_ID, ZOOKEEPER_CONNECT),
and `start-kafka.sh` of spotify/docker-kafka (ADVERTISED_HOST, ADVERTISED_PORT).
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from earshot.listeners.images import Family, family_of, is_broker, repository_of
from earshot.topology.container import Container

_LENSES = re.compile(r"(?:.*/)?(?:landoop|lensesio)/(?:fast-data-dev|box|kafka-lenses-dev)")
_DEBEZIUM = re.compile(r"(?:.*/)?debezium/kafka")
_HOSTS_OF_DEBEZIUM = {"HOST_NAME", "ADVERTISED_HOST_NAME", "KAFKA_ADVERTISED_HOST_NAME"}
"""Variables without which debezium/kafka advertises the address that `ip addr` prints."""
_SPOTIFY = re.compile(r"(?:.*/)?spotify/kafka(?:proxy)?")
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
    name = container.hostname or container.name
    if _LENSES.fullmatch(image):
        host, port = env.get("ADV_HOST", name), env.get("BROKER_PORT", "9092")
        bind = f"PLAINTEXT://:{port}"
    elif _DEBEZIUM.fullmatch(image):
        host = env.get("ADVERTISED_HOST_NAME", env.get("HOST_NAME", name))
        bind = f"PLAINTEXT://{env.get('HOST_NAME', '')}:{env.get('PORT', '9092')}"
        port = env.get("ADVERTISED_PORT", env.get("PORT", "9092"))
    elif _SPOTIFY.fullmatch(image):
        host, port = env.get("ADVERTISED_HOST", name), env.get("ADVERTISED_PORT", "9092")
        bind = "PLAINTEXT://:9092"
    else:
        return {}
    advertised = f"PLAINTEXT://{host}:{port}"
    return {"KAFKA_LISTENERS": bind, "KAFKA_ADVERTISED_LISTENERS": advertised}


def may_be_broker(container: Container) -> bool:
    """Whether the image's name suggests a broker, and its use of variables is unknown."""
    image = repository_of(container.image)
    is_known_image = family_of(image) is not Family.UNKNOWN or is_broker(image, container.env)
    return not is_known_image and _LIKE_A_BROKER.fullmatch(image) is not None
