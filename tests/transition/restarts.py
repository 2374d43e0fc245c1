"""A model of brokers that are restarted one at a time, and the connections that fail.

It is independent of the search for steps: like Kafka, it reads the settings of brokers, and which
listeners have addresses that other brokers can resolve.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import settings
from earshot.listeners.terms import Scope

ALL = 6
"""The most brokers of which every mixture is checked; of more, `SAMPLE` mixtures."""
SAMPLE = 48

Offer = tuple[str, str]
"""A listener's name and protocol."""


@dataclass(frozen=True)
class Broker:
    """The listeners that one broker offers and uses, from its settings."""

    id: int
    offers: frozenset[Offer]
    uses: Offer
    ports: tuple[tuple[str, str], ...]
    """Each listener's name and the port that it binds."""
    internal: frozenset[str]
    """The listeners whose addresses are meant for brokers."""

    @classmethod
    def of(cls, plan: ClusterPlan, id: int) -> Broker:
        values = settings(plan, plan.node(id))
        protocols = dict(
            entry.split(":") for entry in values["listener.security.protocol.map"].split(",")
        )
        names = [entry.split("://")[0] for entry in values["advertised.listeners"].split(",")]
        binds = [entry.split("://") for entry in values["listeners"].split(",")]
        used = values["inter.broker.listener.name"]
        return cls(
            id,
            frozenset((name, protocols[name]) for name in names),
            (used, protocols.get(used, "")),
            tuple((name, address.rpartition(":")[2]) for name, address in binds),
            frozenset(
                listener.name
                for listener in plan.node(id).listeners
                if Scope.INTERNAL in listener.scopes
            ),
        )


def brokers(plan: ClusterPlan) -> dict[int, Broker]:
    return {node.id: Broker.of(plan, node.id) for node in plan.brokers}


def clients_of(*plans: ClusterPlan) -> frozenset[Offer]:
    """The listeners that all of ``plans`` have at every broker: their clients must be served."""
    offered = [broker.offers for plan in plans for broker in brokers(plan).values()]
    return frozenset.intersection(*offered)


def sent_nowhere(state: Mapping[int, Broker], clients: Iterable[Offer]) -> Iterator[str]:
    """The listeners that a broker or client of ``state`` is sent to, and a broker lacks."""
    for sender, target in itertools.permutations(state.values(), 2):
        if sender.uses not in target.offers:
            yield f"broker {sender.id} is sent to {sender.uses} of broker {target.id}"
        elif sender.uses[0] not in target.internal:
            yield f"broker {sender.id} cannot resolve {sender.uses} of broker {target.id}"
    for offer in clients:
        for broker in state.values():
            if offer not in broker.offers:
                yield f"a client is sent to {offer} of broker {broker.id}"


def restarted(before: Broker | None, after: Broker) -> Iterator[str]:
    """The problems of one broker's restart."""
    ports = [port for _, port in after.ports]
    if len(set(ports)) != len(ports):
        yield f"broker {after.id} binds a port twice"
    names = {port: name for name, port in before.ports} if before else {}
    for name, port in after.ports:
        if names.get(port, name) != name:
            yield f"broker {after.id}: {name} takes port {port} from {names[port]} in one go"


def roll(
    start: Mapping[int, Broker],
    after: ClusterPlan,
    clients: frozenset[Offer],
    chance: random.Random,
) -> Iterator[str]:
    """The problems in any mixture on the way from ``start`` to ``after``, in any order."""
    new = brokers(after)
    for id in new:
        yield from restarted(start.get(id), new[id])
    staying = {id: broker for id, broker in start.items() if id in new}  # the others hold no data
    for chosen in mixtures(sorted(new), chance):
        yield from sent_nowhere(staying | {id: new[id] for id in chosen}, clients)


def mixtures(ids: Sequence[int], chance: random.Random) -> Iterator[tuple[int, ...]]:
    """Sets of restarted brokers: each of them occurs in some order of restarts."""
    if len(ids) <= ALL:
        for count in range(len(ids) + 1):
            yield from itertools.combinations(ids, count)
        return
    yield ()
    yield tuple(ids)
    for _ in range(SAMPLE):
        yield tuple(chance.sample(ids, chance.randint(1, len(ids) - 1)))
