"""Who reaches the brokers of a plan, and by which name: walks, before anything runs.

A client of each place is sent, as after its bootstrap, to what every broker advertises on one
listener. What DNS will answer is not asked here: such a name is unknown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from earshot.checks.reach_aws import hops_from_connected_vpc, hops_in_cloud
from earshot.listeners.address import Address
from earshot.listeners.model import ClusterPlan, Node
from earshot.names.kinds import ip_of
from earshot.placement import PlacementPlan
from earshot.placements import ClientLocation
from earshot.sources.docker_container import read_container
from earshot.topology.broker import Bootstrap, Broker
from earshot.topology.container import HOST_NETWORK, Container, JoinedNetwork
from earshot.topology.model import Deployment
from earshot.topology.names import HOST, OUTSIDE
from earshot.topology.planned import planned_broker
from earshot.topology.walk import broker_connection
from earshot.topology.ways import Answer, Hop, Stage

_CLIENT = "the client"
"""No container's name, for it has a blank."""
_CLOUD = {"in the VPC": ClientLocation.SAME_VPC, "beyond the VPC": ClientLocation.OUTSIDE}
_ELSEWHERE = "other machines"


@dataclass(frozen=True)
class Reach:
    """What clients of one place meet on one listener: the addresses that they are sent to."""

    place: str
    listener: str
    addresses: tuple[Address, ...]
    answer: Answer
    because: str
    """Why not, or the fact that is not known; of a yes an empty text."""


BrokerHops = tuple[Address | None, Sequence[Hop]]
"""The address that a broker advertises, where it is known, and the hops to it."""
HopsTo = Callable[[Node, str], BrokerHops]
"""Where a client is sent for one broker, having come in on a listener of that name."""


def reach(planned: PlacementPlan) -> tuple[Reach, ...]:
    """For each place and client listener of ``planned``, whichever placement it is of."""
    cloud = planned.cloud
    places: Mapping[str, HopsTo]
    if cloud is not None:
        places = {it: partial(hops_in_cloud, planned, cloud, kind) for it, kind in _CLOUD.items()}
        places |= {
            f"in VPC {vpc.name}": partial(hops_from_connected_vpc, planned, cloud, vpc)
            for vpc in cloud.connected
        }
    elif planned.containers:
        places = dict(_among_containers(planned))
    else:
        places = dict(_on_one_machine(planned))
    return tuple(
        row for shown, walked in places.items() for row in _rows(planned.plan, shown, walked)
    )


def _rows(plan: ClusterPlan, shown: str, walked: HopsTo) -> Iterator[Reach]:
    for name in plan.listener_names:
        sent = [_forwarded(node, name) or walked(node, name) for node in plan.brokers]
        addresses = tuple(address for address, _ in sent if address is not None)
        yield Reach(shown, name, addresses, *_worst(sent))


def _forwarded(node: Node, name: str) -> BrokerHops | None:
    """Where a client is sent if a forwarder is in front of the listener; no plan describes it."""
    listener = node.listener(name)
    if listener is None or not listener.forwarded:
        return None
    why = f"{listener.host} forwards to brokers, which only the validation can see"
    return listener.advertised if listener.known else None, (Hop(Stage.WAY, Answer.UNKNOWN, why),)


def _worst(sent: Sequence[BrokerHops]) -> tuple[Answer, str]:
    hops = [hop for _, listed in sent for hop in listed]
    for answer in (Answer.NO, Answer.UNKNOWN):
        if because := next((hop.because for hop in hops if hop.answer is answer), ""):
            return answer, because
    return Answer.YES, ""


def _among_containers(planned: PlacementPlan) -> Iterator[tuple[str, HopsTo]]:
    """Places in containers and on each Docker host, then other machines."""
    network = next(iter(planned.containers.values())).network
    wholes = {}
    for machine in dict.fromkeys(map(planned.machine_of, planned.containers)):
        containers = {
            id: read_container(container.inputs(""))
            for id, container in planned.containers.items()
            if planned.machine_of(id) == machine
        }
        client = Container(_CLIENT, networks=(JoinedNetwork(network),))
        wholes[machine] = _deployment(planned.plan, containers, client)
    for machine in wholes:
        of = f" of {machine}" if machine else ""
        yield f"containers on {network}{of}", _hops_from(planned, wholes, machine, _CLIENT)
        yield f"the Docker host{of and f' {machine}'}", _hops_from(planned, wholes, machine, HOST)
    yield _ELSEWHERE, _hops_from(planned, wholes, None, OUTSIDE)


def _on_one_machine(planned: PlacementPlan) -> Iterator[tuple[str, HopsTo]]:
    """Processes have all ports of this machine, as containers on its network have."""
    containers = {
        node.id: Container(f"node {node.id}", network_mode=HOST_NETWORK)
        for node in planned.plan.nodes
    }
    wholes = {"": _deployment(planned.plan, containers, None, _own_names(planned))}
    yield "this machine", _hops_from(planned, wholes, "", HOST)
    yield _ELSEWHERE, _hops_from(planned, wholes, None, OUTSIDE)


def _own_names(planned: PlacementPlan) -> dict[str, str]:
    """What certainly is this machine: its addresses, and a name whose own address is bound."""
    own_names = {
        address: address for names in planned.names.values() for address in names.addresses
    }
    for node in planned.plan.nodes:
        for listener in node.listeners:
            if (
                listener.known
                and ip_of(str(listener.host)) is None
                and listener.bind_host != "0.0.0.0"
            ):
                own_names.setdefault(str(listener.host).lower(), listener.bind_host)
    return own_names


def _deployment(
    plan: ClusterPlan,
    containers: Mapping[int, Container],
    client: Container | None,
    own: Mapping[str, str] | None = None,
) -> Deployment:
    brokers = tuple(
        planned_broker(plan, plan.node(id), container) for id, container in containers.items()
    )
    places = {container.name: container for container in containers.values()}
    return Deployment(places | ({client.name: client} if client else {}), brokers, own=own or {})


def _hops_from(
    planned: PlacementPlan, wholes: Mapping[str, Deployment], machine: str | None, place: str
) -> HopsTo:
    """Of a client at ``place`` on ``machine``: to brokers elsewhere it comes from outside."""
    by_id: dict[int | None, tuple[str, Deployment, Broker]] = {
        broker.id: (label, whole, broker)
        for label, whole in wholes.items()
        for broker in whole.brokers
    }

    def walked(node: Node, listener: str) -> BrokerHops:
        label, whole, broker = by_id[node.id]
        endpoint = broker.named(listener)
        client = Bootstrap(
            place if label == machine else OUTSIDE, "", (), endpoint.protocol if endpoint else None
        )
        found = broker_connection(whole, client, broker, listener)
        return (found.trace.address if found.trace else None), found.hops

    return walked
