"""Topologies on two Docker hosts: brokers and clients on both, each host with its own file.

A place on one host comes to the other as from any other machine: the model's place `OUTSIDE`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from earshot.listeners.address import Address
from earshot.topology.broker import Broker, ReachedListener
from earshot.topology.model import Deployment
from earshot.topology.names import HOST, NO_NETWORK, OUTSIDE
from earshot.topology.ways import Answer, Failure, Hop, Stage, Trace
from tests.topologies.compare import (
    Address_,
    Outcome,
    addresses_in,
    end_of,
    generic,
    modelled,
    outcome_of,
    text_of,
)
from tests.topologies.engine import Running, Tried
from tests.topologies.generate import Maker, Topology

NAMES = ("hosta.test", "hostb.test")
SLOTS = 50
"""Between the slots of the two hosts, so that no network of one is one of the other."""


@dataclass(frozen=True)
class Side:
    """One of the hosts: its topology as it runs, and as the model reads it."""

    running: Running
    model: Deployment

    @classmethod
    def of(cls, running: Running) -> Side:
        machine = running.topology.machine
        return cls(running, replace(modelled(text_of(running.topology)), own={machine: machine}))

    @property
    def machine(self) -> str:
        """The address of the host."""
        return self.running.topology.machine


def two_hosts(seed: int, machines: tuple[str, str], slot: int) -> tuple[Topology, Topology]:
    """A broker and clients on the first host, the other brokers and a client on the second."""
    chance = random.Random(seed)
    first, second = (Maker(chance, seed, it, slot + SLOTS * i) for i, it in enumerate(machines))
    first.brokers = ["near1"]
    second.clients = ["far1"]
    first.also = [machines[1], *NAMES]
    second.also = [machines[0], *NAMES]
    there = second.document()
    for name, known in second.listeners.items():
        ports = [port for host, port in known if host == "localhost"]
        outside = [(host, port) for port in ports for host in (machines[1], NAMES[1])]
        first.listeners[name] = [*known, *outside, *outside]
    return Topology(seed, first.document(), machines[0]), Topology(seed, there, machines[1])


def names_of(machines: tuple[str, str]) -> dict[str, str]:
    """The hosts file of both machines."""
    return dict(zip(NAMES, machines, strict=True))


def compared_on_two(pair: tuple[Running, Running]) -> Outcome:
    """Every address of both files from every place of both hosts; then every walk of a client."""
    sides = [Side.of(it) for it in pair]
    names = names_of((sides[0].machine, sides[1].machine))
    outcome = Outcome()
    addresses = sorted(set(_addresses(sides, names)))
    for own, other in ((sides[0], sides[1]), (sides[1], sides[0])):
        places = (HOST, *own.model.containers)
        with ThreadPoolExecutor(len(places)) as pool:
            answers = list(pool.map(lambda it, own=own: own.running.ask(it, addresses), places))
        for place, answer in zip(places, answers, strict=True):
            seen = dict(zip(addresses, answer, strict=True))
            for address, tried in seen.items():
                _compare(own, other, place, address, names, tried, outcome)
            for client in own.model.bootstraps:
                if client.service == place:
                    for at in client.addresses:
                        _walk(own, other, place, at, names, seen, outcome)
    return outcome


def _addresses(sides: list[Side], names: dict[str, str]) -> Iterator[Address_]:
    for side in sides:
        yield from addresses_in(side.model)
        for broker in side.model.brokers:
            for port in broker.container.published:
                for host in (side.machine, *names):
                    if port.host_port is not None:
                        yield host, port.host_port


def _meant(own: Side, place: str, host: str, names: dict[str, str]) -> str:
    """``host`` after the hosts file of ``place``."""
    if place == HOST:
        return names.get(host, host)
    owner = own.model.names.owner(place)
    return own.model.containers[owner].extra_hosts.get(host, host)


def _trace(own: Side, other: Side, place: str, at: Address, names: dict[str, str]) -> Trace | None:
    """Where an address leads that is on the other host; None for any other address."""
    if _meant(own, place, at.host, names) != other.machine:
        return None
    container = own.model.containers.get(own.model.names.owner(place))
    if container is not None and (container.is_cut_off or container.network_mode == NO_NETWORK):
        hop = Hop(Stage.WAY, Answer.NO, "the client has no way out of its networks")
        return Trace(at, (hop,), Failure.NO_WAY)
    return other.model.trace(OUTSIDE, Address(other.machine, at.port))


def _compare(
    own: Side,
    other: Side,
    place: str,
    address: Address_,
    names: dict[str, str],
    tried: Tried,
    outcome: Outcome,
) -> None:
    beyond = _trace(own, other, place, Address(*address), names)
    if beyond is not None:
        end_of(beyond, place, set(tried.greetings) == {other.machine}, tried, outcome)
        outcome.agreed["other host"] += beyond.answer is not Answer.UNKNOWN
    elif place != HOST or address[0] not in names:
        outcome_of(own.model, own.running, place, address, tried, outcome)


def _walk(
    own: Side,
    other: Side,
    place: str,
    at: Address,
    names: dict[str, str],
    seen: dict[Address_, Tried],
    outcome: Outcome,
) -> None:
    """A client's second connections, to the brokers of both hosts."""

    def traced(address: Address) -> Trace:
        beyond = _trace(own, other, place, address, names)
        return own.model.trace(place, address) if beyond is None else beyond

    entrance = traced(at)
    if not isinstance(entrance.end, ReachedListener):
        return
    for broker in (*own.model.brokers, *other.model.brokers):
        endpoint = broker.named(entrance.end.endpoint.name)
        if endpoint is None or endpoint.advertised is None:
            continue
        sent = traced(endpoint.advertised)
        tried = seen.get((endpoint.advertised.host, endpoint.advertised.port))
        expected = _expected(sent, broker)
        if tried is None or expected is Answer.UNKNOWN:
            fact = next((it.because for it in sent.hops if it.answer is Answer.UNKNOWN), "")
            outcome.unknown["walk: " + generic(fact)] += 1
            continue
        greeted = {it.split()[0] for it in tried.greetings.values() if it}
        if (expected is Answer.YES) != (greeted == {broker.service}):
            hops = [str(it) for it in sent.hops]
            outcome.differences.append(
                f"walk of {place} by {at} to {broker.service}: model {expected}, {hops}; "
                f"greeted {greeted}"
            )
        else:
            outcome.agreed["walk over two hosts"] += 1


def _expected(sent: Trace, broker: Broker) -> Answer:
    if sent.answer is not Answer.YES:
        return sent.answer
    met = {it.broker.service for it in sent.ends if isinstance(it, ReachedListener)}
    if met == {broker.service}:
        return Answer.YES
    return Answer.UNKNOWN if broker.service in met else Answer.NO
