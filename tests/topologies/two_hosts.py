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
from earshot.topology.ways import Answer, Failure, Hop, HopKind, Trace
from tests.topologies.compare import (
    Address_,
    Outcome,
    addresses_in,
    answer_of,
    end_of,
    generic,
    model_of,
    outcome_of,
    text_of,
)
from tests.topologies.engine import ProbeResult, Running
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
        return cls(running, replace(model_of(text_of(running.topology)), own={machine: machine}))

    @property
    def machine(self) -> str:
        """The address of the host."""
        return self.running.topology.machine


def two_hosts(seed: int, machines: tuple[str, str], slot: int) -> tuple[Topology, Topology]:
    """A broker and clients on the first host, the other brokers and a client on the second."""
    chance = random.Random(seed)
    near_maker, far_maker = (
        Maker(chance, seed, machine, slot + SLOTS * i) for i, machine in enumerate(machines)
    )
    near_maker.brokers = ["near1"]
    far_maker.clients = ["far1"]
    near_maker.extra_hosts = [machines[1], *NAMES]
    far_maker.extra_hosts = [machines[0], *NAMES]
    far_document = far_maker.document()
    for name, listener_addresses in far_maker.listeners.items():
        ports = [port for host, port in listener_addresses if host == "localhost"]
        outside = [(host, port) for port in ports for host in (machines[1], NAMES[1])]
        near_maker.listeners[name] = [*listener_addresses, *outside, *outside]
    return Topology(seed, near_maker.document(), machines[0]), Topology(
        seed, far_document, machines[1]
    )


def names_of(machines: tuple[str, str]) -> dict[str, str]:
    """The hosts file of both machines."""
    return dict(zip(NAMES, machines, strict=True))


def compare_on_two(pair: tuple[Running, Running]) -> Outcome:
    """Every address of both files from every place of both hosts; then every walk of a client."""
    sides = [Side.of(running) for running in pair]
    names = names_of((sides[0].machine, sides[1].machine))
    outcome = Outcome()
    addresses = sorted(set(_addresses(sides, names)))
    for own_side, other_side in ((sides[0], sides[1]), (sides[1], sides[0])):
        places = (HOST, *own_side.model.containers)
        with ThreadPoolExecutor(len(places)) as pool:
            answers = list(
                pool.map(
                    lambda running, own_side=own_side: own_side.running.ask(running, addresses),
                    places,
                )
            )
        for place, answer in zip(places, answers, strict=True):
            probe_by_address = dict(zip(addresses, answer, strict=True))
            for address, probe in probe_by_address.items():
                _compare(own_side, other_side, place, address, names, probe, outcome)
            for client in own_side.model.bootstraps:
                if client.service == place:
                    for at in client.addresses:
                        _walk(own_side, other_side, place, at, names, probe_by_address, outcome)
    return outcome


def _addresses(sides: list[Side], names: dict[str, str]) -> Iterator[Address_]:
    for side in sides:
        yield from addresses_in(side.model)
        for broker in side.model.brokers:
            for port in broker.container.published:
                for host in (side.machine, *names):
                    if port.host_port is not None:
                        yield host, port.host_port


def _meant(own_side: Side, place: str, host: str, names: dict[str, str]) -> str:
    """``host`` after the hosts file of ``place``."""
    if place == HOST:
        return names.get(host, host)
    owner = own_side.model.names.owner(place)
    return own_side.model.containers[owner].extra_hosts.get(host, host)


def _trace(
    own_side: Side, other_side: Side, place: str, at: Address, names: dict[str, str]
) -> Trace | None:
    """The trace of an address on the other host; None for any other address."""
    if _meant(own_side, place, at.host, names) != other_side.machine:
        return None
    container = own_side.model.containers.get(own_side.model.names.owner(place))
    if container is not None and (container.is_cut_off or container.network_mode == NO_NETWORK):
        hop = Hop(HopKind.WAY, Answer.NO, "the client has no way out of its networks")
        return Trace(at, (hop,), Failure.NO_WAY)
    return other_side.model.trace(OUTSIDE, Address(other_side.machine, at.port))


def _compare(
    own_side: Side,
    other_side: Side,
    place: str,
    address: Address_,
    names: dict[str, str],
    probe: ProbeResult,
    outcome: Outcome,
) -> None:
    trace_beyond = _trace(own_side, other_side, place, Address(*address), names)
    if trace_beyond is not None:
        end_of(trace_beyond, place, set(probe.greetings) == {other_side.machine}, probe, outcome)
        outcome.agreed["other host"] += answer_of(trace_beyond) is not Answer.UNKNOWN
    elif place != HOST or address[0] not in names:
        outcome_of(own_side.model, own_side.running, place, address, probe, outcome)


def _walk(
    own_side: Side,
    other_side: Side,
    place: str,
    at: Address,
    names: dict[str, str],
    probe_by_address: dict[Address_, ProbeResult],
    outcome: Outcome,
) -> None:
    """A client's second connections, to the brokers of both hosts."""

    def traced(address: Address) -> Trace:
        trace_beyond = _trace(own_side, other_side, place, address, names)
        return own_side.model.trace(place, address) if trace_beyond is None else trace_beyond

    entrance = traced(at)
    if not isinstance(entrance.end, ReachedListener):
        return
    for broker in (*own_side.model.brokers, *other_side.model.brokers):
        endpoint = broker.named(entrance.end.endpoint.name)
        if endpoint is None or endpoint.advertised is None:
            continue
        second_trace = traced(endpoint.advertised)
        probe = probe_by_address.get((endpoint.advertised.host, endpoint.advertised.port))
        expected = _expected(second_trace, broker)
        if probe is None or expected is Answer.UNKNOWN:
            fact = next(
                (hop.because for hop in second_trace.hops if hop.answer is Answer.UNKNOWN), ""
            )
            outcome.unknown["walk: " + generic(fact)] += 1
            continue
        greeted = {greeting.split()[0] for greeting in probe.greetings.values() if greeting}
        if (expected is Answer.YES) != (greeted == {broker.service}):
            hops = [str(hop) for hop in second_trace.hops]
            outcome.differences.append(
                f"walk of {place} by {at} to {broker.service}: model {expected}, {hops}; "
                f"greeted {greeted}"
            )
        else:
            outcome.agreed["walk over two hosts"] += 1


def _expected(second_trace: Trace, broker: Broker) -> Answer:
    if (answer := answer_of(second_trace)) is not Answer.YES:
        return answer
    reached_services = {
        end.broker.service for end in second_trace.ends if isinstance(end, ReachedListener)
    }
    if reached_services == {broker.service}:
        return Answer.YES
    return Answer.UNKNOWN if broker.service in reached_services else Answer.NO
