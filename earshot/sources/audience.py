"""Whom a listener of a container is for, known by what it advertises and what is published.

Nothing is guessed: where neither a name on the container's networks, nor `localhost` on a
published port, nor another name on a published port shows it, nobody is named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from earshot.facts.container import Container, is_loopback
from earshot.listeners.address import Address, bracketed
from earshot.listeners.terms import Scope


@dataclass(frozen=True)
class Audience:
    """The scopes of one listener, none where nothing shows them; ``why`` gives the reason."""

    scopes: tuple[Scope, ...]
    why: str


@dataclass(frozen=True)
class Context:
    """What is known of a broker's listeners as a whole."""

    inter_broker: str
    controllers: Collection[str] = ()
    declared: Mapping[str, tuple[Scope, ...]] | None = None
    """Scopes that the user has declared, by listener name."""
    alone: bool = False
    """No other broker can ever join this one, so that what is between brokers is its own affair."""


def audience(
    name: str, bind_port: int, advertised: Address, container: Container, context: Context
) -> Audience:
    """Whom the listener ``name`` is for."""
    said = (context.declared or {}).get(name)
    if said:
        return Audience(said, "said so")
    if name in context.controllers:
        return Audience((Scope.CONTROLLER,), "named in controller.listener.names")
    own_affair = context.alone and is_loopback(advertised.host)
    between = name == context.inter_broker and not own_affair
    host = bracketed(advertised.host)
    if container.answers_to(advertised.host):
        networks = ", ".join(item.name for item in container.networks)
        where = f"on network {networks}" if networks else "inside its network"
        return Audience((Scope.INTERNAL,), f"{host} is the container's name {where}")
    reached = _published(container, bind_port, advertised.port)
    internal = ((Scope.INTERNAL,), ("the brokers talk through it",)) if between else ((), ())
    if not reached:
        if between:
            return Audience(*_joined(internal))
        return Audience((), f"{host} is no name of the container, and its port is not published")
    if is_loopback(advertised.host):
        return Audience(*_joined(internal, Scope.HOST, f"{host} on the published port {reached}"))
    why = f"{host}, which is elsewhere, on the published port {reached}"
    return Audience(*_joined(internal, Scope.EXTERNAL, why))


def _published(container: Container, bind_port: int, advertised_port: int) -> str:
    if container.on_host_network:
        return f"{advertised_port} (the container is on the host's network)"
    found = container.published_at(bind_port) or container.behind(advertised_port)
    return str(found[0]) if found else ""


def _joined(
    internal: tuple[tuple[Scope, ...], tuple[str, ...]], scope: Scope | None = None, why: str = ""
) -> tuple[tuple[Scope, ...], str]:
    scopes, reasons = internal
    if scope is None:
        return scopes, "; ".join(reasons)
    return (*scopes, scope), "; ".join((*reasons, why))
