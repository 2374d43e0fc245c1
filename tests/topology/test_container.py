"""Facts about a container's ports."""

import pytest

from earshot.topology.container import PublishedPort


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
