"""The same topology gives the same walks as a Compose file and as `docker.Container` resources."""

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
from earshot.topology.ways import Answer, Outcome, Stage
from tests.topologies.compare import modelled, text_of
from tests.topologies.engine import bindings
from tests.topologies.generate import Document, Topology, topology

MACHINE = "198.51.100.7"


def drawn(seed: int) -> Topology:
    """A random topology without what a `docker.Container` has no property for."""
    found = topology(seed, MACHINE, 1)
    for key, network in found.document["networks"].items():
        network["name"] = network.get("name", f"net{key}")  # Compose's own have the project's name
    for service in found.document["services"].values():
        service.pop("links", None)
        service.pop("container_name", None)
        if service.get("network_mode", "").startswith("service:"):
            service["network_mode"] = service["network_mode"].replace("service:", "container:")
    return found


def as_resources(document: Document) -> Deployment:
    """The same, as a Pulumi program registers it."""
    networks = [
        RegisteredResource(
            NETWORK, f"urn:{key}", {"name": it["name"], "internal": it.get("internal", False)}
        )
        for key, it in document["networks"].items()
    ]
    stack = RegisteredStack(networks)
    services = [
        in_stack(read_service(inputs(document, name, it)), name, stack)
        for name, it in document["services"].items()
    ]
    return deployment(services)


def inputs(document: Document, name: str, service: Document) -> dict[str, Any]:
    """The inputs of `docker.Container`."""
    mode = service.get("network_mode", "")
    joined = {} if mode else service.get("networks") or {"default": {}}
    ports = []
    for inside, outside in bindings(service).items():
        address, port = outside if isinstance(outside, tuple) else ("", outside)
        ports.append(
            {"internal": inside, "external": port, "ip": address} if port else {"internal": inside}
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
                "aliases": [name, *(own or {}).get("aliases", [])],
                "ipv4Address": (own or {}).get("ipv4_address", ""),
            }
            for key, own in joined.items()
        ],
        "hosts": [
            dict(zip(("host", "ip"), item.split(":", 1), strict=True))
            for item in service.get("extra_hosts", [])
        ],
    }


def shown(end: Outcome) -> str:
    if isinstance(end, ReachedListener):
        return f"{end.broker.service} {end.endpoint.name}"
    return "unknown" if isinstance(end, Unknown) else str(end)


@pytest.mark.parametrize("seed", range(150))
def test_the_same_walks(seed: int) -> None:
    found = drawn(seed)
    one, other = modelled(text_of(found)), as_resources(found.document)
    assert list(one.containers) == list(other.containers)
    addresses = {it for client in one.bootstraps for it in client.addresses}
    endpoints = [it for broker in one.brokers for it in broker.for_clients]
    addresses |= {it.advertised for it in endpoints if it.advertised}
    addresses |= {Address("localhost", it.bind.port) for it in endpoints}
    for place in (HOST, *one.containers):
        for address in addresses:
            here, there = one.trace(place, address), other.trace(place, address)
            assert (shown(here.end), here.answer) == (shown(there.end), there.answer), (
                place,
                address,
            )
    walks = [[hops(walk(it, client)) for client in it.bootstraps] for it in (one, other)]
    assert walks[0] == walks[1]


def hops(found: Walk) -> list[tuple[Stage, Answer]]:
    sent = (it.hops for entrance in found.connections for it in entrance.sent)
    walked = (*(it.hops for it in found.connections), *sent)
    return [(hop.stage, hop.answer) for listed in walked for hop in listed]
