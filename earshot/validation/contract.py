"""The contract: the plan as a versioned JSON document, what a client should see; no secret."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import from_json

from earshot.errors import EarshotError, SpecError
from earshot.listeners.address import Address, parse_address
from earshot.listeners.model import ClusterPlan, Frozen, Host, Listener, ListenerName, Port
from earshot.listeners.problems import describe, refuse
from earshot.listeners.terms import CLIENT_SCOPES, Protocol, Scope

MOST_LISTENERS = 100
"""Listeners of a contract: each has a client of its own, with a thread per broker."""
MOST_PLACES = 20_000
"""Addresses of a contract: five listeners of four thousand brokers."""


class Advertised(Frozen):
    """What one broker hands out to clients of one listener."""

    host: Host
    port: Port

    @property
    def address(self) -> Address:
        return Address(str(self.host), self.port)


class AnsweredAddress(Advertised):
    """The same as a running broker answered it, be it a host or port that no plan would hold."""

    host: str
    port: int


class ContractListener(Frozen):
    """One client listener of the cluster."""

    name: ListenerName
    protocol: Protocol
    scopes: tuple[Scope, ...]
    bootstrap: str
    """`host:port,…` of every broker, in order of their ids; or the one address that what forwards
    connections has for the first of them."""
    leaving: bool = False
    """Whether the change that the cluster is in takes it away, or its protocol, in a later step:
    its clients are to move. Never before version 3."""


class ContractBroker(Frozen):
    """One broker and its advertised address per listener name."""

    id: int = Field(ge=0, le=2**31 - 1)
    advertised: dict[str, Advertised]


class Contract(Frozen):
    """What every client of a cluster should see, per listener and broker."""

    version: Literal[1, 2, 3] = 3
    """1, as earlier releases wrote it, never has a `cluster_id`."""
    cluster: str
    """The stack's name, or its substitute."""
    cluster_id: str | None = Field(default=None, min_length=1)
    """Kafka's own id of the cluster; None is not known, and then no answer is compared with it."""
    placement: str
    kafka_version: str
    inter_broker: ListenerName | None = None
    """None where the contract is what a cluster says of itself: no client learns the name."""
    listeners: tuple[ContractListener, ...] = Field(min_length=1, max_length=MOST_LISTENERS)
    brokers: tuple[ContractBroker, ...] = Field(min_length=1, max_length=MOST_PLACES)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Contract:
        places = sum(len(broker.advertised) for broker in self.brokers)
        if places > MOST_PLACES:
            refuse([f"brokers: found {places:,} addresses; allowed: {MOST_PLACES:,} at most"])
        names, ids = (
            [listener.name for listener in self.listeners],
            [broker.id for broker in self.brokers],
        )
        problems = [f"listeners: {name} occurs twice" for name in _repeated(names)]
        problems += [f"brokers: the id {id} occurs twice" for id in _repeated(ids)]
        problems += [
            f"brokers: {broker.id} advertises {name}, which is none of the listeners "
            + ", ".join(names)
            for broker in self.brokers
            for name in broker.advertised
            if name not in names
        ]
        silent = (broker.id for broker in self.brokers if not broker.advertised)
        refuse([*problems, *(f"brokers: {id} advertises nothing" for id in silent)])
        return self

    @property
    def places(self) -> list[tuple[ContractListener, int, Address]]:
        """Where each broker (its id) is reached by each listener, listeners in order."""
        return [
            (listener, broker.id, broker.advertised[listener.name].address)
            for listener in self.listeners
            for broker in self.brokers
            if listener.name in broker.advertised
        ]

    @property
    def bootstraps(self) -> list[tuple[ContractListener, Address]]:
        """By listener, the one address for first connections, where that is no broker's."""
        own = {(listener.name, str(address)) for listener, _, address in self.places}
        return [
            (listener, parse_address(listener.bootstrap))
            for listener in self.listeners
            if "," not in listener.bootstrap and (listener.name, listener.bootstrap) not in own
        ]

    def listener(self, name: str) -> ContractListener:
        return next(listener for listener in self.listeners if listener.name == name)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The clients' scopes that it has listeners for, from the narrowest to the widest."""
        scopes = {scope for listener in self.listeners for scope in listener.scopes}
        return tuple(scope for scope in CLIENT_SCOPES if scope in scopes)

    def identified(self, cluster_id: str) -> Contract:
        """The same, of the cluster with this id."""
        return self.model_copy(update={"cluster_id": cluster_id})

    def for_scope(self, scope: Scope) -> Contract:
        """The same with the listeners of ``scope`` (one of `scopes`) alone, and who has them."""
        return self.with_listeners(
            listener.name for listener in self.listeners if scope in listener.scopes
        )

    def with_listeners(self, names: Iterable[str]) -> Contract:
        """The same with the listeners called ``names`` (at least one) alone, and who has them."""
        wanted = set(names)
        kept = tuple(listener for listener in self.listeners if listener.name in wanted)
        brokers = []
        for broker in self.brokers:
            advertised = {
                name: address for name, address in broker.advertised.items() if name in wanted
            }
            if advertised:
                brokers.append(broker.model_copy(update={"advertised": advertised}))
        return self.model_copy(update={"listeners": kept, "brokers": tuple(brokers)})

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)

    @classmethod
    def of(
        cls,
        plan: ClusterPlan,
        cluster: str,
        placement: str,
        cluster_id: str | None = None,
        leaving: Collection[str] = (),
    ) -> Contract:
        """The contract of ``plan``, of which the listeners called ``leaving`` are to go.

        Controllers are no client's business and stay out.
        """
        listeners, brokers = [], []
        for name in plan.listener_names:
            of_name = [item for node in plan.brokers if (item := node.listener(name)) is not None]
            listener = ContractListener(
                name=name,
                protocol=of_name[0].protocol,
                scopes=of_name[0].scopes,
                bootstrap=_bootstrap(of_name),
                leaving=name in leaving,
            )
            listeners.append(listener)
        for node in plan.brokers:
            public = [listener for listener in node.listeners if listener.name != plan.controller]
            advertised = {
                listener.name: Advertised(host=listener.host, port=listener.port)
                for listener in public
            }
            brokers.append(ContractBroker(id=node.id, advertised=advertised))
        return cls(
            cluster=cluster,
            cluster_id=cluster_id,
            placement=placement,
            kafka_version=plan.kafka_version,
            inter_broker=plan.inter_broker,
            listeners=tuple(listeners),
            brokers=tuple(brokers),
        )


def _bootstrap(listeners: Sequence[Listener]) -> str:
    front = listeners[0].front
    if front is not None and front.bootstrap is not None:
        return str(front.bootstrap.address)
    return ",".join(str(listener.advertised) for listener in listeners)


def _repeated(values: Iterable[object]) -> list[object]:
    return [value for value, count in Counter(values).items() if count > 1]


def read_contract(text: str, source: str) -> Contract:
    """The contract in ``text`` (JSON); ``source`` names it. Raises EarshotError."""
    try:
        document = from_json(text)
    except ValueError as reason:
        observed = f"is no JSON ({reason})"
        allowed = "what `pulumi stack output contract --json` prints"
        raise EarshotError(source, observed=observed, allowed=allowed) from None
    try:
        return Contract.model_validate(document)
    except ValidationError as error:
        problems = describe(error, Contract, document)
        raise SpecError.of(f"{source} (a contract of version 1, 2 or 3)", problems[:20]) from None
