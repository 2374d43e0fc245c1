"""Facts about one container from its own inputs, without a view of the whole cluster.

The inputs are those of any `docker.Container` (or of a compose service): what reads the same is
enough for the rules that need no other node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from earshot.errors import AddressError
from earshot.listeners.address import Address, check_host
from earshot.listeners.grammar import (
    MAX_ID,
    Bad,
    read_listeners,
    read_protocols,
    read_voters,
)
from earshot.listeners.images import (
    APACHE_DEFAULTS,
    Family,
    broker_settings,
    derived_listeners,
    family_of,
    tag_of,
)
from earshot.listeners.model import ANY_IPV4, ClusterPlan, Listener, Node, Protocol, Role, Scope
from earshot.listeners.parse import Settings
from earshot.rules.audience import Audience, Context, audience
from earshot.rules.container import Container, is_loopback
from earshot.rules.container_inputs import Envs, Inputs, read_container
from earshot.rules.facts import Facts

_VERSION = re.compile(r"(3\.9|[4-9]\.\d+)\.\d+", re.ASCII)
_NAME = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)
_DIGITS = re.compile(r"[0-9]{1,10}", re.ASCII)
_DERIVE = (Family.APACHE, Family.CONFLUENT, Family.UNKNOWN)
"""Images that bind what is advertised where nothing else is given; untold ones are taken for such.
"""

T = TypeVar("T")


@dataclass(frozen=True)
class Heard:
    """One listener as it was read, and whom it is for."""

    name: str
    bind: Address
    advertised: Address
    protocol: Protocol
    audience: Audience


def container_facts(
    envs: Envs,
    ports: Inputs = (),
    networks: Inputs = (),
    name: str = "",
    image: str = "",
    *,
    hostname: str = "",
    mounts: Sequence[str] = (),
    network_mode: str = "",
) -> Facts:
    """The facts about the broker in one container, for judging it alone.

    ``ports`` are maps with `internal`, `external`, `ip` and `protocol`; ``networks`` maps with
    `name`, `aliases` and `ipv4Address`; ``mounts`` paths inside the container. Scopes that the
    variable `EARSHOT_SCOPES` names (`INTERNAL:internal,LAN:host+external`) are taken; others are
    told by `audience`, and where nothing tells, the widest is assumed.
    """
    return facts_of(
        read_container(
            {
                "name": name,
                "image": image,
                "hostname": hostname,
                "envs": envs,
                "ports": ports,
                "networksAdvanced": networks,
                "networkMode": network_mode,
                "mounts": [{"target": path} for path in mounts],
            }
        )
    )


def facts_of(
    container: Container, declared: Mapping[str, tuple[Scope, ...]] | None = None
) -> Facts:
    """The facts about a container whose inputs have been read; ``declared`` are scopes by name."""
    values = effective(container)
    notes = dict(broker_settings(container.family, container.env).notes)
    if version := version_of(container.image):
        notes["kafka_version"] = version
    id = node_id(values)
    return Facts(
        plan=None if container.unknown else _plan(container, values, id, notes, declared or {}),
        settings={id: Settings(handed_over(container), notes)},
        placement="docker",
        containers={id: container},
    )


def version_of(image: str) -> str:
    """The Kafka version that an apache/kafka image says it is, or an empty text."""
    tag = tag_of(image)
    known = family_of(image) is Family.APACHE and _VERSION.fullmatch(tag)
    return tag if known else ""


def handed_over(container: Container) -> dict[str, str]:
    """The broker properties that the image hands to Kafka: as given, with what it adds itself."""
    values = dict(broker_settings(container.family, container.env).values)
    if not values and container.family is Family.APACHE:
        return dict(APACHE_DEFAULTS)
    advertised = values.get("advertised.listeners", "")
    if advertised and "listeners" not in values and container.family in _DERIVE:
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


def node_id(values: Mapping[str, str]) -> int:
    """The id that the properties give a node; 0 where they give none."""
    text = values.get("node.id", values.get("broker.id", ""))
    return int(text) if _DIGITS.fullmatch(text) and int(text) <= MAX_ID else 0


def controller_names(values: Mapping[str, str]) -> tuple[str, ...]:
    """`controller.listener.names`."""
    listed = values.get("controller.listener.names", "").split(",")
    return tuple(name.strip() for name in listed if name.strip())


def inter_broker_name(values: Mapping[str, str]) -> str:
    """`inter.broker.listener.name`, with Kafka's default."""
    fallback = values.get("security.inter.broker.protocol", "PLAINTEXT")
    return values.get("inter.broker.listener.name", fallback).strip()


def roles_of(values: Mapping[str, str]) -> tuple[Role, ...]:
    """`process.roles`; without it a node is a broker of ZooKeeper's time."""
    listed = [part.strip() for part in values.get("process.roles", "").split(",")]
    return tuple(role for role in Role if role in listed) or (Role.BROKER,)


def asks_itself_alone(values: Mapping[str, str]) -> bool:
    """Whether the properties are those of a node that nobody else can ever join."""
    voters = dict(_good(read_voters(values.get("controller.quorum.voters", ""))))
    lone = list(voters) == [node_id(values)]
    return lone and is_loopback(voters[node_id(values)].host) and Role.BROKER in roles_of(values)


Tell = Callable[[str, int, Address], Audience]
"""Whom a listener is for, by its name, bind port and advertised address."""


def heard(values: Mapping[str, str], tell: Tell, own_name: str = "") -> list[Heard]:
    """Every listener of a node that can be read, in its order; what cannot is KL001's business.

    ``own_name`` is what a controller is reached at where neither its voter entry nor its bind
    address says.
    """
    binds = dict(_good(read_listeners(values.get("listeners", ""))))
    text = values.get("advertised.listeners")
    advertised = binds if text is None else dict(_good(read_listeners(text)))
    protocols = dict(_good(read_protocols(values.get("listener.security.protocol.map", ""))))
    controllers = controller_names(values)
    found = []
    for name, bind in binds.items():
        address = advertised.get(name)
        if name in controllers:
            if asks_itself_alone(values):
                continue  # its loopback is nobody else's business
            address = address or _own_voter(values) or bind
            address = address if address.host else Address(own_name, address.port)
        if address is None or not _is_host(address.host):
            continue
        fallback = Protocol(name) if name in list(Protocol) else Protocol.PLAINTEXT
        told = tell(name, bind.port, address)
        found.append(Heard(name, bind, address, protocols.get(name, fallback), told))
    return found


def heard_in(
    container: Container,
    values: Mapping[str, str],
    declared: Mapping[str, tuple[Scope, ...]] | None = None,
) -> list[Heard]:
    """The listeners of the node in ``container``; ``declared`` are scopes by listener name."""
    known = {**_noted(container), **(declared or {})}
    context = Context(
        inter_broker_name(values), controller_names(values), known, asks_itself_alone(values)
    )

    def tell(name: str, bind_port: int, advertised: Address) -> Audience:
        return audience(name, bind_port, advertised, container, context)

    return heard(values, tell, container.name)


def _plan(
    container: Container,
    values: Mapping[str, str],
    id: int,
    notes: Mapping[str, str],
    declared: Mapping[str, tuple[Scope, ...]],
) -> ClusterPlan | None:
    listeners = tuple(
        Listener(
            name=item.name,
            protocol=item.protocol,
            scopes=item.audience.scopes or _widest(item.advertised),
            bind_host=item.bind.host or ANY_IPV4,
            bind_port=item.bind.port,
            host=item.advertised.host,
            port=item.advertised.port,
        )
        for item in heard_in(container, values, declared)
    )
    names = (inter_broker_name(values), *controller_names(values)[:1])
    if not listeners or not all(map(_NAME.fullmatch, names)):
        return None  # KL001 and KL002 say why
    return ClusterPlan(
        kafka_version=notes.get("kafka_version", ""),
        inter_broker=names[0],
        controller=names[1] if len(names) > 1 else "CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=(Node(id=id, roles=roles_of(values), listeners=listeners),),
    )


def _widest(advertised: Address) -> tuple[Scope, ...]:
    """Whom a listener is judged for where nothing tells."""
    return (Scope.HOST if is_loopback(advertised.host) else Scope.EXTERNAL,)


def _noted(container: Container) -> dict[str, tuple[Scope, ...]]:
    found = {}
    for entry in filter(None, container.env.get("EARSHOT_SCOPES", "").split(",")):
        name, _, listed = entry.partition(":")
        scopes = [part for part in listed.split("+") if part in list(Scope)]
        found[name.strip()] = tuple(Scope(part) for part in scopes)
    return found


def _own_voter(values: Mapping[str, str]) -> Address | None:
    voters = dict(_good(read_voters(values.get("controller.quorum.voters", ""))))
    return voters.get(node_id(values))


def _good(items: Iterable[T | Bad]) -> Iterator[T]:
    return (item for item in items if not isinstance(item, Bad))


def _is_host(text: str) -> bool:
    try:
        return bool(check_host(text))
    except AddressError:
        return False
