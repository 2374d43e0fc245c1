"""A `server.properties` as one broker of a machine.

No container and no published port shows whom a listener is for: what it advertises has to. A name
that could be anything (one label, a private address) is for nobody until the user says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from earshot.errors import EarshotError
from earshot.facts.settings import controller_names, inter_broker_name, node_id
from earshot.listeners.address import Address, bracketed
from earshot.listeners.properties import read_properties
from earshot.listeners.terms import Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.sources.image_settings import completed
from earshot.sources.kafka_broker import KafkaBroker
from earshot.sources.parsed_listener import Audience, parsed_listeners

_SCOPES = {
    NameKind.LOOPBACK_ADDRESS: Scope.HOST,
    NameKind.LOCALHOST: Scope.HOST,
    NameKind.EC2_PRIVATE: Scope.INTERNAL,
    NameKind.EC2_RESOURCE: Scope.INTERNAL,
    NameKind.PRIVATE_TLD: Scope.INTERNAL,
    NameKind.EC2_PUBLIC: Scope.EXTERNAL,
    NameKind.PUBLIC_ADDRESS: Scope.EXTERNAL,
    NameKind.FQDN: Scope.EXTERNAL,
}


def read_broker(text: str, shown: str, scopes: Mapping[str, tuple[Scope, ...]]) -> KafkaBroker:
    """The broker of a properties file. Raises EarshotError where it is none."""
    raw = read_properties(text)
    if not {"listeners", "advertised.listeners", "broker.id", "node.id"} & set(raw.values):
        raise EarshotError(
            shown,
            observed="sets neither listeners nor a node's id",
            allowed="the properties file of a broker",
        )
    values = completed(raw.values)
    between, controllers = inter_broker_name(values), controller_names(values)

    listeners = parsed_listeners(
        values,
        lambda name, _, advertised: audience_of(
            name, advertised, name == between, name in controllers, scopes
        ),
        "localhost",
    )
    return KafkaBroker(
        id=node_id(values), name=shown, raw=raw, values=values, listeners=tuple(listeners)
    )


def audience_of(
    name: str,
    advertised: Address,
    between: bool,
    is_controller: bool,
    scopes: Mapping[str, tuple[Scope, ...]],
) -> Audience:
    """Whom a listener outside containers is for."""
    if name in scopes:
        return Audience(scopes[name], "said so")
    if is_controller:
        return Audience((Scope.CONTROLLER,), "named in controller.listener.names")
    host, kind = bracketed(advertised.host), kind_of(advertised.host)
    scope = _SCOPES.get(kind)
    if between and scope in (None, Scope.INTERNAL, Scope.HOST):
        return Audience((Scope.INTERNAL,), "the brokers talk through it")
    if scope is None:
        return Audience((), f"{host} is {kind}, which says nothing about who resolves it")
    why = f"{host} is {kind}"
    if between:
        return Audience((Scope.INTERNAL, scope), f"the brokers talk through it; {why}")
    return Audience((scope,), why)
