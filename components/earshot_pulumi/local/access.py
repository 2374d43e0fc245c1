"""How brokers of this machine are asked: as themselves, or by a file of client properties."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from earshot.listeners.address import Address
from earshot.listeners.grammar import parse_entries
from earshot.listeners.model import ClusterPlan
from earshot.listeners.security import VALIDATOR_FILE, own_access, own_stores
from earshot.listeners.terms import Protocol
from earshot.validation.client import failure_of, translate
from earshot.validation.client_file import read_client_file
from earshot_pulumi.rolling import Links

KEY = "client_config"
CONNECT_SECONDS = 2.0
_LOOPBACKS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def client_properties(props: Mapping[str, Any]) -> dict[str, str]:
    """Those in the file that a resource's inputs name; none without one. Raises EarshotError."""
    path = props.get(KEY)
    return read_client_file(Path(path), f"{KEY}: {path}") if path else {}


def access(values: Mapping[str, str], client: Mapping[str, str]) -> dict[str, Any]:
    """Librdkafka's settings to come in where brokers reach a node, started with ``values``.

    ``client`` are Kafka's client properties. Empty where nothing is asked for. Raises EarshotError
    for properties that librdkafka has no counterpart of.
    """
    if own := own_access(values):
        return own
    links = Links.of_settings(values)
    protocol = links.protocols.get(links.inter_broker, Protocol.PLAINTEXT)
    if protocol == Protocol.PLAINTEXT:
        return {}
    return translate(client) | {"security.protocol": protocol}


def accepts_connections(address: Address) -> bool:
    """Whether something listens at ``address``."""
    try:
        socket.create_connection(address, CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def of_clients(
    values: Mapping[str, str], client: Mapping[str, str], folder: Path
) -> dict[str, dict[str, Any]]:
    """Librdkafka's settings to connect through each listener for clients, by its name.

    ``values`` are the settings that the broker was started with, ``folder`` the stack's keys and
    logins. The addresses are those that the broker binds: the validation proves the names. Raises
    EarshotError as `access` does.
    """
    if "listeners" not in values:
        return {}  # its settings are not known
    links = Links.of_settings(values)
    return {
        name: {
            **_credentials(values, name, Protocol(links.protocols[name]), client, folder),
            "bootstrap.servers": str(bound._replace(host=_LOOPBACKS.get(bound.host, bound.host))),
            "security.protocol": links.protocols[name],
        }
        for name, bound in parse_entries(values["listeners"])
        if name not in (links.inter_broker, links.controller) and name in links.protocols
    }


def _credentials(
    values: Mapping[str, str],
    listener: str,
    protocol: Protocol,
    client: Mapping[str, str],
    folder: Path,
) -> dict[str, Any]:
    if protocol is Protocol.PLAINTEXT:
        return {}
    stores = own_stores(values, listener)
    if not stores:
        return translate(client)
    if protocol.sasl:
        file = folder / VALIDATOR_FILE
        own = translate(read_client_file(file, str(file)))
        # the broker may run with an earlier authority than the stack's newest
        own["ssl.ca.location"] = stores["ssl.truststore.location"]
    else:
        own = {
            "ssl.ca.location": stores["ssl.truststore.location"],
            "ssl.certificate.location": stores["ssl.keystore.location"],
            "ssl.key.location": stores["ssl.keystore.location"],
        }
    return own | {"ssl.endpoint.identification.algorithm": "none"}


def problems(plan: ClusterPlan, props: Mapping[str, Any]) -> Iterator[str]:
    """Why the listeners of ``plan``, a step's, cannot be proved: credentials that are missing.

    Raises EarshotError for a file that cannot be read.
    """
    if plan.security is not None:
        return  # it makes credentials, and comes in with them
    client = client_properties(props)
    secured = [it for it in plan.brokers[0].listeners if it.protocol is not Protocol.PLAINTEXT]
    asked = [it for it in secured if it.protocol.sasl]
    listed = ", ".join(f"{it.name} ({it.protocol})" for it in asked)
    if asked and not client:
        yield (
            f"{KEY}: is missing, and {listed} ask for credentials: neither a broker's start nor "
            "these listeners could be proved. Let the key name a file of Kafka's client "
            "properties, and stay until they are gone"
        )
    elif asked and "sasl.mechanism" not in client:
        yield f"{KEY}: {props[KEY]} has no sasl.mechanism, and {listed} ask for one"
    elif client:
        for item in secured:
            try:  # it opens no connection
                AdminClient(
                    {**translate(client), "security.protocol": item.protocol, "log_level": 0}
                )
            except KafkaException as reason:
                said = failure_of(reason).text
                yield f"{KEY}: {props[KEY]} is no way into {item.name} ({item.protocol}): {said}"
