"""Plans an endpoint in another VPC from the cluster's contract: its DNS names and its ports."""

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

_AWS_DOMAIN = ".amazonaws.com"


@dataclass(frozen=True)
class EndpointPlan:
    """The names and ports of the listeners behind an endpoint."""

    contract: Contract
    """The contract with only these listeners."""
    zones: dict[str, tuple[str, ...]]
    """The DNS names by private zone. All lead to the endpoint."""
    ports: tuple[tuple[int, int], ...]
    """The ranges of ports that clients connect to (first, last)."""


def plan_endpoint(contract: Contract, spec: EndpointSpec, subject: str) -> EndpointPlan:
    """The plan of the endpoint called ``subject``. Raises SpecError with every problem."""
    listeners = [
        listener
        for listener in contract.listeners
        if listener.name in (spec.listeners or _private_link_listeners(contract))
    ]
    addresses = {listener.name: _addresses(contract, listener) for listener in listeners}
    names = list(
        dict.fromkeys(
            address.host.lower()
            for listener_addresses in addresses.values()
            for address in listener_addresses
        )
    )
    port_numbers = sorted(
        {
            address.port
            for listener_addresses in addresses.values()
            for address in listener_addresses
        }
    )
    starts = [port for port in port_numbers if port - 1 not in port_numbers]
    ends = [port for port in port_numbers if port + 1 not in port_numbers]
    ports = tuple(zip(starts, ends, strict=True))
    problems = [
        *_listener_problems(contract, spec, listeners),
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
        contract=contract.with_listeners(listener.name for listener in listeners),
        zones={} if spec.private_dns else zones,
        ports=ports,
    )


def _private_link_listeners(contract: Contract) -> list[str]:
    """The external listeners with one host for all brokers, and a separate bootstrap address."""
    own_bootstrap = {listener.name for listener, _ in contract.bootstraps}
    return [
        listener.name
        for listener in contract.listeners
        if Scope.EXTERNAL in listener.scopes
        and listener.name in own_bootstrap
        and len({address.host.lower() for address in _addresses(contract, listener)}) == 1
    ]


def _addresses(contract: Contract, listener: ContractListener) -> list[Address]:
    """The advertised and bootstrap addresses of ``listener``."""
    advertised = [
        address
        for place_listener, _, address in contract.places
        if place_listener.name == listener.name
    ]
    return [*advertised, *map(parse_address, listener.bootstrap.split(","))]


def _listener_problems(
    contract: Contract, spec: EndpointSpec, listeners: Sequence[ContractListener]
) -> Iterator[str]:
    known_names = ", ".join(listener.name for listener in contract.listeners)
    for name in spec.listeners:
        if all(listener.name != name for listener in contract.listeners):
            yield f"listeners: found {name}; allowed: those of the contract: {known_names}"
    if not listeners and not spec.listeners:
        yield (
            f"contract: none of its listeners ({known_names}) has one name for all brokers, and a "
            "port for the bootstrap; allowed: a cluster with `expose: privatelink`, or set "
            "`listeners`"
        )


def _name_problems(contract: Contract, spec: EndpointSpec, names: Sequence[str]) -> Iterator[str]:
    zone = spec.zone.lower().rstrip(".") if spec.zone else None
    for name in names:
        if ip_of(name) is not None or name.endswith((_AWS_DOMAIN, f"{_AWS_DOMAIN}.cn")):
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
        first_names = ", ".join(names[:3])
        count = f"found {len(names)} names ({first_names})"
        yield f"private_dns: {count}; allowed: one, which AWS resolves"


def _rule_problems(spec: EndpointSpec, ports: Sequence[tuple[int, int]]) -> Iterator[str]:
    rules = len(ports) * (len(spec.clients) + len(spec.groups))
    if rules > MAX_RULES:
        yield (
            f"clients: found {len(spec.clients) + len(spec.groups)} sources for {len(ports)} "
            f"ranges of ports, which need {rules} rules; allowed: {MAX_RULES}, AWS's default quota "
            "of a security group; join ranges"
        )
