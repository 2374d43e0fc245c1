"""Client settings to connect to brokers of this machine, from their own keys or a client file."""

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from earshot.listeners.address import Address
from earshot.listeners.grammar import parse_entries
from earshot.listeners.model import ClusterPlan
from earshot.listeners.security import VALIDATOR_FILE, own_access, own_stores
from earshot.listeners.terms import Protocol
from earshot.validation.client import failure_of, translate
from earshot.validation.client_file import read_client_file
from earshot_pulumi.node_links import Links
from earshot_pulumi.provider.kind import Properties

KEY = "client_config"
CONNECT_SECONDS = 2.0
_LOOPBACKS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def client_properties(props: Properties) -> dict[str, str]:
    """The properties in the client file of a resource's inputs; empty without a file.

    Raises EarshotError.
    """
    path = props.get(KEY)
    return read_client_file(Path(path), f"{KEY}: {path}") if path else {}


def access(values: Mapping[str, str], client: Mapping[str, str]) -> Properties:
    """Librdkafka's settings to connect to the inter-broker listener of a node.

    ``values`` are the settings that the node was started with, ``client`` Kafka's client
    properties. Empty for a plaintext listener. Raises EarshotError for properties without an
    equivalent in librdkafka.
    """
    if settings := own_access(values):
        return settings
    links = Links.of_settings(values)
    protocol = links.protocols.get(links.inter_broker, Protocol.PLAINTEXT)
    if protocol == Protocol.PLAINTEXT:
        return {}
    return translate(client) | {"security.protocol": protocol}


def accepts_connections(address: Address) -> bool:
    """True if a process accepts connections at ``address``."""
    try:
        socket.create_connection(address, CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def client_settings(
    values: Mapping[str, str], client: Mapping[str, str], folder: Path
) -> dict[str, Properties]:
    """Librdkafka's settings to connect to each client listener of a broker, by listener name.

    ``values`` are the settings that the broker was started with, ``folder`` holds the stack's keys
    and logins. The addresses are those that the broker binds; the validation checks the advertised
    ones. Raises EarshotError like `access`.
    """
    if "listeners" not in values:
        return {}  # its settings are lost
    links = Links.of_settings(values)
    return {
        name: {
            **_credentials(values, name, Protocol(links.protocols[name]), client, folder),
            "bootstrap.servers": str(
                address._replace(host=_LOOPBACKS.get(address.host, address.host))
            ),
            "security.protocol": links.protocols[name],
        }
        for name, address in parse_entries(values["listeners"])
        if name not in (links.inter_broker, links.controller) and name in links.protocols
    }


def _credentials(
    values: Mapping[str, str],
    listener: str,
    protocol: Protocol,
    client: Mapping[str, str],
    folder: Path,
) -> Properties:
    if protocol is Protocol.PLAINTEXT:
        return {}
    stores = own_stores(values, listener)
    if not stores:
        return translate(client)
    if protocol.sasl:
        file = folder / VALIDATOR_FILE
        settings = translate(read_client_file(file, str(file)))
        # the broker may use an earlier authority than the stack's newest
        settings["ssl.ca.location"] = stores["ssl.truststore.location"]
    else:
        settings = {
            "ssl.ca.location": stores["ssl.truststore.location"],
            "ssl.certificate.location": stores["ssl.keystore.location"],
            "ssl.key.location": stores["ssl.keystore.location"],
        }
    return settings | {"ssl.endpoint.identification.algorithm": "none"}


def problems(plan: ClusterPlan, props: Properties) -> Iterator[str]:
    """A message for each credential for listeners of ``plan`` that the client file lacks.

    Raises EarshotError if the file cannot be read.
    """
    if plan.security is not None:
        return  # the stack issues credentials itself
    client = client_properties(props)
    secured_listeners = [
        listener
        for listener in plan.brokers[0].listeners
        if listener.protocol is not Protocol.PLAINTEXT
    ]
    login_listeners = [listener for listener in secured_listeners if listener.protocol.sasl]
    listeners = ", ".join(f"{listener.name} ({listener.protocol})" for listener in login_listeners)
    if login_listeners and not client:
        yield (
            f"{KEY}: is missing, and {listeners} ask for credentials: without a client, neither a "
            "broker's start nor these listeners can be proved. Set the key to the path of a file "
            "with Kafka's client properties, and keep it as long as there are such listeners"
        )
    elif login_listeners and "sasl.mechanism" not in client:
        yield f"{KEY}: {props[KEY]} has no sasl.mechanism, and {listeners} ask for one"
    elif client:
        for listener in secured_listeners:
            try:  # opens no connection
                AdminClient(
                    {**translate(client), "security.protocol": listener.protocol, "log_level": 0}
                )
            except KafkaException as reason:
                cause = failure_of(reason).text
                target = f"{listener.name} ({listener.protocol})"
                yield f"{KEY}: {props[KEY]} cannot be used for {target}: {cause}"
