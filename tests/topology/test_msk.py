"""Corrected ports of addresses of Amazon MSK brokers."""

import pytest

from earshot.listeners.address import Address
from earshot.topology.msk import corrected_address, is_msk_broker

PUBLIC = "b-1-public.demo.abc123.c5.kafka.eu-central-1.amazonaws.com"
PRIVATE = "b-1.demo.abc123.c5.kafka.eu-central-1.amazonaws.com"


@pytest.mark.parametrize(
    ("host", "port", "corrected_port"),
    [
        (PUBLIC, 9098, 9198),
        (PUBLIC, 9096, 9196),
        (PUBLIC, 9094, 9194),
        (PUBLIC, 9092, None),  # there is no public port without TLS
        (PUBLIC, 9198, None),
        (PRIVATE, 9198, 9098),
        (PRIVATE, 9098, None),
        (PRIVATE, 14001, None),
        ("kafka.example.com", 9198, None),
    ],
)
def test_which_port_is_meant(host: str, port: int, corrected_port: int | None) -> None:
    assert corrected_address(Address(host, port)) == (
        Address(host, corrected_port) if corrected_port else None
    )


def test_names_of_brokers() -> None:
    assert is_msk_broker(PUBLIC) and is_msk_broker(PRIVATE.upper())
    assert not is_msk_broker("boot-1.c1.kafka-serverless.eu-central-1.amazonaws.com")
