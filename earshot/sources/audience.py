"""Whom a listener of a container is for, known by what it advertises and what is published.

Nothing is guessed: where neither a name on the container's networks, nor `localhost` on a
published port, nor another name on a published port shows it, nobody is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from earshot.facts.container import Container, is_loopback
from earshot.facts.settings import asks_itself_alone, controller_names, inter_broker_name
from earshot.listeners.address import Address, bracketed
from earshot.listeners.terms import Scope


@dataclass(frozen=True)
class Audience:
    """The scopes of one listener, none where nothing shows them; ``why`` gives the reason."""

    scopes: tuple[Scope, ...]
    why: str


def noted_scopes(text: str) -> dict[str, tuple[Scope, ...]]:
    """By listener, the scopes that a note such as `CLIENTS:internal,LAN:host+external` gives it."""
    found = {}
    for entry in filter(None, text.split(",")):
        name, _, listed = entry.partition(":")
        scopes = (part for part in listed.split("+") if part in list(Scope))
        found[name.strip()] = tuple(map(Scope, scopes))
    return found


def audience(
    name: str,
    bind_port: int,
    advertised: Address,
    container: Container,
    values: Mapping[str, str],
    declared: Mapping[str, tuple[Scope, ...]],
) -> Audience:
    """Whom the listener ``name`` of a broker with the properties ``values`` is for.

    ``declared`` are scopes by listener name, as the user gives them.
    """
    if said := declared.get(name):
        return Audience(said, "said so")
    if name in controller_names(values):
        return Audience((Scope.CONTROLLER,), "named in controller.listener.names")
    host, local = bracketed(advertised.host), is_loopback(advertised.host)
    if container.answers_to(advertised.host):
        networks = ", ".join(item.name for item in container.networks)
        where = f"on network {networks}" if networks else "inside its network"
        return Audience((Scope.INTERNAL,), f"{host} is the container's name {where}")
    scopes: dict[Scope, str] = {}
    # what is between brokers that no other one can ever join is one broker's own affair
    if name == inter_broker_name(values) and not (local and asks_itself_alone(values)):
        scopes[Scope.INTERNAL] = "the brokers talk through it"
    reached = _published(container, bind_port, advertised.port)
    if reached and local:
        scopes[Scope.HOST] = f"{host} on the published port {reached}"
    elif reached:
        scopes[Scope.EXTERNAL] = f"{host}, which is elsewhere, on the published port {reached}"
    elif not scopes:
        return Audience((), f"{host} is no name of the container, and its port is not published")
    return Audience(tuple(scopes), "; ".join(scopes.values()))


def _published(container: Container, bind_port: int, advertised_port: int) -> str:
    if container.on_host_network:
        return f"{advertised_port} (the container is on the host's network)"
    found = container.published_at(bind_port) or container.behind(advertised_port)
    return str(found[0]) if found else ""
