"""Facts about a container's ports."""

import pytest

from earshot.topology.container import JoinedNetwork, PublishedPort


@pytest.mark.parametrize(
    ("port", "text"),
    [
        (PublishedPort(9092, 29092), "29092->9092"),
        (PublishedPort(9092, None), "(chosen by Docker)->9092"),
        (PublishedPort(9092, 29092, "127.0.0.1"), "127.0.0.1:29092->9092"),
        (PublishedPort(9092, 29092, "::1"), "[::1]:29092->9092"),
    ],
)
def test_a_published_port_is_written_as_docker_does(port: PublishedPort, text: str) -> None:
    assert str(port) == text


@pytest.mark.parametrize(
    ("network", "host", "is_excluded"),
    [
        (JoinedNetwork("n", address="10.9.0.5", subnets=("10.9.0.0/24",)), "10.9.0.6", True),
        (JoinedNetwork("n", address="10.9.0.5", subnets=("10.9.0.7/24",)), "10.9.0.6", True),
        (JoinedNetwork("n", address="10.9.0.5", subnets=("10.9.0.0/24",)), "10.9.0.5", False),
        (JoinedNetwork("n", address="10.9.0.5", subnets=("10.9.0.0/24",)), "10.9.0.1", False),
        (JoinedNetwork("n", address="10.9.0.5", subnets=("10.9.0.0/24",)), "10.9.1.6", False),
        (JoinedNetwork("n", address="10.9.0.5", subnets=("10.9.0.0/24",)), "k1", False),
        (JoinedNetwork("n", address="10.9.0.5", subnets=("${NET}",)), "10.9.0.6", False),
        (JoinedNetwork("n", subnets=("10.9.0.0/24",)), "10.9.0.6", False),
        (
            JoinedNetwork(
                "n", address="10.9.0.5", subnets=("10.9.0.0/24",), gateways=("10.9.0.254",)
            ),
            "10.9.0.254",
            False,
        ),
    ],
)
def test_an_address_of_the_network_that_the_container_cannot_have(
    network: JoinedNetwork, host: str, is_excluded: bool
) -> None:
    assert network.excludes(host) is is_excluded
