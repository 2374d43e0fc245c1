"""What an endpoint in another VPC must resolve and admit, from the contract of the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from earshot.config.endpoint import EndpointSpec
from earshot.errors import SpecError
from earshot.facts.security_groups import MAX_RULES
from earshot.listeners.address import Address, parse_address
from earshot.listeners.terms import Scope
from earshot.names.kinds import ip_of
from earshot.validation.contract import Contract, ContractListener

_OF_AWS = ".amazonaws.com"


@dataclass(frozen=True)
class EndpointPlan:
    """The names and ports of the listeners behind an endpoint."""

    contract: Contract
    """That of these listeners alone."""
    zones: dict[str, tuple[str, ...]]
    """By private zone to make, the names in it, all of which lead to the endpoint."""
    ports: tuple[tuple[int, int], ...]
    """Ranges of ports that clients connect to, first and last."""


def plan_endpoint(contract: Contract, spec: EndpointSpec, subject: str) -> EndpointPlan:
    """The plan of the endpoint called ``subject``; raises SpecError with every problem."""
    chosen = [it for it in contract.listeners if it.name in (spec.listeners or _linked(contract))]
    addresses = {it.name: _addresses(contract, it) for it in chosen}
    names = list(dict.fromkeys(it.host.lower() for own in addresses.values() for it in own))
    numbers = sorted({it.port for own in addresses.values() for it in own})
    starts = [port for port in numbers if port - 1 not in numbers]
    ends = [port for port in numbers if port + 1 not in numbers]
    ports = tuple(zip(starts, ends, strict=True))
    problems = [
        *_listener_problems(contract, spec, chosen),
        *_name_problems(contract, spec, names),
        *_rule_problems(spec, ports),
    ]
    if problems:
        raise SpecError.of(subject, problems)
    zone = spec.zone.lower().rstrip(".") if spec.zone else None
    zones: dict[str, tuple[str, ...]] = {name: (name,) for name in names}
    if zone is not None:
        zones = {zone: tuple(names)}
    return EndpointPlan(
        contract=contract.with_listeners(it.name for it in chosen),
        zones={} if spec.private_dns else zones,
        ports=ports,
    )


def _linked(contract: Contract) -> list[str]:
    """The external listeners with one name for all brokers, and one for the bootstrap alone."""
    own_bootstrap = {listener.name for listener, _ in contract.bootstraps}
    return [
        it.name
        for it in contract.listeners
        if Scope.EXTERNAL in it.scopes
        and it.name in own_bootstrap
        and len({address.host.lower() for address in _addresses(contract, it)}) == 1
    ]


def _addresses(contract: Contract, listener: ContractListener) -> list[Address]:
    """Every address that clients of ``listener`` connect to."""
    advertised = [address for item, _, address in contract.places if item.name == listener.name]
    return [*advertised, *map(parse_address, listener.bootstrap.split(","))]


def _listener_problems(
    contract: Contract, spec: EndpointSpec, chosen: Sequence[ContractListener]
) -> Iterator[str]:
    known = ", ".join(it.name for it in contract.listeners)
    for name in spec.listeners:
        if all(it.name != name for it in contract.listeners):
            yield f"listeners: found {name}; allowed: those of the contract: {known}"
    if not chosen and not spec.listeners:
        yield (
            f"contract: none of its listeners ({known}) has one name for all brokers, and a port "
            "for the bootstrap; allowed: a cluster with `expose: privatelink`, or name `listeners`"
        )


def _name_problems(contract: Contract, spec: EndpointSpec, names: Sequence[str]) -> Iterator[str]:
    zone = spec.zone.lower().rstrip(".") if spec.zone else None
    for name in names:
        if ip_of(name) is not None or name.endswith((_OF_AWS, f"{_OF_AWS}.cn")):
            yield (
                f"contract: the brokers of {contract.cluster} advertise {name}; allowed: a name "
                "that a private zone may have, as `name` of `expose: privatelink` gives it"
            )
        elif zone is not None and name != zone and not name.endswith(f".{zone}"):
            yield (
                f"zone: found {spec.zone}, and the brokers of {contract.cluster} advertise {name}, "
                f"which would not resolve here; allowed: {name}, or a domain above it"
            )
    if spec.private_dns and len(names) > 1:
        found = ", ".join(names[:3])
        yield f"private_dns: found {len(names)} names ({found}); allowed: one, which AWS resolves"


def _rule_problems(spec: EndpointSpec, ports: Sequence[tuple[int, int]]) -> Iterator[str]:
    rules = len(ports) * (len(spec.clients) + len(spec.groups))
    if rules > MAX_RULES:
        yield (
            f"clients: found {len(spec.clients) + len(spec.groups)} sources for {len(ports)} "
            f"ranges of ports, which take {rules} rules; allowed: {MAX_RULES}, AWS's default quota "
            "of a security group; join ranges"
        )
