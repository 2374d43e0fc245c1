"""One broker in a container with three listeners, each for clients in another place.

INTERNAL is the container's name on its network, HOST is localhost on a published port, EXTERNAL is
a name that only a DNS server of the test knows, on another published port.
"""

import contextlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass

from earshot.doctor.doctor import examine
from earshot.listeners.terms import Protocol, Scope
from earshot.validation.contract import (
    AdvertisedAddress,
    Contract,
    ContractBroker,
    ContractListener,
)
from tests.doubles.dns_server import dns_server
from tests.e2e.docker_engine import Engine
from tests.e2e.ports import free_ports

NAME = "never-gonna-give-you-up"
INTERNAL_PORT = 29092
READY_SECONDS = 60


@dataclass(frozen=True)
class LoneBroker:
    """A broker, its network, and the contract of its clients."""

    network: str
    gateway: str
    """This machine's address on that network."""
    container: str
    contract: Contract


@contextlib.contextmanager
def lone_broker(engine: Engine, image: str) -> Iterator[LoneBroker]:
    """A running broker, which is removed at the end."""
    name = f"lone-{secrets.token_hex(4)}"
    host, external = free_ports(2)
    advertised = {
        "INTERNAL": (name, INTERNAL_PORT),
        "HOST": ("localhost", host),
        "EXTERNAL": (NAME, external),
    }
    with contextlib.closing(engine.client()) as client, contextlib.ExitStack() as cleanup:
        network = client.networks.create(name)
        cleanup.callback(network.remove)
        network.reload()
        container = client.containers.run(
            image,
            detach=True,
            name=name,
            hostname=name,
            network=name,
            environment=_environment(advertised),
            ports={f"{port}/tcp": port for port in (host, external)},
        )
        cleanup.callback(container.remove, force=True, v=True)
        gateway = network.attrs["IPAM"]["Config"][0]["Gateway"]
        broker = LoneBroker(name, gateway, container.id, _contract(name, advertised))
        _await(broker.contract.for_scope(Scope.HOST))
        yield broker


@contextlib.contextmanager
def dns_for_broker(broker: LoneBroker) -> Iterator[str]:
    """A DNS server for containers that resolves the host's name. Yields its address."""
    with dns_server({NAME: (broker.gateway,)}, broker.gateway, 53):
        yield broker.gateway


def _await(contract: Contract) -> None:
    end = time.monotonic() + READY_SECONDS
    while (report := examine(contract, produce=False)).exit_code:
        assert time.monotonic() < end, report
        time.sleep(0.2)


def _environment(advertised: dict[str, tuple[str, int]]) -> dict[str, str]:
    listeners = [f"{name}://0.0.0.0:{port}" for name, (_, port) in advertised.items()]
    handed_out = [f"{name}://{host}:{port}" for name, (host, port) in advertised.items()]
    protocols = [f"{name}:PLAINTEXT" for name in [*advertised, "CONTROLLER"]]
    return {
        "KAFKA_NODE_ID": "0",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "0@localhost:9093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENERS": ",".join([*listeners, "CONTROLLER://localhost:9093"]),
        "KAFKA_ADVERTISED_LISTENERS": ",".join(handed_out),
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": ",".join(protocols),
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_HEAP_OPTS": "-Xmx256m",
    }


def _contract(name: str, advertised: dict[str, tuple[str, int]]) -> Contract:
    scopes = {"INTERNAL": Scope.INTERNAL, "HOST": Scope.HOST, "EXTERNAL": Scope.EXTERNAL}
    return Contract(
        cluster=name,
        placement="docker",
        kafka_version="4.1.1",
        inter_broker="INTERNAL",
        listeners=tuple(
            ContractListener(
                name=listener,
                protocol=Protocol.PLAINTEXT,
                scopes=(scopes[listener],),
                bootstrap=f"{host}:{port}",
            )
            for listener, (host, port) in advertised.items()
        ),
        brokers=(
            ContractBroker(
                id=0,
                advertised={
                    listener: AdvertisedAddress(host=host, port=port)
                    for listener, (host, port) in advertised.items()
                },
            ),
        ),
    )
