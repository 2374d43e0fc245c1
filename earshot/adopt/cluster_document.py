"""`earshot:cluster` of what was adopted, as plain data: the one place that knows its keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from earshot.adopt.kafka_broker import KafkaBroker
from earshot.adopt.leftovers import free_properties
from earshot.listeners.model import CLIENT_SCOPES, Protocol, Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.rules.container import Container, is_loopback
from earshot.rules.container_facts import Heard, controller_names, version_of
from earshot.spec.cluster import DEFAULT_KAFKA, FIRST_SEPARATE_CONTROLLER

CONTROLLER_PORT = 9093
_NUMBER = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)


def docker_document(brokers: Sequence[KafkaBroker]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The cluster on placement `docker`, and what is worth saying about it.

    Ids, service names, published ports and advertised addresses are kept.
    """
    notes: list[str] = []
    serving = [item for item in brokers if item.is_broker]
    version = version_of(serving[0].image) or DEFAULT_KAFKA
    if version_of(serving[0].image) == "":
        source = serving[0].image or "an image that is not named"
        notes.append(f"{source} becomes apache/kafka:{version}, which runs KRaft (3.9 and later)")
    document: dict[str, Any] = {
        "placement": "docker",
        "brokers": len(serving),
        "broker_ids": [item.id for item in serving],
        "names": {item.id: item.name for item in serving},
        "image": f"apache/kafka:{version}",
        "kafka_version": version,
        "listeners": [
            _docker_listener(name, found, notes) for name, found in _by_name(serving).items()
        ],
    }
    return {**document, **_rest(brokers, serving, notes)}, tuple(notes)


def local_document(broker: KafkaBroker) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The cluster of one properties file on placement `local`, which counts brokers from 1."""
    notes = []
    if broker.id != 1:
        notes.append(f"node id {broker.id} becomes 1: on this machine ids follow `brokers`")
    listeners = []
    for heard in broker.heard:
        if Scope.CONTROLLER in heard.audience.scopes:
            continue
        item: dict[str, Any] = _common(heard)
        if heard.bind.host:
            item["bind"] = heard.bind.host
        if not is_loopback(heard.advertised.host) or heard.advertised.port != heard.bind.port:
            item["advertised"] = {1: str(heard.advertised)}
        listeners.append(item)
    document: dict[str, Any] = {
        "placement": "local",
        "brokers": 1,
        "kafka_version": DEFAULT_KAFKA,
        "listeners": listeners,
    }
    return {**document, **_rest([broker], [broker], notes)}, tuple(notes)


def _docker_listener(
    name: str, found: Mapping[int, tuple[KafkaBroker, Heard]], notes: list[str]
) -> dict[str, Any]:
    first = next(iter(found.values()))[1]
    item = _common(first)
    if bind := _bind(name, [(broker, heard) for broker, heard in found.values()], notes):
        item["bind"] = bind
    published, interfaces = {}, set()
    advertised = {}
    for id, (broker, heard) in found.items():
        address = heard.advertised
        moved = heard.bind.port != first.bind.port
        if moved and broker.container is not None and broker.container.answers_to(address.host):
            notes.append(
                f"listener {name}: broker {id} listens on {first.bind.port} now, as the first "
                f"does, and not on {heard.bind.port}; clients in its network must follow"
            )
            address = address._replace(port=first.bind.port)
        advertised[id] = str(address)
        if broker.container is not None and (port := _published(broker.container, heard)):
            published[id], interface = port
            interfaces.add(interface)
    if published:
        item["published"] = published
    if interfaces - {""}:
        notes.append(
            f"listener {name}: was published on {', '.join(sorted(interfaces - {''}))} alone; see "
            "that the stack's host keeps it so"
        )
    item["advertised"] = advertised
    return item


def _common(heard: Heard) -> dict[str, Any]:
    item: dict[str, Any] = {
        "name": heard.name,
        "port": heard.bind.port,
        "scopes": [str(scope) for scope in CLIENT_SCOPES if scope in heard.audience.scopes],
    }
    if heard.protocol is not Protocol.PLAINTEXT:
        item["protocol"] = str(heard.protocol)
    return item


def _bind(name: str, found: Iterable[tuple[KafkaBroker, Heard]], notes: list[str]) -> str:
    """The interface that the source binds, where it is not all of them."""
    hosts = {}
    for broker, heard in found:
        host = heard.bind.host
        if host and kind_of(host) is not NameKind.ANY_ADDRESS:
            own = broker.container is not None and broker.container.answers_to(host)
            hosts[host] = own
    if len(hosts) <= 1:
        return next(iter(hosts), "")
    others = [host for host, own in hosts.items() if not own]
    if others:
        return others[0]  # a mistake stays, to be seen and mended
    notes.append(f"listener {name}: binds all interfaces now, and not {', '.join(hosts)}")
    return ""


def _published(container: Container, heard: Heard) -> tuple[int, str] | None:
    ports = [item for item in container.published_at(heard.bind.port) if item.host_port is not None]
    if not ports or container.on_host_network:
        return None
    fitting = [item for item in ports if item.host_port == heard.advertised.port]
    chosen = (fitting or ports)[0]
    return chosen.host_port or 0, chosen.host_ip


def _rest(
    brokers: Sequence[KafkaBroker], serving: Sequence[KafkaBroker], notes: list[str]
) -> dict[str, Any]:
    """Quorum, replication and free properties, for every placement alike."""
    first = serving[0]
    found: dict[str, Any] = {
        "inter_broker": first.inter_broker,
        "controllers": _controllers(brokers, notes),
    }
    for key, name in (
        ("default.replication.factor", "replication_factor"),
        ("min.insync.replicas", "min_insync_replicas"),
    ):
        text = first.values.get(key, "")
        if not _NUMBER.fullmatch(text):
            continue
        if int(text) <= len(serving):
            found[name] = int(text)
        else:
            notes.append(f"{key}: {text} is more than there are brokers; it is left out")
    extra = free_properties(first)
    for other in serving[1:]:
        theirs = free_properties(other)
        differing = sorted(key for key in {*extra, *theirs} if extra.get(key) != theirs.get(key))
        if differing:
            notes.append(
                f"broker {other.id} differs from broker {first.id} in {', '.join(differing)}; "
                f"`extra` holds broker {first.id}'s"
            )
    if extra:
        found["extra"] = extra
    return found


def _controllers(brokers: Sequence[KafkaBroker], notes: list[str]) -> dict[str, Any]:
    controlling = [item for item in brokers if item.is_controller]
    separate = [item for item in controlling if not item.is_broker]
    taken = {heard.bind.port for item in brokers if item.is_broker for heard in item.heard}
    names = [name for item in controlling for name in controller_names(item.values)]
    sockets = [
        heard
        for item in controlling
        for heard in item.heard
        if Scope.CONTROLLER in heard.audience.scopes
    ]
    if sockets:
        port = sockets[0].bind.port
    else:
        port = next(port for port in range(CONTROLLER_PORT, 65536) if port not in taken)
    found: dict[str, Any] = {"mode": "separate" if separate else "combined"}
    if controlling:
        found["count"] = len(separate) or len(controlling)
    if separate:
        ids = ", ".join(str(item.id) for item in separate)
        first = FIRST_SEPARATE_CONTROLLER
        notes.append(f"separate controllers have node ids from {first} on, and not {ids}")
    if names:
        found["name"] = names[0]
    found["port"] = port
    return found


def _by_name(brokers: Sequence[KafkaBroker]) -> dict[str, dict[int, tuple[KafkaBroker, Heard]]]:
    """Client listeners in the order of their first appearance, each with its brokers."""
    found: dict[str, dict[int, tuple[KafkaBroker, Heard]]] = {}
    for broker in brokers:
        for heard in broker.heard:
            if Scope.CONTROLLER not in heard.audience.scopes:
                found.setdefault(heard.name, {})[broker.id] = (broker, heard)
    return found
