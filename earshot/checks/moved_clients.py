"""Clients that a remedy is for: where they come in, and the lines that let them begin elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from earshot.checks.remedy_lines import Whole
from earshot.facts.deployment import Arrival, Bootstrap, Broker, Deployment
from earshot.listeners.address import Address
from earshot.names.kinds import ip_of
from earshot.rules.finding import LineToWrite
from earshot.rules.kl015_clients import failure

_CONFIGURATION = re.compile(r"[={\n]|:\s")
"""In a variable that holds more than addresses."""


def misled(
    deployment: Deployment, broker: Broker, listener: str
) -> tuple[Sequence[Bootstrap], Sequence[Broker]]:
    """The clients that come in on ``listener`` in the cluster of ``broker`` and are sent where
    they do not get to, and the brokers that send them there."""
    members = [*deployment.members(broker)]
    clients, brokers = [], set()
    for item in deployment.bootstraps:
        met = {
            it.service
            for address in item.addresses
            if isinstance(way := deployment.way(item.service, address), Arrival)
            and way.endpoint.name == listener
            for it in deployment.members(way.broker)
        }
        wrong = {
            it.service
            for it in members
            if it.service in met and _fails(deployment, item.service, it, listener)
        }
        clients += [item] if wrong else []
        brokers |= wrong
    return list(dict.fromkeys(clients)), [it for it in members if it.service in brokers]


def _fails(deployment: Deployment, place: str, broker: Broker, listener: str) -> bool:
    endpoint = broker.named(listener)
    if endpoint is None or endpoint.advertised is None:
        return False
    way = deployment.way(place, endpoint.advertised)
    return bool(failure(way, endpoint.advertised, place, broker))


def known_as(deployment: Deployment, broker: Broker, clients: Iterable[Bootstrap]) -> str:
    """The name that ``clients`` have for a broker already, or its service's."""
    for item in clients:
        for address in item.addresses:
            way = deployment.way(item.service, address)
            named = broker.container.answers_to(address.host) and ip_of(address.host) is None
            if isinstance(way, Arrival) and way.broker is broker and named:
                return address.host
    return broker.service


def bootstrapped(
    whole: Whole, clients: Sequence[Bootstrap], broker: Broker, listener: str
) -> tuple[LineToWrite, ...]:
    """The lines that let ``clients`` begin with ``listener``, at the port that each broker has."""
    members = [*whole.deployment.members(broker)]
    ports = {
        item.service: endpoint.bind.port
        for item in (broker, *members)
        if (endpoint := item.named(listener)) is not None
    }
    return moved_to(whole, clients, members, ports)


def moved_to(
    whole: Whole, clients: Sequence[Bootstrap], brokers: Sequence[Broker], ports: Mapping[str, int]
) -> tuple[LineToWrite, ...]:
    """``clients`` with each address at the port of the broker that it leads to, or of the next;
    no address where a broker has none of ``ports``."""
    lines = []
    for item in clients:
        rest = list(brokers)
        new = []
        for address in item.addresses:
            way = whole.deployment.way(item.service, address)
            called = (it for it in rest if it.container.answers_to(address.host))
            following = rest[0] if rest else brokers[0]
            to = way.broker if isinstance(way, Arrival) else next(called, following)
            rest = [broker for broker in rest if broker is not to]
            host = address.host if to.container.answers_to(address.host) else to.service
            new += [Address(host, ports[to.service])] if to.service in ports else []
        before, after = (",".join(map(str, it)) for it in (item.addresses, dict.fromkeys(new)))
        text = whole.by_name[item.service].container.env.get(item.setting)
        is_part = text is None or _CONFIGURATION.search(text) is not None
        lines.append(LineToWrite(item.service, item.setting, after, before if is_part else ""))
    return tuple(lines)
