"""One listener as a stack file describes it, for all brokers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from earshot.config.addresses import AddressSpec
from earshot.errors import AddressError
from earshot.listeners.address import Address, check_host, parse_address
from earshot.listeners.model import BindHost, Frozen, ListenerName, Port
from earshot.listeners.problems import refuse, shown
from earshot.listeners.terms import CLIENT_SCOPES, ClientAuth, Mechanism, Protocol, Scope

_Scope = Literal["internal", "host", "external"]
_ID = re.compile(r"0|[1-9]\d{0,9}", re.ASCII)


def _ordered(scopes: Iterable[Scope]) -> tuple[Scope, ...]:
    """Distinct scopes, from the narrowest to the widest."""
    return tuple(scope for scope in CLIENT_SCOPES if scope in set(scopes))


class ListenerSpec(Frozen):
    """One listener, for all brokers."""

    name: ListenerName
    """The listener's name: upper-case letters, digits and underscores, as Kafka's settings have
    it."""
    port: Port
    """The port that brokers bind. On one machine, the first broker's; the next brokers take the
    next ports."""
    scopes: tuple[Scope, ...] = Field(min_length=1)
    """The clients that the listener serves: internal (the brokers' own network), host (processes of
    the brokers' machine), external (other machines)."""
    protocol: Protocol = Protocol.PLAINTEXT
    """The security protocol. With `security`, the default is SSL between brokers and SASL_SSL
    elsewhere."""
    bind: BindHost | None = None
    """The interface address to bind. Default: chosen by the placement for the scopes."""
    mechanism: Mechanism | None = None
    """The SASL mechanism of this listener, only with `security`. Default: `security.mechanism`."""
    client_auth: ClientAuth | None = None
    """Whether clients present certificates, only with `security`. Default: required on SSL
    listeners, none on SASL_SSL listeners."""
    advertised: dict[int, str] = Field(default_factory=dict)
    """By broker id, a `host` or `host:port` to advertise instead of the provisioned name."""
    address: AddressSpec = Field(default=AddressSpec(), exclude_if=lambda it: it == AddressSpec())
    """How the advertised addresses distinguish the brokers. Default: a name per
    broker."""

    @field_validator("scopes", mode="before", json_schema_input_type=_Scope | list[_Scope])
    @classmethod
    def _one_or_more(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("scopes")
    @classmethod
    def _client_scopes(cls, value: tuple[Scope, ...]) -> tuple[Scope, ...]:
        if Scope.CONTROLLER in value:
            raise ValueError(
                f"found controller; allowed: {', '.join(CLIENT_SCOPES)}; "
                "the quorum's listener is described by the key `controllers`"
            )
        if len(set(value)) != len(value):
            raise ValueError(f"found {', '.join(value)}; allowed: each scope once")
        return _ordered(value)

    @field_validator("advertised", mode="before", json_schema_input_type=dict[str, str])
    @classmethod
    def _overrides(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            raise ValueError(f"found {shown(value)}; allowed: a map from broker ids to addresses")
        problems: list[str] = []
        hosts_by_id: dict[int, str] = {}
        for key, text in value.items():
            id = str(key)  # YAML has numbers for keys, JSON has text
            try:
                if isinstance(key, bool) or not _ID.fullmatch(id):
                    problems.append(f"found the key {shown(key)}; allowed: a broker's id")
                elif not isinstance(text, str):
                    problems.append(f"{id}: found {shown(text)}; allowed: host or host:port")
                elif int(id) in hosts_by_id:
                    problems.append(f"{id}: occurs twice; allowed: one address per broker")
                else:
                    override(text)
                    hosts_by_id[int(id)] = text
            except AddressError as error:
                problems.append(f"{id}: {error.line}")
        refuse(problems)
        return hosts_by_id

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.advertised and self.address.forwards:
            raise ValueError(
                f"advertised: found with strategy {self.address.strategy}, which computes all "
                "addresses; allowed: with strategy own or given"
            )
        return self

    def advertises_own_host(self, ids: Iterable[int]) -> bool:
        """True if a broker of ``ids`` advertises a host that its placement provisions."""
        return not self.address.forwards and not set(ids) <= set(self.advertised)

    @property
    def asks_for_certificates(self) -> bool:
        """True if clients have a certificate in a secured cluster."""
        if self.client_auth is None:
            return self.protocol is Protocol.SSL
        return self.client_auth is not ClientAuth.NONE

    def rescoped(self, old_scope: Scope, new_scope: Scope) -> Self:
        """This listener with scope ``old_scope`` replaced with ``new_scope``."""
        scopes = [new_scope if scope is old_scope else scope for scope in self.scopes]
        return self.model_copy(update={"scopes": _ordered(scopes)})


def override(text: str) -> Address | str:
    """An `advertised` override: a host, or an Address if it has a port."""
    if text.count(":") == 1 or (text.startswith("[") and not text.endswith("]")):
        return parse_address(text)
    return check_host(text)
