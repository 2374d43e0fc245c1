"""Facts about a container's ports."""

from dataclasses import replace
from typing import Any

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


FIXED = JoinedNetwork("n", address="10.9.0.5", subnets=("10.9.0.0/24",))


@pytest.mark.parametrize(
    ("changes", "host", "is_excluded"),
    [
        ({}, "10.9.0.6", True),
        ({"subnets": ("10.9.0.7/24",)}, "10.9.0.6", True),
        ({"subnets": ("fd00::/64", "10.9.0.0/24")}, "10.9.0.6", True),
        ({}, "10.9.0.5", False),
        ({}, "10.9.0.1", False),
        ({}, "10.9.1.6", False),
        ({}, "k1", False),
        ({"subnets": ("${NET}",)}, "10.9.0.6", False),
        ({"address": ""}, "10.9.0.6", False),
        ({"address": "${IP}"}, "10.9.0.6", False),
        ({"gateways": ("10.9.0.254",)}, "10.9.0.254", False),
        ({"gateways": ("${GATEWAY}",)}, "10.9.0.6", False),
        ({"is_routed": True}, "10.9.0.6", False),  # another machine may forward
        ({"subnets": ("fd00::/64", "10.9.0.0/24")}, "fd00::6", False),
    ],
)
def test_an_address_of_the_network_that_the_container_cannot_have(
    changes: dict[str, Any], host: str, is_excluded: bool
) -> None:
    assert replace(FIXED, **changes).excludes(host) is is_excluded
