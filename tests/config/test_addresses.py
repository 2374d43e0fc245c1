"""Address strategies in a stack file: what is computed, and the one error for each mistake."""

from pathlib import Path
from typing import Any

import pytest

from earshot.config.cluster_addresses import address_problems
from earshot.config.local import LocalSpec
from earshot.errors import SpecError
from tests.config.read import read_local
from tests.goldens import refusals_are_golden
from tests.raised import raised

MISTAKES = Path(__file__).parent / "mistakes"
"""The texts of refusals, which `EARSHOT_WRITE_GOLDENS=1` writes."""


def spec(brokers: int = 3, *, protocol: str = "PLAINTEXT", **address: Any) -> LocalSpec:
    """A cluster whose listener EXTERNAL has this ``address``."""
    return cluster({"EXTERNAL": address}, brokers=brokers, protocol=protocol)


def cluster(
    addresses: dict[str, dict[str, Any]], *, brokers: int = 3, protocol: str = "PLAINTEXT"
) -> LocalSpec:
    return read_local(
        {
            "placement": "local",
            "brokers": brokers,
            "listeners": [
                {"name": "INTERNAL", "port": 19092, "scopes": "internal"},
                *(
                    {
                        "name": name,
                        "port": 9092 + 10 * index,
                        "scopes": "external",
                        "protocol": protocol,
                        "address": address,
                    }
                    for index, (name, address) in enumerate(addresses.items())
                ),
            ],
        }
    )


PORT: dict[str, Any] = {"strategy": "port", "host": "kafka.example.com", "base_port": 9100}
SNI: dict[str, Any] = {"strategy": "sni", "pattern": "broker-{id}.example.com"}


def test_each_mistake_has_one_error() -> None:
    mistakes: list[Any] = [
        {"strategy": "port", "host": "k.example.com"},
        {"strategy": "port", "base_port": 9100},
        {**PORT, "pattern": "b-{id}"},
        {**PORT, "base_port": 65533},
        {**PORT, "bootstrap_port": 9102},
        {**PORT, "base_port": 32765},
        {"strategy": "sni"},
        {"strategy": "sni", "pattern": "kafka.example.com"},
        {"strategy": "sni", "pattern": "b {id}"},
        {"strategy": "sni", "pattern": "10.0.0.{id}"},
        SNI,
        {"strategy": "given"},
        {"strategy": "given", "bootstrap_host": "k"},
        {"strategy": "nlb"},
    ]
    refusals_are_golden(
        mistakes, lambda it: raised(SpecError, spec, **it).line, MISTAKES / "addresses.txt"
    )


def test_ports_of_one_name_do_not_overlap() -> None:
    other = {**PORT, "host": "Kafka.Example.com", "base_port": 9102}
    error = raised(SpecError, cluster, {"EXTERNAL": PORT, "PARTNERS": other})
    line = error.line
    assert "\n" not in line
    assert "PARTNERS.address: found port 9103 of kafka.example.com for broker 1" in line
    assert "which EXTERNAL has already" in line
    # another name has ports of its own
    cluster({"EXTERNAL": PORT, "PARTNERS": {**other, "host": "partners.example.com"}})


def test_brokers_reach_each_other_without_a_forwarder() -> None:
    with pytest.raises(SpecError) as caught:
        read_local(
            {
                "placement": "local",
                "listeners": [
                    {"name": "INTERNAL", "port": 1, "scopes": "internal", "address": PORT}
                ],
            }
        )
    line = caught.value.line
    assert "\n" not in line
    assert "strategy: found port on the listener between brokers; allowed: own, given" in line


def test_an_address_by_hand_does_not_go_with_one_that_is_computed() -> None:
    with pytest.raises(SpecError) as caught:
        read_local(
            {
                "placement": "local",
                "listeners": [
                    {"name": "INTERNAL", "port": 1, "scopes": "internal"},
                    {
                        "name": "EXTERNAL",
                        "port": 9092,
                        "scopes": "external",
                        "address": PORT,
                        "advertised": {"1": "kafka-1.example.com"},
                    },
                ],
            }
        )
    line = caught.value.line
    assert "\n" not in line
    assert "advertised: found with strategy port, which computes all addresses" in line


def test_node_ports_are_all_within_their_range_or_none_is() -> None:
    spec(**{**PORT, "base_port": 30_000})
    spec(**{**PORT, "base_port": 9100})


def test_ids_beyond_all_ports_have_no_base_port() -> None:
    listener = spec(**PORT).listeners[-1]
    (problem,) = address_problems([listener], [100_000], "INTERNAL")
    assert "would have the port 109100; allowed: for ids below 65535" in problem
