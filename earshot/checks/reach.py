"""Reachability of a plan's brokers from each place, before they run.

A client at each place connects, as after its bootstrap, to the address that every broker
advertises on a listener. DNS is not queried, so that its names are unknown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from earshot.checks.reach_aws import hops_in_cloud
from earshot.facts.connected import ConnectedVpc
from earshot.listeners.address import Address
from earshot.listeners.model import ClusterPlan, Node
from earshot.names.kinds import ip_of
from earshot.placement import PlacementPlan
from earshot.placement_registry import ClientLocation
from earshot.sources.docker_container import read_container
from earshot.topology.broker import Bootstrap, Broker, Endpoint
from earshot.topology.container import HOST_NETWORK, Container, JoinedNetwork
from earshot.topology.model import Deployment
from earshot.topology.names import HOST, OUTSIDE
from earshot.topology.walk import broker_connection
from earshot.topology.ways import Answer, Hop, HopKind

_CLIENT = "the client"
"""A place; no container's name has a blank."""
_CLOUD = {"in the VPC": ClientLocation.SAME_VPC, "beyond the VPC": ClientLocation.OUTSIDE}
_ELSEWHERE = "other machines"


@dataclass(frozen=True)
class Reach:
    """The result for clients at one place on one listener, with the addresses they receive."""

    place: str
    listener: str
    addresses: tuple[Address, ...]
    answer: Answer
    because: str
    """The reason for NO, or the unknown fact; empty for YES."""


BrokerHops = tuple[Address | None, Sequence[Hop]]
"""The address that a broker advertises (None if unknown), and the hops to it."""
HopsTo = Callable[[Node, str], BrokerHops]
"""A function that returns a client's `BrokerHops` for a node and a listener's name."""


def reach(planned: PlacementPlan) -> tuple[Reach, ...]:
    """The result for each place and client listener of ``planned``."""
    cloud = planned.cloud
    places: Mapping[str, HopsTo]
    if cloud is not None:
        connected = {f"in VPC {vpc.name}": vpc for vpc in cloud.connected}
        in_cloud: dict[str, ClientLocation | ConnectedVpc] = {**_CLOUD, **connected}
        places = {
            place: partial(hops_in_cloud, planned, cloud, kind) for place, kind in in_cloud.items()
        }
    elif planned.containers:
        places = dict(_among_containers(planned))
    else:
        places = dict(_on_one_machine(planned))
    return tuple(
        row for shown, hops_to in places.items() for row in _rows(planned.plan, shown, hops_to)
    )


def _rows(plan: ClusterPlan, place: str, hops_to: HopsTo) -> Iterator[Reach]:
    for name in plan.listener_names:
        broker_hops = [_forwarded(node, name) or hops_to(node, name) for node in plan.brokers]
        addresses = tuple(address for address, _ in broker_hops if address is not None)
        yield Reach(place, name, addresses, *_worst(broker_hops))


def _forwarded(node: Node, name: str) -> BrokerHops | None:
    """The hops through a forwarder, which no plan describes; None without a forwarder."""
    listener = node.listener(name)
    if listener is None or not listener.forwarded:
        return None
    why = f"{listener.host} forwards to brokers, which only the validation can see"
    return listener.advertised if listener.known else None, (Hop(HopKind.WAY, Answer.UNKNOWN, why),)


def _worst(broker_hops: Sequence[BrokerHops]) -> tuple[Answer, str]:
    hops = [hop for _, hop_list in broker_hops for hop in hop_list]
    for answer in (Answer.NO, Answer.UNKNOWN):
        if because := next((hop.because for hop in hops if hop.answer is answer), ""):
            return answer, because
    return Answer.YES, ""


def _among_containers(planned: PlacementPlan) -> Iterator[tuple[str, HopsTo]]:
    """Places in containers and on each Docker host, then other machines."""
    network = next(iter(planned.containers.values())).network
    deployments = {}
    for machine in dict.fromkeys(map(planned.machine_of, planned.containers)):
        containers = {
            id: read_container(container.inputs(""))
            for id, container in planned.containers.items()
            if planned.machine_of(id) == machine
        }
        client = Container(_CLIENT, networks=(JoinedNetwork(network),))
        deployments[machine] = _deployment(planned.plan, containers, client)
    for machine in deployments:
        of = f" of {machine}" if machine else ""
        yield f"containers on {network}{of}", _hops_from(planned, deployments, machine, _CLIENT)
        yield (
            f"the Docker host{of and f' {machine}'}",
            _hops_from(planned, deployments, machine, HOST),
        )
    yield _ELSEWHERE, _hops_from(planned, deployments, None, OUTSIDE)


def _on_one_machine(planned: PlacementPlan) -> Iterator[tuple[str, HopsTo]]:
    """Places on and outside of this machine, with processes as containers on its network."""
    containers = {
        node.id: Container(f"node {node.id}", network_mode=HOST_NETWORK)
        for node in planned.plan.nodes
    }
    deployments = {"": _deployment(planned.plan, containers, None, _own_names(planned))}
    yield "this machine", _hops_from(planned, deployments, "", HOST)
    yield _ELSEWHERE, _hops_from(planned, deployments, None, OUTSIDE)


def _own_names(planned: PlacementPlan) -> dict[str, str]:
    """Certain names of this machine: its addresses, and names with a bound address."""
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
        _planned_broker(plan, plan.node(id), container) for id, container in containers.items()
    )
    places = {container.name: container for container in containers.values()}
    return Deployment(places | ({client.name: client} if client else {}), brokers, own=own or {})


def _hops_from(
    planned: PlacementPlan, deployments: Mapping[str, Deployment], machine: str | None, place: str
) -> HopsTo:
    """The hops of a client at ``place`` on ``machine``; brokers elsewhere see it as outside."""
    by_id: dict[int | None, tuple[str, Deployment, Broker]] = {
        broker.id: (label, deployment, broker)
        for label, deployment in deployments.items()
        for broker in deployment.brokers
    }

    def hops_to(node: Node, listener: str) -> BrokerHops:
        label, deployment, broker = by_id[node.id]
        endpoint = broker.named(listener)
        client = Bootstrap(
            place if label == machine else OUTSIDE, "", (), endpoint.protocol if endpoint else None
        )
        connection = broker_connection(deployment, client, broker, listener)
        return (connection.trace.address if connection.trace else None), connection.hops

    return hops_to


def _planned_broker(plan: ClusterPlan, node: Node, container: Container) -> Broker:
    """``node`` in ``container``; an unknown host is an unknown advertised address."""
    return Broker(
        service=container.name,
        container=container,
        id=node.id,
        endpoints=tuple(
            Endpoint(
                listener.name,
                listener.bind,
                listener.advertised if listener.known else None,
                listener.name == plan.controller,
                listener.protocol,
            )
            for listener in node.listeners
        ),
        inter_broker=plan.inter_broker,
        cluster="plan",
        is_broker=node.is_broker,
        is_controller=node.is_controller,
    )
