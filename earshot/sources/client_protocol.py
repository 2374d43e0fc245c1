"""Which security protocol a client speaks, as far as its variables and its image show it.

A client that is told nothing speaks PLAINTEXT. That it is told nothing is known only of images
whose variables are known, where neither a file nor a command may say more. Sources: the pages of
each image on its configuration.
"""

import re
from collections.abc import Mapping

from earshot.listeners.images import repository_of
from earshot.listeners.placeholders import is_known
from earshot.listeners.terms import Protocol
from earshot.sources.compose import Service

_DEFAULTS = re.compile(
    r"(?:.*/)?(?:cp-(?:schema-registry|kafka-connect(?:-base)?|ksqldb-server|kafka-rest)"
    r"|(?:provectuslabs|kafbat)/kafka-ui)",
    re.ASCII,
)
"""Images that speak PLAINTEXT where no variable says otherwise."""
_PROTOCOL = re.compile(r"SECURITY[_.\-]?PROTOCOL$", re.ASCII | re.IGNORECASE)
_ADDRESSES = re.compile(r"BOOTSTRAP[_.\-]?(?:SERVERS?|BROKERS?)$", re.ASCII | re.IGNORECASE)
_PREFIX = re.compile(r"\s*([A-Z_]+)://", re.ASCII)
_MORE = re.compile(r"CONFIG|PROPERTIES_FILE|JAAS|SASL|SSL|TLS", re.ASCII | re.IGNORECASE)


def client_protocol(service: Service, setting: str, value: str) -> str:
    """The protocol of the client whose addresses ``setting`` holds; an empty text if unknown."""
    own = {str(item) for item in Protocol}
    # Schema Registry takes the protocol before an address for its own; others ignore it
    if "KAFKASTORE" in setting.upper() and (prefix := _PREFIX.match(value)) and prefix[1] in own:
        return prefix[1]
    env = service.container.env
    start = _ADDRESSES.sub("", setting)
    if start == setting:
        return ""
    told = {name: text.strip().upper() for name, text in env.items() if _PROTOCOL.search(name)}
    mine = [text for name, text in told.items() if _is_same_client(start, name)]
    if mine:
        return mine[0] if mine[0] in own else ""
    return "PLAINTEXT" if not told and _is_told_nothing(service, env) else ""


def _is_same_client(start: str, name: str) -> bool:
    """Whether a variable for the protocol is for the client whose variables begin with ``start``.

    Kafka UI puts PROPERTIES between: KAFKA_CLUSTERS_0_PROPERTIES_SECURITY_PROTOCOL.
    """
    rest = _PROTOCOL.sub("", name).upper()
    own = start.upper()
    return rest in (own, f"{own}PROPERTIES_", f"{own}PROPERTIES.")


def _is_told_nothing(service: Service, env: Mapping[str, str]) -> bool:
    container = service.container
    if not _DEFAULTS.fullmatch(repository_of(container.image)) or service.is_built:
        return False
    if container.unknown or service.command or container.mounts or not is_known(container.image):
        return False
    return not any(_MORE.search(name) and not _is_storage(name) for name in env)


def _is_storage(name: str) -> bool:
    """Kafka Connect's topic for configurations."""
    return "CONFIG_STORAGE" in name or name.endswith("DYNAMIC_CONFIG_ENABLED")
