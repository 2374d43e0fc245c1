"""Address strategies in a stack file: what is computed, and the one error for each mistake."""

from pathlib import Path
from typing import Any

from earshot.config.cluster_addresses import address_problems
from earshot.config.local import LocalSpec
from earshot.errors import SpecError
from tests.config.read import read_local
from tests.goldens import refusals_are_golden
from tests.raised import raised

MISTAKES = Path(__file__).parent / "mistakes"
"""The texts of refusals, which `EARSHOT_WRITE_GOLDENS=1` writes."""


INTERNAL: dict[str, Any] = {"name": "INTERNAL", "port": 19092, "scopes": "internal"}
PORT: dict[str, Any] = {"strategy": "port", "host": "kafka.example.com", "base_port": 9100}
PARTNERS: dict[str, Any] = {**PORT, "host": "Kafka.Example.com", "base_port": 9102}
SNI: dict[str, Any] = {"strategy": "sni", "pattern": "broker-{id}.example.com"}


def outer(name: str, port: int = 9092, **keys: Any) -> dict[str, Any]:
    return {"name": name, "port": port, "scopes": "external", **keys}


def read(*listeners: dict[str, Any], brokers: int = 3) -> LocalSpec:
    return read_local({"placement": "local", "brokers": brokers, "listeners": listeners})


def spec(brokers: int = 3, *, protocol: str = "PLAINTEXT", **address: Any) -> LocalSpec:
    """A cluster whose listener EXTERNAL has this ``address``."""
    return read(INTERNAL, outer("EXTERNAL", protocol=protocol, address=address), brokers=brokers)


def test_each_mistake_has_one_error() -> None:
    addresses: list[Any] = [
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
    external = outer("EXTERNAL", address=PORT)
    mistakes = [
        *([INTERNAL, outer("EXTERNAL", address=address)] for address in addresses),
        [INTERNAL, external, outer("PARTNERS", 9102, address=PARTNERS)],
        [INTERNAL | {"address": PORT}],
        [INTERNAL, external | {"advertised": {"1": "kafka-1.example.com"}}],
    ]
    refusals_are_golden(
        mistakes,
        lambda listeners: raised(SpecError, read, *listeners).line,
        MISTAKES / "addresses.txt",
    )


def test_listeners_with_other_names_or_ports_are_accepted() -> None:
    partners = {**PARTNERS, "host": "partners.example.com"}
    read(INTERNAL, outer("EXTERNAL", address=PORT), outer("PARTNERS", 9102, address=partners))
    spec(**{**PORT, "base_port": 30_000})  # all within the range of node ports
    spec(**PORT)


def test_ids_above_all_ports_have_no_base_port() -> None:
    listener = spec(**PORT).listeners[-1]
    (problem,) = address_problems([listener], [100_000], "INTERNAL")
    assert "would have the port 109100; allowed: for ids below 65535" in problem
