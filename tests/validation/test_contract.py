"""Reading a contract: what a client's tool may be handed, and what it says of rubbish."""

import json
from typing import Any

import pytest

from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.validation.contract import Contract, read_contract
from tests.raised import raised
from tests.transition.pairs import planned
from tests.transition.test_steps import INTERNAL

GOOD: dict[str, Any] = {
    "version": 1,
    "cluster": "test",
    "placement": "local",
    "kafka_version": "4.1.1",
    "inter_broker": "INTERNAL",
    "listeners": [{"name": "INTERNAL", "protocol": "PLAINTEXT", "scopes": ["internal"],
                   "bootstrap": "localhost:19092"}],
    "brokers": [{"id": 1, "advertised": {"INTERNAL": {"host": "localhost", "port": 19092}}}],
}  # fmt: skip


def test_reads_what_it_writes() -> None:
    contract = read_contract(json.dumps(GOOD), "test")
    assert read_contract(contract.to_json(), "test") == contract


def test_the_inter_broker_listener_of_a_cluster_that_was_only_looked_at_is_unknown() -> None:
    unnamed = {key: value for key, value in GOOD.items() if key != "inter_broker"}
    contract = read_contract(json.dumps(unnamed), "test")
    assert contract.inter_broker is None
    assert read_contract(contract.to_json(), "test") == contract


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, r"is not JSON \(recursion limit"),
        ('{"version": ' + "9" * 5000 + "}", r"is not JSON \(number out of range"),
        ('{"\\ud800": 1}', r"is not JSON \(unexpected end of hex escape"),
        ("null", "found nothing; allowed: a map"),
        ('{"a": 1}', "- cluster: is missing"),
        ('{"a": 1}', "- a: is no key that earshot knows"),
    ],
)
def test_each_fault_has_its_message(text: str, observed: str) -> None:
    with pytest.raises(EarshotError, match=observed) as found:
        read_contract(text, "c.json")
    assert str(found.value).startswith("c.json")


@pytest.mark.parametrize(("key", "value", "observed"), [
    ("version", 4, "version: found 4; allowed: 1, 2 or 3"),
    ("version", True, "version: found true; allowed: a number"),
    ("cluster_id", "", "cluster_id: found ''; allowed: 1 character or more"),
    ("brokers", [], r"brokers: found \[\]; allowed: at least one"),
    ("brokers", GOOD["brokers"] * 2, "brokers: the id 1 occurs twice"),
    ("listeners", GOOD["listeners"] * 2, "listeners: INTERNAL occurs twice"),
    ("listeners", [GOOD["listeners"][0] | {"bootstrap": "a:1,"}],
     r"listeners: bootstrap: address '': has no port; allowed: host:port or \[ipv6\]:port"),
    ("brokers", [{"id": 1, "advertised": {"OTHER": {"host": "localhost", "port": 1}}}],
     "brokers: 1 advertises OTHER, which is not one of the listeners INTERNAL"),
    ("brokers", [{"id": 1, "advertised": {}}], "brokers: 1 advertises nothing"),
    ("listeners", [*GOOD["listeners"], GOOD["listeners"][0] | {"name": "EXTERNAL"}],
     "listeners: EXTERNAL is advertised by no broker"),
    ("brokers", [{"id": 2**70, "advertised": {}}], "allowed: 2147483647 or less"),
])  # fmt: skip
def test_each_problem_names_its_key(key: str, value: object, observed: str) -> None:
    with pytest.raises(EarshotError, match=observed):
        read_contract(json.dumps(GOOD | {key: value}), "c.json")


def test_a_contract_of_an_earlier_release_names_no_cluster() -> None:
    assert read_contract(json.dumps(GOOD), "test").cluster_id is None


def test_a_contract_is_of_the_present_version_unless_it_says_otherwise() -> None:
    unsaid = {key: value for key, value in GOOD.items() if key != "version"}
    assert Contract.model_validate(unsaid).version == 3


def test_a_listener_that_is_leaving_is_marked_and_in_earlier_contracts_none_is() -> None:
    assert [listener.leaving for listener in read_contract(json.dumps(GOOD), "test").listeners] == [
        False
    ]
    plan = planned({"brokers": 2, "listeners": [INTERNAL, INTERNAL | {"name": "REPL", "port": 2}]})
    contract = Contract.of(plan, "c", "local", leaving=["INTERNAL"])
    assert {it.name: it.leaving for it in contract.listeners} == {"INTERNAL": True, "REPL": False}
    assert read_contract(contract.to_json(), "test") == contract


def test_the_cluster_is_named_in_every_part() -> None:
    contract = read_contract(json.dumps(GOOD | {"version": 2, "cluster_id": "C"}), "test")
    assert contract.cluster_id == "C"
    assert contract.for_scope(Scope.INTERNAL).cluster_id == "C"
    assert contract.identified("D").cluster_id == "D"
    assert read_contract(contract.to_json(), "test") == contract


def with_listeners(*listeners: tuple[str, list[str], list[int]]) -> Contract:
    """Of (name, scopes, ids of the brokers that have it)."""
    document = dict(GOOD)
    document["listeners"] = [
        {"name": name, "protocol": "PLAINTEXT", "scopes": scopes, "bootstrap": "b1:9092"}
        for name, scopes, _ in listeners
    ]
    document["brokers"] = []
    for broker in (1, 2):
        names = (name for name, _, ids in listeners if broker in ids)
        advertised = {name: {"host": f"b{broker}", "port": 9092} for name in names}
        document["brokers"].append({"id": broker, "advertised": advertised})
    return read_contract(json.dumps(document), "test")


def test_a_scope_sees_its_listeners_and_their_brokers() -> None:
    contract = with_listeners(
        ("OUT", ["external"], [1, 2]), ("BOTH", ["internal", "external"], [1]), ("IN", [], [2])
    )

    def advertised(part: Contract) -> dict[int, set[str]]:
        return {broker.id: set(broker.advertised) for broker in part.brokers}

    assert contract.scopes == (Scope.INTERNAL, Scope.EXTERNAL)
    outer, inner = contract.for_scope(Scope.EXTERNAL), contract.for_scope(Scope.INTERNAL)
    assert [listener.name for listener in outer.listeners] == ["OUT", "BOTH"]
    assert advertised(outer) == {1: {"OUT", "BOTH"}, 2: {"OUT"}}
    assert [listener.name for listener in inner.listeners] == ["BOTH"]
    assert advertised(inner) == {1: {"BOTH"}}
    assert (inner.cluster, inner.placement) == (contract.cluster, contract.placement)
    assert read_contract(inner.to_json(), "a container's") == inner


def test_a_contract_of_hostile_size_is_one_error() -> None:
    """Each listener would have clients of its own, each with a thread per broker."""

    def refusal(**changes: object) -> str:
        return str(raised(EarshotError, read_contract, json.dumps(GOOD | changes), "test"))

    listeners = [GOOD["listeners"][0] | {"name": f"L{number}"} for number in range(5000)]
    error = refusal(listeners=listeners)
    assert "listeners: found [" in error and error.endswith("; allowed: 100 at most")
    assert len(error) < 300
    address = GOOD["brokers"][0]["advertised"]["INTERNAL"]
    advertised = dict.fromkeys((f"L{number}" for number in range(100)), address)
    brokers = [{"id": id, "advertised": advertised} for id in range(201)]
    error = refusal(listeners=listeners[:100], brokers=brokers)
    assert "brokers: found 20,100 addresses; allowed: 20,000 at most" in error
    assert refusal(brokers=[{} for _ in range(20_000)]).count("\n  - ") == 20, "some are named"


def test_an_address_that_is_named_twice_is_one() -> None:
    listener = GOOD["listeners"][0] | {"bootstrap": "a:1,b:1,a:1"}
    contract = read_contract(json.dumps(GOOD | {"listeners": [listener]}), "c.json")
    assert [str(address) for _, address in contract.bootstraps] == ["a:1", "b:1"]


@pytest.mark.parametrize("placement", ["nonsense", "", "Docker", "docker "])
def test_a_contract_is_of_a_known_placement(placement: str) -> None:
    plan = planned({"brokers": 1})
    error = raised(EarshotError, Contract.of, plan, "c", placement)
    assert "allowed: local, docker, aws, given" in str(error)
    for known in ("local", "docker", "aws", "given"):
        assert Contract.of(plan, "c", known).placement == known
