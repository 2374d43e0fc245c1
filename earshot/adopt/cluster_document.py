"""Writes `earshot:cluster` for adopted brokers, as plain data; no other module knows its keys.

Settings that a stack file cannot contain are left over: those of ZooKeeper, other vendors and start
scripts, and secrets.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from earshot.config.cluster import FIRST_SEPARATE_CONTROLLER
from earshot.errors import EarshotError
from earshot.facts.settings import controller_names, readable_entries
from earshot.json_object import JsonObject
from earshot.listeners.grammar import read_listeners
from earshot.listeners.images import OWN_VARIABLES, Family, broker_property
from earshot.listeners.listed import numbered, shortened
from earshot.listeners.owned import OWNED, check_property
from earshot.listeners.properties import NodeSettings, property_of, property_of_3, write_environment
from earshot.listeners.secrets import INSTEAD, reveals
from earshot.listeners.terms import CLIENT_SCOPES, DEFAULT_KAFKA, Protocol, Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.sources.container import version_of
from earshot.sources.kafka_broker import KafkaBroker
from earshot.sources.parsed_listener import ParsedListener
from earshot.sources.service import Service
from earshot.topology.container import Container, is_loopback

CONTROLLER_PORT = 9093
_NUMBER = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_REPLICAS = {
    "default.replication.factor": "replication_factor",
    "min.insync.replicas": "min_insync_replicas",
}
"""Keys of the stack file, by the properties that they set."""


def docker_document(brokers: Sequence[KafkaBroker]) -> tuple[dict[str, object], tuple[str, ...]]:
    """The cluster on placement `docker`, and notes for the user.

    Ids, service names, published ports and advertised addresses are kept.
    """
    notes: list[str] = []
    serving = [broker for broker in brokers if broker.is_broker]
    version = version_of(serving[0].image) or DEFAULT_KAFKA
    if version_of(serving[0].image) == "":
        source = serving[0].image or "an image that is not named"
        notes.append(f"{source} becomes apache/kafka:{version}, which runs KRaft (3.9 and later)")
    document: JsonObject = {
        "placement": "docker",
        "brokers": len(serving),
        "broker_ids": [broker.id for broker in serving],
        "names": {broker.id: broker.name for broker in serving},
        "image": f"apache/kafka:{version}",
        "kafka_version": version,
        "listeners": [
            _docker_listener(name, listeners, notes)
            for name, listeners in _by_name(serving).items()
        ],
    }
    return {**document, **_common_section(brokers, serving, notes)}, tuple(notes)


def local_document(broker: KafkaBroker) -> tuple[dict[str, object], tuple[str, ...]]:
    """The cluster of one properties file on placement `local`, which counts brokers from 1."""
    notes = []
    if broker.id != 1:
        notes.append(f"node id {broker.id} becomes 1: on this machine ids follow `brokers`")
    listeners = []
    for listener in broker.listeners:
        if Scope.CONTROLLER in listener.audience.scopes:
            continue
        section, bind, address = _listener(listener), listener.bind, listener.advertised
        if bind.host:
            section["bind"] = bind.host
        if not is_loopback(address.host) or address.port != bind.port:
            section["advertised"] = {1: str(address)}
        listeners.append(section)
    document: JsonObject = {
        "placement": "local",
        "brokers": 1,
        "kafka_version": DEFAULT_KAFKA,
        "listeners": listeners,
    }
    return {**document, **_common_section([broker], [broker], notes)}, tuple(notes)


def _docker_listener(
    name: str, listeners: Mapping[int, tuple[KafkaBroker, ParsedListener]], notes: list[str]
) -> dict[str, object]:
    first_listener = next(iter(listeners.values()))[1]
    section = _listener(first_listener)
    if bind := _bind(name, listeners.values(), notes):
        section["bind"] = bind
    published, interfaces = {}, set()
    advertised, moved = {}, {}
    for id, (broker, listener) in listeners.items():
        address, container = listener.advertised, broker.container
        if container is not None and (port := _published(container, listener)):
            published[id], interface = port
            interfaces.add(interface)
        has_other_port = listener.bind.port != first_listener.bind.port
        if has_other_port and container is not None and container.has_name(address.host):
            moved[id] = listener.bind.port
            address = address._replace(port=first_listener.bind.port)
        advertised[id] = str(address)
    if moved:
        ports = shortened(list(dict.fromkeys(map(str, moved.values()))))
        notes.append(
            f"listener {name}: {numbered('broker', moved)} on {first_listener.bind.port} now, as "
            f"the first, and not on {ports}; clients in its network must follow"
        )
    if published:
        section["published"] = published
    if interface_names := sorted(interfaces - {""}):
        notes.append(
            f"listener {name}: was published only on {', '.join(interface_names)}; see that the "
            "stack's host keeps it so"
        )
    section["advertised"] = advertised
    return section


def _listener(listener: ParsedListener) -> dict[str, object]:
    """The keys of a listener that do not depend on the placement."""
    section: dict[str, object] = {
        "name": listener.name,
        "port": listener.bind.port,
        "scopes": [str(scope) for scope in CLIENT_SCOPES if scope in listener.audience.scopes],
    }
    if listener.protocol is not Protocol.PLAINTEXT:
        section["protocol"] = str(listener.protocol)
    return section


def _bind(
    name: str, listeners: Iterable[tuple[KafkaBroker, ParsedListener]], notes: list[str]
) -> str:
    """The interface that the source binds; empty for all interfaces."""
    hosts = {}
    for broker, listener in listeners:
        host = listener.bind.host
        if host and kind_of(host) is not NameKind.ANY_ADDRESS:
            hosts[host] = broker.container is not None and broker.container.has_name(host)
    if len(hosts) <= 1:
        return next(iter(hosts), "")
    if foreign_hosts := [host for host, is_own in hosts.items() if not is_own]:
        return foreign_hosts[0]  # keeps the mistake, so that it is reported
    notes.append(f"listener {name}: binds all interfaces now, and not {', '.join(hosts)}")
    return ""


def _published(container: Container, listener: ParsedListener) -> tuple[int, str] | None:
    published = container.published_at(listener.bind.port)
    ports = [(port.host_port, port.host_ip) for port in published if port.host_port is not None]
    if not ports or container.on_host_network:
        return None
    return next((port for port in ports if port[0] == listener.advertised.port), ports[0])


def _common_section(
    brokers: Sequence[KafkaBroker], serving: Sequence[KafkaBroker], notes: list[str]
) -> dict[str, object]:
    """The keys of quorum, replication and extra properties, for every placement."""
    first_broker = serving[0]
    section: dict[str, object] = {"inter_broker": first_broker.inter_broker}
    section["controllers"] = _controllers(brokers, notes)
    for key, name in _REPLICAS.items():
        text = first_broker.values.get(key, "")
        if _NUMBER.fullmatch(text) and int(text) <= len(serving):
            section[name] = int(text)
        elif _NUMBER.fullmatch(text):
            notes.append(f"{key}: {text} is more than there are brokers; it is left out")
    extra = extra_properties(first_broker)
    ids_by_keys: dict[str, list[int]] = {}
    for broker in serving[1:]:
        values = extra_properties(broker)
        keys = sorted(key for key in {*extra, *values} if extra.get(key) != values.get(key))
        if keys:
            ids_by_keys.setdefault(", ".join(keys), []).append(broker.id)
    for keys_text, ids in ids_by_keys.items():
        notes.append(
            f"{numbered('broker', ids)}: other values than broker {first_broker.id} for "
            f"{keys_text}; `extra` has those of broker {first_broker.id}"
        )
    if extra:
        section["extra"] = extra
    return section


def _controllers(brokers: Sequence[KafkaBroker], notes: list[str]) -> dict[str, object]:
    controlling = [broker for broker in brokers if broker.is_controller]
    separate = [broker for broker in controlling if not broker.is_broker]
    client_ports = {
        listener.bind.port
        for broker in brokers
        if broker.is_broker
        for listener in broker.listeners
    }
    names = [name for broker in controlling for name in controller_names(broker.values)]
    ports = [port for broker in controlling for port in _controller_ports(broker.values)]
    free = next(port for port in range(CONTROLLER_PORT, 65536) if port not in client_ports)
    section: dict[str, object] = {"mode": "separate" if separate else "combined"}
    if controlling:
        section["count"] = len(separate) or len(controlling)
    if separate:
        ids = ", ".join(str(broker.id) for broker in separate)
        start = FIRST_SEPARATE_CONTROLLER
        notes.append(f"separate controllers have node ids from {start} on, and not {ids}")
    if names:
        section["name"] = names[0]
    section["port"] = ports[0] if ports else free
    return section


def _controller_ports(values: Mapping[str, str]) -> Iterator[int]:
    """The ports of a node's controller listeners."""
    names = controller_names(values)
    for name, bind in readable_entries(read_listeners(values.get("listeners", ""))):
        if name in names:
            yield bind.port


def _by_name(
    brokers: Sequence[KafkaBroker],
) -> dict[str, dict[int, tuple[KafkaBroker, ParsedListener]]]:
    """Client listeners in the order of their first appearance, each with its brokers."""
    listeners: dict[str, dict[int, tuple[KafkaBroker, ParsedListener]]] = {}
    for broker in brokers:
        for listener in broker.listeners:
            if Scope.CONTROLLER not in listener.audience.scopes:
                listeners.setdefault(listener.name, {})[broker.id] = (broker, listener)
    return listeners


_ZOOKEEPER_IMAGE = re.compile(r"(?:.*/)?[a-z-]*zookeeper[a-z-]*(?:[:@].*)?")
_PLACEHOLDER = re.compile(r"_\{[A-Z_]+\}")
_GONE = {
    "inter.broker.protocol.version": "Kafka 4 has feature levels instead",
    "log.message.format.version": "Kafka 4 has one message format",
    "broker.id.generation.enable": "KRaft does not generate node ids",
    "reserved.broker.max.id": "KRaft does not generate node ids",
}
_ACL = "kafka.security.authorizer.AclAuthorizer"
_OF_OLD = ("control.plane.listener.name", "host.name", "port")
"""Former properties for which the stack file has no key."""


@dataclass(frozen=True)
class Leftover:
    """A setting that is not carried over, with the reason or its replacement."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


_TOPICS = "topics and their data"
_DATA = Leftover(
    _TOPICS,
    "the new stack begins with empty volumes; the data of these brokers stay where they are",
)
_DATA_OF_ZOOKEEPER = Leftover(
    _TOPICS,
    "a new KRaft cluster begins empty; moving a ZooKeeper cluster with its data takes Kafka's own "
    "migration, of which 3.9 is the last version",
)


def leftovers(brokers: Sequence[KafkaBroker], services: Sequence[Service]) -> tuple[Leftover, ...]:
    """The distinct settings and data that are not carried over."""
    leftovers_found = [*_zookeepers(services)]
    for broker in brokers:
        leftovers_found += [*_variables(broker), *_properties(broker)]
    is_zookeeper = any(broker.is_zookeeper for broker in brokers)
    leftovers_found.append(_DATA_OF_ZOOKEEPER if is_zookeeper else _DATA)
    return tuple(dict.fromkeys(leftovers_found))


def extra_properties(broker: KafkaBroker) -> dict[str, str]:
    """The broker properties for `extra` of the stack file."""
    return {
        key: value
        for key, value in sorted(broker.raw.values.items())
        if key not in OWNED and not _refusal(broker, key, value)
    }


def _zookeepers(services: Sequence[Service]) -> Iterator[Leftover]:
    for service in services:
        if _ZOOKEEPER_IMAGE.fullmatch(service.container.image):
            yield Leftover(
                f"service {service.name} ({service.container.image})",
                "KRaft needs no ZooKeeper; the brokers store the metadata",
            )


def _variables(broker: KafkaBroker) -> Iterator[Leftover]:
    for name, value in (broker.container.env if broker.container is not None else {}).items():
        if name in OWN_VARIABLES and name != "KAFKA_VERSION":
            yield Leftover(f"variable {name}", "it is for the image's scripts, not for the broker")
        elif name.startswith("KAFKA_") and not broker_property(broker.family, name, broker.image):
            yield Leftover(f"variable {name}", "it is not a property of the broker")
        if broker.family is Family.WURSTMEISTER and _PLACEHOLDER.search(value):
            yield Leftover(
                f"the placeholder in {name}",
                "only wurstmeister's start script replaces it; write the name out",
            )


def _properties(broker: KafkaBroker) -> Iterator[Leftover]:
    for key, value in sorted(broker.raw.values.items()):
        if key.startswith("zookeeper."):
            yield Leftover(key, "no counterpart in KRaft")
        elif key == "broker.id":
            yield Leftover(key, f"it is KRaft's node.id now: {broker.id}")
        elif key in _OF_OLD:
            yield Leftover(key, OWNED[key])
        elif key not in OWNED and (reason := _refusal(broker, key, value)):
            yield Leftover(key, reason)


def _refusal(broker: KafkaBroker, key: str, value: str) -> str:
    """Why the property cannot be in `extra`; empty if it can."""
    if key in _GONE:
        return _GONE[key]
    if key == "authorizer.class.name" and value == _ACL:
        return "KRaft has org.apache.kafka.metadata.authorizer.StandardAuthorizer instead"
    if key.startswith("confluent.") or "io.confluent." in value:
        return "Apache Kafka does not have Confluent's own parts"
    if reveals(key, value):
        return f"it contains a secret in clear text; a stack file takes {INSTEAD}"
    try:
        check_property(key, value)
        if broker.container is not None:
            is_3 = version_of(broker.container.image).startswith("3.")
            reads = property_of_3 if is_3 else property_of
            write_environment(NodeSettings({key: value}), reads)
    except ValueError as error:
        return str(error).removeprefix(f"{key}: ")
    except EarshotError as error:
        return error.observed
    return ""
