"""The address strategy of a listener: how its clients tell the brokers apart."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from earshot.errors import AddressError
from earshot.listeners.address import MAX_PORT, check_host
from earshot.listeners.model import BindHost, Endpoint, ForwardingPath, Front, Frozen, Host, Port
from earshot.listeners.problems import refuse, shown
from earshot.listeners.terms import Strategy, UnknownHost

if TYPE_CHECKING:
    from earshot.config.listener import ListenerSpec

ID = "{id}"
NODE_PORTS = range(30_000, 32_768)
"""Ports that Kubernetes gives to Services of type NodePort, if it is not configured otherwise."""
_KEYS = {
    Strategy.OWN: ("bootstrap_host", "bootstrap_port"),
    Strategy.PORT: ("host", "base_port", "bootstrap_port"),
    Strategy.SNI: ("pattern", "port", "bootstrap_host"),
    Strategy.GIVEN: ("bootstrap_host", "bootstrap_port"),
}
"""The keys of each strategy, in addition to `strategy` and `path`."""


class AddressSpec(Frozen):
    """How the advertised addresses of a listener tell its brokers apart."""

    strategy: Strategy = Strategy.OWN
    """own: a name of each broker's own, which the placement provisions; port: one name and a port
    per broker; sni: one port and a name per broker, told apart by TLS; given: `advertised` has all
    addresses."""
    host: Host | None = None
    """With strategy port: the one name. Default: that of the balancer that the stack makes."""
    base_port: Port | None = None
    """With strategy port, and required: broker N has the port `base_port` + N."""
    pattern: str | None = None
    """With strategy sni, and required: the brokers' names; `{id}` is replaced by the broker's id,
    as in broker-{id}.kafka.example.com."""
    port: Port | None = None
    """With strategy sni: the port of all brokers' names. Default: the listener's port."""
    bootstrap_host: BindHost | None = None
    """A name for first connections, which leads to any broker. Default: the brokers' own addresses,
    or with strategy port and a `bootstrap_port`, `host`."""
    bootstrap_port: Port | None = None
    """A port for first connections, which leads to any broker. Default: the brokers' own addresses,
    or with a `bootstrap_host` the port of the brokers."""
    path: ForwardingPath | None = None
    """What forwards connections to the brokers. The gate checks that it suits the listener."""

    @model_validator(mode="after")
    def _of_its_strategy(self) -> Self:
        refuse(list(self._problems()))
        return self

    def _problems(self) -> Iterator[str]:
        allowed = _KEYS[self.strategy]
        for key in AddressSpec.model_fields:
            if key in ("strategy", "path", *allowed) or getattr(self, key) is None:
                continue
            yield (
                f"{key}: found with strategy {self.strategy}; allowed: {', '.join(allowed)}, path"
            )
        if self.strategy is Strategy.PORT and self.base_port is None:
            yield "base_port: is missing; broker N has the port `base_port` + N"
        if self.strategy is Strategy.SNI:
            yield from self._pattern_problems()
        named = self.bootstrap_host is not None, self.bootstrap_port is not None
        if self.strategy in (Strategy.OWN, Strategy.GIVEN) and len(set(named)) > 1:
            yield "bootstrap_host: allowed: with `bootstrap_port`; neither is known of the other"

    def _pattern_problems(self) -> Iterator[str]:
        text = self.pattern
        if text is None:
            yield f"pattern: is missing; allowed: a name with {ID}, as in broker-{ID}.example.com"
        elif ID not in text:
            yield (
                f"pattern: found {shown(text)}; allowed: a name with {ID}, for all brokers would "
                "have one name"
            )
        else:
            try:
                check_host(text.replace(ID, "1"))
            except AddressError as error:
                yield f"pattern: {error.line}"

    @property
    def forwards(self) -> bool:
        """Whether a name that all brokers share, or a forwarder, is advertised."""
        return self.strategy in (Strategy.PORT, Strategy.SNI)

    def port_of(self, id: int) -> int:
        """The advertised port of broker ``id``, with strategy port."""
        return (self.base_port or 0) + id

    def name_of(self, id: int) -> str:
        """The advertised name of broker ``id``, with strategy sni."""
        return (self.pattern or "").replace(ID, str(id))

    def ports(self, ids: Sequence[int]) -> dict[int, str]:
        """The ports of ``host`` with strategy port, each with what it is for."""
        found = {self.port_of(id): f"broker {id}" for id in ids}
        if self.bootstrap_port is not None:
            found[self.bootstrap_port] = "the bootstrap"
        return found

    def with_bootstrap(self) -> Self:
        """The same with a port for the bootstrap: `base_port`, if there is none yet."""
        return self.model_copy(update={"bootstrap_port": self.bootstrap_port or self.base_port})

    def front(self, host: str | UnknownHost, port: int) -> Front | None:
        """Where clients of a broker connect that advertises ``host`` and ``port``; None: there."""
        bootstrap = None
        if self.bootstrap_host is not None or self.bootstrap_port is not None:
            bootstrap = Endpoint(host=self.bootstrap_host or host, port=self.bootstrap_port or port)
        if self.strategy in (Strategy.OWN, Strategy.GIVEN) and not (bootstrap or self.path):
            return None
        return Front(strategy=self.strategy, bootstrap=bootstrap, path=self.path)


def address_problems(
    listeners: Iterable[ListenerSpec],
    ids: Sequence[int],
    inter_broker: str,
    balanced: Collection[str] = (),
) -> Iterator[str]:
    """The problems of the address strategies of a cluster with the brokers ``ids``.

    The stack makes a balancer for the listeners named in ``balanced``.
    """
    taken: dict[tuple[str, int], str] = {}
    for item in listeners:
        address, key = item.address, f"listeners.{item.name}.address"
        if address.forwards and item.name == inter_broker:
            yield (
                f"{key}.strategy: found {address.strategy} on the listener between brokers; "
                f"allowed: {Strategy.OWN}, {Strategy.GIVEN}, for brokers must reach each other "
                "before anything forwards to them; give clients a listener of their own"
            )
        if address.strategy is Strategy.GIVEN and (missing := set(ids) - set(item.advertised)):
            found = ", ".join(map(str, sorted(missing)[:3]))
            yield (
                f"listeners.{item.name}.advertised: has no address for broker {found}; strategy "
                f"{Strategy.GIVEN} takes one for each broker"
            )
        if address.strategy is Strategy.SNI and not item.protocol.tls:
            yield (
                f"{key}.strategy: found {Strategy.SNI} with {item.protocol}, which shows no name "
                "when a client connects; allowed: SSL, SASL_SSL"
            )
        if address.strategy is Strategy.PORT:
            yield from _port_problems(item, ids, item.name in balanced)
            host = _folded(address.host) or f"the balancer of {', '.join(balanced)}"
            for port, whose in address.ports(ids).items():
                holder = taken.setdefault((host, port), item.name)
                if holder != item.name:
                    yield (
                        f"{key}: found port {port} of {host} for {whose}, which {holder} has "
                        "already; choose a `base_port` whose ports do not overlap"
                    )
                    break


def _port_problems(item: ListenerSpec, ids: Sequence[int], is_balanced: bool) -> Iterator[str]:
    address, key = item.address, f"listeners.{item.name}.address"
    base, last = address.base_port or 0, max(ids)
    if address.host is None and not is_balanced:
        yield (
            f"{key}.host: is missing; all brokers advertise this name, with a port each (on AWS, "
            "`expose: nlb` makes a balancer that has one)"
        )
    if base + last > MAX_PORT:
        limit = f"up to {MAX_PORT - last}" if last < MAX_PORT else f"for ids below {MAX_PORT}"
        yield (
            f"{key}.base_port: found {base} with broker {last}, which would have the port "
            f"{base + last}; allowed: {limit}"
        )
    own = [id for id in ids if address.port_of(id) == address.bootstrap_port]
    if own:
        yield (
            f"{key}.bootstrap_port: found {address.bootstrap_port}, which is the port of broker "
            f"{own[0]}; allowed: a port that no broker has"
        )
    outside = [id for id in ids if address.port_of(id) not in NODE_PORTS]
    if outside and len(outside) < len(ids):
        yield (
            f"{key}.base_port: found {base}, with which brokers have ports on both sides of an end "
            f"of Kubernetes' node ports ({NODE_PORTS[0]} to {NODE_PORTS[-1]}); allowed: all ports "
            "within them, or none"
        )


def _folded(host: str | UnknownHost | None) -> str:
    return str(host).lower().rstrip(".") if host is not None else ""
