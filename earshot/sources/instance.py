"""Facts about the broker on one EC2 instance from its user data.

The scopes of a listener follow from a comment `#earshot.scopes=CLIENTS:internal,LAN:external` in
the properties, or else from its name, or else from the kind of its advertised host.
"""

from collections.abc import Mapping

from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import (
    controller_names,
    inter_broker_name,
    node_id,
    readable_entries,
    roles_of,
)
from earshot.listeners.address import Address
from earshot.listeners.grammar import read_listeners, read_servers, read_voters
from earshot.listeners.model import ClusterPlan
from earshot.listeners.terms import Role, Scope, UnknownHost
from earshot.names.kinds import NameKind, kind_of
from earshot.sources.parsed_listener import Audience, lone_plan, noted_scopes, parsed_listeners
from earshot.sources.user_data import PLACE, UserDataFile
from earshot.topology.container import is_loopback

_NAME_PARTS = {
    Scope.EXTERNAL: ("EXTERNAL", "PUBLIC", "OUTSIDE", "INTERNET"),
    Scope.INTERNAL: ("INTERNAL", "PRIVATE", "INSIDE", "VPC", "REPLICATION"),
}
"""Parts of a listener's name that show its scope."""
_OF_THE_VPC = frozenset(
    {
        NameKind.EC2_PRIVATE,
        NameKind.EC2_RESOURCE,
        NameKind.PRIVATE_ADDRESS,
        NameKind.SHARED_ADDRESS,
        NameKind.PRIVATE_TLD,
        NameKind.SINGLE_LABEL,
    }
)
_PUBLIC = frozenset({NameKind.EC2_PUBLIC, NameKind.PUBLIC_ADDRESS})
_NEEDED = frozenset({"listeners", "advertised.listeners", "process.roles"})
"""Properties without which there is no plan, if the instance computes them."""
_OWN = PLACE.format(0)
_COMPUTED = "what the instance itself computes"


def instance_facts(written: UserDataFile, own_name: str | UnknownHost = "") -> ClusterFacts:
    """The facts about the broker of the properties file ``written``.

    ``own_name`` is the machine's name, Kafka's default for an advertised host; without it the plan
    lacks such listeners. A host that the instance computes is an `UnknownHost`.
    """
    values = written.settings.values
    hosts: dict[str, str | UnknownHost] = {
        place: UnknownHost(what=f"{_COMPUTED}, {text}") for place, text in written.computed.items()
    }
    hosts[_OWN] = own_name
    plan = None
    if not _NEEDED & set(written.computed):
        named_values = with_own_name(values, _OWN) if own_name else values
        plan = _plan(named_values, written.settings.notes, hosts)
    return ClusterFacts(plan=plan, settings={node_id(values): written.settings}, placement="aws")


def with_own_name(values: Mapping[str, str], name: str) -> dict[str, str]:
    """The properties with ``name`` for empty advertised hosts."""
    text = values.get("advertised.listeners", values.get("listeners", "PLAINTEXT://:9092"))
    entries = list(read_listeners(text))
    good = dict(readable_entries(entries))
    if len(good) < len(entries):
        return dict(values)  # KL002 reports it
    texts = [
        f"{listener}://{Address(address.host or name, address.port)}"
        for listener, address in good.items()
        if listener not in controller_names(values)
    ]
    properties = {"listeners": "PLAINTEXT://:9092", **values}
    return {**properties, "advertised.listeners": ",".join(texts)} if texts else properties


def audience(name: str, advertised: Address, values: Mapping[str, str]) -> Audience:
    """The scopes of the listener ``name``; empty if nothing shows them."""
    scopes = {
        scope: f"its name holds {part}"
        for scope, parts in _NAME_PARTS.items()
        for part in parts
        if part in name.upper()
    }
    kind = kind_of(advertised.host)
    if not scopes and kind in _PUBLIC:
        scopes[Scope.EXTERNAL] = f"{advertised.host} is {kind}"
    elif not scopes and kind in _OF_THE_VPC:
        scopes[Scope.INTERNAL] = f"{advertised.host} is {kind}"
    if name == inter_broker_name(values) and not _is_own_loopback(advertised, values):
        scopes.setdefault(Scope.INTERNAL, "the brokers talk through it")
    return Audience(tuple(scope for scope in Scope if scope in scopes), "; ".join(scopes.values()))


def _is_own_loopback(advertised: Address, values: Mapping[str, str]) -> bool:
    """Whether the address is loopback on a node that may be alone."""
    return is_loopback(advertised.host) and _may_be_alone(values)


def _may_be_alone(values: Mapping[str, str]) -> bool:
    """Whether nothing shows another node: the node is the only voter, or its quorum or ZooKeeper
    is on its own machine, as in Kafka's default `server.properties`."""
    if "process.roles" not in values and "zookeeper.connect" in values:
        servers, _, _ = values["zookeeper.connect"].partition("/")
        hosts = (
            server.strip().rpartition(":")[0] or server.strip() for server in servers.split(",")
        )
        return all(is_loopback(host.strip("[]")) for host in hosts)
    if Role.BROKER not in roles_of(values):
        return False
    if voters := dict(readable_entries(read_voters(values.get("controller.quorum.voters", "")))):
        return list(voters) == [node_id(values)]
    quorum_servers = [
        *readable_entries(read_servers(values.get("controller.quorum.bootstrap.servers", "")))
    ]
    combined = Role.CONTROLLER in roles_of(values)
    return combined and len(quorum_servers) == 1 and is_loopback(quorum_servers[0][0].host)


def _plan(
    values: Mapping[str, str], notes: Mapping[str, str], hosts: Mapping[str, str | UnknownHost]
) -> ClusterPlan | None:
    parsed = parsed_listeners(
        values,
        lambda name, _, advertised: audience(name, advertised, values),
        _OWN if hosts[_OWN] else "",
        scopes_by_name=noted_scopes(notes.get("scopes", "")),
    )
    listeners = [
        listener
        for listener in parsed
        if not (
            listener.name in controller_names(values)
            and _is_own_loopback(listener.advertised, values)
        )
    ]
    return lone_plan(node_id(values), values, notes, listeners, hosts)


def is_computed(host: str | UnknownHost) -> bool:
    """Whether the instance computes ``host``, so that no stack knows it."""
    return isinstance(host, UnknownHost) and host.what.startswith(_COMPUTED)
