"""Checks the address strategies of a cluster together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from earshot.config.listener import ListenerSpec
from earshot.listeners.address import MAX_PORT
from earshot.listeners.terms import Strategy, UnknownHost

NODE_PORTS = range(30_000, 32_768)
"""Ports that Kubernetes gives to Services of type NodePort, if it is not configured otherwise."""


def address_problems(
    listeners: Iterable[ListenerSpec],
    ids: Sequence[int],
    inter_broker: str,
    balanced: Collection[str] = (),
) -> Iterator[str]:
    """The problems of the address strategies of a cluster with the brokers ``ids``.

    The stack creates a balancer for the listeners named in ``balanced``. Ports of strategy port are
    compared here. Rule KL004 compares whole addresses of all strategies.
    """
    claims: dict[tuple[str, int], str] = {}
    for listener in listeners:
        address, key = listener.address, f"listeners.{listener.name}.address"
        if address.forwards and listener.name == inter_broker:
            yield (
                f"{key}.strategy: found {address.strategy} on the listener between brokers; "
                f"allowed: {Strategy.OWN}, {Strategy.GIVEN}, as brokers must reach each other "
                "before anything forwards to them; give clients a listener of their own"
            )
        if address.strategy is Strategy.GIVEN and (
            missing_ids := set(ids) - set(listener.advertised)
        ):
            ids_text = ", ".join(map(str, sorted(missing_ids)[:3]))
            yield (
                f"listeners.{listener.name}.advertised: has no address for broker {ids_text}; "
                f"strategy {Strategy.GIVEN} takes one for each broker"
            )
        if address.strategy is Strategy.SNI and not listener.protocol.tls:
            yield (
                f"{key}.strategy: found {Strategy.SNI} with {listener.protocol}, which shows no "
                "name when a client connects; allowed: SSL, SASL_SSL"
            )
        if address.strategy is Strategy.PORT:
            yield from _port_problems(listener, ids, listener.name in balanced)
            host = _folded(address.host) or f"the balancer of {', '.join(balanced)}"
            for port, owner in address.ports(ids).items():
                holder = claims.setdefault((host, port), listener.name)
                if holder != listener.name:
                    yield (
                        f"{key}: found port {port} of {host} for {owner}, which {holder} has "
                        "already; choose a `base_port` whose ports do not overlap"
                    )
                    break


def _port_problems(listener: ListenerSpec, ids: Sequence[int], is_balanced: bool) -> Iterator[str]:
    address, key = listener.address, f"listeners.{listener.name}.address"
    base, last_id = address.base_port or 0, max(ids)
    if address.host is None and not is_balanced:
        yield (
            f"{key}.host: is missing; all brokers advertise this name, with a port each (on AWS, "
            "`expose: nlb` makes a balancer that has one)"
        )
    if base + last_id > MAX_PORT:
        limit = f"up to {MAX_PORT - last_id}" if last_id < MAX_PORT else f"for ids below {MAX_PORT}"
        yield (
            f"{key}.base_port: found {base} with broker {last_id}, which would have the port "
            f"{base + last_id}; allowed: {limit}"
        )
    clashing_ids = [id for id in ids if address.port_of(id) == address.bootstrap_port]
    if clashing_ids:
        yield (
            f"{key}.bootstrap_port: found {address.bootstrap_port}, which is the port of broker "
            f"{clashing_ids[0]}; allowed: a port that no broker has"
        )
    outside_ids = [id for id in ids if address.port_of(id) not in NODE_PORTS]
    if outside_ids and len(outside_ids) < len(ids):
        yield (
            f"{key}.base_port: found {base}, with which brokers have ports on both sides of an end "
            f"of Kubernetes' node ports ({NODE_PORTS[0]} to {NODE_PORTS[-1]}); allowed: all ports "
            "within them, or none"
        )


def _folded(host: str | UnknownHost | None) -> str:
    return str(host).lower().rstrip(".") if host is not None else ""
