"""KL015: a client speaks the security protocol of the listener that it comes in on.

A client that names none speaks plain text, and a TLS listener ends each of its connections.
"""

from collections.abc import Iterator

from earshot.listeners.listed import by_key, shortened
from earshot.listeners.terms import Protocol
from earshot.rules.registry import Finding, Rule
from earshot.topology.broker import Arrival
from earshot.topology.model import Deployment

Asked = tuple[str, str, Protocol, Protocol, str]


def check(deployment: Deployment, rule: Rule) -> Iterator[Finding]:
    """One finding for each listener and protocol, with the clients."""
    asked: list[tuple[Asked, str]] = []
    for item in deployment.bootstraps:
        if item.protocol is None:
            continue
        ways = [deployment.way(item.service, address) for address in item.addresses]
        for way in ways:
            if not isinstance(way, Arrival) or way.endpoint.protocol in (None, item.protocol):
                continue
            wanted = way.endpoint.protocol
            assert wanted is not None
            key = (way.broker.service, way.endpoint.name, wanted, item.protocol, item.setting)
            asked.append((key, item.service))
            break
    for (broker, listener, wanted, spoken, setting), clients in by_key(asked).items():
        verb = "speaks" if len(clients) == 1 else "speak"
        yield rule.finding(
            f"{shortened(list(clients))} {verb} {spoken} to {listener} of {broker}, which is "
            f"{wanted}",
            "the protocol of the listener",
            listener=listener,
            container=clients[0],
            remedy=f"set the client's security.protocol to {wanted}, or bootstrap to a listener "
            f"with {spoken}",
            inputs=(setting,),
        )
