"""A model of brokers that are restarted one at a time: who must reach whom, and who cannot.

It knows nothing of how steps are found: it reads the settings that brokers are started with, as
Kafka does, and which listeners have addresses that other brokers can resolve.
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
"""Of so many brokers every mixture is looked at; of more, `SAMPLE` of them."""
SAMPLE = 48

Offer = tuple[str, str]
"""A listener's name and protocol."""


@dataclass(frozen=True)
class Broker:
    """What one broker offers and uses, as its settings say."""

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
            frozenset(it.name for it in plan.node(id).listeners if Scope.INTERNAL in it.scopes),
        )


def brokers(plan: ClusterPlan) -> dict[int, Broker]:
    return {node.id: Broker.of(plan, node.id) for node in plan.brokers}


def clients_of(*plans: ClusterPlan) -> frozenset[Offer]:
    """The listeners that all of ``plans`` have at every broker: their clients must be served."""
    offered = [it.offers for plan in plans for it in brokers(plan).values()]
    return frozenset.intersection(*offered)


def sent_nowhere(state: Mapping[int, Broker], clients: Iterable[Offer]) -> Iterator[str]:
    """What somebody in ``state`` is sent to, and a broker lacks."""
    for one, other in itertools.permutations(state.values(), 2):
        if one.uses not in other.offers:
            yield f"broker {one.id} is sent to {one.uses} of broker {other.id}"
        elif one.uses[0] not in other.internal:
            yield f"broker {one.id} cannot resolve {one.uses} of broker {other.id}"
    for offer in clients:
        for broker in state.values():
            if offer not in broker.offers:
                yield f"a client is sent to {offer} of broker {broker.id}"


def restarted(before: Broker | None, after: Broker) -> Iterator[str]:
    """What is wrong with one broker's restart."""
    ports = [port for _, port in after.ports]
    if len(set(ports)) != len(ports):
        yield f"broker {after.id} binds a port twice"
    held = {port: name for name, port in before.ports} if before else {}
    for name, port in after.ports:
        if held.get(port, name) != name:
            yield f"broker {after.id}: {name} takes port {port} from {held[port]} in one go"


def roll(
    start: Mapping[int, Broker],
    after: ClusterPlan,
    clients: frozenset[Offer],
    chance: random.Random,
) -> Iterator[str]:
    """What is wrong in any mixture on the way from ``start`` to ``after``, in any order."""
    new = brokers(after)
    for id in new:
        yield from restarted(start.get(id), new[id])
    staying = {id: it for id, it in start.items() if id in new}  # the others hold no data
    for chosen in mixtures(sorted(new), chance):
        yield from sent_nowhere(staying | {id: new[id] for id in chosen}, clients)


def mixtures(ids: Sequence[int], chance: random.Random) -> Iterator[tuple[int, ...]]:
    """Those that were restarted already: each set of them is passed in some order."""
    if len(ids) <= ALL:
        for count in range(len(ids) + 1):
            yield from itertools.combinations(ids, count)
        return
    yield ()
    yield tuple(ids)
    for _ in range(SAMPLE):
        yield tuple(chance.sample(ids, chance.randint(1, len(ids) - 1)))
