"""Ports that tests draw for their brokers."""

from tests.e2e.ports import consecutive_ports, free_ports, own_range, reserved_ports


def test_no_port_is_given_twice_while_there_are_others() -> None:
    ports = [*free_ports(2), *consecutive_ports(2, 3), *reserved_ports(2, 1), *free_ports(30)]
    runs = {port + offset for port in ports[2:6] for offset in range(3)}
    assert len(runs) == 12 and runs.isdisjoint({*ports[:2], *ports[6:]})
    assert len(set(ports)) == len(ports) and set(ports) <= set(own_range())
