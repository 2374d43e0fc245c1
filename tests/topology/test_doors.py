"""A Compose file and equal `docker.Container` resources give the same walks."""

from typing import Any

import pytest

from earshot.listeners.address import Address
from earshot.sources.deployment import deployment
from earshot.sources.docker_container import NETWORK, in_stack, read_service
from earshot.sources.stack_resources import RegisteredResource, RegisteredStack
from earshot.topology.broker import ReachedListener
from earshot.topology.model import Deployment
from earshot.topology.names import HOST, Unknown
from earshot.topology.walk import Walk, walk
from earshot.topology.ways import Answer, HopKind, Outcome
from tests.topologies.compare import model_of, text_of
from tests.topologies.engine import bindings
from tests.topologies.generate import Document, Topology, topology

MACHINE = "198.51.100.7"


def random_topology_for_docker(seed: int) -> Topology:
    """A random topology without what a `docker.Container` has no property for."""
    random_topology = topology(seed, MACHINE, 1)
    for key, network in random_topology.document["networks"].items():
        network["name"] = network.get("name", f"net{key}")  # Compose's own have the project's name
    for service in random_topology.document["services"].values():
        service.pop("links", None)
        service.pop("container_name", None)
        if service.get("network_mode", "").startswith("service:"):
            service["network_mode"] = service["network_mode"].replace("service:", "container:")
    return random_topology


def as_resources(document: Document) -> Deployment:
    """The model of the document's services as resources of a Pulumi program."""
    networks = [
        RegisteredResource(
            NETWORK,
            f"urn:{key}",
            {"name": network["name"], "internal": network.get("internal", False)},
        )
        for key, network in document["networks"].items()
    ]
    stack = RegisteredStack(networks)
    services = [
        in_stack(read_service(inputs(document, name, service)), name, stack)
        for name, service in document["services"].items()
    ]
    return deployment(services)


def inputs(document: Document, name: str, service: Document) -> dict[str, Any]:
    """The inputs of `docker.Container`."""
    mode = service.get("network_mode", "")
    joined_networks = {} if mode else service.get("networks") or {"default": {}}
    ports = []
    for container_port, published_port in bindings(service).items():
        address, port = (
            published_port if isinstance(published_port, tuple) else ("", published_port)
        )
        ports.append(
            {"internal": container_port, "external": port, "ip": address}
            if port
            else {"internal": container_port}
        )
    return {
        "name": name,
        "image": service["image"],
        "hostname": service.get("hostname", ""),
        "envs": [f"{key}={value}" for key, value in service["environment"].items()],
        "ports": ports,
        "networkMode": mode,
        "networksAdvanced": [
            {
                "name": document["networks"][key]["name"],
                "aliases": [name, *(network_settings or {}).get("aliases", [])],
                "ipv4Address": (network_settings or {}).get("ipv4_address", ""),
            }
            for key, network_settings in joined_networks.items()
        ],
        "hosts": [
            dict(zip(("host", "ip"), host_entry.split(":", 1), strict=True))
            for host_entry in service.get("extra_hosts", [])
        ],
    }


def end_text(end: Outcome) -> str:
    if isinstance(end, ReachedListener):
        return f"{end.broker.service} {end.endpoint.name}"
    return "unknown" if isinstance(end, Unknown) else str(end)


@pytest.mark.parametrize("seed", range(150))
def test_the_same_walks(seed: int) -> None:
    random_topology = random_topology_for_docker(seed)
    model_of_file, model_of_resources = (
        model_of(text_of(random_topology)),
        as_resources(random_topology.document),
    )
    assert list(model_of_file.containers) == list(model_of_resources.containers)
    addresses = {bootstrap for client in model_of_file.bootstraps for bootstrap in client.addresses}
    endpoints = [bootstrap for broker in model_of_file.brokers for bootstrap in broker.for_clients]
    addresses |= {bootstrap.advertised for bootstrap in endpoints if bootstrap.advertised}
    addresses |= {Address("localhost", bootstrap.bind.port) for bootstrap in endpoints}
    for place in (HOST, *model_of_file.containers):
        for address in addresses:
            trace_of_file, trace_of_resources = (
                model_of_file.trace(place, address),
                model_of_resources.trace(place, address),
            )
            assert (end_text(trace_of_file.end), bool(trace_of_file.doubt)) == (
                end_text(trace_of_resources.end),
                bool(trace_of_resources.doubt),
            ), (
                place,
                address,
            )
    walks = [
        [hops(walk(bootstrap, client)) for client in bootstrap.bootstraps]
        for bootstrap in (model_of_file, model_of_resources)
    ]
    assert walks[0] == walks[1]


def hops(client_walk: Walk) -> list[tuple[HopKind, Answer]]:
    hops_to_brokers = (
        connection.hops for entrance in client_walk.connections for connection in entrance.sent
    )
    all_hops = (*(connection.hops for connection in client_walk.connections), *hops_to_brokers)
    return [(hop.kind, hop.answer) for hops_of_connection in all_hops for hop in hops_of_connection]
