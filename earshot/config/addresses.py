"""The address strategy of a listener: how its addresses distinguish the brokers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from pydantic import model_validator

from earshot.errors import AddressError
from earshot.listeners.address import check_host
from earshot.listeners.model import BindHost, Endpoint, ForwardingPath, Front, Frozen, Host, Port
from earshot.listeners.problems import refuse, shown
from earshot.listeners.terms import Strategy, UnknownHost
from earshot.names.kinds import ip_of

ID = "{id}"
_KEYS = {
    Strategy.OWN: ("bootstrap_host", "bootstrap_port"),
    Strategy.PORT: ("host", "base_port", "bootstrap_port"),
    Strategy.SNI: ("pattern", "port", "bootstrap_host"),
    Strategy.GIVEN: ("bootstrap_host", "bootstrap_port"),
}
"""The keys of each strategy, in addition to `strategy` and `path`."""


class AddressSpec(Frozen):
    """How the advertised addresses of a listener distinguish its brokers."""

    strategy: Strategy = Strategy.OWN
    """own: a name per broker, which the placement provisions; port: one name and a port per broker;
    sni: one port and a name per broker, which TLS clients send; given: `advertised` has all
    addresses."""
    host: Host | None = None
    """With strategy port: the name of all brokers. Default: that of the stack's balancer."""
    base_port: Port | None = None
    """With strategy port, and required: broker N has the port `base_port` + N."""
    pattern: str | None = None
    """With strategy sni, and required: the brokers' names; `{id}` is replaced by the broker's id,
    as in broker-{id}.kafka.example.com."""
    port: Port | None = None
    """With strategy sni: the port of all brokers' names. Default: the listener's port."""
    bootstrap_host: BindHost | None = None
    """A name for first connections, which reach any broker. Default: the brokers' own addresses,
    or with strategy port and a `bootstrap_port`, `host`."""
    bootstrap_port: Port | None = None
    """A port for first connections, which reach any broker. Default: the brokers' own addresses,
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
        are_given = self.bootstrap_host is not None, self.bootstrap_port is not None
        if self.strategy in (Strategy.OWN, Strategy.GIVEN) and len(set(are_given)) > 1:
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
        elif ip_of(text.replace(ID, "1")) is not None:
            yield (
                f"pattern: found {shown(text)}, and TLS shows the gateway no IP address; allowed: "
                f"a name with {ID}, as in broker-{ID}.example.com"
            )
        else:
            try:
                check_host(text.replace(ID, "1"))
            except AddressError as error:
                yield f"pattern: {error.line}"

    @property
    def forwards(self) -> bool:
        """True if brokers advertise a shared name or a forwarder."""
        return self.strategy in (Strategy.PORT, Strategy.SNI)

    def port_of(self, id: int) -> int:
        """The advertised port of broker ``id``, with strategy port."""
        return (self.base_port or 0) + id

    def name_of(self, id: int) -> str:
        """The advertised name of broker ``id``, with strategy sni."""
        return (self.pattern or "").replace(ID, str(id))

    def ports(self, ids: Sequence[int]) -> dict[int, str]:
        """The ports of `host` with strategy port, each with its purpose."""
        owners = {self.port_of(id): f"broker {id}" for id in ids}
        if self.bootstrap_port is not None:
            owners[self.bootstrap_port] = "the bootstrap"
        return owners

    def with_bootstrap(self) -> Self:
        """This strategy with a bootstrap port: `base_port`, if it has none."""
        return self.model_copy(update={"bootstrap_port": self.bootstrap_port or self.base_port})

    def front(self, host: str | UnknownHost, port: int) -> Front | None:
        """The address that clients of a broker connect to, if it is not the advertised ``host`` and
        ``port``; else None."""
        bootstrap = None
        if self.bootstrap_host is not None or self.bootstrap_port is not None:
            bootstrap = Endpoint(host=self.bootstrap_host or host, port=self.bootstrap_port or port)
        if self.strategy in (Strategy.OWN, Strategy.GIVEN) and not (bootstrap or self.path):
            return None
        return Front(strategy=self.strategy, bootstrap=bootstrap, path=self.path)
