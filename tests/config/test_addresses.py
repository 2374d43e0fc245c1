"""Address strategies in a stack file: what is computed, and the one error for each mistake."""

from __future__ import annotations

from typing import Any

import pytest

from earshot.config.cluster_addresses import address_problems
from earshot.config.local import LocalSpec
from earshot.errors import SpecError
from tests.config.read import read_local


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


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ({"strategy": "port", "host": "k.example.com"}, "address: base_port: is missing"),
        ({"strategy": "port", "base_port": 9100}, "EXTERNAL.address.host: is missing"),
        (
            {**PORT, "pattern": "b-{id}"},
            (
                "address: pattern: found with strategy port; allowed: host, base_port, "
                "bootstrap_port, path"
            ),
        ),
        (
            {**PORT, "base_port": 65533},
            (
                "base_port: found 65533 with broker 3, which would have the port 65536; "
                "allowed: up to 65532"
            ),
        ),
        (
            {**PORT, "bootstrap_port": 9102},
            (
                "bootstrap_port: found 9102, which is the port of broker 2; "
                "allowed: a port that no broker has"
            ),
        ),
        (
            {**PORT, "base_port": 32765},
            (
                "base_port: found 32765, with which brokers have ports on both sides of an end of "
                "Kubernetes' node ports (30000 to 32767)"
            ),
        ),
        ({"strategy": "sni"}, "address: pattern: is missing; allowed: a name with {id}"),
        (
            {"strategy": "sni", "pattern": "kafka.example.com"},
            "address: pattern: found 'kafka.example.com'; allowed: a name with {id}",
        ),
        ({"strategy": "sni", "pattern": "b {id}"}, "address: pattern: "),
        (
            {"strategy": "sni", "pattern": "10.0.0.{id}"},
            "address: pattern: found '10.0.0.{id}', and TLS shows the gateway no IP address",
        ),
        (SNI, "strategy: found sni with PLAINTEXT, which shows no name when a client connects"),
        ({"strategy": "given"}, "advertised: has no address for broker 1, 2, 3"),
        ({"strategy": "given", "bootstrap_host": "k"}, "address: bootstrap_host: allowed: with"),
        ({"strategy": "nlb"}, "address.strategy: found"),
    ],
)
def test_each_mistake_has_one_error(address: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec(**address)
    line = caught.value.line
    assert "\n" not in line
    assert problem in line


def test_ports_of_one_name_do_not_overlap() -> None:
    other = {**PORT, "host": "Kafka.Example.com", "base_port": 9102}
    with pytest.raises(SpecError) as caught:
        cluster({"EXTERNAL": PORT, "PARTNERS": other})
    line = caught.value.line
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
