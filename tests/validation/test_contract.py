"""Reading a contract: what a client's tool may be handed, and what it says of rubbish."""

from __future__ import annotations

import json
from typing import Any

import pytest

from earshot.errors import EarshotError
from earshot.validation.contract import read_contract

GOOD: dict[str, Any] = {
    "version": 1,
    "cluster": "test",
    "placement": "local",
    "kafka_version": "4.1.1",
    "inter_broker": "INTERNAL",
    "listeners": [
        {
            "name": "INTERNAL",
            "protocol": "PLAINTEXT",
            "scopes": ["internal"],
            "bootstrap": "localhost:19092",
        }
    ],
    "brokers": [{"id": 1, "advertised": {"INTERNAL": {"host": "localhost", "port": 19092}}}],
}


def test_reads_what_it_writes() -> None:
    contract = read_contract(json.dumps(GOOD), "test")
    assert read_contract(contract.to_json(), "test") == contract


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        ("", "is no JSON"),
        ("[" * 100_000, r"is no JSON \(maximum recursion depth"),
        ('{"version": ' + "9" * 5000 + "}", r"is no JSON \(Exceeds the limit[^;]*\)\n"),
        ("null", "found nothing; allowed: a map"),
        ('{"a": 1}', "- cluster: is missing"),
        ('{"a": 1}', "- a: is no key that earshot knows"),
    ],
)
def test_each_fault_has_its_message(text: str, observed: str) -> None:
    with pytest.raises(EarshotError, match=observed) as found:
        read_contract(text, "c.json")
    assert str(found.value).startswith("c.json")


@pytest.mark.parametrize(
    ("key", "value", "observed"),
    [
        ("version", 2, "version: found 2; allowed: 1"),
        ("brokers", [], r"brokers: found \[\]; allowed: at least one"),
        ("brokers", GOOD["brokers"] * 2, "brokers: the id 1 stands there twice"),
        ("listeners", GOOD["listeners"] * 2, "listeners: INTERNAL stands there twice"),
        (
            "brokers",
            [{"id": 1, "advertised": {"OTHER": {"host": "localhost", "port": 1}}}],
            "brokers: 1 advertises OTHER, which is none of the listeners INTERNAL",
        ),
        ("brokers", [{"id": 1, "advertised": {}}], "brokers: 1 advertises nothing"),
        ("brokers", [{"id": 2**70, "advertised": {}}], "allowed: 2147483647 or less"),
    ],
)
def test_each_problem_names_its_key(key: str, value: object, observed: str) -> None:
    with pytest.raises(EarshotError, match=observed):
        read_contract(json.dumps(GOOD | {key: value}), "c.json")
