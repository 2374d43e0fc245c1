"""The addresses of this machine that the tunnel forwards to brokers."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.tunnel.places import MAX_BROKERS, Ports, bound, loopback_addresses, write_hosts
from earshot.tunnel.rewriting import RewriteError
from tests.e2e.ports import free_ports


@pytest.fixture
def ports() -> Iterator[Ports]:
    servers: list[socket.socket] = []
    (first_port,) = free_ports(1)
    yield Ports(first_port, lambda server, _: servers.append(server))
    for server in servers:
        server.close()


def test_a_broker_keeps_its_port(ports: Ports) -> None:
    first_broker, second_broker = Address("kafka-1", 9092), Address("kafka-2", 9092)
    assert ports.local(first_broker) == Address("127.0.0.1", ports.first + 1)
    assert ports.local(second_broker) == Address("127.0.0.1", ports.first + 2)
    assert ports.local(first_broker) == Address("127.0.0.1", ports.first + 1)


def test_a_cluster_that_lists_brokers_without_end_opens_no_more_ports(ports: Ports) -> None:
    ports.local_addresses = {
        Address(f"kafka-{id}", 9092): Address("", 1) for id in range(MAX_BROKERS)
    }
    with pytest.raises(RewriteError, match="more than 2,000 addresses"):
        ports.local(Address("kafka-new", 9092))


def test_a_taken_port_is_one_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as port_holder:
        address = Address("127.0.0.1", port_holder.getsockname()[1])
        with pytest.raises(EarshotError, match="choose another --port"):
            bound(address)


def test_each_host_has_an_address_that_stays() -> None:
    brokers = [Address("a.test", 1), Address("A.test", 2), Address("b.test", 1)]
    addresses = loopback_addresses(brokers, "prod")
    assert addresses == loopback_addresses(brokers, "prod")
    assert [*addresses] == ["a.test", "b.test"]
    assert [address.rpartition(".")[2] for address in addresses.values()] == ["1", "2"]
    assert all(
        address.startswith("127.") and not address.startswith("127.0.")
        for address in addresses.values()
    )


@pytest.mark.parametrize("host", ["10.0.0.1", "localhost", "::1"])
def test_a_host_that_no_file_of_hosts_can_move_is_refused(host: str) -> None:
    with pytest.raises(EarshotError, match="cannot have another address here"):
        loopback_addresses([Address(host, 1)], "prod")


def test_names_come_before_those_of_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    write_hosts(file, {"kafka-1": "127.9.9.1"})
    assert file.read_text().startswith("127.9.9.1\tkafka-1\n")
