"""Who reaches the brokers of a plan in containers, and by which name: walks, before anything runs.

Of one Docker host: what other hosts reach depends on names and routes that no plan holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from earshot.listeners.address import Address
from earshot.placement import Planned
from earshot.sources.deployment import deployment
from earshot.sources.docker_container import read_service
from earshot.topology.broker import Bootstrap
from earshot.topology.container import Container, JoinedNetwork
from earshot.topology.model import Deployment
from earshot.topology.names import HOST
from earshot.topology.walk import Sent, sent_to
from earshot.topology.ways import Answer

_CLIENT = "the client"
"""No container's name, for it has a blank."""


@dataclass(frozen=True)
class Reach:
    """What clients of one place meet on one listener: the addresses that they are sent to."""

    place: str
    listener: str
    addresses: tuple[Address, ...]
    answer: Answer
    because: str
    """Why not, or the fact that is not known; of a yes an empty text."""


def reach(planned: Planned) -> tuple[Reach, ...]:
    """For each place and listener; nothing for brokers on several hosts, or in no containers."""
    containers = planned.containers
    if not containers or len({item.host for item in containers.values()}) > 1:
        return ()
    services = [read_service(item.inputs("")) for item in containers.values()]
    whole = deployment(services)
    network = next(iter(containers.values())).network
    client = Container(_CLIENT, networks=(JoinedNetwork(network),))
    whole = Deployment({**whole.containers, _CLIENT: client}, whole.brokers)
    places = {f"containers on {network}": _CLIENT, "the Docker host": HOST}
    return tuple(_reaches(whole, places))


def _reaches(whole: Deployment, places: dict[str, str]) -> Iterator[Reach]:
    brokers = [item for item in whole.brokers if item.is_broker]
    names = {it.name: it.protocol for broker in brokers for it in broker.for_clients}
    for shown, place in places.items():
        for name, protocol in names.items():
            client = Bootstrap(place, "", (), protocol)
            sent = [sent_to(whole, client, broker, name) for broker in brokers]
            addresses = tuple(it.trace.address for it in sent if it.trace is not None)
            answer, because = _worst(sent)
            yield Reach(shown, name, addresses, answer, because)


def _worst(sent: list[Sent]) -> tuple[Answer, str]:
    for answer in (Answer.NO, Answer.UNKNOWN):
        for item in sent:
            if item.answer is answer:
                return answer, next(it.because for it in item.hops if it.answer is answer)
    return Answer.YES, ""
