"""Compares the model's prediction for a topology with the observations of its places, by hop."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import yaml

from earshot.listeners.address import Address
from earshot.sources.compose import read_compose
from earshot.sources.deployment import deployment
from earshot.topology.broker import ReachedListener
from earshot.topology.model import Deployment
from earshot.topology.names import (
    HOST,
    Loopback,
    Machine,
    Member,
    Resolution,
    Unknown,
    UnresolvedName,
)
from earshot.topology.walk import walk, worst
from earshot.topology.ways import Answer, Failure, Hop, HopKind, Trace
from tests.topologies.engine import ProbeResult, Running
from tests.topologies.generate import Topology

Address_ = tuple[str, int]
FAMILIES = 2
"""Addresses of a container on a network: IPv4 and, where it has them, IPv6."""


@dataclass
class Outcome:
    """Differences as texts, and how many hops agreed or were not known, those by their fact."""

    differences: list[str] = field(default_factory=list)
    agreed: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)


def text_of(topology: Topology) -> str:
    """The Compose file."""
    return yaml.safe_dump(topology.document, sort_keys=False)


def model_of(text: str) -> Deployment:
    """The Compose file as earshot reads it."""

    def read(path: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", path)

    return deployment(read_compose(text, "compose.yaml", {}, read, lenient=True).services)


def compare_with_model(running: Running) -> Outcome:
    """Every address that is in the file, from every place; then every walk of a client."""
    model = model_of(text_of(running.topology))
    outcome = Outcome()
    addresses = sorted(set(addresses_in(model)))
    answers_by_place_and_address: dict[tuple[str, Address_], ProbeResult] = {}
    places = (HOST, *model.containers)
    with ThreadPoolExecutor(len(places)) as pool:
        answers = pool.map(lambda place: running.ask(place, addresses), places)
        answers_by_place = dict(zip(places, answers, strict=True))
    for place in places:
        for address, probe in zip(addresses, answers_by_place[place], strict=True):
            answers_by_place_and_address[place, address] = probe
            outcome_of(model, running, place, address, probe, outcome)
    for client in model.bootstraps:
        for connection in walk(model, client).connections:
            for second_connection in connection.sent:
                second_address = (
                    None if second_connection.trace is None else second_connection.trace.address
                )
                if second_address is None:
                    continue
                second_probe = answers_by_place_and_address[
                    client.service, (second_address.host, second_address.port)
                ]
                greeted = {greeting for greeting in second_probe.greetings.values() if greeting}
                broker_greetings = {
                    greeting
                    for greeting in greeted
                    if greeting.split()[0] == second_connection.broker.service
                }
                arrives = bool(broker_greetings) and broker_greetings == greeted
                # a place greets, and speaks no security protocol
                expected = worst(
                    hop for hop in second_connection.hops if hop.kind is not HopKind.PROTOCOL
                )
                if expected is Answer.UNKNOWN:
                    outcome.unknown["walk: " + cause_of(second_connection.hops)] += 1
                elif (expected is Answer.YES) != arrives:
                    hops = [str(hop) for hop in second_connection.hops]
                    outcome.differences.append(
                        f"walk of {client.service} by {connection.trace.address} to "
                        f"{second_connection.broker.service}: model {expected}, {hops}; "
                        f"greeted {greeted}"
                    )
                else:
                    outcome.agreed["walk"] += 1
    return outcome


def cause_of(hops: tuple[Hop, ...]) -> str:
    """The first fact that is not known, without the names of this topology."""
    return generic(next((hop.because for hop in hops if hop.answer is Answer.UNKNOWN), ""))


def addresses_in(model: Deployment) -> Iterator[Address_]:
    for client in model.bootstraps:
        for address in client.addresses:
            yield address.host, address.port
    for broker in model.brokers:
        for endpoint in broker.endpoints or ():
            if endpoint.advertised is not None:
                yield endpoint.advertised.host, endpoint.advertised.port
            yield broker.service, endpoint.bind.port
            for port in broker.container.published_at(endpoint.bind.port):
                if port.host_port is not None:
                    yield "localhost", port.host_port
                    yield "host.docker.internal", port.host_port


def outcome_of(
    model: Deployment,
    running: Running,
    place: str,
    address: Address_,
    probe: ProbeResult,
    outcome: Outcome,
) -> None:
    """Compares one trace: the resolved addresses, and the listeners that answer."""
    trace = model.trace(place, Address(*address))
    resolution = model.names.resolve(place, address[0])
    resolved = _resolved(model, running, place, resolution, probe)
    end_of(trace, place, resolved, probe, outcome)


def end_of(
    trace: Trace, place: str, resolved: bool | None, probe: ProbeResult, outcome: Outcome
) -> None:
    """Compare what ``trace`` predicts; ``resolved``: its first hop is as predicted."""
    trace_text = f"{place or 'HOST'} -> {trace.address}"
    model_text = f"model {[f'{hop.kind} {hop.answer}: {hop.because}' for hop in trace.hops]}"
    observed_text = f"saw {probe.error or dict(probe.greetings)}"
    if resolved is False:
        outcome.differences.append(f"resolve: {trace_text}: {model_text}; {observed_text}")
    elif resolved is True:
        outcome.agreed[HopKind.RESOLVE] += 1
    greeted = {greeting for greeting in probe.greetings.values() if greeting}
    arrivals = {
        f"{end.broker.service} {end.endpoint.name}"
        for end in trace.ends
        if isinstance(end, ReachedListener)
    }
    answer = answer_of(trace)
    if answer is Answer.UNKNOWN:
        fact = trace.end.fact if isinstance(trace.end, Unknown) else trace.doubt
        outcome.unknown[generic(fact)] += 1
    elif (answer is Answer.NO and greeted) or (
        answer is Answer.YES and arrivals != greeted and not _partly(trace, greeted)
    ):
        outcome.differences.append(f"end: {trace_text}: {model_text}; {observed_text}")
    else:
        outcome.agreed["end"] += 1


def answer_of(trace: Trace) -> Answer:
    """Whether the model predicts that a broker is reached."""
    if isinstance(trace.end, Failure):
        return Answer.NO
    return Answer.UNKNOWN if isinstance(trace.end, Unknown) or trace.doubt else Answer.YES


def _partly(trace: Trace, greeted: set[str]) -> bool:
    """True if one of several targets is not known, and all known ones have greeted."""
    known_greetings = {
        f"{end.broker.service} {end.endpoint.name}"
        for end in trace.ends
        if isinstance(end, ReachedListener)
    }
    return any(isinstance(end, Unknown) for end in trace.ends) and known_greetings <= greeted


def _resolved(
    model: Deployment,
    running: Running,
    place: str,
    resolution: Resolution | UnresolvedName | Unknown,
    probe: ProbeResult,
) -> bool | None:
    """True if the resolved addresses are those of ``resolution``; None if that is not known."""
    if isinstance(resolution, Unknown) or (isinstance(resolution, Resolution) and resolution.doubt):
        return None
    if isinstance(resolution, UnresolvedName):
        return bool(probe.error)
    if probe.error:
        return False
    resolved_addresses = set(probe.greetings)
    service_by_address = {
        address: service
        for service, networks in running.addresses.items()
        for addresses in networks.values()
        for address in addresses
    }
    for target in resolution.targets:
        if isinstance(target, Loopback):
            if not all(
                address.startswith("127.") or address in ("::1", "0.0.0.0")
                for address in resolved_addresses
            ):
                return False
        elif isinstance(target, Machine):
            if resolved_addresses & set(service_by_address):
                return False
        elif isinstance(target, Member):
            key = _key(running, target.network)
            networks = running.addresses[target.service]
            possible = (
                networks.get(key, set())
                if _is_certain(model, place)
                else set().union(*networks.values())
            )
            if not resolved_addresses & possible:
                return False
    members = [target for target in resolution.targets if isinstance(target, Member)]
    return len(members) == 0 or len(resolved_addresses) <= FAMILIES * len({*members})


def _is_certain(model: Deployment, place: str) -> bool:
    """True if the order of the container's networks does not depend on the project's name."""
    owner_container = model.containers.get(model.names.owner(place))
    return (
        owner_container is None
        or len({network.is_named for network in owner_container.networks}) < 2
    )


def _key(running: Running, network: str) -> str:
    """The key of a network of the file by the name that the model has for it."""
    for key, top in running.topology.document["networks"].items():
        if network in (key, top.get("name")):
            return str(key)
    return ""


def generic(fact: str) -> str:
    """A fact without the names of this topology."""
    words = fact.split()
    return " ".join(word for word in words if not any(character.isdigit() for character in word))
