"""The contract: the addresses that clients should see, as a versioned JSON document.

It contains no secret.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import from_json

from earshot.errors import AddressError, EarshotError, SpecError
from earshot.listeners.address import Address, parse_address
from earshot.listeners.model import ClusterPlan, Frozen, Host, Listener, ListenerName, Port
from earshot.listeners.problems import describe, refuse, repeated, shown
from earshot.listeners.terms import CLIENT_SCOPES, Protocol, Scope
from earshot.placement_registry import PLACEMENTS

MAX_LISTENERS = 100
"""The maximum number of listeners: each needs a client with a thread per broker."""
GIVEN = "given"
"""The placement of brokers that another program makes."""
MAX_PLACES = 20_000
"""The maximum number of addresses: five listeners of four thousand brokers."""


class AdvertisedAddress(Frozen):
    """The address that one broker returns to clients of one listener."""

    host: Host
    port: Port

    @property
    def address(self) -> Address:
        return Address(str(self.host), self.port)


class AnsweredAddress(AdvertisedAddress):
    """The address in a running broker's answer, with any host and port."""

    host: str
    port: int


class ContractListener(Frozen):
    """One client listener of the cluster."""

    name: ListenerName
    protocol: Protocol
    scopes: tuple[Scope, ...]
    bootstrap: str
    """`host:port,…` of every broker, in order of their ids; or the only address of a forwarder for
    bootstrap connections."""
    leaving: bool = False
    """True if a later step of the current change removes the listener or changes its protocol, so
    that its clients must move. Only in version 3."""


class ContractBroker(Frozen):
    """One broker and its advertised address per listener name."""

    id: int = Field(ge=0, le=2**31 - 1)
    advertised: dict[str, AdvertisedAddress]


class Contract(Frozen):
    """The addresses that clients of a cluster should see, per listener and broker."""

    version: Literal[1, 2, 3] = 3
    """Version 1, of earlier releases, has no `cluster_id`."""
    cluster: str
    """The stack's name, or its substitute."""
    cluster_id: str | None = Field(default=None, min_length=1)
    """Kafka's id of the cluster; None if unknown. Then answers are not compared with it."""
    placement: str
    """A name in `PLACEMENTS`, `GIVEN`, or that of another release; empty if unknown."""
    kafka_version: str
    inter_broker: ListenerName | None = None
    """The name of the inter-broker listener; None if the contract is made from a cluster's answers,
    which do not contain it."""
    listeners: tuple[ContractListener, ...] = Field(min_length=1, max_length=MAX_LISTENERS)
    brokers: tuple[ContractBroker, ...] = Field(min_length=1, max_length=MAX_PLACES)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Contract:
        address_count = sum(len(broker.advertised) for broker in self.brokers)
        if address_count > MAX_PLACES:
            refuse([f"brokers: found {address_count:,} addresses; allowed: {MAX_PLACES:,} at most"])
        names, ids = (
            [listener.name for listener in self.listeners],
            [broker.id for broker in self.brokers],
        )
        problems = [f"listeners: {name} occurs twice" for name, _ in repeated(names)]
        problems += [f"brokers: the id {id} occurs twice" for id, _ in repeated(ids)]
        problems += [
            f"brokers: {broker.id} advertises {name}, which is not one of the listeners "
            + ", ".join(names)
            for broker in self.brokers
            for name in broker.advertised
            if name not in names
        ]
        problems += [
            f"listeners: {name} is advertised by no broker"
            for name in names
            if not any(name in broker.advertised for broker in self.brokers)
        ]
        silent_ids = (broker.id for broker in self.brokers if not broker.advertised)
        refuse([*problems, *(f"brokers: {id} advertises nothing" for id in silent_ids)])
        return self

    @property
    def places(self) -> list[tuple[ContractListener, int, Address]]:
        """The address of each broker (by its id) through each listener, listeners in order."""
        return [
            (listener, broker.id, broker.advertised[listener.name].address)
            for listener in self.listeners
            for broker in self.brokers
            if listener.name in broker.advertised
        ]

    @property
    def bootstraps(self) -> list[tuple[ContractListener, Address]]:
        """The bootstrap addresses that are not a broker's own, each once, with their listener."""
        broker_addresses = {(listener.name, str(address)) for listener, _, address in self.places}
        return [
            (listener, parse_address(text))
            for listener in self.listeners
            for text in dict.fromkeys(listener.bootstrap.split(","))
            if (listener.name, text) not in broker_addresses
        ]

    def listener(self, name: str) -> ContractListener:
        return next(listener for listener in self.listeners if listener.name == name)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The client scopes that have listeners, from the narrowest to the widest."""
        scopes = {scope for listener in self.listeners for scope in listener.scopes}
        return tuple(scope for scope in CLIENT_SCOPES if scope in scopes)

    def identified(self, cluster_id: str) -> Contract:
        """A copy with this cluster id."""
        return self.model_copy(update={"cluster_id": cluster_id})

    def for_scope(self, scope: Scope) -> Contract:
        """A copy with only the listeners of ``scope`` (one of `scopes`) and their brokers."""
        return self.with_listeners(
            listener.name for listener in self.listeners if scope in listener.scopes
        )

    def with_listeners(self, names: Iterable[str]) -> Contract:
        """A copy with only the listeners ``names`` (at least one) and their brokers."""
        chosen_names = set(names)
        chosen_listeners = tuple(
            listener for listener in self.listeners if listener.name in chosen_names
        )
        brokers = []
        for broker in self.brokers:
            advertised = {
                name: address for name, address in broker.advertised.items() if name in chosen_names
            }
            if advertised:
                brokers.append(broker.model_copy(update={"advertised": advertised}))
        return self.model_copy(update={"listeners": chosen_listeners, "brokers": tuple(brokers)})

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
        """The contract of ``plan``, without controllers.

        ``cluster`` is the stack's name, ``placement`` a name in `PLACEMENTS` or `GIVEN`, and
        ``leaving`` are the names of listeners that a later step removes. Raises EarshotError for
        another placement.
        """
        if placement not in (*PLACEMENTS, GIVEN):
            raise EarshotError(
                "the contract's placement",
                observed=shown(placement),
                allowed=", ".join((*PLACEMENTS, GIVEN)),
            )
        listeners, brokers = [], []
        for name in plan.listener_names:
            same_listeners = [
                node_listener
                for node in plan.brokers
                if (node_listener := node.listener(name)) is not None
            ]
            listener = ContractListener(
                name=name,
                protocol=same_listeners[0].protocol,
                scopes=same_listeners[0].scopes,
                bootstrap=_bootstrap(same_listeners),
                leaving=name in leaving,
            )
            listeners.append(listener)
        for node in plan.brokers:
            client_listeners = [
                listener for listener in node.listeners if listener.name != plan.controller
            ]
            advertised = {
                listener.name: AdvertisedAddress(host=listener.host, port=listener.port)
                for listener in client_listeners
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


def read_contract(text: str, source: str) -> Contract:
    """The contract in ``text`` (JSON). Raises EarshotError, with ``source`` as the text's name."""
    try:
        document = from_json(text)
    except ValueError as reason:
        observed = f"is not JSON ({reason})"
        allowed = "the output of `pulumi stack output contract --json`"
        raise EarshotError(source, observed=observed, allowed=allowed) from None
    try:
        contract = Contract.model_validate(document)
        _ = contract.bootstraps  # one made of a cluster's answers may have any addresses
    except AddressError as error:
        raise EarshotError(f"{source}: listeners: bootstrap", observed=error.line) from None
    except ValidationError as error:
        problems = describe(error, Contract, document)
        raise SpecError.of(f"{source} (a contract of version 1, 2 or 3)", problems[:20]) from None
    return contract
