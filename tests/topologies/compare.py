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
from earshot.topology.ways import Answer, Hop, Stage, Trace
from tests.topologies.engine import Running, Tried
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


def modelled(text: str) -> Deployment:
    """The Compose file as earshot reads it."""

    def read(path: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", path)

    return deployment(read_compose(text, "compose.yaml", {}, read, lenient=True).services)


def compared(running: Running) -> Outcome:
    """Every address that is in the file, from every place; then every walk of a client."""
    model = modelled(text_of(running.topology))
    outcome = Outcome()
    addresses = sorted(set(addresses_in(model)))
    seen: dict[tuple[str, Address_], Tried] = {}
    places = (HOST, *model.containers)
    with ThreadPoolExecutor(len(places)) as pool:
        answers = pool.map(lambda place: running.ask(place, addresses), places)
        asked = dict(zip(places, answers, strict=True))
    for place in places:
        for address, tried in zip(addresses, asked[place], strict=True):
            seen[place, address] = tried
            outcome_of(model, running, place, address, tried, outcome)
    for client in model.bootstraps:
        for item in walk(model, client).connections:
            for sent in item.sent:
                at = None if sent.trace is None else sent.trace.address
                if at is None:
                    continue
                met = seen[client.service, (at.host, at.port)]
                greeted = {it for it in met.greetings.values() if it}
                mine = {it for it in greeted if it.split()[0] == sent.broker.service}
                arrives = bool(mine) and mine == greeted
                # a place greets, and speaks no security protocol
                expected = worst(it for it in sent.hops if it.stage is not Stage.PROTOCOL)
                if expected is Answer.UNKNOWN:
                    outcome.unknown["walk: " + cause_of(sent.hops)] += 1
                elif (expected is Answer.YES) != arrives:
                    outcome.differences.append(
                        f"walk of {client.service} by {item.trace.address} to {sent.broker.service}"
                        f": model {expected}, {[str(it) for it in sent.hops]}; greeted {greeted}"
                    )
                else:
                    outcome.agreed["walk"] += 1
    return outcome


def cause_of(hops: tuple[Hop, ...]) -> str:
    """The first fact that is not known, without the names of this topology."""
    return generic(next((it.because for it in hops if it.answer is Answer.UNKNOWN), ""))


def addresses_in(model: Deployment) -> Iterator[Address_]:
    for client in model.bootstraps:
        for it in client.addresses:
            yield it.host, it.port
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
    tried: Tried,
    outcome: Outcome,
) -> None:
    """Compare one trace: what the host means, and who answers."""
    trace = model.trace(place, Address(*address))
    meant = model.names.resolve(place, address[0])
    resolved = _resolved(model, running, place, meant, tried)
    end_of(trace, place, resolved, tried, outcome)


def end_of(trace: Trace, place: str, resolved: bool | None, tried: Tried, outcome: Outcome) -> None:
    """Compare what ``trace`` predicts; ``resolved``: its first hop is as predicted."""
    where = f"{place or 'HOST'} -> {trace.address}"
    said = f"model {[f'{it.stage} {it.answer}: {it.because}' for it in trace.hops]}"
    saw = f"saw {tried.error or dict(tried.greetings)}"
    if resolved is False:
        outcome.differences.append(f"resolve: {where}: {said}; {saw}")
    elif resolved is True:
        outcome.agreed[Stage.RESOLVE] += 1
    greeted = {it for it in tried.greetings.values() if it}
    arrivals = {
        f"{it.broker.service} {it.endpoint.name}"
        for it in trace.ends
        if isinstance(it, ReachedListener)
    }
    if trace.answer is Answer.UNKNOWN:
        fact = trace.end.fact if isinstance(trace.end, Unknown) else trace.doubt
        outcome.unknown[generic(fact)] += 1
    elif (trace.answer is Answer.NO and greeted) or (
        trace.answer is Answer.YES and arrivals != greeted and not _partly(trace, greeted)
    ):
        outcome.differences.append(f"end: {where}: {said}; {saw}")
    else:
        outcome.agreed["end"] += 1


def _partly(trace: Trace, greeted: set[str]) -> bool:
    """Of several targets one is not known: those that are must have greeted."""
    known = {
        f"{it.broker.service} {it.endpoint.name}"
        for it in trace.ends
        if isinstance(it, ReachedListener)
    }
    return any(isinstance(it, Unknown) for it in trace.ends) and known <= greeted


def _resolved(
    model: Deployment,
    running: Running,
    place: str,
    meant: Resolution | UnresolvedName | Unknown,
    tried: Tried,
) -> bool | None:
    """Whether the addresses are those of what is meant; None where that is not known."""
    if isinstance(meant, Unknown) or (isinstance(meant, Resolution) and meant.doubt):
        return None
    if isinstance(meant, UnresolvedName):
        return bool(tried.error)
    if tried.error:
        return False
    found = set(tried.greetings)
    owned = {
        address: service
        for service, own in running.addresses.items()
        for addresses in own.values()
        for address in addresses
    }
    for target in meant.targets:
        if isinstance(target, Loopback):
            if not all(it.startswith("127.") or it in ("::1", "0.0.0.0") for it in found):
                return False
        elif isinstance(target, Machine):
            if found & set(owned):
                return False
        elif isinstance(target, Member):
            key = _key(running, target.network)
            own = running.addresses[target.service]
            possible = (
                own.get(key, set()) if _is_certain(model, place) else set().union(*own.values())
            )
            if not found & possible:
                return False
    members = [it for it in meant.targets if isinstance(it, Member)]
    return len(members) == 0 or len(found) <= FAMILIES * len({*members})


def _is_certain(model: Deployment, place: str) -> bool:
    """Whether the order of its networks does not depend on the project's name."""
    own = model.containers.get(model.names.owner(place))
    return own is None or len({it.is_named for it in own.networks}) < 2


def _key(running: Running, network: str) -> str:
    """The key of a network of the file by the name that the model has for it."""
    for key, top in running.topology.document["networks"].items():
        if network in (key, top.get("name")):
            return str(key)
    return ""


def generic(fact: str) -> str:
    """A fact without the names of this topology."""
    words = fact.split()
    return " ".join(it for it in words if not any(c.isdigit() for c in it))
